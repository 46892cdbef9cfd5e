/*
 * SPDX-License-Identifier: ISC
 *
 * The table of processes: who finds what, who makes room, who is forgotten.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/abx.h"
#include "monitor/proctab.h"

static uint64_t run;

static struct proc *
start(struct proctab *t, const char *owner, int known)
{
	uint8_t id[16] = {0};
	struct proc *p;

	run++;
	memcpy(id, &run, sizeof(run));
	p = proctab_add(t, owner, known, run, id);
	assert_non_null(p);
	assert_int_equal(strlen(p->id), PROC_ID_LEN);
	return p;
}

static struct proc *
running(struct proctab *t, const char *owner)
{
	struct proc *p = start(t, owner, 1);

	proctab_started(p, 2, 1000, 0);
	return p;
}

static void
end(struct proc *p, uint64_t now)
{
	struct run_end e = {.us = 5};

	proctab_ended(p, &e, now);
}

static void
clear(struct proctab *t)
{
	while (t->all != NULL)
		proctab_remove(t, t->all);
	assert_int_equal(t->n, 0);
}

static void
test_owners(void **state)
{
	struct proctab t = {NULL, 0, 10, 10};
	struct proc *a = running(&t, "alice"), *b = running(&t, "bob"), *s;

	assert_ptr_equal(proctab_find(&t, "alice", 1, a->id), a);
	assert_null(proctab_find(&t, "alice", 1, b->id));
	assert_null(proctab_find(&t, "bob", 1, a->id));
	/* one without a credential is nobody who has that name */
	assert_null(proctab_find(&t, "alice", 0, a->id));
	assert_null(proctab_find(&t, "alice", 1, ""));
	assert_null(proctab_find(&t, "alice", 1, "xxxxxxxxxxxxxxxxxxxxxx"));
	/* nobody was told of one that has not started */
	s = start(&t, "alice", 1);
	assert_null(proctab_find(&t, "alice", 1, s->id));
	assert_null(proctab_by_run(&t, s->run));
	assert_ptr_equal(proctab_by_run(&t, b->run), b);
	end(b, 1);
	assert_null(proctab_by_run(&t, b->run));
	assert_ptr_equal(proctab_find(&t, "bob", 1, b->id), b);
	clear(&t);
}

static void
test_room(void **state)
{
	struct proctab t = {NULL, 0, 4, 2};
	struct proc *a1 = running(&t, "alice"), *a2 = running(&t, "alice");
	struct proc *b1, *b2, *v;

	assert_int_equal(proctab_room(&t, "alice", 1, &v), -1);
	assert_int_equal(proctab_room(&t, "bob", 1, &v), 0);
	b1 = running(&t, "bob");
	end(b1, 10);
	/* the ended one of another makes no room for alice */
	assert_int_equal(proctab_room(&t, "alice", 1, &v), -1);
	end(a2, 20);
	end(a1, 30);
	assert_int_equal(proctab_room(&t, "alice", 1, &v), 1);
	assert_ptr_equal(v, a2);
	b2 = running(&t, "bob");
	/* the table is full: the oldest that has ended goes, whoever's */
	assert_int_equal(proctab_room(&t, "carol", 1, &v), 1);
	assert_ptr_equal(v, b1);
	proctab_remove(&t, b1);
	assert_int_equal(proctab_room(&t, "carol", 1, &v), 0);
	proctab_remove(&t, b2);
	/* what has not started counts */
	start(&t, "dave", 1);
	start(&t, "dave", 1);
	assert_int_equal(proctab_room(&t, "dave", 1, &v), -1);
	clear(&t);
}

/* Two or more of them cannot take it all: somebody else can always start. */
static void
test_shares(void **state)
{
	static const char *const who[] = {"a", "b", "c", "d", "e"};
	static const size_t want[] = {8, 4, 2, 1, 1};
	struct proctab t = {NULL, 0, 16, 8};
	struct proc *v;
	size_t i, n;

	for (i = 0; i < nitems(who); i++) {
		for (n = 0; proctab_room(&t, who[i], 1, &v) == 0; n++)
			(void)running(&t, who[i]);
		assert_int_equal(n, want[i]);
	}
	assert_int_equal(t.n, 16);
	clear(&t);
}

/* Who starts and ends many throws his own out, not the few of others. */
static void
test_victims(void **state)
{
	struct proctab t = {NULL, 0, 6, 4};
	struct proc *a[3], *b, *v;
	size_t i;

	end(b = running(&t, "b"), 1);
	for (i = 0; i < nitems(a); i++)
		end(a[i] = running(&t, "a"), 10 + i);
	(void)running(&t, "c");
	(void)running(&t, "d");
	assert_int_equal(proctab_room(&t, "c", 1, &v), 1);
	assert_ptr_equal(v, a[0]);
	proctab_remove(&t, v);
	(void)running(&t, "c");
	assert_int_equal(proctab_room(&t, "e", 1, &v), 1);
	assert_ptr_equal(v, a[1]);
	proctab_remove(&t, v);
	end(running(&t, "e"), 5);
	/* as many each */
	assert_int_equal(proctab_room(&t, "e", 1, &v), 1);
	assert_ptr_equal(v, b);
	clear(&t);
}

static void
test_ttl(void **state)
{
	struct proctab t = {NULL, 0, 9, 9};
	struct proc *a = running(&t, "alice"), *b = running(&t, "alice");

	assert_null(proctab_expired(&t, 1000000, 10));
	a->stdin_open = 1;
	end(a, 100);
	assert_int_equal(a->stdin_open, 0);
	assert_int_equal(a->end.us, 5);
	assert_null(proctab_expired(&t, 109, 10));
	assert_ptr_equal(proctab_expired(&t, 110, 10), a);
	proctab_remove(&t, a);
	assert_null(proctab_expired(&t, UINT64_MAX, 10));
	assert_ptr_equal(t.all, b);
	clear(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_owners),
	    cmocka_unit_test(test_room),
	    cmocka_unit_test(test_shares),
	    cmocka_unit_test(test_victims),
	    cmocka_unit_test(test_ttl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
