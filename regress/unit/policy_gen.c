/*
 * SPDX-License-Identifier: ISC
 *
 * Generated configurations: chance from one seed, texts from words that meet
 * each other often, and policies from texts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "regress/unit/policy_gen.h"

#define POLICIES 1500
#define POLICIES_LONG 10000

/* ---- chance ---- */

uint64_t gen_seed;

static uint64_t gen_state;

void
gen_begin(void)
{
	const char *s = getenv("ABX_SEED");
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	gen_seed = s != NULL ? strtoull(s, NULL, 10)
			     : (uint64_t)ts.tv_sec * 1000 +
				   (uint64_t)ts.tv_nsec / 1000000;
	gen_state = gen_seed * 2654435769u + 1;
}

uint32_t
gen_rnd(uint32_t n)
{
	gen_state ^= gen_state << 13;
	gen_state ^= gen_state >> 7;
	gen_state ^= gen_state << 17;
	return (uint32_t)((gen_state >> 16) % n);
}

unsigned
gen_rounds(void)
{
	const char *s = getenv("ABX_LONG"), *few = getenv("ABX_POLICIES");

	if (few != NULL)
		return (unsigned)strtoul(few, NULL, 10);
	return s != NULL && strcmp(s, "1") == 0 ? POLICIES_LONG : POLICIES;
}

/* ---- texts ---- */

void
gen_put(struct gen_text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->s + t->len, sizeof(t->s) - t->len, fmt, ap);
	va_end(ap);
	assert_true(n >= 0 && (size_t)n < sizeof(t->s) - t->len);
	t->len += (size_t)n;
}

/* A list of one to three strings of a table. */
static void
put_list(struct gen_text *t, const char *const *words, size_t n)
{
	uint32_t i, k = 1 + gen_rnd(3);

	for (i = 0; i < k; i++)
		gen_put(t, "%s\"%s\"", i == 0 ? "[" : ",",
		    words[gen_rnd((uint32_t)n)]);
	gen_put(t, "]");
}

const char *const gen_wide[GEN_WIDE] = {"*", "files.*", "files.**", "process.*",
    "agents.**", "terminal.*", "core.*", "system.*", "group:files-read",
    "group:files", "group:commands", "group:process", "group:core",
    "group:system", "effect:read", "effect:read,write", "effect:write,delete",
    "effect:exec", "effect:admin", "effect:read,write,delete,exec,net,admin"};
static const char *const who_lists[] = {"\"*\"", "\"id:a\"",
    "[\"id:b\",\"role:y\"]", "\"role:x\"", "[\"role:x\",\"role:none\"]",
    "\"id:anonymous\""};
static const char *const roots[] = {
    "/r", "/r/a", "/r/a/b", "/s", "/s/t", "/h/{principal.id}", "/w/{session}"};
static const char *const globs[] = {"x", "*.c", "**/x", "a/b", "/r/a", "/r/a/b",
    "/s/**", "b/**", "[a-c]", "?", "/h/a", "l"};
static const char *const patterns[] = {"true", "ls {path}", "ls ...",
    "cat {path} {path}", "seq {int}", "echo {word}", "ls -l *", "/usr/bin/id",
    "... x", "head -n {int} ... {path}"};

/* An operation that this version has, mostly. */
uint16_t
gen_op(void)
{
	uint16_t op = (uint16_t)gen_rnd(OP_COUNT);

	while (gen_rnd(8) && (ops[op].flags & OF_LATER) != 0)
		op = (uint16_t)gen_rnd(OP_COUNT);
	return op;
}

static void
put_selectors(struct gen_text *t)
{
	uint32_t i, k = 1 + gen_rnd(3);

	for (i = 0; i < k; i++)
		gen_put(t, "%s\"%s\"", i == 0 ? "[" : ",",
		    gen_rnd(2) ? GEN_PICK(gen_wide) : ops[gen_op()].id);
	gen_put(t, "]");
}

static void
put_scope(struct gen_text *t)
{
	gen_put(t, "{\"roots\":");
	put_list(t, roots, nitems(roots));
	if (gen_rnd(3) == 0) {
		gen_put(t, ",\"deny\":");
		put_list(t, globs, nitems(globs));
	}
	if (gen_rnd(4) == 0)
		gen_put(t, ",\"readonly\":true");
	if (gen_rnd(4) == 0)
		gen_put(t, ",\"symlinks\":\"deny\"");
	if (gen_rnd(4) == 0)
		gen_put(t, ",\"max_bytes\":%u", 1 + gen_rnd(5000));
	if (gen_rnd(4) == 0)
		gen_put(t, ",\"create_dirs\":false");
	gen_put(t, "}");
}

static void
put_limits(struct gen_text *t)
{
	static const char *const units[] = {"s", "min", "h"};

	gen_put(t, "{\"max_bytes\":%u", 1 + gen_rnd(5000));
	if (gen_rnd(2))
		gen_put(
		    t, ",\"rate\":\"%u/%s\"", 1 + gen_rnd(50), GEN_PICK(units));
	if (gen_rnd(2))
		gen_put(t, ",\"concurrency\":%u", 1 + gen_rnd(20));
	if (gen_rnd(2))
		gen_put(t, ",\"timeout\":%u,\"max_entries\":%u",
		    1 + gen_rnd(90), 1 + gen_rnd(90));
	gen_put(t, "}");
}

static void
put_allow(struct gen_text *t)
{
	gen_put(t, "{\"allow\":");
	put_selectors(t);
	if (gen_rnd(2))
		gen_put(t, ",\"principals\":%s", GEN_PICK(who_lists));
	if (gen_rnd(8)) {
		gen_put(t, ",\"paths\":");
		if (gen_rnd(5) == 0) {
			gen_put(t, "{\"path\":");
			put_scope(t);
			gen_put(t, ",\"src\":");
			put_scope(t);
			gen_put(t, ",\"dst\":");
			put_scope(t);
			gen_put(t, "}");
		} else
			put_scope(t);
	}
	if (gen_rnd(2)) {
		gen_put(t, ",\"commands\":{\"allow\":");
		put_list(t, patterns, nitems(patterns));
		if (gen_rnd(3) == 0) {
			gen_put(t, ",\"deny\":");
			put_list(t, patterns, nitems(patterns));
		}
		if (gen_rnd(4)) {
			gen_put(t, ",\"cwd\":");
			put_scope(t);
		}
		if (gen_rnd(3) == 0)
			gen_put(t, ",\"shell\":true");
		gen_put(t, "}");
	}
	if (gen_rnd(3) == 0) {
		gen_put(t, ",\"limits\":");
		put_limits(t);
	}
	gen_put(t, "}");
}

void
gen_deny(struct gen_text *t)
{
	gen_put(t, "{\"deny\":");
	put_selectors(t);
	if (gen_rnd(3) == 0)
		gen_put(t, ",\"principals\":%s", GEN_PICK(who_lists));
	if (gen_rnd(8)) {
		gen_put(t, ",\"paths\":");
		put_list(t, globs, nitems(globs));
	}
	if (gen_rnd(4) == 0) {
		gen_put(t, ",\"commands\":");
		put_list(t, patterns, nitems(patterns));
	}
	gen_put(t, "}");
}

/* The configuration in two halves, so that a rule can be gen_put between. */
void
gen_head(struct gen_text *t, int with_a)
{
	gen_put(t,
	    "{\"version\":1,\"allow_lint_errors\":true,\"auth\":{\"tokens\":"
	    "[%s{\"id\":\"b\",\"roles\":[\"y\"],\"token_sha256\":"
	    "\"" GEN_B_DIGEST "\"}]},\"rules\":[",
	    with_a ? "{\"id\":\"a\",\"roles\":[\"x\"],\"token_sha256\":"
		     "\"" GEN_A_DIGEST "\"},"
		   : "");
}

void
gen_rules(struct gen_text *t)
{
	uint32_t i, n = 1 + gen_rnd(8);

	for (i = 0; i < n; i++) {
		if (i > 0)
			gen_put(t, ",");
		if (gen_rnd(5) > 0)
			put_allow(t);
		else
			gen_deny(t);
	}
}

void
gen_operator(struct gen_text *t)
{
	static const char *const ceilings[] = {
	    "/r", "/r/a", "/s", "/h/a", "/w"};

	gen_put(t, "{\"version\":1");
	if (gen_rnd(2)) {
		gen_put(t, ",\"rules\":[");
		gen_deny(t);
		gen_put(t, "]");
	}
	if (gen_rnd(3) == 0) {
		gen_put(t, ",\"disable\":");
		put_selectors(t);
	}
	if (gen_rnd(2)) {
		gen_put(t, ",\"limits\":");
		put_limits(t);
	}
	if (gen_rnd(2)) {
		gen_put(t, ",\"roots\":");
		put_list(t, ceilings, nitems(ceilings));
	}
	gen_put(t, "}");
}

/* ---- a policy ---- */

void
gen_clear(struct gen_made *m)
{
	policy_free(m->policy);
	conf_free(m->conf);
	memset(m, 0, sizeof(*m));
}

static void
bad_text(const char *text, const struct findings *f)
{
	char *s;
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->v[i].sev == FIND_ERROR) {
			s = finding_text(&f->v[i]);
			print_message("%s\n", s);
			free(s);
		}
	print_message("seed %llu\n%s\n", (unsigned long long)gen_seed, text);
	fail();
}

void
gen_make(struct gen_made *m, const struct conf_source *src, size_t n,
    const char *const *env)
{
	struct conf_world w = {.env = env, .default_state_dir = "/var/lib/abx"};
	struct findings f = {0};

	m->conf = conf_load(src, n, env == NULL ? NULL : &w, &f);
	if (m->conf == NULL || findings_block(&f, 1))
		bad_text(src[0].data, &f);
	m->policy = policy_new(m->conf, &f);
	if (m->policy == NULL)
		bad_text(src[0].data, &f);
	findings_clear(&f);
}

const char *const gen_no_env[] = {NULL};

void
gen_make_text(struct gen_made *m, const char *text)
{
	struct conf_source src = {"conf", LAYER_FILE, text, strlen(text)};

	gen_make(m, &src, 1, gen_no_env);
}
