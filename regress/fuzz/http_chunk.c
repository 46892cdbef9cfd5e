/*
 * SPDX-License-Identifier: ISC
 *
 * Chunked bodies: any portions give what the whole gives, and the whole gives
 * what a naive decoder of the whole text gives.  Input: 2 bytes (portions),
 * then the body and what follows it.
 */
#include <stdlib.h>
#include <string.h>

#include "listener/http_chunk.h"
#include "regress/fuzz/fuzz.h"

struct outcome {
	int rc;	     /* 0 more is needed, 2 ended, -1 malformed */
	size_t used; /* bytes of the input, when it ended */
	size_t len;
	uint8_t *out; /* as large as the input */
};

static void
decode(
    const uint8_t *p, size_t n, uint32_t seed, unsigned step, struct outcome *o)
{
	struct chunk_dec d;
	const uint8_t *data, *at;
	size_t left = n, have = 0, m, len;
	uint8_t *copy;

	chunk_init(&d);
	o->len = 0;
	do {
		m = step == 0 ? left : 1 + fuzz_rand(&seed) % step;
		if (m > left)
			m = left;
		copy = fuzz_copy(p + have, m);
		at = copy;
		have += m;
		left -= m;
		while ((o->rc = chunk_feed(&d, &at, &m, &data, &len)) == 1) {
			CHECK(len > 0 && o->len + len <= n);
			memcpy(o->out + o->len, data, len);
			o->len += len;
		}
		CHECK(o->rc != 0 || m == 0);
		have -= m;
		free(copy);
	} while (o->rc == 0 && left > 0);
	o->used = have;
}

/* ---- the naive one ---- */

struct text {
	const uint8_t *p;
	size_t n, at;
};

/* The next byte, -1 at the end. */
static int
next(struct text *t)
{
	return t->at < t->n ? t->p[t->at++] : -1;
}

/* Take exactly that byte: 1, 0 at the end, -1 when it is another. */
static int
expect(struct text *t, int want)
{
	int c = next(t);

	return c == -1 ? 0 : c == want ? 1 : -1;
}

static int
value_byte(int c)
{
	return c == '\t' || (c >= ' ' && c != 0x7f);
}

static int
token_byte(int c)
{
	return c > ' ' && c < 0x7f && strchr("\"(),/:;<=>?@[\\]{}", c) == NULL;
}

/* A size line: 1 with *size, 0 or -1. */
static int
size_line(struct text *t, uint64_t *size)
{
	char hex[17] = "";
	size_t n = 0;
	int c;

	for (;;) {
		if ((c = next(t)) == -1)
			return 0;
		if (c == 0 || strchr("0123456789abcdefABCDEF", c) == NULL)
			break;
		if (n == 16)
			return -1;
		hex[n++] = (char)c;
		if (strtoull(hex, NULL, 16) > INT64_MAX)
			return -1;
	}
	if (n == 0)
		return -1;
	*size = strtoull(hex, NULL, 16);
	if (c == ';')
		for (n = 0; (c = next(t)) != '\r';) {
			if (c == -1)
				return 0;
			if (!value_byte(c) || ++n >= CHUNK_EXT_MAX)
				return -1;
		}
	return c == '\r' ? expect(t, '\n') : -1;
}

/* Trailer lines and the empty one: 2, 0 or -1. */
static int
trailers(struct text *t)
{
	size_t from = t->at;
	int c, name;

	for (;;) {
		for (name = 0; (c = next(t)) != '\r' || name > 0; name++) {
			if (t->at - from > CHUNK_TRAILER_MAX)
				return -1;
			if (c == ':' && name > 0)
				break;
			if (c == -1)
				return 0;
			if (!token_byte(c))
				return -1;
		}
		if (t->at - from > CHUNK_TRAILER_MAX)
			return -1;
		if (c == '\r') {
			c = expect(t, '\n');
			if (t->at - from > CHUNK_TRAILER_MAX)
				return -1;
			return c == 1 ? 2 : c;
		}
		while ((c = next(t)) != '\r') {
			if (c == -1)
				return 0;
			if (!value_byte(c) || t->at - from > CHUNK_TRAILER_MAX)
				return -1;
		}
		if (t->at - from > CHUNK_TRAILER_MAX)
			return -1;
		if ((c = expect(t, '\n')) != 1)
			return c;
		if (t->at - from > CHUNK_TRAILER_MAX)
			return -1;
	}
}

static void
naive(const uint8_t *p, size_t n, struct outcome *o)
{
	struct text t = {p, n, 0};
	uint64_t size;
	size_t m;

	o->len = 0;
	while ((o->rc = size_line(&t, &size)) == 1 && size > 0) {
		m = size < n - t.at ? (size_t)size : n - t.at;
		memcpy(o->out + o->len, p + t.at, m);
		o->len += m;
		t.at += m;
		o->rc = 0;
		if (m < size)
			break;
		if ((o->rc = expect(&t, '\r')) != 1 ||
		    (o->rc = expect(&t, '\n')) != 1)
			break;
	}
	if (o->rc == 1)
		o->rc = trailers(&t);
	o->used = t.at;
}

static void
same(const struct outcome *a, const struct outcome *b)
{
	CHECK(a->rc == b->rc);
	CHECK(a->rc != 2 || a->used == b->used);
	CHECK(a->len == b->len && memcmp(a->out, b->out, a->len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	uint32_t seed = (uint32_t)feed_uint(&f, 2);
	struct outcome whole, part, model;

	whole.out = fuzz_alloc(f.n + 1);
	part.out = fuzz_alloc(f.n + 1);
	model.out = fuzz_alloc(f.n + 1);
	decode(f.p, f.n, 0, 0, &whole);
	decode(f.p, f.n, 0, 1, &part);
	same(&whole, &part);
	decode(f.p, f.n, seed, 2 + seed % 61, &part);
	same(&whole, &part);
	naive(f.p, f.n, &model);
	same(&whole, &model);
	free(whole.out);
	free(part.out);
	free(model.out);
	return 0;
}
