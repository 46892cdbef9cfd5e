/*
 * SPDX-License-Identifier: ISC
 *
 * What is kept of output, against keeping all of it; and the frames that it
 * leaves in, against the decoder.  Input: 3 bytes (limit, way), then a byte for
 * the size of each portion of output.
 */
#include <stdlib.h>
#include <string.h>

#include "common/frame.h"
#include "common/wire.h"
#include "execd/keep.h"
#include "regress/fuzz/fuzz.h"

/* The text of all frames of one kind. */
static void
check_frames(struct frames *fr, const struct wbuf *want, uint32_t seed)
{
	struct frame_dec *d = fuzz_alloc(sizeof(*d));
	const uint8_t *p, *payload;
	size_t n, len, at = 0;
	uint8_t kind;

	while ((n = frames_left(fr)) > 0) {
		n = 1 + fuzz_rand(&seed) % n;
		p = fr->p + fr->off;
		frames_sent(fr, n);
		while (n > 0 &&
		       frame_feed(d, &p, &n, &kind, &payload, &len) == 1) {
			CHECK(kind == FR_OUT && len > 0);
			CHECK(at + len <= want->len);
			CHECK(memcmp(want->p + at, payload, len) == 0);
			at += len;
		}
		CHECK(n == 0);
	}
	CHECK(at == want->len && d->have == 0);
	free(d);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	uint64_t max = feed_uint(&f, 2), head, tail;
	uint8_t way = feed_u8(&f);
	int both = way & 1, text = way & 2;
	uint32_t seed = 1;
	struct wbuf all, passed;
	struct frames fr = {0};
	struct keep k;
	const uint8_t *piece[KEEP_PIECES];
	uint8_t *out;
	size_t n, m, i, len[KEEP_PIECES];

	wbuf_init(&all, SIZE_MAX);
	wbuf_init(&passed, SIZE_MAX);
	keep_init(&k, max, both);
	while (f.n > 0) {
		n = feed_u8(&f) * 41U;
		out = fuzz_alloc(n);
		for (m = 0; m < n; m++)
			out[m] =
			    (uint8_t)fuzz_rand(&seed) & (text ? 0x7f : 0xff);
		wput_raw(&all, out, n);
		m = keep_take(&k, out, n);
		CHECK(m <= n);
		wput_raw(&passed, out, m);
		CHECK(frames_put(&fr, FR_OUT, out, m) == 0);
		free(out);
	}
	keep_tail(&k, piece, len);
	for (i = 0; i < KEEP_PIECES; i++) {
		wput_raw(&passed, piece[i], len[i]);
		CHECK(frames_put(&fr, FR_OUT, piece[i], len[i]) == 0);
	}
	/* whole when it fits, else the head and perhaps the end of it */
	head = !both ? max : max * 2 / 5;
	tail = max - head;
	if (all.len <= max) {
		head = all.len;
		tail = 0;
	}
	/* a character is not cut, so up to three bytes go to the head, and as
	 * many are dropped */
	if (!text && tail > 0) {
		CHECK(passed.len <= head + tail);
		CHECK(passed.len + 3 >= head + tail);
		head += len[0];
		tail = passed.len - head;
	}
	CHECK(passed.len == head + tail);
	CHECK(k.dropped == all.len - passed.len);
	CHECK(head == 0 || memcmp(passed.p, all.p, head) == 0);
	CHECK(tail == 0 ||
	      memcmp(passed.p + head, all.p + all.len - tail, tail) == 0);
	check_frames(&fr, &passed, (uint32_t)max);
	frames_free(&fr);
	keep_free(&k);
	wbuf_free(&all);
	wbuf_free(&passed);
	return 0;
}
