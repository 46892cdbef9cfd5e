/*
 * SPDX-License-Identifier: ISC
 *
 * Frames in a pipe and the entry payload.  Pure.
 */
#include "common/frame.h"

#include <string.h>

#include "common/abx.h"
#include "common/wire.h"

void
frame_head(uint8_t out[FRAME_HDR], uint8_t kind, uint32_t len)
{
	out[0] = kind;
	out[1] = len & 0xff;
	out[2] = len >> 8 & 0xff;
	out[3] = len >> 16 & 0xff;
	out[4] = len >> 24 & 0xff;
}

static uint32_t
frame_len(const uint8_t *h)
{
	return (uint32_t)h[1] | (uint32_t)h[2] << 8 | (uint32_t)h[3] << 16 |
	       (uint32_t)h[4] << 24;
}

/* Copy up to want bytes in all into the buffer. */
static void
take(struct frame_dec *d, const uint8_t **p, size_t *n, size_t want)
{
	size_t m = want - d->have;

	if (m > *n)
		m = *n;
	memcpy(d->buf + d->have, *p, m);
	d->have += m;
	*p += m;
	*n -= m;
}

int
frame_feed(struct frame_dec *d, const uint8_t **p, size_t *n, uint8_t *kind,
    const uint8_t **payload, size_t *len)
{
	uint32_t flen;

	if (d->have < FRAME_HDR) {
		take(d, p, n, FRAME_HDR);
		if (d->have < FRAME_HDR)
			return 0;
	}
	flen = frame_len(d->buf);
	if (flen > FRAME_MAX || d->buf[0] < FR_OUT || d->buf[0] > FR_EVENT)
		return -1;
	take(d, p, n, FRAME_HDR + (size_t)flen);
	if (d->have < FRAME_HDR + (size_t)flen)
		return 0;
	*kind = d->buf[0];
	*payload = d->buf + FRAME_HDR;
	*len = flen;
	d->have = 0; /* the bytes stay until the next call */
	return 1;
}

void
list_entry_put(struct wbuf *w, const struct list_entry *e)
{
	wput_u8(w, e->type);
	wput_u32(w, e->mode);
	wput_u64(w, e->size);
	wput_i64(w, e->mtime);
	wput_u32(w, e->mtime_ns);
	wput_u64(w, e->dev);
	wput_u64(w, e->ino);
	wput_bytes(w, e->name, e->namelen);
}

int
list_entry_get(const uint8_t *p, size_t n, struct list_entry *e)
{
	struct rbuf r;

	rbuf_init(&r, p, n);
	e->type = rget_u8(&r);
	e->mode = rget_u32(&r);
	e->size = rget_u64(&r);
	e->mtime = rget_i64(&r);
	e->mtime_ns = rget_u32(&r);
	e->dev = rget_u64(&r);
	e->ino = rget_u64(&r);
	e->name = (const char *)rget_bytes(&r, &e->namelen, ABX_PATH_MAX);
	if (rget_end(&r) == -1 || e->type < 1 || e->type > 4 ||
	    e->mtime_ns > 999999999 || e->namelen == 0 ||
	    memchr(e->name, '\0', e->namelen) != NULL || e->name[0] == '/' ||
	    e->name[e->namelen - 1] == '/')
		return -1;
	return 0;
}

void
list_match_put(struct wbuf *w, const struct list_match *m)
{
	wput_u64(w, m->line);
	wput_u32(w, m->column);
	wput_bytes(w, m->path, m->pathlen);
	wput_bytes(w, m->text, m->textlen);
}

int
list_match_get(const uint8_t *p, size_t n, struct list_match *m)
{
	struct rbuf r;

	rbuf_init(&r, p, n);
	m->line = rget_u64(&r);
	m->column = rget_u32(&r);
	m->path = (const char *)rget_bytes(&r, &m->pathlen, ABX_PATH_MAX);
	m->text = (const char *)rget_bytes(&r, &m->textlen, FRAME_MAX);
	if (rget_end(&r) == -1 || m->pathlen == 0 || m->path[0] == '/' ||
	    memchr(m->path, '\0', m->pathlen) != NULL)
		return -1;
	return 0;
}

void
list_event_put(struct wbuf *w, const struct list_event *e)
{
	wput_u8(w, e->what);
	wput_u8(w, e->type);
	wput_bytes(w, e->path, e->pathlen);
	wput_bytes(w, e->to, e->tolen);
}

int
list_event_get(const uint8_t *p, size_t n, struct list_event *e)
{
	struct rbuf r;

	rbuf_init(&r, p, n);
	e->what = rget_u8(&r);
	e->type = rget_u8(&r);
	e->path = (const char *)rget_bytes(&r, &e->pathlen, ABX_PATH_MAX);
	e->to = (const char *)rget_bytes(&r, &e->tolen, ABX_PATH_MAX);
	if (rget_end(&r) == -1 || e->what > WE_OVERFLOW || e->type < 1 ||
	    e->type > 4 || (e->tolen > 0) != (e->what == WE_MOVE) ||
	    memchr(e->path, '\0', e->pathlen) != NULL ||
	    memchr(e->to, '\0', e->tolen) != NULL)
		return -1;
	return 0;
}
