/*
 * SPDX-License-Identifier: ISC
 *
 * The wire between execd and the launcher: what is put is got, and no prefix
 * and no surplus byte is taken for a message.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/codes.h"
#include "execd/launch/xl.h"

static void
put_setup(struct wbuf *w)
{
	static char path[] = "/w";
	static uint8_t code[16] = {1, 2, 3};
	struct xl_path p = {path, XLR_READ};
	struct xl_check c = {path, 5, UINT64_MAX, 1};
	struct xl_setup s = {0};

	s.layers = LAYER_SECCOMP;
	s.require = LAYER_LANDLOCK;
	s.paths = &p;
	s.checks = &c;
	s.npaths = s.nchecks = 1;
	s.filters[0].code = code;
	s.filters[0].len = 16;
	s.nfilters = 1;
	s.nofork = s.filters[0];
	s.nofork.len = 8;
	xl_setup_put(w, &s);
}

static void
put_run(struct wbuf *w)
{
	static char prog[] = "/usr/bin/true", cwd[] = "/", e[] = "A=b";
	char *progs[] = {prog}, *argv[] = {prog, e}, *env[] = {e};
	struct spawn s = {0};

	s.flags = SPAWN_NO_FORK | SPAWN_STREAM;
	s.progs.v = progs;
	s.argv.v = argv;
	s.env.v = env;
	s.progs.n = s.env.n = 1;
	s.argv.n = 2;
	s.cwd = cwd;
	s.cpu_s = 1;
	s.memory = 2;
	s.procs = 3;
	xl_run_put(w, &s, 1024, 1);
}

/* What a spawn asks for, in the launcher's flags. */
static void
test_run_flags(void **state)
{
	static const struct {
		uint16_t spawn;
		int session;
		uint8_t run;
	} t[] = {
	    {0, 0, 0},
	    {SPAWN_NO_FORK, 0, XL_NO_FORK},
	    {SPAWN_HOLD, 0, XL_CHECK},
	    {0, 1, XL_CHECK | XL_APART},
	    {SPAWN_STREAM, 0, 0},
	    {SPAWN_STDIN, 0, 0},
	    {SPAWN_KEEP, 1, XL_CHECK | XL_APART},
	};
	static char word[] = "/bin/true", root[] = "/";
	char *words[] = {word};
	struct spawn s;
	struct xl_run x;
	struct wbuf w;
	struct rbuf r;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		memset(&s, 0, sizeof(s));
		s.flags = t[i].spawn;
		s.session[0] = t[i].session ? 's' : '\0';
		s.progs = s.argv = (struct strlist){words, 1};
		s.cwd = root;
		wbuf_init(&w, 4096);
		xl_run_put(&w, &s, 64, 0);
		rbuf_init(&r, w.p, w.len);
		assert_int_equal(xl_run_get(&r, &x), 0);
		assert_int_equal(x.flags, t[i].run);
		xl_run_clear(&x);
		wbuf_free(&w);
	}
}

static void
test_setup(void **state)
{
	struct xl_setup s;
	struct wbuf w;
	struct rbuf r;
	size_t n;

	wbuf_init(&w, 4096);
	put_setup(&w);
	for (n = 0; n < w.len; n++) {
		rbuf_init(&r, w.p, n);
		assert_int_equal(xl_setup_get(&r, &s), -1);
	}
	rbuf_init(&r, w.p, w.len);
	assert_int_equal(xl_setup_get(&r, &s), 0);
	assert_int_equal(s.nfilters, 1);
	assert_int_equal(s.filters[0].len, 16);
	assert_int_equal(s.nofork.len, 8);
	assert_int_equal(s.checks[0].ino, UINT64_MAX);
	assert_int_equal(s.checks[0].ro, 1);
	xl_setup_clear(&s);
	wput_u8(&w, 0);
	rbuf_init(&r, w.p, w.len);
	assert_int_equal(xl_setup_get(&r, &s), -1);
	wbuf_free(&w);
}

/* Every byte changed to something: decoded or not, never a crash. */
static void
test_setup_bent(void **state)
{
	struct xl_setup s;
	struct wbuf w;
	struct rbuf r;
	size_t n;
	int bit;

	wbuf_init(&w, 4096);
	put_setup(&w);
	for (n = 0; n < w.len; n++)
		for (bit = 1; bit < 256; bit <<= 1) {
			w.p[n] ^= (uint8_t)bit;
			rbuf_init(&r, w.p, w.len);
			if (xl_setup_get(&r, &s) == 0)
				xl_setup_clear(&s);
			w.p[n] ^= (uint8_t)bit;
		}
	wbuf_free(&w);
}

static void
test_run(void **state)
{
	struct xl_run x;
	struct wbuf w;
	struct rbuf r;
	size_t n;

	wbuf_init(&w, 4096);
	put_run(&w);
	for (n = 0; n < w.len; n++) {
		rbuf_init(&r, w.p, n);
		assert_int_equal(xl_run_get(&r, &x), -1);
	}
	rbuf_init(&r, w.p, w.len);
	assert_int_equal(xl_run_get(&r, &x), 0);
	assert_int_equal(x.flags, XL_NO_FORK);
	assert_string_equal(x.argv.v[1], "A=b");
	assert_null(x.argv.v[2]);
	assert_null(x.env.v[1]);
	assert_string_equal(x.cwd, "/");
	assert_int_equal(x.cpu_s, 1);
	assert_int_equal(x.memory, 2);
	assert_int_equal(x.procs, 4); /* the launcher is counted */
	assert_int_equal(x.nofile, 1024);
	xl_run_clear(&x);
	wbuf_free(&w);
}

static void
test_small(void **state)
{
	struct xl_ready y = {7, 6}, y2;
	struct xl_ended e = {0x8b, 1, 2, 3}, e2;
	struct spawn_failed f = {C_POL_EXEC_NOT_FOUND, 2, "execve"}, f2;
	struct wbuf w;
	struct rbuf r;

	wbuf_init(&w, 4096);
	xl_ready_put(&w, &y);
	rbuf_init(&r, w.p, w.len);
	assert_int_equal(xl_ready_get(&r, &y2), 0);
	assert_int_equal(y2.abi, 6);
	wbuf_reset(&w);
	xl_ended_put(&w, &e);
	rbuf_init(&r, w.p, w.len);
	assert_int_equal(xl_ended_get(&r, &e2), 0);
	assert_int_equal(e2.status, 0x8b);
	assert_int_equal(e2.maxrss_kb, 3);
	wbuf_reset(&w);
	xl_failed_put(&w, &f);
	rbuf_init(&r, w.p, w.len);
	assert_int_equal(xl_failed_get(&r, &f2), 0);
	assert_string_equal(f2.layer, "execve");
	wbuf_reset(&w);
	f.code = C_OK;
	xl_failed_put(&w, &f);
	rbuf_init(&r, w.p, w.len);
	assert_int_equal(xl_failed_get(&r, &f2), -1);
	wbuf_free(&w);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_setup),
	    cmocka_unit_test(test_setup_bent),
	    cmocka_unit_test(test_run),
	    cmocka_unit_test(test_run_flags),
	    cmocka_unit_test(test_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
