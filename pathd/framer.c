/*
 * SPDX-License-Identifier: ISC
 *
 * Listings, searches and exports as frames.  Knows no pipe; where frames go
 * is the callback's business.
 */
#include <sys/stat.h>

#include <string.h>

#include "common/frame.h"
#include "pathd/beneath.h"
#include "pathd/framer.h"

#define BATCH (32 * 1024)

void
framer_init(struct framer *f, framer_cb cb, void *arg)
{
	memset(f, 0, sizeof(*f));
	wbuf_init(&f->out, BATCH + FRAME_HDR + FRAME_MAX);
	wbuf_init(&f->w, FRAME_MAX);
	f->cb = cb;
	f->arg = arg;
}

void
framer_free(struct framer *f)
{
	wbuf_free(&f->out);
	wbuf_free(&f->w);
}

static int
hand_on(struct framer *f)
{
	if (f->out.err || f->stopped ||
	    f->cb(f->arg, f->out.p, f->out.len) == -1)
		f->stopped = 1;
	wbuf_reset(&f->out);
	return f->stopped ? -1 : 0;
}

int
framer_raw(struct framer *f, uint8_t kind, const void *p, size_t n)
{
	uint8_t head[FRAME_HDR];

	frame_head(head, kind, (uint32_t)n);
	wput_raw(&f->out, head, sizeof(head));
	wput_raw(&f->out, p, n);
	return f->out.len >= BATCH || f->out.err ? hand_on(f) : 0;
}

int
framer_put(struct framer *f, uint8_t kind)
{
	int rc;

	if (f->w.err)
		f->stopped = 1;
	rc = f->stopped ? -1 : framer_raw(f, kind, f->w.p, f->w.len);
	wbuf_reset(&f->w);
	return rc;
}

int
framer_entry(struct framer *f, const char *name, const struct stat *st)
{
	struct list_entry e = {
	    .type = beneath_kind(st->st_mode),
	    .mode = st->st_mode & 07777,
	    .size = (uint64_t)st->st_size,
	    .mtime = st->st_mtim.tv_sec,
	    .mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
	    .dev = st->st_dev,
	    .ino = st->st_ino,
	    .name = name,
	    .namelen = strlen(name),
	};

	list_entry_put(&f->w, &e);
	return framer_put(f, FR_ENTRY);
}

int
framer_end(struct framer *f, enum code code, int truncated)
{
	wput_u16(&f->w, (uint16_t)code);
	wput_u8(&f->w, truncated != 0);
	return framer_put(f, FR_END) == -1 ? -1 : hand_on(f);
}

int
framer_stopped(struct framer *f)
{
	static const uint8_t none[1];

	if (!f->stopped && f->cb(f->arg, none, 0) == -1)
		f->stopped = 1;
	return f->stopped;
}
