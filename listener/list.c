/*
 * SPDX-License-Identifier: ISC
 *
 * Listings.  Short ones are answered whole; long ones are streamed once they
 * fill the buffer, unless they are to be sorted.  A failure before the first
 * byte is a proper error, one behind it breaks the connection.
 */
#include "listener/list.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/frame.h"
#include "common/payload.h"
#include "listener/conn.h"
#include "listener/frames.h"
#include "listener/send.h"

#define WHOLE_MAX (64 * 1024) /* longer listings are streamed */
#define SORT_MAX (64U * 1024 * 1024)

/* Where an entry lies in the text, and its name in the names. */
struct item {
	size_t off, len, name, namelen;
};

struct listing {
	struct frame_dec dec;
	struct wbuf text;   /* JSON that was not sent yet */
	struct wbuf names;  /* sort only */
	struct item *items; /* sort only */
	size_t nitems, cap;
	size_t head; /* bytes of text before the entries */
	uint64_t count;
	char *path;	 /* the caller's spelling; of bytes their type */
	uint8_t raw;	 /* frames of bytes are the answer */
	uint8_t started; /* the head is out */
};

void
list_free(struct conn *c)
{
	struct listing *l = c->listing;

	if (l == NULL)
		return;
	wbuf_free(&l->text);
	wbuf_free(&l->names);
	free(l->items);
	free(l->path);
	free(l);
	c->listing = NULL;
}

int
list_begin(struct conn *c, struct ans *a, int *fd)
{
	struct listing *l;

	if ((l = calloc(1, sizeof(*l))) == NULL)
		return -1;
	c->listing = l;
	wbuf_init(&l->text, SORT_MAX);
	wbuf_init(&l->names, SORT_MAX);
	l->path = a->body;
	a->body = NULL;
	l->raw = a->kind == ANS_BYTES;
	if (c->req.route.op == OP_files_search)
		json_raw_put(&l->text, "{\"matches\":[");
	else if (!l->raw) {
		json_raw_put(&l->text, "{\"path\":");
		json_str_put(&l->text, l->path, strlen(l->path));
		json_raw_put(&l->text, ",\"entries\":[");
	}
	l->head = l->text.len;
	conn_set_data(c, *fd);
	*fd = -1;
	conn_enter(c, CONN_LIST);
	return 0;
}

/* ---- sorting ---- */

static const uint8_t *sort_names; /* of the listing being sorted */

static int
compare(const void *x, const void *y)
{
	const struct item *a = x, *b = y;
	size_t n = a->namelen < b->namelen ? a->namelen : b->namelen;
	int d = memcmp(sort_names + a->name, sort_names + b->name, n);

	if (d != 0)
		return d;
	return a->namelen < b->namelen ? -1 : a->namelen > b->namelen;
}

static int
remember(struct listing *l, const struct list_entry *e, size_t off)
{
	size_t cap = l->cap == 0 ? 64 : l->cap * 2;
	struct item *p;

	if (l->nitems == l->cap) {
		p = reallocarray(l->items, cap, sizeof(*p));
		if (p == NULL)
			return -1;
		l->items = p;
		l->cap = cap;
	}
	p = &l->items[l->nitems++];
	p->off = off;
	p->len = l->text.len - off;
	p->name = l->names.len;
	p->namelen = e->namelen;
	wput_raw(&l->names, e->name, e->namelen);
	return l->names.err ? -1 : 0;
}

/* Put the entries behind the head of the text in their order. */
static int
sort(struct listing *l)
{
	struct wbuf w;
	size_t i;

	if (l->nitems == 0)
		return 0;
	sort_names = l->names.p;
	/* qsort(3) asks the kernel for the size of memory when there are more
	 * than a few, which the filter of this process takes for an attack */
	if (heapsort(l->items, l->nitems, sizeof(*l->items), compare) == -1)
		return -1;
	wbuf_init(&w, SORT_MAX);
	wput_raw(&w, l->text.p, l->head);
	for (i = 0; i < l->nitems; i++) {
		if (i > 0)
			json_raw_put(&w, ",");
		wput_raw(&w, l->text.p + l->items[i].off, l->items[i].len);
	}
	wbuf_free(&l->text);
	l->text = w;
	return w.err ? -1 : 0;
}

/* ---- frames ---- */

/* Hand the text over to the client. */
static void
push(struct conn *c)
{
	struct listing *l = c->listing;

	if (!l->started) {
		send_stream(c, 200, "application/json");
		l->started = 1;
	}
	send_piece(c, l->text.p, l->text.len);
	wbuf_reset(&l->text);
}

/* It cannot go on: say so, or break off. */
static int
fail(struct conn *c, enum code code)
{
	c->req.busy = 0;
	if (!c->listing->started) {
		send_failure(c, code);
		return STEP_AGAIN;
	}
	c->close = 1;
	conn_finish(c, FIN_ERROR);
	conn_enter(c, CONN_DEAD);
	return STEP_AGAIN;
}

static int
on_entry(struct conn *c, const uint8_t *p, size_t n)
{
	struct listing *l = c->listing;
	struct list_entry e;
	size_t off;

	if (list_entry_get(p, n, &e) == -1)
		return fail(c, C_SRV_INTERNAL);
	if (l->count++ > 0 && !c->req.sort)
		json_raw_put(&l->text, ",");
	off = l->text.len;
	entry_put(&l->text, l->path, 1, &e);
	if (l->text.err || (c->req.sort && remember(l, &e, off) == -1))
		return fail(c, C_SRV_UNAVAILABLE);
	if (!c->req.sort && l->text.len > WHOLE_MAX)
		push(c);
	return 0;
}

static void
begin_bytes(struct conn *c)
{
	if (!c->listing->started)
		send_stream(c, 200, c->listing->path);
	c->listing->started = 1;
}

static int
on_bytes(struct conn *c, const uint8_t *p, size_t n)
{
	begin_bytes(c);
	send_piece(c, p, n);
	return 0;
}

static int
on_match(struct conn *c, const uint8_t *p, size_t n)
{
	struct listing *l = c->listing;
	struct list_match m;

	if (c->req.route.op != OP_files_search ||
	    list_match_get(p, n, &m) == -1)
		return fail(c, C_SRV_INTERNAL);
	json_raw_put(&l->text, l->count++ > 0 ? ",{" : "{");
	entry_path_put(&l->text, "path", l->path, m.path, m.pathlen);
	json_raw_put(&l->text, ",\"line\":");
	json_uint_put(&l->text, m.line);
	json_raw_put(&l->text, ",\"column\":");
	json_uint_put(&l->text, m.column);
	json_raw_put(&l->text, ",\"text\":");
	json_str_put(&l->text, m.text, m.textlen);
	json_raw_put(&l->text, "}");
	if (l->text.err)
		return fail(c, C_SRV_UNAVAILABLE);
	if (l->text.len > WHOLE_MAX)
		push(c);
	return 0;
}

static int
on_end(struct conn *c, const uint8_t *p, size_t n)
{
	struct listing *l = c->listing;
	struct rbuf r;
	uint16_t code;
	int truncated;

	rbuf_init(&r, p, n);
	code = rget_u16(&r);
	truncated = rget_bool(&r);
	if (rget_end(&r) == -1 || code >= C_COUNT)
		return fail(c, C_SRV_INTERNAL);
	if (code != C_OK)
		return fail(c, (enum code)code);
	if (l->raw) {
		c->req.busy = 0;
		begin_bytes(c);
		send_end(c);
		return STEP_AGAIN;
	}
	if (c->req.sort && sort(l) == -1)
		return fail(c, C_SRV_UNAVAILABLE);
	json_raw_put(&l->text, "],\"truncated\":");
	json_raw_put(&l->text, truncated ? "true}" : "false}");
	if (l->text.err)
		return fail(c, C_SRV_UNAVAILABLE);
	c->req.busy = 0;
	if (l->started) {
		push(c);
		send_end(c);
	} else
		send_json(c, 200, (const char *)l->text.p, l->text.len);
	return STEP_AGAIN;
}

/* 0 to go on, else the step's answer. */
static int
take(struct conn *c, uint8_t kind, const uint8_t *p, size_t n)
{
	if (kind == FR_END)
		return on_end(c, p, n);
	if (c->listing->raw)
		return kind == FR_OUT ? on_bytes(c, p, n)
				      : fail(c, C_SRV_INTERNAL);
	if (kind == FR_ENTRY)
		return on_entry(c, p, n);
	if (kind == FR_MATCH)
		return on_match(c, p, n);
	return fail(c, C_SRV_INTERNAL);
}

static int
on_frame(struct conn *c, uint8_t kind, const uint8_t *p, size_t n)
{
	int r = take(c, kind, p, n);

	return r == 0 ? FRAMES_MORE : r;
}

static int
over(struct conn *c, int malformed)
{
	return fail(c, malformed ? C_SRV_INTERNAL : C_SRV_UNAVAILABLE);
}

int
list_step(struct conn *c)
{
	static const struct frames_ops how = {on_frame, over};

	if (conn_flush(c) == -1)
		return STEP_GONE;
	return frames_step(c, &c->listing->dec, &how);
}
