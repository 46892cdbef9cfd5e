/*
 * SPDX-License-Identifier: ISC
 *
 * Compiled patterns over argument vectors.  A pattern is an automaton of at
 * most 63 tokens whose states are the bits of one word, so matching is linear
 * in the arguments whatever the pattern looks like.  Bundled short flags are
 * taken apart for matching only; what runs is never touched.  Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/engine.h"

#define PAT_TOKENS 63
#define ARGV_ELEMS (128 * 1024) /* words and flags of one command */
#define ARGV_WORD (128 * 1024)	/* the kernel's bound for one argument */

enum tok_kind { TOK_LITERAL, TOK_GLOB, TOK_PATH, TOK_INT, TOK_WORD, TOK_REST };

struct tok {
	enum tok_kind kind;
	char *s;   /* TOK_LITERAL, TOK_GLOB: owned */
	int whole; /* compare with whole arguments only */
	int dash;  /* it names arguments that start with '-' */
};

struct argv_pat {
	int deny;
	char *prog; /* first word of the text */
	size_t n;
	uint64_t rests; /* bit i: token i is "..." */
	struct tok tok[PAT_TOKENS];
};

/* ---- compiling ---- */

/* "-lR" but not "-l", "--long", "-5" or "-". */
static int
is_bundle(const char *w)
{
	return w[0] == '-' && w[1] != '\0' && w[1] != '-' && w[2] != '\0' &&
	       !(w[1] >= '0' && w[1] <= '9');
}

/* {name} in small letters that is no token is a typing error. */
static int
is_braced(const char *w)
{
	size_t n = strlen(w);

	return n > 2 && w[0] == '{' && w[n - 1] == '}' &&
	       strspn(w + 1, "abcdefghijklmnopqrstuvwxyz_.") >= n - 2 &&
	       strcmp(w, "{...}") != 0;
}

static int
tok_classify(struct tok *t, const char *w, const char **why)
{
	if (strcmp(w, "...") == 0)
		t->kind = TOK_REST;
	else if (strcmp(w, "{path}") == 0)
		t->kind = TOK_PATH;
	else if (strcmp(w, "{int}") == 0)
		t->kind = TOK_INT;
	else if (strcmp(w, "{word}") == 0)
		t->kind = TOK_WORD;
	else if (is_braced(w))
		*why = "a token in braces is not {path}, {int} or {word}";
	else if (strpbrk(w, "*?[") != NULL) {
		t->kind = TOK_GLOB;
		if (!glob_segment_ok(w, strlen(w)))
			*why = "a [ without its ], or a range that runs "
			       "backwards";
	}
	return *why == NULL ? 0 : -1;
}

static int
pat_push(struct argv_pat *pat, const char *w, const char **why)
{
	struct tok *t = &pat->tok[pat->n];

	if (pat->n > 0 && strcmp(w, "...") == 0 &&
	    pat->tok[pat->n - 1].kind == TOK_REST)
		return 0;
	if (pat->n >= PAT_TOKENS) {
		*why = "it has more than 63 words";
		return -1;
	}
	if (tok_classify(t, w, why) == -1)
		return -1;
	if (t->kind == TOK_PATH && pat->n == 0) {
		*why = "{path} is no program";
		return -1;
	}
	if (t->kind == TOK_LITERAL || t->kind == TOK_GLOB) {
		t->s = strdup(w);
		if (t->s == NULL)
			return -1;
		t->dash = w[0] == '-';
	}
	if (t->kind == TOK_REST)
		pat->rests |= 1ULL << pat->n;
	pat->n++;
	return 0;
}

/* A bundle in a deny pattern is taken apart like one in an argument vector;
 * in an allow pattern it stands for itself alone. */
static int
pat_push_literal(struct argv_pat *pat, const char *w, const char **why)
{
	char flag[3] = "-x";

	if (!pat->deny) {
		if (pat_push(pat, w, why) == -1)
			return -1;
		pat->tok[pat->n - 1].whole = 1;
		return 0;
	}
	for (w++; *w != '\0'; w++) {
		flag[1] = *w;
		if (pat_push(pat, flag, why) == -1)
			return -1;
	}
	return 0;
}

static int
pat_words(struct argv_pat *pat, const struct strlist *words, const char **why)
{
	int over = 0;
	size_t i;

	for (i = 0; i < words->n; i++) {
		const char *w = words->v[i];
		int plain = i == 0 || over || strpbrk(w, "*?[") != NULL ||
			    !is_bundle(w);

		if ((plain ? pat_push(pat, w, why)
			   : pat_push_literal(pat, w, why)) == -1)
			return -1;
		if (i > 0 && strcmp(w, "--") == 0)
			over = 1;
	}
	return 0;
}

struct argv_pat *
argv_pat_new(const char *text, int deny_side, const char **why)
{
	struct strlist words;
	struct argv_pat *pat;
	int r;

	*why = NULL;
	r = shlex_split(text, &words);
	if (r != 0 || words.n == 0) {
		*why = r == 0	 ? "it is empty"
		       : r == -1 ? "a quote is not closed"
				 : NULL;
		strlist_clear(&words);
		return NULL;
	}
	pat = calloc(1, sizeof(*pat));
	if (pat != NULL) {
		pat->deny = deny_side;
		pat->prog = strdup(words.v[0]);
		if (pat->prog == NULL || pat_words(pat, &words, why) == -1) {
			argv_pat_free(pat);
			pat = NULL;
		}
	}
	strlist_clear(&words);
	return pat;
}

void
argv_pat_free(struct argv_pat *pat)
{
	size_t i;

	if (pat == NULL)
		return;
	for (i = 0; i < pat->n; i++)
		free(pat->tok[i].s);
	free(pat->prog);
	free(pat);
}

const char *
argv_pat_prog(const struct argv_pat *pat)
{
	return pat->prog;
}

int
argv_pat_open(const struct argv_pat *pat)
{
	size_t i;

	for (i = 0; i < pat->n; i++) {
		enum tok_kind kind = pat->tok[i].kind;

		if (kind == TOK_REST ||
		    (i > 0 && (kind == TOK_GLOB || kind == TOK_WORD)))
			return 1;
	}
	return 0;
}

int
argv_pat_has_path(const struct argv_pat *pat)
{
	size_t i;

	for (i = 0; i < pat->n; i++)
		if (pat->tok[i].kind == TOK_PATH)
			return 1;
	return 0;
}

/* ---- the one normalised argument vector ---- */

/* Elements of a word; split tells whether they are flags. */
static size_t
elems_of(const char *w, size_t i, int over, int *split)
{
	*split = i > 0 && !over && is_bundle(w);
	return *split ? strlen(w) - 1 : 1;
}

/* 0, or 1 when no kernel would take the words. */
static int
count_elems(char *const *words, size_t n, size_t *elems)
{
	size_t i, bytes = 0, len;
	int over = 0, split;

	*elems = 0;
	for (i = 0; i < n; i++) {
		len = strlen(words[i]);
		if (len >= ARGV_WORD || (bytes += len + 1) > 16 * ARGV_WORD)
			return 1;
		*elems += elems_of(words[i], i, over, &split);
		if (*elems > ARGV_ELEMS)
			return 1;
		over |= i > 0 && strcmp(words[i], "--") == 0;
	}
	return 0;
}

int
argv_norm_init(struct argv_norm *norm, char *const *words, size_t n)
{
	size_t i, k, len;
	int over = 0, split;

	norm->words = words;
	norm->nwords = n;
	if (count_elems(words, n, &len) != 0)
		return 1;
	norm->v = reallocarray(NULL, len + 1, sizeof(*norm->v));
	if (norm->v == NULL)
		return -1;
	for (i = 0; i < n; i++) {
		len = elems_of(words[i], i, over, &split);
		for (k = 0; k < len; k++)
			norm->v[norm->n++] =
			    (struct argv_elem){(uint32_t)i, (uint32_t)(len - k),
				split ? words[i][k + 1] : '\0', k == 0};
		over |= i > 0 && strcmp(words[i], "--") == 0;
	}
	return 0;
}

void
argv_norm_clear(struct argv_norm *norm)
{
	free(norm->v);
	memset(norm, 0, sizeof(*norm));
}

/* ---- one token against one argument ---- */

static int
is_int(const char *s)
{
	size_t n;

	if (*s == '-')
		s++;
	n = strspn(s, "0123456789");
	return n >= 1 && n <= 18 && s[n] == '\0';
}

static int
is_word(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && s[0] != '-' &&
	       strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			 "0123456789_.,:@=+-") == n;
}

/* {path} is judged by the caller. */
static int
tok_matches(const struct tok *t, const char *s)
{
	switch (t->kind) {
	case TOK_LITERAL:
		return strcmp(t->s, s) == 0;
	case TOK_GLOB:
		return (s[0] != '-' || t->dash) && glob_words(t->s, s);
	case TOK_INT:
		return is_int(s);
	case TOK_WORD:
		return is_word(s);
	case TOK_PATH:
	case TOK_REST:
		break;
	}
	return 0;
}

/* ---- the first word ---- */

/* dir/name in a buffer, or NULL when it does not fit. */
static const char *
in_dir(char buf[ABX_PATH_MAX + 1], const char *dir, const char *name)
{
	size_t d = strlen(dir), n = strlen(name);

	while (d > 0 && dir[d - 1] == '/')
		d--;
	if (d + 1 + n > ABX_PATH_MAX)
		return NULL;
	memcpy(buf, dir, d);
	buf[d] = '/';
	memcpy(buf + d + 1, name, n + 1);
	return buf;
}

/* 1 when the name with a slash lies directly in one of the directories. */
static int
lies_in(const char *path, const struct strlist *dirs)
{
	char buf[ABX_PATH_MAX + 1];
	const char *base = strrchr(path, '/') + 1, *full;
	size_t i;

	if (*base == '\0')
		return 0;
	for (i = 0; i < dirs->n; i++) {
		full = in_dir(buf, dirs->v[i], base);
		if (full != NULL && strcmp(full, path) == 0)
			return 1;
	}
	return 0;
}

int
argv_prog_inside(const char *argv0, const struct strlist *dirs)
{
	if (strchr(argv0, '/') != NULL)
		return lies_in(argv0, dirs);
	return argv0[0] != '\0' && dirs->n > 0;
}

static int
tok_matches_in(
    const struct tok *t, const char *name, const struct strlist *dirs)
{
	char buf[ABX_PATH_MAX + 1];
	const char *full;
	size_t i;

	for (i = 0; i < dirs->n; i++) {
		full = in_dir(buf, dirs->v[i], name);
		if (full != NULL && tok_matches(t, full))
			return 1;
	}
	return 0;
}

/* The program is matched as given and as resolved; a deny also sees the bare
 * name of a path that lies anywhere. */
static int
prog_matches(const struct argv_pat *pat, const struct tok *t, const char *argv0,
    const struct strlist *dirs)
{
	const char *slash = strrchr(argv0, '/');

	if (tok_matches(t, argv0))
		return 1;
	if (slash == NULL)
		return tok_matches_in(t, argv0, dirs);
	if (pat->deny)
		return tok_matches(t, slash + 1) ||
		       tok_matches_in(t, slash + 1, dirs);
	return lies_in(argv0, dirs) && tok_matches(t, slash + 1);
}

int
argv_pat_progs(const struct argv_pat *pat, const char *argv0,
    const struct strlist *dirs, struct strlist *progs)
{
	const struct tok *t = pat != NULL ? &pat->tok[0] : NULL;
	char buf[ABX_PATH_MAX + 1];
	const char *full;
	int bare;
	size_t i;

	if (*argv0 == '\0')
		return 0;
	if (strchr(argv0, '/') != NULL)
		return lies_in(argv0, dirs)
			   ? strlist_add(progs, argv0, strlen(argv0))
			   : 0;
	bare = t == NULL || t->kind == TOK_REST || tok_matches(t, argv0);
	for (i = 0; i < dirs->n; i++) {
		full = in_dir(buf, dirs->v[i], argv0);
		if (full == NULL || (!bare && !tok_matches(t, full)))
			continue;
		if (strlist_add(progs, full, strlen(full)) == -1)
			return -1;
		if (!bare)
			break;
	}
	return 0;
}

/* ---- the automaton ---- */

struct run {
	const struct argv_pat *pat;
	const struct argv_norm *norm;
	const struct strlist *dirs;
	argv_path_cb path_cb;
	void *arg;
};

/* Token t against element i; *jump when it also takes the whole word, whose
 * later flags are then passed over. */
static int
elem_matches(const struct run *r, size_t t, size_t i, int *jump)
{
	const struct tok *tok = &r->pat->tok[t];
	const struct argv_elem *e = &r->norm->v[i];
	const char *w = r->norm->words[e->word];
	char flag[3] = {'-', e->flag, '\0'};

	*jump = 0;
	if (i == 0)
		return prog_matches(r->pat, tok, w, r->dirs);
	if (tok->kind == TOK_PATH)
		return w[0] != '-' &&
		       (r->path_cb == NULL || r->path_cb(r->arg, e->word));
	if (e->flag == '\0')
		return tok_matches(tok, w);
	if (e->first && (tok->whole || tok->dash || r->pat->deny))
		*jump = tok_matches(tok, w);
	return !tok->whole && tok_matches(tok, flag);
}

static uint64_t
closure(const struct argv_pat *pat, uint64_t on)
{
	return on | ((on & pat->rests) << 1);
}

/* One element from the states `on`; those that a whole-word match reaches go
 * into *later. */
static uint64_t
run_step(const struct run *r, size_t i, uint64_t on, uint64_t *later)
{
	uint64_t next = on & r->pat->rests, todo = on & ~r->pat->rests;
	int jump;

	todo &= (1ULL << r->pat->n) - 1;
	for (; todo != 0; todo &= todo - 1) {
		size_t t = (size_t)__builtin_ctzll(todo);

		if (elem_matches(r, t, i, &jump))
			next |= 2ULL << t;
		if (jump)
			*later |= 2ULL << t;
	}
	return next;
}

/* Forward over all elements; states before each element into trail[n + 1]
 * when it is not NULL.  1 when the whole vector is accepted. */
static int
run_forward(const struct run *r, uint64_t *trail)
{
	uint64_t on = 1, later = 0, accept = 1ULL << r->pat->n;
	int open_end = r->pat->tok[r->pat->n - 1].kind == TOK_REST;
	size_t i, back_at = 0;

	for (i = 0;; i++) {
		if (later != 0 && i == back_at) {
			on |= later;
			later = 0;
		}
		on = closure(r->pat, on);
		if (trail != NULL)
			trail[i] = on;
		if (i == r->norm->n)
			return (on & accept) != 0;
		if (trail == NULL && open_end && (on & (accept >> 1)) != 0)
			return 1;
		if (on == 0 && later == 0)
			return 0;
		if (r->norm->v[i].first)
			back_at = i + r->norm->v[i].span;
		on = run_step(r, i, on, &later);
	}
}

int
argv_pat_match(const struct argv_pat *pat, const struct argv_norm *norm,
    const struct strlist *dirs, argv_path_cb path_cb, void *arg)
{
	struct run r = {pat, norm, dirs, path_cb, arg};

	return run_forward(&r, NULL);
}

/* States before element i from which the end can be reached, given those
 * before the later ones. */
static uint64_t
back_step(const struct run *r, const uint64_t *goal, uint64_t on, size_t i)
{
	uint64_t good = on & r->pat->rests & goal[i + 1], todo;
	const struct argv_elem *e = &r->norm->v[i];
	int jump;

	todo = on & ~r->pat->rests & ((1ULL << r->pat->n) - 1);
	for (; todo != 0; todo &= todo - 1) {
		size_t t = (size_t)__builtin_ctzll(todo);
		uint64_t then = 2ULL << t;

		if ((elem_matches(r, t, i, &jump) &&
			(goal[i + 1] & then) != 0) ||
		    (jump && (goal[i + e->span] & then) != 0))
			good |= 1ULL << t;
	}
	return good | ((good >> 1) & r->pat->rests & on);
}

/* A word is wanted when {path} takes it on some way from start to end. */
static void
mark_wanted(
    const struct run *r, const uint64_t *trail, uint64_t *goal, uint8_t *want)
{
	size_t i = r->norm->n, t;

	goal[i] = 1ULL << r->pat->n;
	goal[i] |= (goal[i] >> 1) & r->pat->rests;
	while (i-- > 0) {
		goal[i] = back_step(r, goal, trail[i], i);
		for (t = 0; t < r->pat->n; t++)
			if (r->pat->tok[t].kind == TOK_PATH &&
			    (goal[i] & (1ULL << t)) != 0)
				want[r->norm->v[i].word] = 1;
	}
}

int
argv_pat_paths(const struct argv_pat *pat, const struct argv_norm *norm,
    const struct strlist *dirs, uint8_t *want)
{
	struct run r = {pat, norm, dirs, NULL, NULL};
	uint64_t *trail;
	int may;

	trail = calloc(2 * (norm->n + 1), sizeof(*trail));
	if (trail == NULL)
		return -1;
	may = run_forward(&r, trail);
	if (may)
		mark_wanted(&r, trail, trail + norm->n + 1, want);
	free(trail);
	return may;
}
