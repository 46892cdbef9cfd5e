/*
 * SPDX-License-Identifier: ISC
 *
 * Properties of the policy engine over generated configurations and calls: a
 * deny never opens, layers 4 and 5 never widen, explicit-only operations need
 * their name, a removed credential leaves nothing, and the canonical text is
 * a fixed point that decides alike.  The seed is printed; ABX_SEED repeats a
 * run, ABX_LONG=1 makes ten thousand policies instead of fewer, and
 * ABX_POLICIES=N that many.
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

#include "common/hash.h"
#include "policy/engine.h"

#define POLICIES 1500
#define POLICIES_LONG 10000
#define CALLS 8 /* of each policy: 10 000 and more in the shorter run */
#define TEXT_MAX 65536

/* ---- chance ---- */

static uint64_t seed, rnd_state;

static uint32_t
rnd(uint32_t n)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return (uint32_t)((rnd_state >> 16) % n);
}

#define PICK(a) ((a)[rnd(nitems(a))])

static unsigned
rounds(void)
{
	const char *s = getenv("ABX_LONG"), *few = getenv("ABX_POLICIES");

	if (few != NULL)
		return (unsigned)strtoul(few, NULL, 10);
	return s != NULL && strcmp(s, "1") == 0 ? POLICIES_LONG : POLICIES;
}

/* ---- texts ---- */

struct text {
	char s[TEXT_MAX];
	size_t len;
};

static void __attribute__((format(printf, 2, 3)))
put(struct text *t, const char *fmt, ...)
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
put_list(struct text *t, const char *const *words, size_t n)
{
	uint32_t i, k = 1 + rnd(3);

	for (i = 0; i < k; i++)
		put(t, "%s\"%s\"", i == 0 ? "[" : ",", words[rnd((uint32_t)n)]);
	put(t, "]");
}

static const char *const wide[] = {"*", "files.*", "files.**", "process.*",
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
static uint16_t
some_op(void)
{
	uint16_t op = (uint16_t)rnd(OP_COUNT);

	while (rnd(8) && (ops[op].flags & OF_LATER) != 0)
		op = (uint16_t)rnd(OP_COUNT);
	return op;
}

static void
put_selectors(struct text *t)
{
	uint32_t i, k = 1 + rnd(3);

	for (i = 0; i < k; i++)
		put(t, "%s\"%s\"", i == 0 ? "[" : ",",
		    rnd(2) ? PICK(wide) : ops[some_op()].id);
	put(t, "]");
}

static void
put_scope(struct text *t)
{
	put(t, "{\"roots\":");
	put_list(t, roots, nitems(roots));
	if (rnd(3) == 0) {
		put(t, ",\"deny\":");
		put_list(t, globs, nitems(globs));
	}
	if (rnd(4) == 0)
		put(t, ",\"readonly\":true");
	if (rnd(4) == 0)
		put(t, ",\"symlinks\":\"deny\"");
	if (rnd(4) == 0)
		put(t, ",\"max_bytes\":%u", 1 + rnd(5000));
	if (rnd(4) == 0)
		put(t, ",\"create_dirs\":false");
	put(t, "}");
}

static void
put_limits(struct text *t)
{
	static const char *const units[] = {"s", "min", "h"};

	put(t, "{\"max_bytes\":%u", 1 + rnd(5000));
	if (rnd(2))
		put(t, ",\"rate\":\"%u/%s\"", 1 + rnd(50), PICK(units));
	if (rnd(2))
		put(t, ",\"concurrency\":%u", 1 + rnd(20));
	if (rnd(2))
		put(t, ",\"timeout\":%u,\"max_entries\":%u", 1 + rnd(90),
		    1 + rnd(90));
	put(t, "}");
}

static void
put_allow(struct text *t)
{
	put(t, "{\"allow\":");
	put_selectors(t);
	if (rnd(2))
		put(t, ",\"principals\":%s", PICK(who_lists));
	if (rnd(8)) {
		put(t, ",\"paths\":");
		if (rnd(5) == 0) {
			put(t, "{\"path\":");
			put_scope(t);
			put(t, ",\"src\":");
			put_scope(t);
			put(t, ",\"dst\":");
			put_scope(t);
			put(t, "}");
		} else
			put_scope(t);
	}
	if (rnd(2)) {
		put(t, ",\"commands\":{\"allow\":");
		put_list(t, patterns, nitems(patterns));
		if (rnd(3) == 0) {
			put(t, ",\"deny\":");
			put_list(t, patterns, nitems(patterns));
		}
		if (rnd(4)) {
			put(t, ",\"cwd\":");
			put_scope(t);
		}
		if (rnd(3) == 0)
			put(t, ",\"shell\":true");
		put(t, "}");
	}
	if (rnd(3) == 0) {
		put(t, ",\"limits\":");
		put_limits(t);
	}
	put(t, "}");
}

static void
put_deny(struct text *t)
{
	put(t, "{\"deny\":");
	put_selectors(t);
	if (rnd(3) == 0)
		put(t, ",\"principals\":%s", PICK(who_lists));
	if (rnd(8)) {
		put(t, ",\"paths\":");
		put_list(t, globs, nitems(globs));
	}
	if (rnd(4) == 0) {
		put(t, ",\"commands\":");
		put_list(t, patterns, nitems(patterns));
	}
	put(t, "}");
}

#define A_DIGEST \
	"00000000000000000000000000000000000000000000000000000000000000aa"
#define B_DIGEST \
	"00000000000000000000000000000000000000000000000000000000000000bb"

/* The configuration in two halves, so that a rule can be put between. */
static void
put_head(struct text *t, int with_a)
{
	put(t,
	    "{\"version\":1,\"allow_lint_errors\":true,\"auth\":{\"tokens\":"
	    "[%s{\"id\":\"b\",\"roles\":[\"y\"],\"token_sha256\":\"" B_DIGEST
	    "\"}]},\"rules\":[",
	    with_a ? "{\"id\":\"a\",\"roles\":[\"x\"],\"token_sha256\":"
		     "\"" A_DIGEST "\"},"
		   : "");
}

static void
put_rules(struct text *t)
{
	uint32_t i, n = 1 + rnd(8);

	for (i = 0; i < n; i++) {
		if (i > 0)
			put(t, ",");
		if (rnd(5) > 0)
			put_allow(t);
		else
			put_deny(t);
	}
}

static void
put_operator(struct text *t)
{
	static const char *const ceilings[] = {
	    "/r", "/r/a", "/s", "/h/a", "/w"};

	put(t, "{\"version\":1");
	if (rnd(2)) {
		put(t, ",\"rules\":[");
		put_deny(t);
		put(t, "]");
	}
	if (rnd(3) == 0) {
		put(t, ",\"disable\":");
		put_selectors(t);
	}
	if (rnd(2)) {
		put(t, ",\"limits\":");
		put_limits(t);
	}
	if (rnd(2)) {
		put(t, ",\"roots\":");
		put_list(t, ceilings, nitems(ceilings));
	}
	put(t, "}");
}

/* ---- a policy ---- */

struct made {
	struct conf *conf;
	struct policy *policy;
};

static void
made_clear(struct made *m)
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
	print_message("seed %llu\n%s\n", (unsigned long long)seed, text);
	fail();
}

static void
make(struct made *m, const struct conf_source *src, size_t n,
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

static const char *const no_env[] = {NULL};

static void
make_text(struct made *m, const char *text)
{
	struct conf_source src = {"conf", LAYER_FILE, text, strlen(text)};

	make(m, &src, 1, no_env);
}

/* ---- a call ---- */

struct asked {
	struct call call;
	struct args args;
	struct principal who;
	const char *roles[1];
};

static void
add_str(struct args *args, const char *name, const char *value)
{
	struct arg *a = args_add(args, name, A_STR);

	assert_non_null(a);
	assert_int_equal(arg_set_str(a, value, strlen(value)), 0);
}

static void
add_params(struct args *args, const struct op *op)
{
	static const char *const paths[] = {"x", "a", "a/b", "a/b/x", "/r",
	    "/r/a", "/r/a/x", "/r/a/z", "/r/a/z/x", "z", "z/x", "/s/t/z",
	    "/r/b.c", "/s/t/x", "/s/l/x", "/r/l", "../x", "/h/a/x", "/h/b/x",
	    "/w/s1/x", "/etc/passwd", "/proc/1", "/r/../s/x", ".",
	    "/var/lib/abx/x", "/r/m", "c"};
	static const char *const lines[] = {"true", "ls x", "ls -l x", "seq 5",
	    "cat a/b x", "echo w", "id", "ls /etc/passwd", "x", "head -n 3 q x",
	    "sh -c x", "ls ../x"};
	const struct op_param *p;

	for (p = op->params; p->name != NULL; p++) {
		if (p->type == T_PATH && ((p->flags & PF_REQ) != 0 || rnd(2)))
			add_str(args, p->name, PICK(paths));
		else if (strcmp(p->name, "command") == 0)
			add_str(args, p->name, PICK(lines));
		else if (strcmp(p->name, "shell") == 0 && rnd(6) == 0)
			args_add(args, p->name, A_BOOL)->i = 1;
		else if (p->type == T_STR && (p->flags & PF_REQ) != 0)
			add_str(args, p->name, "x");
	}
	if (rnd(30) == 0)
		add_str(args, "unheard_of", "x");
}

/* Mostly a call of something that the policy mounts. */
static void
ask_new(struct asked *a, const struct policy *p)
{
	static const struct {
		const char *id, *role;
		int known;
	} people[] = {{"a", "x", 1}, {"b", "y", 1}, {"c", NULL, 1},
	    {"anonymous", NULL, 0}};
	uint32_t i = rnd(nitems(people));

	memset(a, 0, sizeof(*a));
	a->who.id = people[i].id;
	a->who.authenticated = people[i].known;
	a->roles[0] = people[i].role;
	a->who.roles = a->roles;
	a->who.nroles = people[i].role != NULL;
	a->call.op = some_op();
	for (i = rnd(8) ? 40 : 0; i > 0; i--)
		if (!policy_mounted(p, a->call.op, &a->who))
			a->call.op = some_op();
	a->call.session = rnd(4) ? "s1" : NULL;
	add_params(&a->args, &ops[a->call.op]);
	a->call.args = &a->args;
	a->call.who = &a->who;
}

/* ---- a file system ---- */

/* Links: /X/l leads to /r/a, /X/m out of everything.  What exists depends on
 * the name alone. */
static void
resolve(char path[ABX_PATH_MAX + 1], int *link)
{
	char tail[ABX_PATH_MAX + 1];
	char *at;

	*link = 0;
	if ((at = strstr(path, "/l/")) != NULL)
		strlcpy(tail, at + 2, sizeof(tail));
	else if (strlen(path) > 2 && strcmp(path + strlen(path) - 2, "/l") == 0)
		tail[0] = '\0';
	else if (strstr(path, "/m") != NULL) {
		strlcpy(path, "/etc/m", ABX_PATH_MAX + 1);
		return;
	} else
		return;
	*link = 1;
	strlcpy(path, "/r/a", ABX_PATH_MAX + 1);
	strlcat(path, tail, ABX_PATH_MAX + 1);
}

static void
look(const struct policy *p, const struct plan_item *it, struct facts *f)
{
	char path[ABX_PATH_MAX + 1], dir[ABX_PATH_MAX + 1];
	size_t i, len = 0;
	int link, found = 0;

	memset(f, 0, sizeof(*f));
	strlcpy(path, it->path, sizeof(path));
	resolve(path, &link);
	for (i = 0; i < it->nrefs; i++) {
		assert_int_equal(
		    path_join_into(
			p->roots[it->refs[i].root].canon, it->refs[i].sub, dir),
		    0);
		if (path_below(dir, path) == NULL || strlen(dir) < len)
			continue;
		found = 1;
		len = strlen(dir);
		f->ref = (uint8_t)i;
	}
	if (!found) {
		f->status = FS_OUTSIDE;
		return;
	}
	f->path = strdup(path);
	f->rel = (uint16_t)len;
	f->symlink = (uint8_t)link;
	f->nlink = 1 + (strlen(path) % 3 == 0);
	f->size = strlen(path) * 100;
	f->dev = f->ino = 1;
	f->kind = path[strlen(path) - 1] == 'x' ? FK_FILE : FK_DIR;
	if (strstr(path, "/q") != NULL) {
		f->kind = FK_MISSING;
		f->missing = 1;
	}
}

/* What a policy answers: everything that tests compare. */
struct answer {
	int allowed, mounted;
	enum code code;
	long rule;
	uint64_t max_bytes, max_entries, timeout_ms;
	uint32_t concurrency, rate_count;
	uint64_t rate_period_ms;
	char canonical[3][256];
	uint8_t spawn[32]; /* digest of what would run */
};

static void
take(const struct decision *d, struct answer *out)
{
	struct wbuf w;
	size_t i;

	memset(out, 0, sizeof(*out));
	out->allowed = d->allowed;
	out->mounted = d->mounted;
	out->code = d->code;
	out->rule = d->rule;
	out->max_bytes = d->max_bytes;
	out->max_entries = d->max_entries;
	out->timeout_ms = d->spawn.timeout_ms;
	out->concurrency = d->concurrency;
	out->rate_count = d->rate_count;
	out->rate_period_ms = d->rate_period_ms;
	for (i = 0; i < d->npaths && i < 3; i++)
		strlcpy(out->canonical[i], d->paths[i].canonical,
		    sizeof(out->canonical[i]));
	wbuf_init(&w, 1024 * 1024);
	for (i = 0; i < d->spawn.argv.n; i++)
		wput_str(&w, d->spawn.argv.v[i]);
	for (i = 0; i < d->spawn.env.n; i++)
		wput_str(&w, d->spawn.env.v[i]);
	for (i = 0; i < d->deny.n; i++)
		wput_str(&w, d->deny.v[i]);
	sha256(w.p, w.len, out->spawn);
	wbuf_free(&w);
}

static unsigned long nasked, nallowed;

static void
ask(const struct policy *p, const struct call *call, struct answer *out)
{
	struct facts facts[ABX_MAX_RESOLVE];
	struct decision d;
	struct plan plan;
	size_t i;

	assert_int_equal(policy_plan(p, call, &plan), 0);
	for (i = 0; i < plan.nitems; i++)
		look(p, &plan.items[i], &facts[i]);
	assert_int_equal(policy_decide(p, call, &plan, facts, &d), 0);
	assert_true(d.allowed || d.code != C_OK);
	assert_true(!d.allowed || d.mounted);
	take(&d, out);
	nasked++;
	nallowed += d.allowed;
	decision_clear(&d);
	for (i = 0; i < plan.nitems; i++)
		facts_clear(&facts[i]);
	plan_clear(&plan);
}

static void
broken(const char *what, const struct asked *a, const char *one,
    const char *two, const struct answer *x, const struct answer *y)
{
	size_t i;

	print_message("seed %llu: %s\n%s\n%s\nop %s, id %s\n",
	    (unsigned long long)seed, what, one, two != NULL ? two : "",
	    ops[a->call.op].id, a->who.id);
	for (i = 0; i < a->args.n; i++)
		print_message("  %s=%s\n", a->args.v[i].name,
		    a->args.v[i].s != NULL ? a->args.v[i].s : "");
	print_message("%s by %ld, then %s by %ld\n", codes[x->code].code,
	    x->rule, codes[y->code].code, y->rule);
	fail();
}

/* ---- the properties ---- */

static void
test_deny_never_opens(void **state)
{
	static struct text one, two;
	unsigned i, k, n = rounds();
	struct made before = {0}, after = {0};
	struct answer x, y;
	struct asked a;
	size_t head;

	for (i = 0; i < n; i++) {
		one.len = two.len = 0;
		put_head(&one, 1);
		head = one.len;
		put_rules(&one);
		put(&two, "%.*s", (int)head, one.s);
		/* first or last: its place must not matter */
		if (rnd(2)) {
			put_deny(&two);
			put(&two, ",%s", one.s + head);
		} else {
			put(&two, "%s,", one.s + head);
			put_deny(&two);
		}
		put(&one, "]}");
		put(&two, "]}");
		make_text(&before, one.s);
		make_text(&after, two.s);
		for (k = 0; k < CALLS; k++) {
			ask_new(&a, before.policy);
			ask(before.policy, &a.call, &x);
			ask(after.policy, &a.call, &y);
			if (y.allowed && !x.allowed)
				broken(
				    "a deny opened", &a, one.s, two.s, &x, &y);
			args_clear(&a.args);
		}
		made_clear(&before);
		made_clear(&after);
	}
}

static int
above(uint64_t narrow, uint64_t wide_, uint64_t none)
{
	if (wide_ == none)
		return 0;
	return narrow == none || narrow > wide_;
}

/* Faster or with a larger bucket; compared by products, which fit. */
static int
rate_above(const struct answer *narrow, const struct answer *w)
{
	if (w->rate_count == 0)
		return 0;
	return narrow->rate_count == 0 || narrow->rate_count > w->rate_count ||
	       narrow->rate_count * w->rate_period_ms >
		   w->rate_count * narrow->rate_period_ms;
}

static void
test_layers_never_widen(void **state)
{
	static struct text one, oper;
	char disable[128], bytes[64];
	const char *env[4];
	unsigned i, k, n = rounds();
	struct made before = {0}, after = {0};
	struct conf_source src[2];
	struct answer x, y;
	struct asked a;
	size_t e;

	for (i = 0; i < n; i++) {
		one.len = oper.len = e = 0;
		put_head(&one, 1);
		put_rules(&one);
		put(&one, "]}");
		put_operator(&oper);
		if (rnd(4) == 0)
			env[e++] = "ABX_SERVER_READONLY=1";
		snprintf(disable, sizeof(disable), "ABX_SERVER_DISABLE=%s",
		    rnd(2) ? PICK(wide) : ops[rnd(OP_COUNT)].id);
		if (rnd(4) == 0)
			env[e++] = disable;
		snprintf(bytes, sizeof(bytes), "ABX_SERVER_MAX_BYTES=%u",
		    1 + rnd(4000));
		if (rnd(3) == 0)
			env[e++] = bytes;
		env[e] = NULL;
		src[0] =
		    (struct conf_source){"conf", LAYER_FILE, one.s, one.len};
		src[1] = (struct conf_source){
		    "operator", LAYER_OPERATOR, oper.s, oper.len};
		make_text(&before, one.s);
		make(&after, src, 2, env);
		for (k = 0; k < CALLS; k++) {
			ask_new(&a, before.policy);
			ask(before.policy, &a.call, &x);
			ask(after.policy, &a.call, &y);
			if (y.allowed && !x.allowed)
				broken("a layer opened", &a, one.s, oper.s, &x,
				    &y);
			if (y.allowed && x.rule == y.rule &&
			    (above(y.max_bytes, x.max_bytes, UINT64_MAX) ||
				above(
				    y.max_entries, x.max_entries, UINT64_MAX) ||
				above(y.timeout_ms, x.timeout_ms, 0) ||
				above(y.concurrency, x.concurrency, 0) ||
				rate_above(&y, &x)))
				broken("a layer raised a limit", &a, one.s,
				    oper.s, &x, &y);
			args_clear(&a.args);
		}
		made_clear(&before);
		made_clear(&after);
	}
}

static void
test_explicit_only(void **state)
{
	unsigned i, n = rounds() * 4;
	uint16_t op;
	size_t k;

	for (i = 0; i < nitems(wide); i++)
		for (op = 0; op < OP_COUNT; op++)
			if (op_explicit_only(&ops[op]))
				assert_false(selector_matches(wide[i], op, 0));
	/* and whatever else has the form of a selector but is no id */
	for (i = 0; i < n; i++) {
		static const char *const parts[] = {"core", "system", "agents",
		    "claude", "terminal", "process", "env", "*", "**",
		    "group:", "effect:", "admin", "exec", ",", ".", "sessions"};
		char sel[128] = "";

		for (k = 1 + rnd(4); k > 0; k--)
			strlcat(sel, PICK(parts), sizeof(sel));
		if (op_find(sel) != OP_NONE)
			continue;
		for (op = 0; op < OP_COUNT; op++)
			if (op_explicit_only(&ops[op]) &&
			    selector_matches(sel, op, 0))
				fail_msg("%s matches %s", sel, ops[op].id);
	}
	for (op = 0; op < OP_COUNT; op++)
		assert_true(selector_matches(ops[op].id, op, 0));
}

/* Nobody is authenticated by a digest that is gone, and what anonymous may do
 * is what it was. */
static int
knows(const struct conf *c, const char *hex)
{
	uint8_t digest[32];
	size_t i;

	assert_int_equal(hex_decode(hex, digest, sizeof(digest)), 0);
	for (i = 0; i < c->ntokens; i++)
		if (ct_equal(c->tokens[i].digest, digest, sizeof(digest)))
			return 1;
	return 0;
}

static void
test_removed_token(void **state)
{
	static struct text one, two;
	unsigned i, k, n = rounds() / 4;
	struct made before = {0}, after = {0};
	struct answer x, y;
	struct asked a;
	size_t head;

	for (i = 0; i < n; i++) {
		one.len = two.len = 0;
		put_head(&one, 1);
		head = one.len;
		put_rules(&one);
		put(&one, "]}");
		put_head(&two, 0);
		put(&two, "%s", one.s + head);
		make_text(&before, one.s);
		make_text(&after, two.s);
		assert_true(knows(before.conf, A_DIGEST));
		assert_false(knows(after.conf, A_DIGEST));
		assert_true(knows(after.conf, B_DIGEST));
		assert_false(after.conf->open_mode);
		for (k = 0; k < CALLS; k++) {
			ask_new(&a, before.policy);
			a.who.id = "anonymous";
			a.who.authenticated = 0;
			a.who.nroles = 0;
			ask(before.policy, &a.call, &x);
			ask(after.policy, &a.call, &y);
			if (memcmp(&x, &y, sizeof(x)) != 0)
				broken("a removed token matters to others", &a,
				    one.s, two.s, &x, &y);
			args_clear(&a.args);
		}
		made_clear(&before);
		made_clear(&after);
	}
}

/* With "auth" and no credential left, nothing starts. */
static void
test_no_token_left(void **state)
{
	static const char text[] =
	    "{\"version\":1,\"auth\":{\"tokens\":[]},\"rules\":[{\"allow\":"
	    "\"core.check\"}]}";
	struct conf_source src = {"conf", LAYER_FILE, text, sizeof(text) - 1};
	struct conf_world w = {.env = no_env};
	struct findings f = {0};
	struct conf *c = conf_load(&src, 1, &w, &f);

	assert_true(findings_block(&f, 1));
	conf_free(c);
	findings_clear(&f);
}

static void
test_canonical(void **state)
{
	static struct text one, oper;
	unsigned i, k, n = rounds();
	struct made before = {0}, after = {0};
	struct conf_source src[2];
	struct answer x, y;
	struct asked a;
	char *text, *again;

	for (i = 0; i < n; i++) {
		one.len = oper.len = 0;
		put_head(&one, 1);
		put_rules(&one);
		put(&one, "]}");
		put_operator(&oper);
		src[0] =
		    (struct conf_source){"conf", LAYER_FILE, one.s, one.len};
		src[1] = (struct conf_source){
		    "operator", LAYER_OPERATOR, oper.s, oper.len};
		make(&before, src, 2, no_env);
		text = conf_print(before.conf);
		assert_non_null(text);
		src[0] = (struct conf_source){
		    "canon", LAYER_CANON, text, strlen(text)};
		make(&after, src, 1, NULL);
		again = conf_print(after.conf);
		assert_non_null(again);
		if (strcmp(text, again) != 0)
			fail_msg("seed %llu: %s\n%s", (unsigned long long)seed,
			    text, again);
		for (k = 0; k < CALLS; k++) {
			ask_new(&a, before.policy);
			ask(before.policy, &a.call, &x);
			ask(after.policy, &a.call, &y);
			if (memcmp(&x, &y, sizeof(x)) != 0)
				broken("the canonical text decides otherwise",
				    &a, one.s, text, &x, &y);
			args_clear(&a.args);
		}
		free(text);
		free(again);
		made_clear(&before);
		made_clear(&after);
	}
}

/* A call is decided alike by the service and by explain, mounted is what the
 * table of operations says, and an unmounted op is an unknown one. */
static void
test_agree(void **state)
{
	static struct text one;
	unsigned i, k, n = rounds() / 2;
	struct made m = {0};
	struct answer x, y;
	struct asked a;
	int mounted;

	for (i = 0; i < n; i++) {
		one.len = 0;
		put_head(&one, 1);
		put_rules(&one);
		put(&one, "]}");
		make_text(&m, one.s);
		for (k = 0; k < CALLS; k++) {
			ask_new(&a, m.policy);
			ask(m.policy, &a.call, &x);
			a.call.explain = 1;
			ask(m.policy, &a.call, &y);
			a.call.explain = 0;
			mounted = policy_mounted(m.policy, a.call.op, &a.who);
			if (memcmp(&x, &y, sizeof(x)) != 0 ||
			    ((ops[a.call.op].flags & OF_LATER) == 0 &&
				mounted != x.mounted) ||
			    (x.allowed && !mounted))
				broken("two answers to one call", &a, one.s,
				    NULL, &x, &y);
			if (!mounted && x.code == C_OP_NOT_ENABLED) {
				a.call.op = OP_NONE;
				ask(m.policy, &a.call, &y);
				assert_memory_equal(&x, &y, sizeof(x));
			}
			args_clear(&a.args);
		}
		made_clear(&m);
	}
}

/* Were nothing allowed, nothing was tried. */
static void
test_not_empty(void **state)
{
	print_message("%lu of %lu calls were allowed\n", nallowed, nasked);
	assert_true(nallowed > nasked / 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_deny_never_opens),
	    cmocka_unit_test(test_layers_never_widen),
	    cmocka_unit_test(test_explicit_only),
	    cmocka_unit_test(test_removed_token),
	    cmocka_unit_test(test_no_token_left),
	    cmocka_unit_test(test_canonical),
	    cmocka_unit_test(test_agree),
	    cmocka_unit_test(test_not_empty),
	};
	const char *s = getenv("ABX_SEED");
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	seed = s != NULL ? strtoull(s, NULL, 10)
			 : (uint64_t)ts.tv_sec * 1000 +
			       (uint64_t)ts.tv_nsec / 1000000;
	rnd_state = seed * 2654435769u + 1;
	printf("policy_prop: ABX_SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
