/*
 * SPDX-License-Identifier: ISC
 *
 * Looks for what a command must not see.  Changes nothing and hands out no
 * descriptor: execd finds the entries again by itself, and they must be the
 * same objects there.
 */
#include "pathd/denied.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pathd/beneath.h"
#include "pathd/deny.h"
#include "pathd/roots.h"
#include "pathd/survey.h"

#define KEY_MAX (256 * 1024) /* the question came in one message */

struct search {
	const struct pathd *pd;
	const struct denied *q;
	const struct stopper *stop;
	struct deny deny;
	char *path;    /* of the directory, canonical */
	size_t prefix; /* bytes before a relative path */
	size_t seen, bytes;
	struct covers *out;
};

static int
search_stop(void *arg)
{
	const struct search *s = arg;

	return s->stop != NULL && s->stop->stop(s->stop->arg);
}

/* rel is above or the same as path, both relative. */
static int
above(const char *rel, const char *path)
{
	size_t n = strlen(rel);

	return strncmp(rel, path, n) == 0 &&
	       (path[n] == '\0' || path[n] == '/');
}

/* Forget what lies below a directory that is covered whole. */
static void
drop_below(struct covers *c, const char *rel)
{
	size_t i = 0;

	while (i < c->n)
		if (above(rel, c->v[i].rel)) {
			target_clear(&c->v[i]);
			c->v[i] = c->v[--c->n];
			memset(&c->v[c->n], 0, sizeof(c->v[0]));
		} else
			i++;
}

static enum code
add(struct search *s, const char *path, uint8_t kind, uint64_t dev,
    uint64_t ino)
{
	const char *rel = path + s->prefix;
	size_t i;

	for (i = 0; i < s->out->n; i++)
		if (above(s->out->v[i].rel, rel))
			return C_OK;
	drop_below(s->out, rel);
	s->bytes += strlen(rel);
	if (s->out->n == ABX_MAX_COVERS || s->bytes > DENIED_BYTES_MAX)
		return C_SBX_TOO_MANY_DENIED;
	return covers_add(s->out, rel, kind, dev, ino) == -1 ? C_SRV_UNAVAILABLE
							     : C_OK;
}

/* What a denied link leads to, when it lies below the directory. */
static enum code
add_led_to(struct search *s, const char *path)
{
	struct rootref ref = s->q->target.ref;
	struct resolve_item it = {.refs = &ref, .nrefs = 1};
	struct facts f;
	enum code code = C_OK;

	if ((it.path = strdup(path)) == NULL ||
	    walk_resolve(&s->pd->roots, &it, WALK_FACTS, &f, NULL) == -1) {
		free(it.path);
		return C_SRV_UNAVAILABLE;
	}
	if (f.status == FS_OK && f.kind != FK_MISSING && f.missing == 0 &&
	    strncmp(f.path, s->path, s->prefix - 1) == 0 &&
	    f.path[s->prefix - 1] == '/' && f.path[s->prefix] != '\0')
		code = add(s, f.path, f.kind, f.dev, f.ino);
	facts_clear(&f);
	free(it.path);
	return code;
}

static int
hidden(const struct search *s, const char *path)
{
	size_t i;

	for (i = 0; i < s->q->skip.n; i++)
		if (strcmp(s->q->skip.v[i], path) == 0)
			return 1;
	return 0;
}

static enum code
search_entry(void *arg, int dir, const char *name, const char *path,
    unsigned char type, int *plain)
{
	struct search *s = arg;
	struct stat st;
	enum code code;

	if (++s->seen > DENIED_SEEN_MAX)
		return C_SBX_TOO_MANY_DENIED;
	if (hidden(s, path))
		return SURVEY_SKIP;
	if (!deny_covers(&s->deny, path))
		return C_OK;
	*plain = 0;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return errno == ENOENT ? SURVEY_SKIP : beneath_act_code(errno);
	if (S_ISLNK(st.st_mode))
		code = add_led_to(s, path);
	else
		code = add(
		    s, path, beneath_kind(st.st_mode), st.st_dev, st.st_ino);
	return code == C_OK ? SURVEY_SKIP : code;
}

static enum code
search_known(void *arg, uint32_t n)
{
	struct search *s = arg;

	s->seen += n;
	return s->seen > DENIED_SEEN_MAX ? C_SBX_TOO_MANY_DENIED : C_OK;
}

static enum code
search_barred(
    void *arg, const char *path, uint64_t dev, uint64_t ino, enum code code)
{
	if (code == C_FS_NOT_FOUND)
		return C_POL_PATH_CHANGED;
	if (code != C_FS_PERMISSION)
		return code;
	return add(arg, path, FK_DIR, dev, ino);
}

static const struct survey_ops search_ops = {.entry = search_entry,
    .known = search_known,
    .barred = search_barred,
    .stop = search_stop};

/* All that decides which entry is denied, beside its path: a writer without
 * memory is in error. */
static void
search_key(const struct search *s, struct wbuf *w)
{
	size_t i;

	wbuf_init(w, KEY_MAX);
	wput_str(w, s->path);
	wput_u32(w, (uint32_t)s->q->deny.n);
	for (i = 0; i < s->q->deny.n; i++)
		wput_str(w, s->q->deny.v[i]);
	for (i = 0; i < s->q->skip.n; i++)
		wput_str(w, s->q->skip.v[i]);
}

/* The directory, opened, if it is still what was decided on. */
static enum code
search_open(struct search *s, int *fd)
{
	const struct walk_root *root;
	char full[ABX_PATH_MAX + 1];
	struct stat st;
	enum code code;

	code = roots_locate(&s->pd->roots, &s->q->target, &root, full);
	if (code != C_OK)
		return code;
	if ((s->path = roots_path(root, full)) == NULL ||
	    deny_new(&s->deny, &s->q->deny) == -1)
		return C_SRV_UNAVAILABLE;
	s->prefix = strcmp(s->path, "/") == 0 ? 1 : strlen(s->path) + 1;
	*fd = beneath_open(root->fd, full, O_RDONLY | O_DIRECTORY);
	if (*fd == -1)
		return beneath_walk_code(errno);
	if (fstat(*fd, &st) == -1 || st.st_dev != s->q->target.dev ||
	    st.st_ino != s->q->target.ino)
		return C_POL_PATH_CHANGED;
	return C_OK;
}

enum code
denied_find(const struct pathd *pd, const struct denied *q,
    const struct stopper *stop, struct covers *out)
{
	struct search s = {.pd = pd, .q = q, .stop = stop, .out = out};
	struct wbuf key;
	enum code code;
	int fd = -1;

	memset(out, 0, sizeof(*out));
	if ((code = search_open(&s, &fd)) == C_OK) {
		search_key(&s, &key);
		code = key.err ? C_SRV_UNAVAILABLE
			       : survey(fd, s.path, key.p, key.len, &search_ops,
				     &s);
		wbuf_free(&key);
	}
	if (fd != -1)
		close(fd);
	free(s.path);
	deny_clear(&s.deny);
	return code;
}
