/*
 * SPDX-License-Identifier: ISC
 *
 * Bounded put/get cursors.  Pure; libc only, since the static launcher links
 * it too.
 */
#include "common/wire.h"

#include <stdlib.h>
#include <string.h>

void
wbuf_init(struct wbuf *w, size_t max)
{
	memset(w, 0, sizeof(*w));
	w->max = max;
}

void
wbuf_free(struct wbuf *w)
{
	if (w->p != NULL)
		explicit_bzero(w->p, w->cap);
	free(w->p);
	wbuf_init(w, w->max);
}

char *
wbuf_text(struct wbuf *w)
{
	char *s = NULL;

	wput_u8(w, 0);
	if (!w->err) {
		s = (char *)w->p;
		w->p = NULL;
	}
	wbuf_free(w);
	return s;
}

void
wbuf_reset(struct wbuf *w)
{
	w->len = 0;
	w->err = 0;
}

/* Room for n more bytes, or NULL with the error set. */
static uint8_t *
wbuf_room(struct wbuf *w, size_t n)
{
	size_t cap, need;
	uint8_t *p;

	if (w->err || n > w->max || w->len > w->max - n) {
		w->err = 1;
		return NULL;
	}
	need = w->len + n;
	if (need > w->cap) {
		cap = w->cap == 0 ? 256 : w->cap;
		while (cap < need)
			cap = cap > SIZE_MAX / 2 ? need : cap * 2;
		if ((p = malloc(cap)) == NULL) {
			w->err = 1;
			return NULL;
		}
		if (w->p != NULL) {
			memcpy(p, w->p, w->len);
			explicit_bzero(w->p, w->cap);
			free(w->p);
		}
		w->p = p;
		w->cap = cap;
	}
	p = w->p + w->len;
	w->len = need;
	return p;
}

static void
wput_le(struct wbuf *w, uint64_t v, size_t n)
{
	uint8_t *p = wbuf_room(w, n);
	size_t i;

	for (i = 0; p != NULL && i < n; i++, v >>= 8)
		p[i] = v & 0xff;
}

void
wput_u8(struct wbuf *w, uint8_t v)
{
	wput_le(w, v, 1);
}

void
wput_u16(struct wbuf *w, uint16_t v)
{
	wput_le(w, v, 2);
}

void
wput_u32(struct wbuf *w, uint32_t v)
{
	wput_le(w, v, 4);
}

void
wput_u64(struct wbuf *w, uint64_t v)
{
	wput_le(w, v, 8);
}

void
wput_i64(struct wbuf *w, int64_t v)
{
	wput_le(w, (uint64_t)v, 8);
}

void
wput_raw(struct wbuf *w, const void *data, size_t n)
{
	uint8_t *p;

	if (n == 0)
		return;
	if ((p = wbuf_room(w, n)) != NULL)
		memcpy(p, data, n);
}

void
wput_bytes(struct wbuf *w, const void *data, size_t n)
{
	if (n > UINT32_MAX) {
		w->err = 1;
		return;
	}
	wput_u32(w, (uint32_t)n);
	wput_raw(w, data, n);
}

void
wput_str(struct wbuf *w, const char *s)
{
	wput_bytes(w, s, s == NULL ? 0 : strlen(s));
}

void
rbuf_init(struct rbuf *r, const void *p, size_t n)
{
	r->p = p;
	r->len = n;
	r->err = 0;
}

const uint8_t *
rget_raw(struct rbuf *r, size_t n)
{
	static const uint8_t nothing[1];
	const uint8_t *p = r->p;

	if (r->err || n > r->len) {
		r->err = 1;
		return NULL;
	}
	if (n == 0)
		return p == NULL ? nothing : p;
	r->p += n;
	r->len -= n;
	return p;
}

static uint64_t
rget_le(struct rbuf *r, size_t n)
{
	const uint8_t *p = rget_raw(r, n);
	uint64_t v = 0;

	if (p == NULL)
		return 0;
	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

uint8_t
rget_u8(struct rbuf *r)
{
	return (uint8_t)rget_le(r, 1);
}

int
rget_bool(struct rbuf *r)
{
	uint8_t v = rget_u8(r);

	if (v > 1) {
		r->err = 1;
		return 0;
	}
	return v;
}

uint16_t
rget_u16(struct rbuf *r)
{
	return (uint16_t)rget_le(r, 2);
}

uint32_t
rget_u32(struct rbuf *r)
{
	return (uint32_t)rget_le(r, 4);
}

uint64_t
rget_u64(struct rbuf *r)
{
	return rget_le(r, 8);
}

int64_t
rget_i64(struct rbuf *r)
{
	return (int64_t)rget_le(r, 8);
}

const uint8_t *
rget_bytes(struct rbuf *r, size_t *n, size_t max)
{
	uint32_t len = rget_u32(r);

	*n = 0;
	if (r->err || len > max) {
		r->err = 1;
		return NULL;
	}
	*n = len;
	return rget_raw(r, len);
}

char *
rget_str(struct rbuf *r, size_t max)
{
	const uint8_t *p;
	size_t n;
	char *s;

	if ((p = rget_bytes(r, &n, max)) == NULL)
		return NULL;
	if (memchr(p, '\0', n) != NULL || (s = malloc(n + 1)) == NULL) {
		r->err = 1;
		return NULL;
	}
	memcpy(s, p, n);
	s[n] = '\0';
	return s;
}

int
rget_strto(struct rbuf *r, char *buf, size_t size)
{
	const uint8_t *p;
	size_t n;

	buf[0] = '\0';
	if ((p = rget_bytes(r, &n, size - 1)) == NULL)
		return -1;
	if (memchr(p, '\0', n) != NULL) {
		r->err = 1;
		return -1;
	}
	memcpy(buf, p, n);
	buf[n] = '\0';
	return 0;
}

int
rget_end(const struct rbuf *r)
{
	return r->err || r->len != 0 ? -1 : 0;
}
