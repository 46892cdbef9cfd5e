/*
 * SPDX-License-Identifier: ISC
 *
 * How much processor time the engine takes: a decision with many rules, the
 * worst glob on the worst path, patterns with several "...".  Prints
 * microseconds beside the targets; exit status 1 when one is missed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/glob.h"
#include "policy/engine.h"

#define TEXT (512 * 1024)

static int missed;

static double
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void
report(const char *what, double us, double target)
{
	printf("%-52s %8.2f us", what, us);
	if (target > 0)
		printf("  (at most %.0f)%s", target,
		    us > target ? "  MISSED" : "");
	putchar('\n');
	missed |= target > 0 && us > target;
}

static void
need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "decide: %s\n", what);
	exit(2);
}

/* ---- decisions ---- */

static struct policy *
policy_of(const char *text)
{
	struct conf_source src = {"bench", LAYER_FILE, text, strlen(text)};
	static const char *const env[] = {NULL};
	struct conf_world w = {.env = env, .default_state_dir = "/var/lib/abx"};
	struct findings f = {0};
	struct conf *c = conf_load(&src, 1, &w, &f);
	struct policy *p;
	char *why;

	if (c == NULL || findings_block(&f, 1)) {
		why = f.n > 0 ? finding_text(&f.v[0]) : NULL;
		need(0, why != NULL ? why : "out of memory");
	}
	p = policy_new(c, &f);
	need(p != NULL, "the policy does not compile");
	findings_clear(&f);
	conf_free(c);
	return p;
}

/* n rules of which only the last can match, for one of several reasons. */
static char *
rules_text(int n, const char *other)
{
	char *s = malloc(TEXT);
	size_t len;
	int i;

	need(s != NULL, "out of memory");
	len = (size_t)snprintf(s, TEXT,
	    "{\"version\":1,\"auth\":{\"tokens\":[{\"id\":\"a\","
	    "\"token_sha256\":\"%064d\"}]},\"rules\":[",
	    1);
	for (i = 0; i < n - 1; i++) {
		len += (size_t)snprintf(s + len, TEXT - len, other, i, i);
		need(len < TEXT - 200, "the text is too long");
	}
	snprintf(s + len, TEXT - len,
	    "{\"allow\":\"files.download\",\"paths\":{\"roots\":\"/w\","
	    "\"deny\":[\"**/.env\",\"*.key\"]}}]}");
	return s;
}

static double
decision_us(const struct policy *p)
{
	char path[] = "/w/a/b/c.txt", word[] = "/w/a/b/c.txt", name[] = "path";
	struct facts f = {.path = path, .rel = 2, .kind = FK_FILE, .nlink = 1};
	struct arg arg = {
	    .name = name, .type = A_STR, .s = word, .len = sizeof(word) - 1};
	struct args args = {&arg, 1};
	struct principal who = {"a", NULL, 0, 1};
	struct call call = {OP_files_download, &args, &who, NULL};
	struct decision d;
	struct plan plan;
	double best = 1e9, start;
	int i, k;

	for (k = 0; k < 20; k++) {
		start = now_us();
		for (i = 0; i < 1000; i++) {
			need(policy_plan(p, &call, &plan) == 0 &&
				 policy_decide(p, &call, &plan, &f, &d) == 0 &&
				 d.allowed && d.code == C_OK,
			    "the call is not allowed");
			decision_clear(&d);
			plan_clear(&plan);
		}
		start = (now_us() - start) / 1000;
		if (start < best)
			best = start;
	}
	return best;
}

static void
decisions(void)
{
	static const struct {
		const char *what, *rule;
		int n;
		double target;
	} t[] = {
	    {"decision, 1 rule", "", 1, 0},
	    {"decision, 1000 rules, other callers",
		"{\"allow\":\"files.download\",\"principals\":\"id:u%d\","
		"\"paths\":\"/w/u%d\"},",
		1000, 5},
	    {"decision, 1000 rules, other operations",
		"{\"allow\":\"files.stat\",\"paths\":\"/w/%d\",\"name\":"
		"\"r%d\"},",
		1000, 5},
	    {"decision, 1000 rules, other roots",
		"{\"allow\":\"files.download\",\"paths\":\"/o/%d\",\"name\":"
		"\"r%d\"},",
		1000, 5},
	    {"decision, 1000 rules, denies for other callers",
		"{\"deny\":\"files.*\",\"principals\":\"id:u%d\",\"paths\":"
		"\"/w/u%d\"},",
		1000, 5},
	};
	struct policy *p;
	char *s;
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		s = rules_text(t[i].n, t[i].rule);
		p = policy_of(s);
		report(t[i].what, decision_us(p), t[i].target);
		policy_free(p);
		free(s);
	}
}

/* ---- globs ---- */

static double
glob_us(const char *pattern, const char *path)
{
	const char *why = NULL;
	struct glob *g = glob_new(pattern, "", &why);
	volatile int sink = 0;
	double best = 1e9, start;
	int i, k;

	need(g != NULL, why != NULL ? why : "out of memory");
	for (k = 0; k < 20; k++) {
		start = now_us();
		for (i = 0; i < 50; i++)
			sink += glob_covers(g, path);
		start = (now_us() - start) / 50;
		if (start < best)
			best = start;
	}
	glob_free(g);
	return best;
}

/* n segments of len bytes, all of one letter. */
static void
path_of(char *out, int n, int len, char letter)
{
	char *p = out;

	for (; n > 0; n--) {
		*p++ = '/';
		memset(p, letter, (size_t)len);
		p += len;
	}
	*p = '\0';
}

static void
globs(void)
{
	static const char *const patterns[] = {"**/a*b", "*a*a*a*a*b",
	    "**/a/**/a/**/b", "**/*a*a*a/**/*a*a*a/**/*b",
	    "**/?*?*?*b/**/*?*?b/**/x", "[!b]*[!b]*[!b]*b"};
	static const struct {
		int n, len;
	} shapes[] = {{255, 15}, {255, 1}, {16, 255}, {1, 4095}, {64, 63}};
	char path[4 * ABX_PATH_MAX], what[64];
	double us, worst = 0;
	size_t i, k;

	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		for (k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
			path_of(path, shapes[k].n, shapes[k].len, 'a');
			us = glob_us(patterns[i], path);
			if (us <= worst)
				continue;
			worst = us;
			snprintf(what, sizeof(what),
			    "worst glob: %.24s, %d x %d", patterns[i],
			    shapes[k].n, shapes[k].len);
		}
	report(what, worst, 100);
}

/* ---- patterns ---- */

static double
argv_us(const char *pattern, size_t n)
{
	static char *words[ABX_MAX_ARGV];
	static char a[] = "a", prog[] = "ls";
	const char *why = NULL;
	struct argv_pat *p = argv_pat_new(pattern, 0, &why);
	struct strlist none = {0};
	struct argv_norm norm;
	volatile int sink = 0;
	double best = 1e9, start;
	size_t i;
	int k;

	need(p != NULL, why != NULL ? why : "out of memory");
	for (i = 0; i < n; i++)
		words[i] = i == 0 ? prog : a;
	need(argv_norm_init(&norm, words, n) == 0, "the words are too many");
	for (k = 0; k < 200; k++) {
		start = now_us();
		sink += argv_pat_match(p, &norm, &none, NULL, NULL);
		start = now_us() - start;
		if (start < best)
			best = start;
	}
	argv_norm_clear(&norm);
	argv_pat_free(p);
	return best;
}

static void
argvs(void)
{
	static const char pattern[] = "ls ... a ... a ... a ... b";
	double one = argv_us(pattern, ABX_MAX_ARGV / 4),
	       four = argv_us(pattern, ABX_MAX_ARGV);
	char what[64];

	snprintf(
	    what, sizeof(what), "several \"...\", %d words", ABX_MAX_ARGV / 4);
	report(what, one, 0);
	snprintf(what, sizeof(what), "several \"...\", %d words", ABX_MAX_ARGV);
	/* four times the words: linear, with room for the clock */
	report(what, four, one * 6 + 5);
}

int
main(void)
{
	decisions();
	globs();
	argvs();
	return missed;
}
