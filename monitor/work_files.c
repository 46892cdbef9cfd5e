/*
 * SPDX-License-Identifier: ISC
 *
 * Orders to pathd for operations on whole trees, made from the decision
 * alone.
 */
#include <string.h>

#include "common/codes.h"
#include "monitor/mon.h"
#include "monitor/work.h"

/* What the decision says of all of them. */
static void
bulk_fill(const struct req *r, struct bulk *b)
{
	b->flags = r->dec.paths[0].flags & (PF_HARDLINKS | PF_NOSYMLINKS);
	b->max_bytes = r->dec.max_bytes;
	b->max_entries = r->dec.max_entries;
	b->refs = r->dec.refs;
	b->nrefs = r->dec.nrefs;
	b->deny = r->dec.deny;
}

/* Everything in b is borrowed. */
static void
bulk_send(struct req *r, uint16_t type, const struct bulk *b)
{
	struct wbuf w;

	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	bulk_put(&w, b);
	if (w.err)
		answer_error(r, C_ARGS_TOO_LARGE, NULL, NULL, 0);
	else
		work_send(r, r->snap->pathd, type, -1, &w);
	wbuf_free(&w);
}

void
work_copy(struct req *r, int *fd)
{
	char *name = r->dec.paths[0].canonical;
	struct bulk b = {0};

	bulk_fill(r, &b);
	b.src = &r->dec.paths[0].target;
	b.nsrc = 1;
	b.names.v = &name;
	b.names.n = 1;
	b.dst = r->dec.paths[1].target;
	b.has_dst = 1;
	b.flags |= r->dec.paths[1].flags & PF_CREATE_DIRS;
	if (!ask_bool(r, "overwrite"))
		b.flags |= PF_NOREPLACE;
	bulk_send(r, MP_COPY, &b);
}
