/*
 * SPDX-License-Identifier: ISC
 *
 * gzip around a stream, by zlib: written with one setting, and read in a
 * process that may do nothing else.  No I/O of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ZLIB_CONST
#include <zlib.h>

#include "pathd/gz.h"

/* Of zlib: a window of 32 KiB, and gzip instead of its own head. */
#define WINDOW (15 + 16)
#define MEMORY 8
#define LEVEL 5
#define GZIP_ID 0x1f

/* ---- writing ---- */

struct gz_out {
	z_stream z;
	gz_out_cb out;
	void *arg;
	uint8_t buf[GZ_BLOCK];
};

struct gz_out *
gz_out_new(gz_out_cb out, void *arg)
{
	struct gz_out *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	g->out = out;
	g->arg = arg;
	if (deflateInit2(&g->z, LEVEL, Z_DEFLATED, WINDOW, MEMORY,
		Z_DEFAULT_STRATEGY) == Z_OK) {
		g->z.next_out = g->buf;
		g->z.avail_out = sizeof(g->buf);
		return g;
	}
	free(g);
	return NULL;
}

void
gz_out_free(struct gz_out *g)
{
	if (g == NULL)
		return;
	(void)deflateEnd(&g->z);
	free(g);
}

static int
out_flush(struct gz_out *g)
{
	size_t n = sizeof(g->buf) - g->z.avail_out;

	g->z.next_out = g->buf;
	g->z.avail_out = sizeof(g->buf);
	return n == 0 ? 0 : g->out(g->arg, g->buf, n);
}

int
gz_out_put(struct gz_out *g, const void *p, size_t n, int end)
{
	int rc = Z_OK;
	uInt k;

	g->z.next_in = p;
	g->z.avail_in = 0;
	do {
		k = n < GZ_BLOCK ? (uInt)n : GZ_BLOCK;
		if (g->z.avail_in == 0) {
			g->z.avail_in = k;
			n -= k;
		}
		rc = deflate(&g->z, end && n == 0 ? Z_FINISH : Z_NO_FLUSH);
		if (rc == Z_STREAM_ERROR)
			return -1;
		if ((g->z.avail_out == 0 || rc == Z_STREAM_END) &&
		    out_flush(g) == -1)
			return -1;
	} while (end ? rc != Z_STREAM_END : n > 0 || g->z.avail_in > 0);
	return 0;
}

/* ---- reading ---- */

struct gz_in {
	z_stream z;
	gz_more_cb more;
	void *arg;
	enum { GZ_START, GZ_MEMBER, GZ_BETWEEN, GZ_PLAIN, GZ_REST } at;
	int full;  /* the buffer is, and may not have held all */
	int error; /* why nothing follows what was before */
	uint8_t buf[GZ_BLOCK];
};

struct gz_in *
gz_in_new(gz_more_cb more, void *arg)
{
	struct gz_in *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	g->more = more;
	g->arg = arg;
	if (inflateInit2(&g->z, WINDOW) == Z_OK)
		return g;
	free(g);
	return NULL;
}

void
gz_in_free(struct gz_in *g)
{
	if (g == NULL)
		return;
	(void)inflateEnd(&g->z);
	free(g);
}

/* -1 with that reason. */
static int
in_fail(int error)
{
	errno = error;
	return -1;
}

static int
in_fill(struct gz_in *g)
{
	const uint8_t *p;
	size_t n;
	int rc;

	while (g->z.avail_in == 0) {
		if ((rc = g->more(g->arg, &p, &n)) != 1)
			return rc;
		if (n > GZ_BLOCK)
			return -1;
		g->z.next_in = p;
		g->z.avail_in = (uInt)n;
	}
	return 1;
}

static void
in_member(struct gz_in *g, const uint8_t **p, size_t *n)
{
	int rc;

	g->z.next_out = g->buf;
	g->z.avail_out = sizeof(g->buf);
	rc = inflate(&g->z, Z_NO_FLUSH);
	if (rc == Z_STREAM_END)
		g->at = GZ_BETWEEN;
	else if (rc != Z_OK && rc != Z_BUF_ERROR)
		g->error = rc == Z_MEM_ERROR ? ENOMEM : EBADMSG;
	/* when the buffer is full there may be more without any input */
	g->full = g->at == GZ_MEMBER && g->z.avail_out == 0;
	*p = g->buf;
	*n = sizeof(g->buf) - g->z.avail_out;
}

/* Something of what is at hand. */
static void
in_step(struct gz_in *g, const uint8_t **p, size_t *n)
{
	int first = g->at == GZ_START;

	if (first || g->at == GZ_BETWEEN) {
		if (*g->z.next_in == GZIP_ID && inflateReset(&g->z) == Z_OK)
			g->at = GZ_MEMBER;
		else
			g->at = first ? GZ_PLAIN : GZ_REST;
	}
	if (g->at == GZ_MEMBER) {
		in_member(g, p, n);
		return;
	}
	if (g->at == GZ_PLAIN) {
		*p = g->z.next_in;
		*n = g->z.avail_in;
	}
	g->z.avail_in = 0;
}

int
gz_in_get(struct gz_in *g, const uint8_t **p, size_t *n)
{
	int rc;

	for (*n = 0; *n == 0;) {
		if (g->error != 0)
			return in_fail(g->error);
		if (g->full) {
			in_member(g, p, n);
			continue;
		}
		if ((rc = in_fill(g)) != 1)
			return rc == 0 && g->at != GZ_MEMBER ? 0
							     : in_fail(EBADMSG);
		in_step(g, p, n);
	}
	return 1;
}
