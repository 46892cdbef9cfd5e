/*
 * SPDX-License-Identifier: ISC
 *
 * Downloads.  Up to 64 KiB go with the head in one write; more by sendfile
 * behind a head sent with MSG_MORE.  It holds a descriptor and never a path
 * that means anything.
 */
#include "listener/get.h"

#include <sys/sendfile.h>
#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/hash.h"
#include "common/payload.h"
#include "listener/conn.h"
#include "listener/range.h"
#include "listener/send.h"

#define JSON_MAX (16 * 1024 * 1024) /* bytes of a file sent as JSON */
#define TURN_MAX (2 * 1024 * 1024)  /* sent before others get their turn */
#define OCTETS "application/octet-stream"

/* Read exactly len bytes at off: 0 or -1. */
static int
read_all(int fd, uint8_t *p, size_t len, uint64_t off)
{
	ssize_t n;

	while (len > 0) {
		n = pread(fd, p, len, (off_t)off);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1; /* an error, or the file has shrunk */
		p += n;
		len -= (size_t)n;
		off += (uint64_t)n;
	}
	return 0;
}

/* ---- bytes ---- */

/* What the conditions and the range make of the answer: its status. */
static unsigned
conditions(const struct conn *c, const char *etag, uint64_t size,
    uint64_t *first, uint64_t *last)
{
	const struct http_head *h = &c->head;
	const struct http_slice *s = &h->field[HF_IF_MATCH];
	const char *in = (const char *)c->in;
	int r;

	if (h->seen[HF_IF_MATCH] > 1 ||
	    (h->seen[HF_IF_MATCH] == 1 &&
		etag_listed(in + s->off, s->len, etag, 0) != 1))
		return 412;
	s = &h->field[HF_IF_NONE_MATCH];
	if (h->seen[HF_IF_NONE_MATCH] == 1 &&
	    etag_listed(in + s->off, s->len, etag, 1) == 1)
		return 304;
	if (c->req.is_head || h->seen[HF_RANGE] != 1 ||
	    h->seen[HF_IF_RANGE] > 1)
		return 200;
	s = &h->field[HF_IF_RANGE];
	if (h->seen[HF_IF_RANGE] == 1 &&
	    (s->len != strlen(etag) || memcmp(in + s->off, etag, s->len) != 0))
		return 200;
	s = &h->field[HF_RANGE];
	r = range_parse(in + s->off, s->len, size, first, last);
	return r == 1 ? 206 : r == 0 ? 200 : 416;
}

/* Head and file in one write. */
static void
send_small_file(struct conn *c, struct reply *r, int fd, uint64_t off)
{
	uint8_t *p = send_scratch();
	uint8_t *body = p + REPLY_HEAD_MAX;
	size_t len = (size_t)r->length, n;

	/* the file is read before the head is made, so that it can fail */
	if (read_all(fd, body, len, off) == -1) {
		send_failure(c, C_FS_IO);
		return;
	}
	n = send_head(c, r, p);
	memmove(body - n, p, n);
	c->req.bytes_out += len;
	conn_write(c, body - n, n + len, 0);
	conn_enter(c, CONN_SEND);
}

static void
send_file(struct conn *c, struct reply *r, int *fd, uint64_t off)
{
	uint8_t *p = send_scratch();
	size_t n;

	n = send_head(c, r, p);
	conn_write(c, p, n, MSG_MORE);
	conn_set_data(c, *fd);
	*fd = -1;
	c->file_off = off;
	c->file_left = r->length;
	conn_enter(c, CONN_SEND);
}

static void
send_unsatisfiable(struct conn *c, uint64_t size)
{
	struct reply r = {
	    .status = 416, .type = "application/json", .total = size};
	char *body;

	body = code_body(
	    C_FS_RANGE, c->req.id, c->req.route.name, NULL, NULL, NULL);
	send_body(c, &r, body, body == NULL ? 0 : strlen(body));
	free(body);
}

static void
send_bytes(struct conn *c, const struct ans *a, int *fd)
{
	uint64_t first = 0, last = 0;
	char etag[ETAG_SIZE];
	struct reply r = {
	    .type = OCTETS, .etag = etag, .ranges = 1, .length = a->size};

	etag_make(etag, a->dev, a->ino, a->size, a->mtime, a->mtime_ns);
	r.status = conditions(c, etag, a->size, &first, &last);
	if (r.status == 412) {
		send_failure(c, C_FS_CHANGED);
		return;
	}
	if (r.status == 416) {
		send_unsatisfiable(c, a->size);
		return;
	}
	if (r.status == 206) {
		r.first = first;
		r.last = last;
		r.total = a->size;
		r.length = last - first + 1;
	}
	if (r.status == 304) {
		r.framing = REPLY_NO_BODY;
		r.type = NULL;
	}
	if (r.status == 304 || c->req.is_head) {
		conn_write(
		    c, send_scratch(), send_head(c, &r, send_scratch()), 0);
		conn_enter(c, CONN_SEND);
	} else if (r.length <= SEND_SMALL)
		send_small_file(c, &r, *fd, first);
	else
		send_file(c, &r, fd, first);
}

int
get_more(struct conn *c)
{
	off_t off = (off_t)c->file_off;
	size_t want = TURN_MAX;
	ssize_t n;

	if (want > c->file_left)
		want = (size_t)c->file_left;
	n = sendfile(c->fd, c->data_fd, &off, want);
	if (n == -1 && errno != EAGAIN && errno != EINTR)
		return STEP_GONE;
	if (n == -1) {
		conn_stalled(c);
		return WANT_WRITE;
	}
	if (n == 0)
		return STEP_GONE; /* it has shrunk; the length was promised */
	c->file_off += (uint64_t)n;
	c->file_left -= (uint64_t)n;
	c->req.bytes_out += (uint64_t)n;
	c->sent += (uint64_t)n;
	if (c->file_left == 0)
		return 0;
	/* the time-out begins anew; nothing but the client may come next */
	c->deadline = 0;
	conn_stalled(c);
	return WANT_WRITE;
}

/* ---- JSON ---- */

static void
put_content(struct wbuf *w, const uint8_t *p, size_t n)
{
	size_t size = 4 * ((n + 2) / 3) + 1;
	char *b;

	/* text with a NUL could not be sent back the same way */
	if (utf8_valid(p, n) && memchr(p, '\0', n) == NULL) {
		json_raw_put(w, ",\"content\":");
		json_str_put(w, p, n);
		json_raw_put(w, ",\"encoding\":\"utf-8\"");
		return;
	}
	if ((b = malloc(size)) == NULL || base64_encode(p, n, b, size) == -1)
		w->err = 1;
	else {
		json_raw_put(w, ",\"content\":\"");
		json_raw_put(w, b);
		json_raw_put(w, "\",\"encoding\":\"base64\"");
	}
	free(b);
}

static void
put_spelling(struct wbuf *w, const char *path)
{
	char b[4 * ((ABX_PATH_MAX + 2) / 3) + 1];
	size_t n = strnlen(path, ABX_PATH_MAX);

	json_raw_put(w, "{\"path\":");
	json_str_put(w, path, n);
	if (!utf8_valid(path, n) &&
	    base64_encode(path, n, b, sizeof(b)) != -1) {
		json_raw_put(w, ",\"path_base64\":\"");
		json_raw_put(w, b);
		json_raw_put(w, "\"");
	}
}

static enum code
render(struct conn *c, const struct ans *a, int fd, struct wbuf *w)
{
	char etag[ETAG_SIZE];
	enum code code = C_OK;
	uint8_t *p;

	if (a->size > JSON_MAX)
		return C_LIM_MAX_BYTES;
	if ((p = malloc((size_t)a->size + 1)) == NULL)
		return C_SRV_UNAVAILABLE;
	if (read_all(fd, p, (size_t)a->size, 0) == -1)
		code = C_FS_IO;
	else {
		etag_make(etag, a->dev, a->ino, a->size, a->mtime, a->mtime_ns);
		put_spelling(w, c->req.path == NULL ? "" : c->req.path);
		put_content(w, p, (size_t)a->size);
		json_raw_put(w, ",\"size\":");
		json_uint_put(w, a->size);
		json_raw_put(w, ",\"etag\":");
		json_str_put(w, etag, strlen(etag));
		json_raw_put(w, "}");
		if (w->err)
			code = C_SRV_UNAVAILABLE;
	}
	free(p);
	return code;
}

static void
send_as_json(struct conn *c, const struct ans *a, int fd)
{
	struct wbuf w;
	enum code code;

	wbuf_init(&w, 7 * (size_t)JSON_MAX);
	code = render(c, a, fd, &w);
	if (code == C_OK)
		send_json(c, 200, (const char *)w.p, w.len);
	else
		send_failure(c, code);
	wbuf_free(&w);
}

int
get_begin(struct conn *c, struct ans *a, int *fd)
{
	c->req.busy = 0;
	if (a->size > INT64_MAX)
		return -1;
	if (c->req.route.binding == B_BYTES)
		send_bytes(c, a, fd);
	else
		send_as_json(c, a, *fd);
	return 0;
}
