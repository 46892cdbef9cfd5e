/*
 * SPDX-License-Identifier: ISC
 *
 * Command patterns against naive recursion: what matches, on the allow and on
 * the deny side, which words a decision depends on, and in which time.  Input:
 * 1 byte (which words are good for {path}), then lines; the pattern, and one
 * word a line.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/engine.h"
#include "regress/fuzz/fuzz.h"
#include "regress/fuzz/model.h"

#define WORDS_MAX 64
#define SHORT 24 /* bytes of a word that naive globs can cope with */
#define STEPS 50000

static char usr_bin[] = "/usr/bin", opt[] = "/opt/x/";
static char *dir_words[] = {usr_bin, opt};
static const struct strlist dirs = {dir_words, 2};

struct model {
	struct strlist pat; /* words of the pattern, bundles apart on a deny */
	int whole[WORDS_MAX * 4]; /* stands for one argument only */
	int deny;
	char *words[WORDS_MAX];
	size_t nwords;
	uint32_t good; /* bit w % 32: word w is good for {path} */
	size_t must;   /* {path} must take this word, or SIZE_MAX */
	size_t steps;
	int gave_up;
};

/* "-ab": flags in one word; not behind "--", not the program. */
static int
bundled(char *const *v, size_t i)
{
	size_t k;

	for (k = 1; k < i; k++)
		if (strcmp(v[k], "--") == 0)
			return 0;
	return i > 0 && v[i][0] == '-' && v[i][1] != '\0' && v[i][1] != '-' &&
	       v[i][2] != '\0' && (v[i][1] < '0' || v[i][1] > '9');
}

static int
has_glob(const char *s)
{
	return strpbrk(s, "*?[") != NULL;
}

/* Words of the pattern into m; 0 when there are too many for the model. */
static int
model_pattern(struct model *m, const struct strlist *words)
{
	char flag[3] = "-x";
	size_t i;
	char *c;

	for (i = 0; i < words->n; i++) {
		char *w = words->v[i];

		if (m->pat.n + strlen(w) >= nitems(m->whole))
			return 0;
		if (!bundled(words->v, i) || has_glob(w)) {
			strlist_add(&m->pat, w, strlen(w));
			continue;
		}
		m->whole[m->pat.n] = !m->deny;
		for (c = w + 1; m->deny && *c != '\0'; c++) {
			flag[1] = *c;
			strlist_add(&m->pat, flag, 2);
		}
		if (!m->deny)
			strlist_add(&m->pat, w, strlen(w));
	}
	return 1;
}

static int
only(const char *s, const char *bytes)
{
	return *s != '\0' && s[strspn(s, bytes)] == '\0';
}

/* A glob over words: slashes match slashes only. */
static int
glob_naive(const char *p, const char *s)
{
	size_t np = strcspn(p, "/"), ns = strcspn(s, "/");

	return model_segment(p, np, s, ns) && p[np] == s[ns] &&
	       (p[np] == '\0' || glob_naive(p + np + 1, s + ns + 1));
}

/* One token against one text. */
static int
token(const char *t, const char *s)
{
	size_t n;

	if (strcmp(t, "{int}") == 0) {
		n = strlen(s) - (s[0] == '-');
		return n <= 18 && only(s + (s[0] == '-'), "0123456789");
	}
	if (strcmp(t, "{word}") == 0)
		return s[0] != '-' && only(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
					      "abcdefghijklmnopqrstuvwxyz"
					      "0123456789_.,:@=+-");
	if (strcmp(t, "{path}") == 0 || strcmp(t, "...") == 0)
		return 0;
	if (has_glob(t))
		return (s[0] != '-' || t[0] == '-') && glob_naive(t, s);
	return strcmp(t, s) == 0;
}

/* The token against the base name and its places in the exec_dirs. */
static int
in_dirs(const char *t, const char *base)
{
	char buf[512];

	snprintf(buf, sizeof(buf), "/usr/bin/%s", base);
	if (token(t, buf))
		return 1;
	snprintf(buf, sizeof(buf), "/opt/x/%s", base);
	return token(t, buf);
}

static int
program(const struct model *m, const char *t, const char *w)
{
	const char *base = strrchr(w, '/') == NULL ? w : strrchr(w, '/') + 1;
	char buf[512];
	int lies;

	if (token(t, w))
		return 1;
	if (base == w)
		return in_dirs(t, w);
	snprintf(buf, sizeof(buf), "/usr/bin/%s", base);
	lies = strcmp(buf, w) == 0;
	snprintf(buf, sizeof(buf), "/opt/x/%s", base);
	lies = *base != '\0' && (lies || strcmp(buf, w) == 0);
	if (m->deny)
		return token(t, base) || in_dirs(t, base);
	return lies && token(t, base);
}

/* Tokens from t on against what is left: word w, of which k flags are taken. */
static int
match(struct model *m, size_t t, size_t w, size_t k, int met)
{
	const char *tok = t < m->pat.n ? m->pat.v[t] : NULL, *s;
	char flag[3] = "-x";
	int bundle, more;

	if (++m->steps > STEPS) {
		m->gave_up = 1;
		return 0;
	}
	if (w == m->nwords) {
		if (tok == NULL)
			return met || m->must == SIZE_MAX;
		return strcmp(tok, "...") == 0 && match(m, t + 1, w, k, met);
	}
	if (tok == NULL)
		return 0;
	s = m->words[w];
	bundle = bundled(m->words, w);
	more = bundle && s[k + 2] != '\0'; /* flags behind this one */
	if (strcmp(tok, "...") == 0)
		return match(m, t + 1, w, k, met) ||
		       match(m, t, more ? w : w + 1, more ? k + 1 : 0, met);
	if (w == 0)
		return program(m, tok, s) && match(m, t + 1, 1, 0, met);
	if (strcmp(tok, "{path}") == 0)
		return s[0] != '-' && (m->good >> (w % 32) & 1) != 0 &&
		       match(m, t + 1, w + 1, 0, met || w == m->must);
	if (!bundle)
		return token(tok, s) && match(m, t + 1, w + 1, 0, met);
	/* the whole word, or one flag of it */
	if (k == 0 && (m->whole[t] || tok[0] == '-' || m->deny) &&
	    token(tok, s) && match(m, t + 1, w + 1, 0, met))
		return 1;
	flag[1] = s[k + 1];
	return !m->whole[t] && token(tok, flag) &&
	       match(m, t + 1, more ? w : w + 1, more ? k + 1 : 0, met);
}

static int
model_match(struct model *m, uint32_t good, size_t must)
{
	m->good = good;
	m->must = must;
	m->steps = 0;
	return match(m, 0, 0, 0, 0);
}

static int
good_cb(void *arg, size_t word)
{
	return *(const uint32_t *)arg >> (word % 32) & 1;
}

static uint64_t
bound(const struct model *m)
{
	uint64_t n = 64;
	size_t i;

	for (i = 0; i < m->nwords; i++)
		n += strlen(m->words[i]) + 1;
	return 20000000 + n * 64 * 2000;
}

/* 1 when the naive way may be asked. */
static int
is_short(const struct model *m)
{
	size_t i;

	for (i = 0; i < m->nwords; i++)
		if (strlen(m->words[i]) > SHORT)
			return 0;
	for (i = 0; i < m->pat.n; i++)
		if (strlen(m->pat.v[i]) > SHORT)
			return 0;
	return m->nwords <= 32;
}

static void
compare(const struct argv_pat *pat, struct model *m, uint32_t good)
{
	struct argv_norm norm = {0};
	uint8_t want[WORDS_MAX] = {0};
	uint32_t some = good;
	int got, may;
	uint64_t before;
	size_t i;

	CHECK(argv_norm_init(&norm, m->words, m->nwords) == 0);
	before = fuzz_cpu_ns();
	got = argv_pat_match(pat, &norm, &dirs, good_cb, &good);
	may = argv_pat_paths(pat, &norm, &dirs, want);
	CHECK(fuzz_cpu_ns() - before < bound(m));
	CHECK(may == argv_pat_match(pat, &norm, &dirs, NULL, NULL));
	CHECK(!got || may);
	/* what is not wanted cannot matter */
	for (i = 0; i < m->nwords && i < 32; i++)
		if (!want[i])
			some ^= 1U << i;
	if (m->nwords <= 32)
		CHECK(argv_pat_match(pat, &norm, &dirs, good_cb, &some) == got);
	if (is_short(m)) {
		m->gave_up = 0;
		may = model_match(m, good, SIZE_MAX);
		CHECK(m->gave_up || may == got);
		for (i = 0; i < m->nwords; i++) {
			m->gave_up = 0;
			may = model_match(m, UINT32_MAX, i);
			CHECK(m->gave_up || may == want[i]);
		}
	}
	argv_norm_clear(&norm);
}

static void
side(const char *text, int deny, struct model *m, uint32_t good)
{
	struct strlist words;
	struct argv_pat *pat;
	const char *why = "unset";

	m->deny = deny;
	memset(m->whole, 0, sizeof(m->whole));
	pat = argv_pat_new(text, deny, &why);
	if (pat == NULL) {
		CHECK(why != NULL && *why != '\0');
		return;
	}
	CHECK(shlex_split(text, &words) == 0);
	CHECK(strcmp(argv_pat_prog(pat), words.v[0]) == 0);
	argv_pat_open(pat);
	if (model_pattern(m, &words))
		compare(pat, m, good);
	strlist_clear(&words);
	strlist_clear(&m->pat);
	argv_pat_free(pat);
}

/* The program to run lies where a program may lie. */
static void
check_progs(const char *text, const char *argv0)
{
	struct strlist progs = {0};
	struct argv_pat *pat;
	const char *why, *base;
	size_t i;

	pat = argv_pat_new(text, 0, &why);
	if (pat == NULL)
		return;
	CHECK(argv_pat_progs(pat, argv0, &dirs, &progs) == 0);
	for (i = 0; i < progs.n; i++) {
		CHECK(argv_prog_inside(argv0, &dirs));
		base = strrchr(progs.v[i], '/');
		CHECK(base != NULL && base[1] != '\0');
		CHECK(strncmp(progs.v[i], "/usr/bin/", 9) == 0
			  ? base == progs.v[i] + 8
			  : strncmp(progs.v[i], "/opt/x/", 7) == 0 &&
				base == progs.v[i] + 6);
	}
	strlist_clear(&progs);
	argv_pat_free(pat);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	struct model m = {0};
	uint32_t good = feed_u8(&f) * 0x01010101U;
	char *text = feed_str(&f, '\n', 1024);
	size_t i;

	while (f.n > 0 && m.nwords < WORDS_MAX)
		m.words[m.nwords++] = feed_str(&f, '\n', 256);
	if (m.nwords > 0) {
		side(text, 0, &m, good);
		side(text, 1, &m, good);
		check_progs(text, m.words[0]);
	}
	for (i = 0; i < m.nwords; i++)
		free(m.words[i]);
	free(text);
	return 0;
}
