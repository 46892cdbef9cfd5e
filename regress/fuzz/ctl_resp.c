/*
 * SPDX-License-Identifier: ISC
 *
 * Answers as abxctl reads them: a head is whole at one length only, bodies and
 * events are the same in any portions, and a chunked body that it takes is
 * what the listener's own decoder takes it for.  Input: 2 bytes (portions),
 * 1 byte (what), then the answer.
 */
#include <stdlib.h>
#include <string.h>

#include "listener/http_chunk.h"
#include "monitor/ctl/resp.h"
#include "monitor/ctl/sse.h"
#include "regress/fuzz/fuzz.h"

struct outcome {
	int rc;	     /* 1 ended, 0 more is needed, -1 malformed */
	size_t used; /* when it ended */
	size_t len;
	uint8_t *out;
};

/* ---- heads ---- */

static size_t
head(const uint8_t *p, size_t n, struct resp *r)
{
	struct resp again;
	uint8_t *copy = fuzz_copy(p, n), *less;
	ssize_t len = resp_parse((const char *)copy, n, r), early;
	size_t cut;

	CHECK(len >= -1 && len <= (ssize_t)n);
	if (len > 0) {
		CHECK(r->status >= 100 && r->status < 600);
		CHECK(!r->chunked || !r->has_length);
		CHECK(strlen(r->etag) <= RESP_ETAG_MAX);
		CHECK(!r->has_range ||
		      (r->first <= r->last && r->last < r->total));
		for (cut = 0; cut < (size_t)len; cut += 1 + cut / 8) {
			less = fuzz_copy(p, cut);
			early = resp_parse((const char *)less, cut, &again);
			CHECK(early == 0);
			free(less);
		}
	}
	free(copy);
	return len > 0 ? (size_t)len : 0;
}

/* ---- bodies ---- */

static void
body(const uint8_t *p, size_t n, const struct resp *r, uint32_t seed,
    unsigned step, struct outcome *o)
{
	struct resp_body b;
	const uint8_t *data;
	size_t at = 0, m, len;
	uint8_t *copy;
	ssize_t used;

	resp_body_init(&b, r, 0);
	o->len = 0;
	o->rc = 0;
	while (b.state != RESP_DONE && at < n) {
		m = step == 0 ? n - at : 1 + fuzz_rand(&seed) % step;
		if (m > n - at)
			m = n - at;
		copy = fuzz_copy(p + at, m);
		used = resp_body_take(&b, copy, m, &data, &len);
		if (used == -1) {
			free(copy);
			o->rc = -1;
			return;
		}
		CHECK(used > 0 && (size_t)used <= m && len <= (size_t)used);
		CHECK(len == 0 || (data >= copy && data + len <= copy + m));
		if (len > 0)
			memcpy(o->out + o->len, data, len);
		o->len += len;
		at += (size_t)used;
		free(copy);
	}
	o->used = at;
	if (b.state == RESP_DONE)
		o->rc = 1;
}

/* The listener's decoder takes all that this one does, and more. */
static void
listeners(const uint8_t *p, const struct outcome *o)
{
	struct chunk_dec d;
	const uint8_t *data, *at = p;
	size_t m = o->used, have = 0, len;
	int rc;

	chunk_init(&d);
	while ((rc = chunk_feed(&d, &at, &m, &data, &len)) == 1) {
		CHECK(have + len <= o->len);
		CHECK(memcmp(o->out + have, data, len) == 0);
		have += len;
	}
	CHECK(rc == 2 && m == 0 && have == o->len);
}

static void
bodies(const uint8_t *p, size_t n, const struct resp *r, uint32_t seed)
{
	struct outcome whole, part;

	whole.out = fuzz_alloc(n + 1);
	part.out = fuzz_alloc(n + 1);
	body(p, n, r, 0, 0, &whole);
	body(p, n, r, seed, 1 + seed % 61, &part);
	CHECK(whole.rc == part.rc && whole.len == part.len);
	CHECK(memcmp(whole.out, part.out, whole.len) == 0);
	CHECK(whole.rc != 1 || whole.used == part.used);
	if (whole.rc == 1 && r->chunked && whole.used > 0)
		listeners(p, &whole);
	free(whole.out);
	free(part.out);
}

/* ---- events ---- */

struct told {
	uint32_t sum;
	size_t n;
};

static int
event_cb(const char *event, const char *data, void *arg)
{
	struct told *t = arg;

	CHECK(event[0] != '\0' && strlen(event) < 32);
	for (; *event != '\0'; event++)
		t->sum = t->sum * 31 + (uint8_t)*event;
	for (; *data != '\0'; data++)
		t->sum = t->sum * 31 + (uint8_t)*data;
	t->n++;
	return t->n == 1000 ? -1 : 0;
}

static int
events(const uint8_t *p, size_t n, uint32_t seed, unsigned step, struct told *t)
{
	struct sse s = {0};
	uint8_t *copy;
	size_t at = 0, m;
	int rc = 0;

	memset(t, 0, sizeof(*t));
	while (at < n && rc == 0) {
		m = step == 0 ? n : 1 + fuzz_rand(&seed) % step;
		if (m > n - at)
			m = n - at;
		copy = fuzz_copy(p + at, m);
		rc = sse_take(&s, (const char *)copy, m, event_cb, t);
		free(copy);
		at += m;
	}
	sse_clear(&s);
	return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	uint32_t seed = (uint32_t)feed_uint(&f, 2);
	uint8_t what = feed_u8(&f);
	struct resp r = {.status = 200, .chunked = 1};
	struct told a, b;
	size_t n = 0;

	if (what % 3 == 0) {
		if ((n = head(f.p, f.n, &r)) == 0)
			return 0;
	}
	if (what % 3 != 2) {
		bodies(f.p + n, f.n - n, &r, seed);
		return 0;
	}
	CHECK(events(f.p, f.n, 0, 0, &a) ==
	      events(f.p, f.n, seed, 1 + seed % 61, &b));
	CHECK(a.sum == b.sum && a.n == b.n);
	return 0;
}
