/*
 * SPDX-License-Identifier: ISC
 *
 * Request heads: dripping in by any portions they mean what they mean whole,
 * and what is taken keeps the framing rules, counted again by a naive reader
 * of lines.  Input: 4 bytes (portions, bound of the fields), then the head.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "listener/http_parse.h"
#include "regress/fuzz/fuzz.h"

struct outcome {
	int rc;
	struct http_head h;
};

/* Feed by portions of 1 to step bytes; step 0: all at once. */
static void
feed_head(const uint8_t *p, size_t n, size_t max, uint32_t seed, unsigned step,
    struct outcome *o)
{
	size_t have = step == 0 ? n : 0;
	uint8_t *copy;

	http_head_init(&o->h);
	for (;;) {
		/* a fresh place each time: the parser keeps offsets only */
		copy = step == 1 && n > 256 ? NULL : fuzz_copy(p, have);
		o->rc =
		    http_head_feed(&o->h, copy != NULL ? copy : p, have, max);
		free(copy);
		if (o->rc != 0 || have == n)
			return;
		have += step == 1 ? 1 : 1 + fuzz_rand(&seed) % step;
		if (have > n)
			have = n;
	}
}

static void
same(const struct outcome *a, const struct outcome *b)
{
	struct outcome x = *a, y = *b;

	CHECK(x.rc == y.rc);
	if (x.rc == -1)
		CHECK(x.h.code == y.h.code);
	if (x.rc != 1)
		return;
	x.h.scan = y.h.scan = 0;
	CHECK(memcmp(&x.h, &y.h, sizeof(x.h)) == 0);
}

static int
inside(const struct http_head *h, const struct http_slice *s)
{
	return s->off <= h->end && s->len <= h->end - s->off;
}

static int
starts(const char *line, size_t n, const char *name)
{
	size_t len = strlen(name);

	return n > len && strncasecmp(line, name, len) == 0 && line[len] == ':';
}

/* Count the fields that frame a message, line by line. */
static void
recount(const char *p, const struct http_head *h, size_t max)
{
	size_t at = 0, n, lengths = 0, codings = 0, hosts = 0, lines = 0;
	size_t first = 0;
	const char *lf;

	while (at < h->end) {
		lf = memchr(p + at, '\n', h->end - at);
		CHECK(lf != NULL && lf > p + at && lf[-1] == '\r');
		n = (size_t)(lf - 1 - (p + at));
		CHECK(memchr(p + at, '\r', n) == NULL);
		CHECK(memchr(p + at, '\0', n) == NULL || lines == 0);
		lengths += (size_t)starts(p + at, n, "Content-Length");
		codings += (size_t)starts(p + at, n, "Transfer-Encoding");
		hosts += (size_t)starts(p + at, n, "Host");
		if (n > 0 && lines++ == 0)
			first = at + n + 2;
		CHECK(n == 0 || (p[at] != ' ' && p[at] != '\t'));
		at += n + 2;
	}
	CHECK(at == h->end);
	CHECK(lines >= 2 && lines - 1 == h->nfields);
	CHECK(lines - 1 <= HTTP_FIELDS_MAX && h->end - 2 - first <= max);
	CHECK(hosts == 1 && lengths + codings <= 1);
	CHECK(lengths == h->has_length && codings == h->chunked);
	CHECK(!h->chunked || h->minor == 1);
}

static void
taken(const uint8_t *p, const struct http_head *h, size_t max)
{
	size_t i;

	CHECK(inside(h, &h->method) && inside(h, &h->target));
	CHECK(h->method.len > 0 && h->method.len <= HTTP_METHOD_MAX);
	for (i = 0; i < h->method.len; i++)
		CHECK(http_is_token(p[h->method.off + i]));
	for (i = 0; i < HF_COUNT; i++) {
		CHECK(inside(h, &h->field[i]));
		CHECK(h->seen[i] > 0 || h->field[i].len == 0);
	}
	CHECK(h->minor <= 1 && (h->minor == 1 || h->close));
	CHECK(h->length == 0 || h->has_length);
	CHECK(h->length <= INT64_MAX);
	recount((const char *)p, h, max);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t maxes[4] = {64, 256, 4096, 65536};
	struct feed f = {data, size};
	struct outcome whole, part;
	uint32_t seed = (uint32_t)feed_uint(&f, 3);
	size_t max = maxes[feed_u8(&f) % 4];

	feed_head(f.p, f.n, max, 0, 0, &whole);
	feed_head(f.p, f.n, max, 0, 1, &part);
	same(&whole, &part);
	feed_head(f.p, f.n, max, seed, 2 + seed % 61, &part);
	same(&whole, &part);
	if (whole.rc == 1)
		taken(f.p, &whole.h, max);
	return 0;
}
