/*
 * SPDX-License-Identifier: ISC
 *
 * Results and events of commands: encodings, cuts, statuses, events.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/run_render.h"

static void
check_text(struct wbuf *w, const char *want)
{
	wput_u8(w, 0);
	assert_false(w->err);
	assert_string_equal((const char *)w->p, want);
	wbuf_free(w);
}

static void
check_part(struct wbuf *w, const char *want)
{
	wput_u8(w, 0);
	assert_false(w->err);
	if (strstr((const char *)w->p, want) == NULL)
		fail_msg("%s not in %s", want, (const char *)w->p);
	wbuf_free(w);
}

static void
test_cut(void **state)
{
	static const struct {
		const char *text;
		size_t cut;
	} t[] = {
	    {"", 0},
	    {"abc", 0},
	    {"\xc3\xa9", 0},
	    {"a\xc3", 1},
	    {"\xe2\x82\xac", 0},
	    {"\xe2\x82", 2},
	    {"\xe2", 1},
	    {"\xf0\x9f\x98\x80", 0},
	    {"\xf0\x9f\x98", 3},
	    {"x\xf0\x9f", 2},
	    {"\x80\x80\x80\x80", 0},
	    {"\xff", 1},
	};
	size_t i;

	for (i = 0; i < nitems(t); i++)
		assert_int_equal(
		    run_cut((const uint8_t *)t[i].text, strlen(t[i].text)),
		    t[i].cut);
}

static void
test_signals(void **state)
{
	static const struct {
		int sig;
		const char *name;
	} t[] = {{1, "HUP"}, {9, "KILL"}, {11, "SEGV"}, {15, "TERM"},
	    {31, "SYS"}, {34, "RTMIN+0"}, {64, "RTMIN+30"}, {33, "33"},
	    {0, "0"}, {127, "127"}};
	char name[16];
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		run_signal_name(t[i].sig, name);
		assert_string_equal(name, t[i].name);
	}
}

/* The result of one run with that output. */
static void
result(struct wbuf *w, const struct run_end *e, const char *out, size_t outlen,
    int trunc)
{
	struct run_text o = {(const uint8_t *)out, outlen, trunc};
	struct run_text x = {NULL, 0, 0};

	wbuf_init(w, 8192);
	run_result_put(w, e, &o, &x);
}

static void
test_result(void **state)
{
	struct run_end e = {.status = 3 << 8,
	    .us = 1234567,
	    .utime_us = 5000,
	    .stime_us = 6999,
	    .maxrss_kb = 800,
	    .layers = LAYER_NAMESPACES | LAYER_LANDLOCK};
	struct wbuf w;

	result(&w, &e, "a\n", 2, 0);
	check_text(&w,
	    "{\"exit_code\":3,\"signal\":null,\"stdout\":\"a\\n\","
	    "\"stderr\":\"\",\"stdout_encoding\":\"utf-8\","
	    "\"stderr_encoding\":\"utf-8\","
	    "\"truncated\":{\"stdout\":false,\"stderr\":false},"
	    "\"dropped\":{\"stdout\":0,\"stderr\":0},"
	    "\"timed_out\":false,\"idle_timed_out\":false,"
	    "\"oom_killed\":false,\"cancelled\":false,\"lost\":false,"
	    "\"duration_ms\":1234,\"usage\":{\"cpu_user_ms\":5,"
	    "\"cpu_system_ms\":6,\"max_rss_kb\":800,"
	    "\"memory_enforced\":\"rlimit\"},"
	    "\"sandbox\":{\"layers\":[\"namespaces\",\"landlock\"],"
	    "\"appeared\":[]}}");
}

/* Protected names that appeared, as execd sends them and as they are said. */
static void
test_appeared(void **state)
{
	struct run_end e = {.flags = END_MORE_APPEARED | END_PARTIAL}, back;
	struct wbuf w;
	struct rbuf r;

	memcpy(e.appeared, "/w/.git\0/w/\"x", 14);
	e.nappeared = 14;
	wbuf_init(&w, 4096);
	run_end_put(&w, &e);
	rbuf_init(&r, w.p, w.len);
	assert_int_equal(run_end_get(&r, &back), 0);
	assert_int_equal(back.nappeared, 14);
	wbuf_free(&w);
	result(&w, &back, "", 0, 0);
	wput_u8(&w, 0);
	assert_non_null(strstr((char *)w.p,
	    "\"sandbox\":{\"layers\":[],\"appeared\":[\"/w/.git\","
	    "\"/w/\\\"x\"],\"more_appeared\":true,"
	    "\"protect_partial\":true}}"));
	wbuf_free(&w);
	/* a text that does not end */
	e.nappeared = 13;
	wbuf_init(&w, 4096);
	run_end_put(&w, &e);
	rbuf_init(&r, w.p, w.len);
	assert_int_equal(run_end_get(&r, &back), -1);
	wbuf_free(&w);
}

static void
test_statuses(void **state)
{
	static const struct {
		int32_t status;
		uint32_t flags;
		const char *want;
	} t[] = {
	    {0, 0, "\"exit_code\":0,\"signal\":null"},
	    {139 << 8, 0, "\"exit_code\":139,\"signal\":null"},
	    {11, 0, "\"exit_code\":null,\"signal\":\"SEGV\""},
	    {9, END_TIMED_OUT, "\"exit_code\":null,\"signal\":\"KILL\""},
	    {9, END_TIMED_OUT, "\"timed_out\":true"},
	    {9, END_IDLE, "\"timed_out\":false,\"idle_timed_out\":true"},
	    {9, END_OOM, "\"oom_killed\":true"},
	    {0, END_LOST, "\"exit_code\":null,\"signal\":null"},
	    {9, END_LOST, "\"lost\":true"},
	    {0, END_MEM_CGROUP, "\"memory_enforced\":\"cgroup\""},
	};
	struct run_end e;
	struct wbuf w;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		memset(&e, 0, sizeof(e));
		e.status = t[i].status;
		e.flags = t[i].flags;
		result(&w, &e, "", 0, 0);
		check_part(&w, t[i].want);
	}
}

static void
test_encodings(void **state)
{
	static const struct {
		const char *out;
		size_t len;
		int trunc;
		const char *want;
	} t[] = {
	    {"\xff\xfe", 2, 0, "\"stdout\":\"//4=\",\"stderr\""},
	    {"\xff\xfe", 2, 0, "\"stdout_encoding\":\"base64\""},
	    {"x\xe2\x82", 3, 1, "\"stdout\":\"x\",\"stderr\""},
	    {"x\xe2\x82", 3, 1, "\"stdout_encoding\":\"utf-8\""},
	    {"x\xe2\x82", 3, 0, "\"stdout_encoding\":\"base64\""},
	    {"\xff\xe2\x82", 3, 1, "\"stdout\":\"/+KC\""},
	    {"a\0b", 3, 0, "\"stdout\":\"a\\u0000b\""},
	};
	struct run_end e;
	struct wbuf w;
	size_t i;

	memset(&e, 0, sizeof(e));
	for (i = 0; i < nitems(t); i++) {
		result(&w, &e, t[i].out, t[i].len, t[i].trunc);
		check_part(&w, t[i].want);
	}
}

static void
test_events(void **state)
{
	struct run_end e;
	struct wbuf w;

	wbuf_init(&w, 4096);
	run_output_event_put(
	    &w, "stdout", "3-0", 0, (const uint8_t *)"a\n\"", 3);
	check_text(&w, "event: stdout\nid: 3-0\ndata: {\"offset\":0,"
		       "\"data\":\"a\\n\\\"\",\"encoding\":\"utf-8\"}\n\n");
	wbuf_init(&w, 4096);
	run_output_event_put(
	    &w, "stderr", "0-9", 7, (const uint8_t *)"\xff\n", 2);
	check_text(&w, "event: stderr\nid: 0-9\ndata: {\"offset\":7,"
		       "\"data\":\"/wo=\",\"encoding\":\"base64\"}\n\n");
	memset(&e, 0, sizeof(e));
	e.status = 4 << 8;
	wbuf_init(&w, 4096);
	run_exit_event_put(&w, "3-0", &e);
	wput_u8(&w, 0);
	assert_null(strstr((char *)w.p, "\"stdout_encoding\""));
	assert_non_null(strstr(
	    (char *)w.p, "event: exit\nid: 3-0\ndata: {\"exit_code\":4,"));
	/* an event is one line of data */
	assert_null(strchr(strstr((char *)w.p, "data: "), '\n')[1] == '\n'
			? NULL
			: w.p);
	wbuf_free(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_signals),
	    cmocka_unit_test(test_result),
	    cmocka_unit_test(test_appeared),
	    cmocka_unit_test(test_statuses),
	    cmocka_unit_test(test_encodings),
	    cmocka_unit_test(test_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
