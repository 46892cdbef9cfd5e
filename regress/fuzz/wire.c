/*
 * SPDX-License-Identifier: ISC
 *
 * Cursors: whatever is put comes out in its order, a bound is never passed,
 * and reads of any bytes stay within them.  Input: 1 byte (bound), then pairs
 * of an operation and its value.
 */
#include <stdlib.h>
#include <string.h>

#include "common/wire.h"
#include "regress/fuzz/fuzz.h"

enum op { U8, U16, U32, U64, I64, RAW, BYTES, STR, OPS };

static const size_t widths[OPS] = {1, 2, 4, 8, 8, 0, 4, 4};

/* Put one value; the bytes that it needs. */
static size_t
put(struct wbuf *w, struct feed *f, enum op op)
{
	uint8_t buf[256] = {0};
	uint64_t v = 0;
	size_t n = 0;

	if (op >= RAW) {
		n = feed_u8(f);
		for (v = 0; v < n; v++)
			buf[v] = feed_u8(f);
		if (op == STR)
			n = strlen((char *)buf);
	} else
		v = feed_uint(f, widths[op]);
	switch (op) {
	case U8:
		wput_u8(w, (uint8_t)v);
		break;
	case U16:
		wput_u16(w, (uint16_t)v);
		break;
	case U32:
		wput_u32(w, (uint32_t)v);
		break;
	case U64:
		wput_u64(w, v);
		break;
	case I64:
		wput_i64(w, (int64_t)v);
		break;
	case RAW:
		wput_raw(w, buf, n);
		break;
	case BYTES:
		wput_bytes(w, buf, n);
		break;
	default:
		wput_str(w, (char *)buf);
	}
	return widths[op] + n;
}

/* Read one value of that kind; 1 when it is the one that was put. */
static int
get(struct rbuf *r, struct feed *f, enum op op)
{
	const uint8_t *p = NULL;
	uint8_t buf[256] = {0};
	size_t n, len, i;
	char *s, fix[8];
	int rc;

	switch (op) {
	case U8:
		return rget_u8(r) == feed_u8(f);
	case U16:
		return rget_u16(r) == feed_uint(f, 2);
	case U32:
		return rget_u32(r) == feed_uint(f, 4);
	case U64:
		return rget_u64(r) == feed_uint(f, 8);
	case I64:
		return rget_i64(r) == (int64_t)feed_uint(f, 8);
	default:
		break;
	}
	n = feed_u8(f);
	for (i = 0; i < n; i++)
		buf[i] = feed_u8(f);
	if (op == STR) {
		struct rbuf twin = *r;

		s = rget_str(r, 255);
		rc = rget_strto(&twin, fix, sizeof(fix));
		CHECK((rc == 0) == (s != NULL && strlen(s) < sizeof(fix)));
		CHECK(rc == -1 || strcmp(s, fix) == 0);
		rc = s != NULL && strcmp(s, (char *)buf) == 0;
		free(s);
		return rc;
	}
	len = n;
	p = op == RAW ? rget_raw(r, n) : rget_bytes(r, &len, 255);
	return p != NULL && len == n && memcmp(p, buf, n) == 0;
}

/* Any reads of the bytes themselves. */
static void
read_any(struct feed f, const uint8_t *p, size_t n)
{
	uint8_t *copy = fuzz_copy(p, n);
	struct feed none = {NULL, 0};
	struct rbuf r;

	rbuf_init(&r, copy, n);
	while (f.n > 0) {
		get(&r, &none, (enum op)(feed_u8(&f) % OPS));
		CHECK(r.len <= n);
		CHECK(r.err || r.p == copy + (n - r.len));
	}
	free(copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size}, again;
	size_t max = feed_u8(&f) * 4U, want = 0, n;
	struct wbuf w;
	struct rbuf r;
	int over = 0;

	wbuf_init(&w, max);
	again = f;
	while (f.n > 0 && !over) {
		n = put(&w, &f, (enum op)(feed_u8(&f) % OPS));
		over = want + n > max;
		if (!over)
			want += n;
		CHECK(w.err == over && w.len <= max);
		CHECK(over || w.len == want);
	}
	wput_u8(&w, 1); /* an error stays */
	CHECK(w.err == (over || want + 1 > max));
	rbuf_init(&r, w.p, want);
	while (r.len > 0 && get(&r, &again, (enum op)(feed_u8(&again) % OPS)))
		continue;
	CHECK(rget_end(&r) == 0);
	wbuf_reset(&w);
	CHECK(w.len == 0 && w.err == 0);
	wbuf_free(&w);
	read_any((struct feed){data, size}, data, size);
	return 0;
}
