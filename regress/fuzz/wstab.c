/*
 * SPDX-License-Identifier: ISC
 *
 * The index of workspaces: whatever its lines are, what is taken from them is
 * what its names say, each name once, and writing it anew loses nothing.
 * Input: the file.
 */
#include <stdlib.h>
#include <string.h>

#include "common/payload.h"
#include "monitor/wstab.h"
#include "policy/policy.h"
#include "regress/fuzz/fuzz.h"

static void
read_all(struct wstab *t, const char *p, size_t n)
{
	const char *end;
	size_t len, before;

	for (; n > 0; n -= len, p += len) {
		end = memchr(p, '\n', n);
		len = end == NULL ? n : (size_t)(end - p);
		before = t->n;
		if (wstab_take(t, p, len) == -1)
			CHECK(t->n == before);
		else
			CHECK(t->n + 1 >= before && t->n <= before + 1);
		len += end != NULL;
	}
}

static void
check(const struct wstab *t)
{
	char name[ABX_WORKSPACE_LEN + 1];
	const struct ws *w;
	size_t n = 0;

	for (w = t->all; w != NULL; w = w->next, n++) {
		CHECK(w->owner != NULL && w->session != NULL);
		CHECK(session_ok(w->session) && w->used >= 0);
		CHECK(workspace_name(w->owner, w->session, name) == 0);
		CHECK(strcmp(name, w->name) == 0 && workspace_name_ok(name));
		CHECK(wstab_find(t, name) == w);
		CHECK(wstab_of(t, w->owner, w->session) == w);
		CHECK(wstab_count(t, w->owner) >= 1);
	}
	CHECK(n == t->n && n <= ABX_MAX_WORKSPACES);
}

static void
clear(struct wstab *t)
{
	while (t->all != NULL)
		wstab_remove(t, t->all);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *p = (char *)fuzz_copy(data, size);
	struct wstab t = {0}, again = {0};
	const struct ws *w, *v;
	struct wbuf b;

	read_all(&t, p, size);
	check(&t);
	wbuf_init(&b, ABX_MAX_WORKSPACES * WS_LINE_MAX);
	for (w = t.all; w != NULL; w = w->next)
		wstab_line(&b, w, 0);
	CHECK(!b.err);
	read_all(&again, (const char *)b.p, b.len);
	CHECK(again.n == t.n);
	for (w = t.all; w != NULL; w = w->next) {
		v = wstab_of(&again, w->owner, w->session);
		CHECK(v != NULL && v->used == w->used);
	}
	for (w = t.all; w != NULL; w = w->next) {
		wbuf_reset(&b);
		wstab_line(&b, w, 1);
		read_all(&again, (const char *)b.p, b.len);
	}
	CHECK(again.n == 0);
	wbuf_free(&b);
	clear(&t);
	free(p);
	return 0;
}
