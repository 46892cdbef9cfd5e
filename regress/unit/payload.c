/*
 * SPDX-License-Identifier: ISC
 *
 * Payloads: what one end can mean the other end takes, and what is refused
 * leaves nothing behind.  (Any bytes at all: regress/fuzz/payload.c.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/codes.h"
#include "common/payload.h"

/* A path of a client may have any names; a target has those that exist. */
static void
test_names(void **state)
{
	static const struct {
		size_t len; /* of the one long name */
		const char *rest;
		int resolve, target;
	} t[] = {
	    {1, "", 0, 0},
	    {255, "", 0, 0},
	    {256, "", 0, -1},
	    {256, "/x", 0, -1},
	    {ABX_PATH_MAX - 1, "", 0, -1},
	    {ABX_PATH_MAX, "", -1, -1},
	    {1, "/", -1, -1},
	    {1, "//x", -1, -1},
	    {1, "/./x", -1, -1},
	    {1, "/..", -1, -1},
	};
	struct rootref ref = {0, ""};
	struct resolve_item it = {.refs = &ref, .nrefs = 1};
	struct resolve v = {0, &it, 1}, back;
	struct target target = {.kind = FK_FILE}, tback;
	struct wbuf w;
	struct rbuf r;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		it.path = calloc(1, t[i].len + 8);
		assert_non_null(it.path);
		memset(it.path, 'n', t[i].len + 1);
		it.path[0] = '/';
		strlcat(it.path, t[i].rest, t[i].len + 8);
		target.rel = it.path + 1;
		wbuf_init(&w, 65536);
		resolve_put(&w, &v);
		rbuf_init(&r, w.p, w.len);
		assert_int_equal(resolve_get(&r, &back), t[i].resolve);
		resolve_clear(&back);
		wbuf_reset(&w);
		target_put(&w, &target);
		rbuf_init(&r, w.p, w.len);
		assert_int_equal(target_get(&r, &tback), t[i].target);
		target_clear(&tback);
		wbuf_free(&w);
		free(it.path);
	}
}

#define LEAVES_NOTHING(name)                               \
	do {                                               \
		struct name x, none;                       \
		struct rbuf r;                             \
                                                           \
		memset(&x, 0xa5, sizeof(x));               \
		memset(&none, 0, sizeof(none));            \
		rbuf_init(&r, "\1\0\0\0\0", 5);            \
		assert_int_equal(name##_get(&r, &x), -1);  \
		assert_memory_equal(&x, &none, sizeof(x)); \
	} while (0)

static void
test_refused(void **state)
{
	LEAVES_NOTHING(facts);
	LEAVES_NOTHING(target);
	LEAVES_NOTHING(ask);
	LEAVES_NOTHING(ans);
	LEAVES_NOTHING(fin);
	LEAVES_NOTHING(reject);
	LEAVES_NOTHING(lconf);
	LEAVES_NOTHING(root_ok);
	LEAVES_NOTHING(resolve);
	LEAVES_NOTHING(put);
	LEAVES_NOTHING(put_fin);
	LEAVES_NOTHING(list);
	LEAVES_NOTHING(mutate);
	LEAVES_NOTHING(done);
	LEAVES_NOTHING(exec_hello);
	LEAVES_NOTHING(spawn_bind);
	LEAVES_NOTHING(spawn);
	LEAVES_NOTHING(spawn_failed);
	LEAVES_NOTHING(run_end);
	LEAVES_NOTHING(proc_conf);
	LEAVES_NOTHING(boot_path);
	LEAVES_NOTHING(boot);
}

/* More arguments than may be: refused, even when none of them follows. */
static void
test_args(void **state)
{
	static const struct {
		size_t n;
		const char *bytes;
		int rc;
	} t[] = {
	    {2, "\0\0", 0},
	    {2, "\100\0", -1}, /* 64 of which none is there */
	    {2, "\101\0", -1},
	    {2, "\377\377", -1},
	};
	struct ask a = {.reqid = "r-AAAAAAAAAAAAAAAAAAAAAA"}, back;
	struct args as;
	struct wbuf w;
	struct rbuf r;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		rbuf_init(&r, t[i].bytes, t[i].n);
		assert_int_equal(args_get(&r, &as), t[i].rc);
		assert_int_equal(rget_end(&r), t[i].rc);
		wbuf_init(&w, 4096);
		a.args_in_fd = 1;
		ask_put(&w, &a);
		w.p[w.len - 1] = 0; /* they are here after all */
		wput_raw(&w, t[i].bytes, t[i].n);
		rbuf_init(&r, w.p, w.len);
		assert_int_equal(ask_get(&r, &back), t[i].rc);
		ask_clear(&back);
		wbuf_free(&w);
	}
}

/* A refusal is named in full, as one, or not at all. */
static void
test_reject(void **state)
{
#define ID "r-AAAAAAAAAAAAAAAAAAAAAA"
	static const struct {
		struct reject j;
		int rc;
	} t[] = {
	    {{C_AUTH_INVALID, 1, ID, "203.0.113.8"}, 0},
	    {{C_AUTH_INVALID, 1, "", ""}, 0},
	    {{C_AUTH_INVALID, UINT32_MAX, "", ""}, 0},
	    {{C_AUTH_INVALID, 0, "", ""}, -1},
	    {{C_OK, 1, "", ""}, -1},
	    {{C_COUNT, 1, "", ""}, -1},
	    {{C_AUTH_INVALID, 2, ID, "203.0.113.8"}, -1},
	    {{C_AUTH_INVALID, 1, ID, ""}, -1},
	    {{C_AUTH_INVALID, 1, "", "203.0.113.8"}, -1},
	    {{C_AUTH_INVALID, 1, "r-", "203.0.113.8"}, -1},
	    {{C_AUTH_INVALID, 1, "r-AAAAAAAAAAAAAAAAAAAA\r\n", "unix"}, -1},
	};
#undef ID
	struct reject back;
	struct wbuf w;
	struct rbuf r;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		wbuf_init(&w, 4096);
		reject_put(&w, &t[i].j);
		rbuf_init(&r, w.p, w.len);
		assert_int_equal(reject_get(&r, &back), t[i].rc);
		if (t[i].rc == 0) {
			assert_int_equal(rget_end(&r), 0);
			assert_string_equal(back.reqid, t[i].j.reqid);
			assert_string_equal(back.remote, t[i].j.remote);
		}
		wbuf_free(&w);
	}
}

/* A body that could not be put together is no empty one. */
static void
test_no_body(void **state)
{
	struct ans a = {.kind = ANS_JSON, .status = 200};
	struct wbuf w;

	wbuf_init(&w, 1024);
	ans_put(&w, &a);
	assert_true(w.err);
	wbuf_free(&w);
	a.kind = ANS_PUT;
	ans_put(&w, &a);
	assert_false(w.err);
	wbuf_free(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_args),
	    cmocka_unit_test(test_reject),
	    cmocka_unit_test(test_no_body),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
