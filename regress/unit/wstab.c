/*
 * SPDX-License-Identifier: ISC
 *
 * The lines about workspaces: what is written is read again, what is torn or
 * not ours is passed over, and names are what the manual says they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/payload.h"
#include "monitor/wstab.h"
#include "policy/policy.h"

/* printf 'root\0alpha' | sha256sum | cut -c1-32, and so on */
#define ROOT_ALPHA "96546cb639f1335d99c99824e9e38b0d"

static void
clear(struct wstab *t)
{
	while (t->all != NULL)
		wstab_remove(t, t->all);
	assert_int_equal(t->n, 0);
}

static struct ws *
add(struct wstab *t, const char *owner, const char *session)
{
	char name[ABX_WORKSPACE_LEN + 1];

	assert_int_equal(workspace_name(owner, session, name), 0);
	return wstab_add(t, name, owner, session);
}

static int
take(struct wstab *t, const char *line)
{
	return wstab_take(t, line, strlen(line));
}

static void
test_names(void **state)
{
	static const char *const good[] = {
	    "a", "alpha", ".x", "...", "A.b_c-9", "-", "_"};
	static const char *const bad[] = {"", ".", "..", "a/b", "a b", "../x",
	    "\xc3\xa9", "a\n", "{session}", "a~"};
	char a[ABX_WORKSPACE_LEN + 1], b[ABX_WORKSPACE_LEN + 1], text[200];
	size_t i;

	for (i = 0; i < nitems(good); i++)
		assert_true(session_ok(good[i]));
	for (i = 0; i < nitems(bad); i++)
		assert_false(session_ok(bad[i]));
	memset(text, 'x', sizeof(text));
	text[ABX_ID_MAX] = '\0';
	assert_true(session_ok(text));
	assert_int_equal(workspace_name(text, text, a), 0);
	text[ABX_ID_MAX] = 'x';
	text[ABX_ID_MAX + 1] = '\0';
	assert_false(session_ok(text));
	assert_int_equal(workspace_name("a", text, a), -1);
	assert_int_equal(workspace_name(text, "a", a), -1);
	assert_int_equal(workspace_name("root", "alpha", a), 0);
	assert_string_equal(a, ROOT_ALPHA);
	assert_true(workspace_name_ok(a));
	/* where one name ends and the other begins counts */
	assert_int_equal(workspace_name("roota", "lpha", b), 0);
	assert_string_not_equal(a, b);
}

static void
test_table(void **state)
{
	struct wstab t = {0};
	struct ws *w;
	char name[64];
	size_t i;

	w = add(&t, "alice", "s");
	assert_non_null(w);
	assert_non_null(add(&t, "bob", "s"));
	assert_non_null(add(&t, "alice", "t"));
	assert_ptr_equal(wstab_of(&t, "alice", "s"), w);
	assert_null(wstab_of(&t, "alice", "u"));
	assert_null(wstab_of(&t, "carol", "s"));
	assert_ptr_equal(wstab_find(&t, w->name), w);
	assert_int_equal(wstab_count(&t, "alice"), 2);
	wstab_remove(&t, w);
	assert_null(wstab_of(&t, "alice", "s"));
	assert_int_equal(wstab_count(&t, "alice"), 1);
	/* one that nobody's line names is nobody's */
	assert_int_equal(workspace_name("alice", "s", name), 0);
	assert_non_null(wstab_add(&t, name, NULL, NULL));
	assert_null(wstab_of(&t, "alice", "s"));
	assert_int_equal(wstab_count(&t, "alice"), 1);
	for (i = t.n; i < ABX_MAX_WORKSPACES; i++) {
		snprintf(name, sizeof(name), "%032zx", i);
		assert_non_null(wstab_add(&t, name, NULL, NULL));
	}
	assert_null(add(&t, "dave", "s"));
	clear(&t);
}

static const char *
line(const struct ws *w, int gone)
{
	static char text[WS_LINE_MAX];
	struct wbuf b;

	wbuf_init(&b, WS_LINE_MAX);
	wstab_line(&b, w, gone);
	assert_int_equal(b.err, 0);
	assert_int_equal(b.p[b.len - 1], '\n');
	memcpy(text, b.p, b.len - 1);
	text[b.len - 1] = '\0';
	assert_null(strchr(text, '\n'));
	wbuf_free(&b);
	return text;
}

static void
test_lines(void **state)
{
	struct wstab t = {0}, back = {0};
	char id[ABX_ID_MAX + 1], session[ABX_ID_MAX + 1];
	const struct ws *w;
	struct ws *q;

	memset(id, '"', ABX_ID_MAX);
	memset(session, 'x', ABX_ID_MAX);
	id[ABX_ID_MAX] = session[ABX_ID_MAX] = '\0';
	assert_non_null(add(&t, "root", "alpha"));
	t.all->used = 1700000000;
	assert_string_equal(line(t.all, 0),
	    "{\"name\":\"" ROOT_ALPHA "\",\"principal\":\"root\","
	    "\"session\":\"alpha\",\"used\":1700000000}");
	assert_non_null(add(&t, "a \"b\" \\ \t \xc3\xa9", "s"));
	assert_non_null(add(&t, id, session));
	for (w = t.all; w != NULL; w = w->next) {
		assert_int_equal(take(&back, line(w, 0)), 0);
		q = wstab_of(&back, w->owner, w->session);
		assert_non_null(q);
		assert_int_equal(q->used, w->used);
		assert_int_equal(q->saved, w->used);
	}
	assert_int_equal(back.n, 3);
	/* later lines count */
	q = wstab_of(&t, "root", "alpha");
	q->used++;
	assert_int_equal(take(&back, line(q, 0)), 0);
	assert_int_equal(wstab_of(&back, "root", "alpha")->used, 1700000001);
	assert_int_equal(take(&back, line(q, 1)), 0);
	assert_null(wstab_of(&back, "root", "alpha"));
	assert_int_equal(take(&back, line(q, 1)), 0); /* gone twice */
	assert_int_equal(back.n, 2);
	clear(&t);
	clear(&back);
}

static void
test_broken(void **state)
{
#define HEAD "{\"name\":\"" ROOT_ALPHA "\""
	static const char *const bad[] = {"", "{", "[]", "null", "x", HEAD,
	    HEAD "}", HEAD ",\"principal\":\"root\",\"session\":\"alpha\"}",
	    HEAD ",\"principal\":\"root\",\"session\":\"alpha\",\"used\":-1}",
	    HEAD ",\"principal\":\"root\",\"session\":\"alpha\",\"used\":1.5}",
	    HEAD
	    ",\"principal\":\"root\",\"session\":\"alpha\",\"used\":\"1\"}",
	    /* another's names */
	    HEAD ",\"principal\":\"root\",\"session\":\"beta\",\"used\":1}",
	    HEAD ",\"principal\":\"\",\"session\":\"alpha\",\"used\":1}",
	    HEAD ",\"principal\":\"root\",\"session\":\"../a\",\"used\":1}",
	    HEAD ",\"gone\":1}", "{\"name\":\"../../etc\",\"gone\":true}",
	    "{\"gone\":true}", "{\"name\":7,\"gone\":true}",
	    HEAD ",\"gone\":true}" HEAD ",\"gone\":true}",
	    HEAD "," HEAD ",\"gone\":true}"};
#undef HEAD
	struct wstab t = {0};
	char text[WS_LINE_MAX + 2];
	const char *whole;
	size_t i;

	assert_non_null(add(&t, "root", "alpha"));
	t.all->used = 5;
	for (i = 0; i < nitems(bad); i++) {
		if (take(&t, bad[i]) != -1)
			fail_msg("taken: %s", bad[i]);
		assert_int_equal(t.n, 1);
		assert_int_equal(t.all->used, 5);
	}
	/* torn anywhere */
	whole = line(t.all, 0);
	for (i = 0; i < strlen(whole); i++)
		assert_int_equal(wstab_take(&t, whole, i), -1);
	memset(text, ' ', sizeof(text));
	assert_int_equal(wstab_take(&t, text, WS_LINE_MAX), -1);
	assert_int_equal(t.n, 1);
	clear(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_table),
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
