/*
 * SPDX-License-Identifier: ISC
 *
 * Listings and searches in a worker.
 */
#include <unistd.h>

#include "pathd/drain.h"
#include "pathd/list.h"
#include "pathd/search.h"
#include "pathd/worker.h"

void
do_list(struct job *j, struct rbuf *r)
{
	struct drain d;
	struct listing li;
	struct list l;
	enum code code;

	if (list_get(r, &l) == -1 || rget_end(r) == -1)
		job_quit();
	if ((code = listing_open(&li, j->pd, &l)) != C_OK)
		job_done(j, (uint16_t)code, 0);
	else if (drain_open(&d, j) == 0) {
		/* what breaks off has no end frame: its reader sees */
		(void)listing_send(&li, drain_cb, &d);
		close(d.pipe);
	}
	listing_close(&li);
	list_clear(&l);
}

void
do_search(struct job *j, struct rbuf *r)
{
	struct drain d;
	struct search s;
	struct bulk b;
	enum code code;

	if (bulk_get(r, &b) == -1 || rget_end(r) == -1)
		job_quit();
	if ((code = search_open(&s, j->pd, &b)) != C_OK)
		job_done(j, (uint16_t)code, 0);
	else if (drain_open(&d, j) == 0) {
		(void)search_send(&s, drain_cb, &d);
		close(d.pipe);
	}
	search_close(&s);
	bulk_clear(&b);
}
