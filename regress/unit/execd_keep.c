/*
 * SPDX-License-Identifier: ISC
 *
 * What is kept of an output, and frames.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/abx.h"
#include "common/frame.h"
#include "execd/keep.h"

/* Feed text in pieces and return head + '|' + tail. */
static void
feed(const char *text, size_t piece, uint64_t max, int head_tail, char *out,
    uint64_t *dropped)
{
	const uint8_t *tail[KEEP_PIECES];
	size_t n[KEEP_PIECES], len = strlen(text), at, m, now, o = 0, i;
	struct keep k;

	keep_init(&k, max, head_tail);
	for (at = 0; at < len; at += m) {
		m = len - at < piece ? len - at : piece;
		now = keep_take(&k, (const uint8_t *)text + at, m);
		memcpy(out + o, text + at, now);
		o += now;
	}
	out[o++] = '|';
	keep_tail(&k, tail, n);
	for (i = 0; i < KEEP_PIECES; i++) {
		if (n[i] > 0)
			memcpy(out + o, tail[i], n[i]);
		o += n[i];
	}
	out[o] = '\0';
	*dropped = k.dropped;
	keep_free(&k);
}

static void
test_keep(void **state)
{
	static const struct {
		const char *text;
		uint64_t max;
		int head_tail;
		const char *want;
		uint64_t dropped;
	} t[] = {
	    {"", 10, 0, "|", 0},
	    {"0123456789", 10, 0, "0123456789|", 0},
	    {"0123456789a", 10, 0, "0123456789|", 1},
	    {"0123456789abcdef", 0, 0, "|", 16},
	    {"", 10, 1, "|", 0},
	    {"0123", 10, 1, "0123|", 0},
	    {"01234", 10, 1, "0123|4", 0},
	    {"0123456789", 10, 1, "0123|456789", 0},
	    {"0123456789abcdef", 10, 1, "0123|abcdef", 6},
	    {"0123456789abcdefghij", 10, 1, "0123|efghij", 10},
	    {"0123456789", 1, 1, "|9", 9},
	    {"0123456789", 0, 1, "|", 10},
	    {"0123456789", 7, 1, "01|56789", 3},
	    /* whole characters on both sides of the cut */
	    {"012\u65e5\u672c\u8a9e56", 10, 1,
		"012\xe6|\x97\xa5"
		"56",
		6},
	    {"01\u65e5\u672c\u8a9e56", 10, 1, "01\xe6\x97|\xa5\u8a9e56", 3},
	    {"0\u65e5\u672c\u8a9e56", 10, 1, "0\u65e5|\u8a9e56", 3},
	    {"0\u65e5\u672c\u8a9e", 10, 1, "0\u65e5|\u672c\u8a9e", 0},
	    {"\U0001f600\U0001f600\U0001f600z", 10, 1, "\U0001f600|\U0001f600z",
		4},
	    {"a\U0001f600\U0001f600\U0001f600", 10, 1,
		"a\xf0\x9f\x98|\x80\U0001f600", 4},
	    {"abc\xf0xyz01234567", 10, 1, "abc\xf0|234567", 5},
	    {"abcd\x80\x80\x80\x80\x80\x80\x80\x80", 10, 1, "abcd|\x80\x80\x80",
		5},
	};
	char out[64];
	uint64_t dropped;
	size_t i, piece;

	for (i = 0; i < nitems(t); i++)
		for (piece = 1; piece < 20; piece++) {
			feed(t[i].text, piece, t[i].max, t[i].head_tail, out,
			    &dropped);
			assert_string_equal(out, t[i].want);
			assert_int_equal(dropped, t[i].dropped);
		}
}

/* The ring grows while it has not wrapped, and holds just the end. */
static void
test_keep_large(void **state)
{
	static uint8_t block[1000], got[60001];
	const uint8_t *tail[KEEP_PIECES];
	struct keep k;
	size_t n[KEEP_PIECES], i, j, total = 0;

	keep_init(&k, 100000, 1);
	for (i = 0; i < 777; i++) {
		for (j = 0; j < sizeof(block); j++)
			block[j] = (uint8_t)((total + j) % 113);
		total += sizeof(block);
		(void)keep_take(&k, block, sizeof(block));
	}
	assert_int_equal(k.head, 40000);
	assert_int_equal(k.dropped, total - 100000);
	keep_tail(&k, tail, n);
	assert_int_equal(n[0], 0);
	assert_int_equal(n[1] + n[2], 60000);
	memcpy(got, tail[1], n[1]);
	memcpy(got + n[1], tail[2], n[2]);
	for (i = 0; i < 60000; i++)
		assert_int_equal(got[i], (total - 60000 + i) % 113);
	keep_free(&k);
}

static void
test_keep_unbounded(void **state)
{
	struct keep k;

	keep_init(&k, UINT64_MAX, 0);
	assert_int_equal(keep_take(&k, (const uint8_t *)"abc", 3), 3);
	assert_int_equal(k.dropped, 0);
	keep_free(&k);
	keep_init(&k, UINT64_MAX, 1);
	assert_int_equal(keep_take(&k, (const uint8_t *)"abc", 3), 3);
	keep_free(&k);
}

/* What is put comes out of the decoder, whatever pieces are sent. */
static void
test_frames(void **state)
{
	static struct frame_dec dec;
	static uint8_t big[150000];
	const uint8_t *p, *payload;
	struct frames f = {0};
	size_t n, len, got = 0, count = 0, i;
	uint8_t kind;

	memset(&dec, 0, sizeof(dec));
	for (i = 0; i < sizeof(big); i++)
		big[i] = (uint8_t)(i * 7);
	assert_int_equal(frames_put(&f, FR_OUT, big, sizeof(big)), 0);
	assert_int_equal(frames_put(&f, FR_ERR, big, 3), 0);
	assert_int_equal(frames_put(&f, FR_OUT, big, 0), 0);
	while (frames_left(&f) > 0) {
		n = frames_left(&f) < 777 ? frames_left(&f) : 777;
		p = f.p + f.off;
		len = n;
		while (frame_feed(&dec, &p, &len, &kind, &payload, &i) == 1) {
			if (kind == FR_OUT) {
				assert_memory_equal(payload, big + got, i);
				got += i;
			} else
				assert_int_equal(i, 3);
			count++;
		}
		frames_sent(&f, n);
		if (got == 777 * 10)
			assert_int_equal(frames_put(&f, FR_ERR, big, 3), 0);
	}
	assert_int_equal(got, sizeof(big));
	assert_int_equal(count, 4);
	frames_free(&f);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_keep),
	    cmocka_unit_test(test_keep_large),
	    cmocka_unit_test(test_keep_unbounded),
	    cmocka_unit_test(test_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
