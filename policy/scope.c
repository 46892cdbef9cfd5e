/*
 * SPDX-License-Identifier: ISC
 *
 * Compiled path scopes: roots in both spellings, templates, deny globs, and
 * the lexical half of resolving a path.  What really lies at a path is known
 * only from facts (admit.c).  Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/engine.h"

/* ---- deny globs ---- */

static int
pglobs_add(struct pglobs *gs, const char *text, const char **why)
{
	struct pglob *g = grow((void **)&gs->v, &gs->n, sizeof(*g));

	*why = NULL;
	if (g == NULL)
		return -1;
	g->relative = glob_needs_anchor(text);
	g->g = glob_new(text, "", why);
	g->text = strdup(text);
	return g->g != NULL && g->text != NULL ? 0 : -1;
}

int
pglobs_compile(struct pglobs *gs, const struct strlist *texts,
    const struct origin *at, struct findings *fs)
{
	const char *why;
	int bad = 0;
	size_t i;

	for (i = 0; i < texts->n; i++) {
		if (pglobs_add(gs, texts->v[i], &why) == 0)
			continue;
		if (why == NULL) {
			fs->nomem = 1;
			return -1;
		}
		findings_add(fs, FIND_ERROR, "config.pattern_invalid", at->file,
		    at->line, at->col, "pattern \"%s\": %s", texts->v[i], why);
		bad = -1;
	}
	return bad;
}

void
pglobs_clear(struct pglobs *gs)
{
	size_t i;

	for (i = 0; i < gs->n; i++) {
		glob_free(gs->v[i].g);
		free(gs->v[i].text);
	}
	free(gs->v);
	memset(gs, 0, sizeof(*gs));
}

struct respell {
	struct pglobs *gs;
	const char *to;
};

static int
respell_cb(const char *rest, void *arg)
{
	const struct respell *re = arg;
	char *text = glob_quote(re->to, rest);
	const char *why;
	int r;

	if (text == NULL)
		return -1;
	r = pglobs_add(re->gs, text, &why);
	free(text);
	return r;
}

int
pglobs_respell(struct pglobs *gs, const char *from, const char *to)
{
	struct respell re = {gs, to};
	size_t i, n = gs->n;

	for (i = 0; i < n; i++)
		if (!gs->v[i].relative &&
		    glob_rests(gs->v[i].g, from, respell_cb, &re) != 0)
			return -1;
	return 0;
}

/* A relative glob was compiled below "/"; show it the path as if the root
 * were there.  tail points into a path, behind a slash unless it is "". */
static const char *
as_if_root(const char *tail)
{
	return *tail == '\0' ? "/" : tail - 1;
}

int
pglobs_cover(const struct policy *p, const struct pglobs *gs,
    const struct scope_root *roots, size_t nroots, const char *path)
{
	const char *tail;
	size_t i, r;

	for (i = 0; i < gs->n; i++) {
		const struct pglob *g = &gs->v[i];

		if (!g->relative) {
			if (glob_covers(g->g, path))
				return 1;
			continue;
		}
		for (r = 0; r < nroots; r++) {
			tail = root_tail(p, &roots[r], NULL, path);
			if (tail != NULL && glob_covers(g->g, as_if_root(tail)))
				return 1;
		}
	}
	return 0;
}

/* The text of a relative glob below one root. */
static char *
anchored_text(const struct policy *p, const struct scope_root *sr,
    const char *sub, const char *pattern)
{
	char *rest, *text;
	size_t n, m = strlen(pattern);

	if (sr->tmpl == TMPL_NONE)
		return glob_quote(p->roots[sr->root].canon, pattern);
	/* Another caller's directory is as good as any: what is denied there
	 * is not this caller's business. */
	if (sub == NULL)
		sub = "*";
	n = strlen(sub);
	rest = malloc(n + m + 2);
	if (rest == NULL)
		return NULL;
	memcpy(rest, sub, n);
	rest[n] = '/';
	memcpy(rest + n + 1, pattern, m + 1);
	text = glob_quote(p->roots[sr->root].canon, rest);
	free(rest);
	return text;
}

int
pglobs_texts(const struct policy *p, const struct pglobs *gs,
    const struct scope_root *roots, size_t nroots, const struct subs *subs,
    struct strlist *out)
{
	size_t i, r;
	char *text;
	int bad;

	for (i = 0; i < gs->n; i++) {
		const char *t = gs->v[i].text;

		if (!gs->v[i].relative) {
			if (strlist_add(out, t, strlen(t)) == -1)
				return -1;
			continue;
		}
		for (r = 0; r < nroots; r++) {
			text = anchored_text(
			    p, &roots[r], root_sub(&roots[r], subs), t);
			if (text == NULL)
				return 1;
			bad = strlist_add(out, text, strlen(text));
			free(text);
			if (bad == -1)
				return -1;
		}
	}
	return 0;
}

/* ---- roots ---- */

static int
root_parse(struct policy *p, const char *text, int anywhere,
    struct scope_root *sr, const char **why)
{
	char path[ABX_PATH_MAX + 1], *last;
	long n;

	*why = "it is no absolute path";
	if (!path_acceptable(text) || path_normal_into(text, path) == -1)
		return -1;
	*why = "a root is never /";
	if (!anywhere && strcmp(path, "/") == 0)
		return -1;
	sr->tmpl = TMPL_NONE;
	last = strrchr(path, '/');
	if (strcmp(last, "/{principal.id}") == 0)
		sr->tmpl = TMPL_ID;
	else if (strcmp(last, "/{session}") == 0)
		sr->tmpl = TMPL_SESSION;
	if (sr->tmpl != TMPL_NONE)
		*last = '\0';
	if (sr->tmpl == TMPL_SESSION && p->ws_dir != NULL &&
	    strcmp(path, p->ws_dir) == 0)
		sr->tmpl = TMPL_WORKSPACE;
	*why = "{principal.id} and {session} stand alone as the last component";
	if (path[0] == '\0' || strchr(path, '{') != NULL)
		return -1;
	*why = "there are too many roots";
	n = policy_root_add(p, path);
	if (n == -1)
		*why = NULL;
	if (n < 0)
		return -1;
	sr->root = (uint32_t)n;
	if (sr->tmpl == TMPL_WORKSPACE)
		p->ws_root = n;
	return 0;
}

/* anywhere: the one root that may be "/". */
static int
scope_roots(struct policy *p, struct pscope *s, const struct path_scope *from,
    const struct origin *at, struct findings *fs)
{
	size_t i, n = from->anywhere ? 1 : from->roots.n;
	const char *text, *why;
	int bad = 0;

	if (n > ABX_MAX_ROOTREFS) {
		findings_add(fs, FIND_ERROR, "config.root_invalid", at->file,
		    at->line, at->col, "more than %d roots in one scope",
		    ABX_MAX_ROOTREFS);
		return -1;
	}
	s->roots = calloc(n + 1, sizeof(*s->roots));
	if (s->roots == NULL) {
		fs->nomem = 1;
		return -1;
	}
	for (i = 0; i < n; i++) {
		text = from->anywhere ? "/" : from->roots.v[i];
		if (root_parse(p, text, from->anywhere, &s->roots[s->nroots],
			&why) == 0) {
			s->nroots++;
			continue;
		}
		bad = -1;
		if (why == NULL)
			fs->nomem = 1;
		else
			findings_add(fs, FIND_ERROR, "config.root_invalid",
			    at->file, at->line, at->col, "root \"%s\": %s",
			    text, why);
	}
	return bad;
}

int
pscope_compile(struct policy *p, struct pscope *s,
    const struct path_scope *from, const struct origin *at, struct findings *fs)
{
	int bad = scope_roots(p, s, from, at, fs);

	if (pglobs_compile(&s->deny, &from->deny, at, fs) == -1)
		bad = -1;
	s->max_bytes = from->max_bytes;
	s->readonly = from->readonly || p->ceiling.readonly;
	s->nosymlinks = from->symlinks_deny;
	s->create_dirs = from->create_dirs;
	/* Several names are harmless where nothing is written or denied; that
	 * somebody else forbids writing must not let more through. */
	s->hardlinks =
	    from->allow_hardlinks || (from->readonly && from->deny.n == 0);
	return bad;
}

void
pscope_clear(struct pscope *s)
{
	free(s->roots);
	pglobs_clear(&s->deny);
	memset(s, 0, sizeof(*s));
}

const char *
root_sub(const struct scope_root *sr, const struct subs *subs)
{
	switch (sr->tmpl) {
	case TMPL_ID:
		return subs->id;
	case TMPL_SESSION:
		return subs->session;
	case TMPL_WORKSPACE:
		return subs->workspace;
	case TMPL_NONE:
		break;
	}
	return "";
}

const char *
root_tail(const struct policy *p, const struct scope_root *sr, const char *sub,
    const char *path)
{
	const struct proot *r = &p->roots[sr->root];
	const char *tail = path_below(r->canon, path);
	size_t n;

	if (tail == NULL && r->path != r->canon)
		tail = path_below(r->path, path);
	if (tail == NULL || sr->tmpl == TMPL_NONE)
		return tail;
	n = strcspn(tail, "/");
	if (n == 0 ||
	    (sub != NULL && (strlen(sub) != n || memcmp(sub, tail, n) != 0)))
		return NULL;
	return tail[n] == '/' ? tail + n + 1 : tail + n;
}

/* root[/sub][/rel] with the canonical spelling: 0 or -1. */
static int
spell(const struct policy *p, const struct scope_root *sr, const char *sub,
    const char *rel, char out[ABX_PATH_MAX + 1])
{
	char dir[ABX_PATH_MAX + 1];
	const char *root = p->roots[sr->root].canon;

	if (sr->tmpl == TMPL_NONE)
		return path_join_into(root, rel, out);
	return path_join_into(root, sub, dir) == -1
		   ? -1
		   : path_join_into(dir, rel, out);
}

int
pscope_spell(const struct policy *p, const struct pscope *s,
    const struct subs *subs, const char *path, char out[ABX_PATH_MAX + 1])
{
	const char *sub, *tail, *best = NULL, *best_sub = NULL;
	size_t i, at = 0;

	for (i = 0; i < s->nroots; i++) {
		sub = root_sub(&s->roots[i], subs);
		if (sub == NULL)
			continue;
		tail = root_tail(p, &s->roots[i], sub, path);
		/* The longest root is the one with the shortest tail. */
		if (tail != NULL && (best == NULL || tail > best)) {
			best = tail;
			best_sub = sub;
			at = i;
		}
	}
	if (best == NULL)
		return -1;
	return spell(p, &s->roots[at], best_sub, best, out);
}

enum code
pscope_anchor(const struct policy *p, const struct pscope *s,
    const struct subs *subs, size_t i, const char *given,
    char out[ABX_PATH_MAX + 1])
{
	const char *sub;

	if (i >= s->nroots || (sub = root_sub(&s->roots[i], subs)) == NULL)
		return C_POL_PATH_NOT_ALLOWED;
	return spell(p, &s->roots[i], sub, given, out) == 0
		   ? C_OK
		   : C_POL_PATH_INVALID;
}

int
pscope_refs(const struct pscope *s, const struct subs *subs,
    struct rootref **refs, size_t *n)
{
	const char *sub;
	size_t i;

	*n = 0;
	*refs = calloc(s->nroots + 1, sizeof(**refs));
	if (*refs == NULL)
		return -1;
	for (i = 0; i < s->nroots; i++) {
		sub = root_sub(&s->roots[i], subs);
		if (sub == NULL)
			continue;
		(*refs)[*n].root = s->roots[i].root;
		strlcpy((*refs)[*n].sub, sub, sizeof((*refs)[*n].sub));
		++*n;
	}
	return 0;
}
