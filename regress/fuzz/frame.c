/*
 * SPDX-License-Identifier: ISC
 *
 * Frames of a pipe: any portions give the same frames; their payloads are
 * decoded as the listener does, and entries become JSON that says the same.
 * Input: 2 bytes (portions), then what comes out of the pipe.
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/entry.h"
#include "common/frame.h"
#include "common/hash.h"
#include "common/payload.h"
#include "regress/fuzz/fuzz.h"

/* What was seen, as bytes: kind, length and payload of each frame. */
struct seen {
	struct wbuf w;
	int rc;
};

static void
read_frames(
    const uint8_t *p, size_t n, uint32_t seed, unsigned step, struct seen *s)
{
	struct frame_dec *d = fuzz_alloc(sizeof(*d));
	const uint8_t *at, *payload;
	size_t left = n, m, len;
	uint8_t *copy, kind;

	wbuf_init(&s->w, SIZE_MAX);
	do {
		m = step == 0 ? left : 1 + fuzz_rand(&seed) % step;
		if (m > left)
			m = left;
		at = copy = fuzz_copy(p + (n - left), m);
		left -= m;
		while ((s->rc = frame_feed(
			    d, &at, &m, &kind, &payload, &len)) == 1) {
			CHECK(len <= FRAME_MAX);
			wput_u8(&s->w, kind);
			wput_bytes(&s->w, payload, len);
		}
		CHECK(s->rc == -1 || m == 0);
		free(copy);
	} while (s->rc == 0 && left > 0);
	free(d);
}

static void
check_json(const struct list_entry *e)
{
	const char *dir = e->ino & 1 ? "/some\xff/dir" : "";
	const char *name = e->name, *slash;
	size_t n = e->namelen;
	json_t *o, *v;
	struct wbuf w;

	wbuf_init(&w, 256 * 1024);
	entry_put(&w, dir, (int)(e->ino & 2), e);
	CHECK(!w.err);
	/* sizes are 64 bits, jansson's integers one less */
	o = json_loadb((const char *)w.p, w.len,
	    JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL);
	CHECK(o != NULL);
	v = json_object_get(o, "name");
	CHECK(json_is_string(v));
	while ((slash = memchr(name, '/', n)) != NULL) {
		n -= (size_t)(slash + 1 - name);
		name = slash + 1;
	}
	if (utf8_valid(name, n))
		CHECK(json_string_length(v) == n &&
		      memcmp(json_string_value(v), name, n) == 0);
	else
		CHECK(json_is_string(json_object_get(o, "name_base64")));
	json_decref(o);
	wbuf_free(&w);
}

static void
check_entry(const uint8_t *p, size_t n)
{
	struct list_entry e;
	struct wbuf w;

	if (list_entry_get(p, n, &e) == -1)
		return;
	wbuf_init(&w, n);
	list_entry_put(&w, &e);
	CHECK(!w.err && w.len == n && memcmp(w.p, p, n) == 0);
	wbuf_free(&w);
	check_json(&e);
}

static void
check_match(const uint8_t *p, size_t n)
{
	struct list_match m;
	struct wbuf w;

	if (list_match_get(p, n, &m) == -1)
		return;
	wbuf_init(&w, n);
	list_match_put(&w, &m);
	CHECK(!w.err && w.len == n && memcmp(w.p, p, n) == 0);
	wbuf_free(&w);
}

static void
check_event(const uint8_t *p, size_t n)
{
	struct list_event e;
	struct wbuf w;

	if (list_event_get(p, n, &e) == -1)
		return;
	CHECK(e.what <= WE_OVERFLOW);
	wbuf_init(&w, n);
	list_event_put(&w, &e);
	CHECK(!w.err && w.len == n && memcmp(w.p, p, n) == 0);
	wbuf_free(&w);
}

/* Each frame again, with a head of our own. */
static void
check_frames(const struct seen *s, const uint8_t *p, size_t n)
{
	uint8_t head[FRAME_HDR], kind;
	struct rbuf r;
	const uint8_t *q;
	size_t len;

	rbuf_init(&r, s->w.p, s->w.len);
	while (r.len > 0) {
		kind = rget_u8(&r);
		q = rget_bytes(&r, &len, FRAME_MAX);
		CHECK(q != NULL && n >= FRAME_HDR + len);
		frame_head(head, kind, (uint32_t)len);
		CHECK(memcmp(head, p, FRAME_HDR) == 0);
		CHECK(memcmp(q, p + FRAME_HDR, len) == 0);
		p += FRAME_HDR + len;
		n -= FRAME_HDR + len;
		if (kind == FR_ENTRY)
			check_entry(q, len);
		else if (kind == FR_MATCH)
			check_match(q, len);
		else if (kind == FR_EVENT)
			check_event(q, len);
	}
	if (s->rc == -1)
		CHECK(n >= FRAME_HDR && (p[0] < FR_OUT || p[0] > FR_EVENT ||
					    p[3] > 0 || p[4] > 0));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	uint32_t seed = (uint32_t)feed_uint(&f, 2);
	struct seen whole, part;

	read_frames(f.p, f.n, 0, 0, &whole);
	read_frames(f.p, f.n, seed, 1 + seed % 61, &part);
	CHECK(whole.rc == part.rc && whole.w.len == part.w.len);
	CHECK(
	    whole.w.len == 0 || memcmp(whole.w.p, part.w.p, whole.w.len) == 0);
	check_frames(&whole, f.p, f.n);
	wbuf_free(&whole.w);
	wbuf_free(&part.w);
	return 0;
}
