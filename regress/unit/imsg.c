/*
 * SPDX-License-Identifier: ISC
 *
 * What is owed to a peer is queued when there is no memory, as far as memory
 * was set aside for it, and arrives in order.
 */
#include <sys/socket.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int none; /* there is no memory */

static int
no(void)
{
	if (none)
		errno = ENOMEM;
	return none;
}

static void *
some_malloc(size_t n)
{
	return no() ? NULL : malloc(n);
}

static void *
some_calloc(size_t n, size_t size)
{
	return no() ? NULL : calloc(n, size);
}

static void *
some_realloc(void *p, size_t n)
{
	return no() ? NULL : realloc(p, n);
}

#define malloc some_malloc
#define calloc some_calloc
#define realloc some_realloc
#include "common/imsg.c"

static const uint8_t words[5000];

static void
pair(struct imsgbuf *b[2])
{
	int sv[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sv), 0);
	b[0] = imsg_new(sv[0]);
	b[1] = imsg_new(sv[1]);
	assert_non_null(b[0]);
	assert_non_null(b[1]);
}

/* Read all that is there: as many messages, in order from *next on. */
static size_t
drain(struct imsgbuf *b, uint64_t *next)
{
	struct imsg m;
	size_t n = 0;

	while (imsg_read(b) == 1)
		while (imsg_get(b, &m)) {
			assert_true(m.id == *next);
			(*next)++;
			n++;
		}
	return n;
}

static void
test_without(void **state)
{
	struct imsgbuf *b[2];

	pair(b);
	none = 1;
	assert_int_equal(imsg_compose(b[0], 1, 0, -1, words, 100), -1);
	assert_int_equal(imsg_flush(b[0]), 0);
	none = 0;
	imsg_free(b[0]);
	imsg_free(b[1]);
}

/* Again and again, with a peer that does not read: a packet holds 16 KiB. */
static void
test_with(void **state)
{
	uint64_t id = 0, next = 0;
	struct imsgbuf *b[2];
	size_t round, n;

	pair(b);
	assert_int_equal(imsg_set_aside(b[0], 4), 0);
	assert_int_equal(imsg_compose(b[1], 1, 0, -1, words, 1), 0);
	assert_int_equal(imsg_flush(b[1]), 0);
	assert_int_equal(imsg_read(b[0]), 1); /* it has its buffer */
	(void)drain(b[1], &next);
	for (round = 0; round < 10; round++) {
		none = 1;
		for (n = 0; imsg_compose(b[0], 1, id, -1, words, 1000) == 0;
		     n++)
			id++;
		assert_int_equal(errno, ENOMEM);
		assert_true(n >= 4 * 16);
		/* what may be refused is not worth it */
		assert_int_equal(
		    imsg_compose(b[0], 1, id, -1, words, sizeof(words)), -1);
		none = 0;
		assert_int_equal(imsg_flush(b[0]), 0);
		assert_int_equal(drain(b[1], &next), n);
		assert_true(next == id);
		assert_int_equal(imsg_queued(b[0]), 0);
	}
	imsg_free(b[0]);
	imsg_free(b[1]);
}

/* A large message does not take it from the small ones. */
static void
test_large(void **state)
{
	struct imsgbuf *b[2];

	pair(b);
	assert_int_equal(imsg_set_aside(b[0], 1), 0);
	none = 1;
	assert_int_equal(
	    imsg_compose(b[0], 1, 0, -1, words, sizeof(words)), -1);
	assert_int_equal(imsg_compose(b[0], 1, 0, -1, words, 10), 0);
	none = 0;
	imsg_free(b[0]);
	imsg_free(b[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_without),
	    cmocka_unit_test(test_with),
	    cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
