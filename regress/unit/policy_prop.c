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

#include <cmocka.h>

#include "common/hash.h"
#include "regress/unit/policy_ask.h"
#include "regress/unit/policy_gen.h"

#define CALLS 8 /* of each policy: 10 000 and more in the shorter run */

static void
test_deny_never_opens(void **state)
{
	static struct gen_text one, two;
	unsigned i, k, n = gen_rounds();
	struct gen_made before = {0}, after = {0};
	struct answer x, y;
	struct asked a;
	size_t head;

	for (i = 0; i < n; i++) {
		one.len = two.len = 0;
		gen_head(&one, 1);
		head = one.len;
		gen_rules(&one);
		gen_put(&two, "%.*s", (int)head, one.s);
		/* first or last: its place must not matter */
		if (gen_rnd(2)) {
			gen_deny(&two);
			gen_put(&two, ",%s", one.s + head);
		} else {
			gen_put(&two, "%s,", one.s + head);
			gen_deny(&two);
		}
		gen_put(&one, "]}");
		gen_put(&two, "]}");
		gen_make_text(&before, one.s);
		gen_make_text(&after, two.s);
		for (k = 0; k < CALLS; k++) {
			ask_new(&a, before.policy);
			ask_policy(before.policy, &a.call, &x);
			ask_policy(after.policy, &a.call, &y);
			if (y.allowed && !x.allowed)
				ask_broken(
				    "a deny opened", &a, one.s, two.s, &x, &y);
			args_clear(&a.args);
		}
		gen_clear(&before);
		gen_clear(&after);
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
	static struct gen_text one, oper;
	char disable[128], bytes[64];
	const char *env[4];
	unsigned i, k, n = gen_rounds();
	struct gen_made before = {0}, after = {0};
	struct conf_source src[2];
	struct answer x, y;
	struct asked a;
	size_t e;

	for (i = 0; i < n; i++) {
		one.len = oper.len = e = 0;
		gen_head(&one, 1);
		gen_rules(&one);
		gen_put(&one, "]}");
		gen_operator(&oper);
		if (gen_rnd(4) == 0)
			env[e++] = "ABX_SERVER_READONLY=1";
		snprintf(disable, sizeof(disable), "ABX_SERVER_DISABLE=%s",
		    gen_rnd(2) ? GEN_PICK(gen_wide)
			       : ops[gen_rnd(OP_COUNT)].id);
		if (gen_rnd(4) == 0)
			env[e++] = disable;
		snprintf(bytes, sizeof(bytes), "ABX_SERVER_MAX_BYTES=%u",
		    1 + gen_rnd(4000));
		if (gen_rnd(3) == 0)
			env[e++] = bytes;
		env[e] = NULL;
		src[0] =
		    (struct conf_source){"conf", LAYER_FILE, one.s, one.len};
		src[1] = (struct conf_source){
		    "operator", LAYER_OPERATOR, oper.s, oper.len};
		gen_make_text(&before, one.s);
		gen_make(&after, src, 2, env);
		for (k = 0; k < CALLS; k++) {
			ask_new(&a, before.policy);
			ask_policy(before.policy, &a.call, &x);
			ask_policy(after.policy, &a.call, &y);
			if (y.allowed && !x.allowed)
				ask_broken("a layer opened", &a, one.s, oper.s,
				    &x, &y);
			if (y.allowed && x.rule == y.rule &&
			    (above(y.max_bytes, x.max_bytes, UINT64_MAX) ||
				above(
				    y.max_entries, x.max_entries, UINT64_MAX) ||
				above(y.timeout_ms, x.timeout_ms, 0) ||
				above(y.concurrency, x.concurrency, 0) ||
				rate_above(&y, &x)))
				ask_broken("a layer raised a limit", &a, one.s,
				    oper.s, &x, &y);
			args_clear(&a.args);
		}
		gen_clear(&before);
		gen_clear(&after);
	}
}

static void
test_explicit_only(void **state)
{
	unsigned i, n = gen_rounds() * 4;
	uint16_t op;
	size_t k;

	for (i = 0; i < nitems(gen_wide); i++)
		for (op = 0; op < OP_COUNT; op++)
			if (op_explicit_only(&ops[op]))
				assert_false(
				    selector_matches(gen_wide[i], op, 0));
	/* and whatever else has the form of a selector but is no id */
	for (i = 0; i < n; i++) {
		static const char *const parts[] = {"core", "system", "agents",
		    "claude", "terminal", "process", "env", "*", "**",
		    "group:", "effect:", "admin", "exec", ",", ".", "sessions"};
		char sel[128] = "";

		for (k = 1 + gen_rnd(4); k > 0; k--)
			strlcat(sel, GEN_PICK(parts), sizeof(sel));
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
	static struct gen_text one, two;
	unsigned i, k, n = gen_rounds() / 4;
	struct gen_made before = {0}, after = {0};
	struct answer x, y;
	struct asked a;
	size_t head;

	for (i = 0; i < n; i++) {
		one.len = two.len = 0;
		gen_head(&one, 1);
		head = one.len;
		gen_rules(&one);
		gen_put(&one, "]}");
		gen_head(&two, 0);
		gen_put(&two, "%s", one.s + head);
		gen_make_text(&before, one.s);
		gen_make_text(&after, two.s);
		assert_true(knows(before.conf, GEN_A_DIGEST));
		assert_false(knows(after.conf, GEN_A_DIGEST));
		assert_true(knows(after.conf, GEN_B_DIGEST));
		assert_false(after.conf->open_mode);
		for (k = 0; k < CALLS; k++) {
			ask_new(&a, before.policy);
			a.who.id = "anonymous";
			a.who.authenticated = 0;
			a.who.nroles = 0;
			ask_policy(before.policy, &a.call, &x);
			ask_policy(after.policy, &a.call, &y);
			if (memcmp(&x, &y, sizeof(x)) != 0)
				ask_broken("a removed token matters to others",
				    &a, one.s, two.s, &x, &y);
			args_clear(&a.args);
		}
		gen_clear(&before);
		gen_clear(&after);
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
	struct conf_world w = {.env = gen_no_env};
	struct findings f = {0};
	struct conf *c = conf_load(&src, 1, &w, &f);

	assert_true(findings_block(&f, 1));
	conf_free(c);
	findings_clear(&f);
}

static void
test_canonical(void **state)
{
	static struct gen_text one, oper;
	unsigned i, k, n = gen_rounds();
	struct gen_made before = {0}, after = {0};
	struct conf_source src[2];
	struct answer x, y;
	struct asked a;
	char *text, *again;

	for (i = 0; i < n; i++) {
		one.len = oper.len = 0;
		gen_head(&one, 1);
		gen_rules(&one);
		gen_put(&one, "]}");
		gen_operator(&oper);
		src[0] =
		    (struct conf_source){"conf", LAYER_FILE, one.s, one.len};
		src[1] = (struct conf_source){
		    "operator", LAYER_OPERATOR, oper.s, oper.len};
		gen_make(&before, src, 2, gen_no_env);
		text = conf_print(before.conf);
		assert_non_null(text);
		src[0] = (struct conf_source){
		    "canon", LAYER_CANON, text, strlen(text)};
		gen_make(&after, src, 1, NULL);
		again = conf_print(after.conf);
		assert_non_null(again);
		if (strcmp(text, again) != 0)
			fail_msg("seed %llu: %s\n%s",
			    (unsigned long long)gen_seed, text, again);
		for (k = 0; k < CALLS; k++) {
			ask_new(&a, before.policy);
			ask_policy(before.policy, &a.call, &x);
			ask_policy(after.policy, &a.call, &y);
			if (memcmp(&x, &y, sizeof(x)) != 0)
				ask_broken(
				    "the canonical text decides otherwise", &a,
				    one.s, text, &x, &y);
			args_clear(&a.args);
		}
		free(text);
		free(again);
		gen_clear(&before);
		gen_clear(&after);
	}
}

/* A call is decided alike by the service and by explain, mounted is what the
 * table of operations says, and an unmounted op is an unknown one. */
static void
test_agree(void **state)
{
	static struct gen_text one;
	unsigned i, k, n = gen_rounds() / 2;
	struct gen_made m = {0};
	struct answer x, y;
	struct asked a;
	int mounted;

	for (i = 0; i < n; i++) {
		one.len = 0;
		gen_head(&one, 1);
		gen_rules(&one);
		gen_put(&one, "]}");
		gen_make_text(&m, one.s);
		for (k = 0; k < CALLS; k++) {
			ask_new(&a, m.policy);
			ask_policy(m.policy, &a.call, &x);
			a.call.explain = 1;
			ask_policy(m.policy, &a.call, &y);
			a.call.explain = 0;
			mounted = policy_mounted(m.policy, a.call.op, &a.who);
			if (memcmp(&x, &y, sizeof(x)) != 0 ||
			    ((ops[a.call.op].flags & OF_LATER) == 0 &&
				mounted != x.mounted) ||
			    (x.allowed && !mounted))
				ask_broken("two answers to one call", &a, one.s,
				    NULL, &x, &y);
			if (!mounted && x.code == C_OP_NOT_ENABLED) {
				a.call.op = OP_NONE;
				ask_policy(m.policy, &a.call, &y);
				assert_memory_equal(&x, &y, sizeof(x));
			}
			args_clear(&a.args);
		}
		gen_clear(&m);
	}
}

/* Were nothing allowed, nothing was tried. */
static void
test_not_empty(void **state)
{
	print_message(
	    "%lu of %lu calls were allowed\n", ask_allowed, ask_count);
	assert_true(ask_allowed > ask_count / 20);
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

	gen_begin();
	printf("policy_prop: ABX_SEED=%llu\n", (unsigned long long)gen_seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
