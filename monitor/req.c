/*
 * SPDX-License-Identifier: ISC
 *
 * The table of live requests: by the listener's number and by our own.  The
 * one place that writes a request's state and the one that frees it.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/late.h"
#include "common/proc.h"
#include "monitor/mon.h"
#include "monitor/proc.h"
#include "monitor/workspace.h"

#define BUCKETS 256

static struct req *by_lid[BUCKETS], *by_rid[BUCKETS];
static size_t live, ending;
static uint64_t live_bytes, ending_bytes; /* of bodies */
static uint64_t next_rid = 1;
static struct req *reserve;   /* for one when there is no memory */
static struct late cancelled; /* who owes the answer is in the number */

struct req *
req_new(uint64_t lid)
{
	struct req *r;

	if ((r = calloc(1, sizeof(*r))) == NULL) {
		if ((r = reserve) == NULL)
			return NULL;
		reserve = NULL;
		memset(r, 0, sizeof(*r));
	}
	r->lid = lid;
	r->rid = next_rid++;
	r->start_us = proc_now_us();
	r->snap = snap_ref(mon.cur);
	r->dirfd = r->frame_fd = r->stdin_fd = -1;
	r->dec.rule = r->dec.cwd_item = -1;
	r->lnext = by_lid[lid % BUCKETS];
	by_lid[lid % BUCKETS] = r;
	r->rnext = by_rid[r->rid % BUCKETS];
	by_rid[r->rid % BUCKETS] = r;
	live++;
	return r;
}

struct req *
req_by_lid(uint64_t lid)
{
	struct req *r;

	for (r = by_lid[lid % BUCKETS]; r != NULL; r = r->lnext)
		if (r->lid == lid)
			return r;
	return NULL;
}

struct req *
req_by_rid(uint64_t rid)
{
	struct req *r;

	for (r = by_rid[rid % BUCKETS]; r != NULL; r = r->rnext)
		if (r->rid == rid)
			return r;
	return NULL;
}

uint64_t
req_number(void)
{
	return next_rid++;
}

/* One of 65535, from the caller's id; two that share one share a share. */
static uint64_t
owner_of(const char *id)
{
	return fnv32(id, strlen(id)) % 65535 + 1;
}

static void
unlink_rid(struct req *r)
{
	struct req **p;

	for (p = &by_rid[r->rid % BUCKETS]; *p != r; p = &(*p)->rnext)
		continue;
	*p = r->rnext;
}

void
req_own(struct req *r)
{
	unlink_rid(r);
	r->rid |= owner_of(r->who.id) << ID_OWNER_SHIFT;
	r->rnext = by_rid[r->rid % BUCKETS];
	by_rid[r->rid % BUCKETS] = r;
}

size_t
req_count(void)
{
	return live;
}

size_t
req_ending(void)
{
	return ending;
}

int
req_take_body(struct req *r, uint64_t n)
{
	if (live_bytes + n > ABX_BODY_MAX)
		return -1;
	r->body_bytes = n;
	live_bytes += n;
	return 0;
}

int
req_room_to_end(const struct req *r)
{
	return ending < REQ_ENDING_MAX &&
	       ending_bytes + r->body_bytes <= ABX_BODY_MAX;
}

void
req_owed(struct req *r, struct peer *p)
{
	struct peer *old = r->peer;

	r->peer = p == NULL ? NULL : peer_ref(p);
	if (old != NULL)
		peer_unref(old);
}

int
req_owed_by(const struct req *r, enum proc_kind kind)
{
	return r->peer != NULL && r->peer->kind == kind;
}

/* What only waits for END is no longer the listener's. */
static void
count_ending(struct req *r, enum gate_state from, enum gate_state to)
{
	if (from != RS_ENDING && to == RS_ENDING) {
		ending++;
		live_bytes -= r->body_bytes;
		ending_bytes += r->body_bytes;
	} else if (from == RS_ENDING && to != RS_ENDING) {
		ending--;
		live_bytes += r->body_bytes;
		ending_bytes -= r->body_bytes;
	}
}

void
req_enter(struct req *r, enum gate_state s)
{
	count_ending(r, r->state, s);
	r->state = s;
}

static void
unlink_lid(struct req *r)
{
	struct req **p;

	for (p = &by_lid[r->lid % BUCKETS]; *p != r; p = &(*p)->lnext)
		continue;
	*p = r->lnext;
}

void
req_orphan(struct req *r)
{
	/* no listener uses number 0 */
	unlink_lid(r);
	r->lid = 0;
	if (!r->fin_seen)
		r->orphan = 1;
	r->lnext = by_lid[0];
	by_lid[0] = r;
}

static void
unlink_req(struct req *r)
{
	unlink_lid(r);
	unlink_rid(r);
	live--;
}

static void
close_fd(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

static void
facts_free(struct req *r)
{
	size_t i;

	if (r->facts == NULL)
		return;
	for (i = 0; i < r->plan.nitems; i++)
		facts_clear(&r->facts[i]);
	free(r->facts);
	r->facts = NULL;
}

void
req_finish(struct req *r, const char *outcome)
{
	audit_request(r, outcome);
	idem_end(r);
	proc_unwait(r);
	proc_release(r);
	workspace_unwait(r);
	workspace_leave(&r->ws);
	req_enter(r, RS_FREE);
	live_bytes -= r->body_bytes;
	unlink_req(r);
	limit_release(r->slot);
	facts_free(r);
	if (r->decided)
		decision_clear(&r->dec);
	if (r->planned)
		plan_clear(&r->plan);
	close_fd(&r->dirfd);
	covers_clear(&r->covers);
	if (r->holder != NULL)
		peer_unref(r->holder);
	close_fd(&r->frame_fd);
	close_fd(&r->stdin_fd);
	if (r->check_args != NULL)
		args_clear(r->check_args);
	free(r->check_args);
	ask_clear(&r->ask);
	req_owed(r, NULL);
	snap_unref(r->snap);
	if (reserve == NULL)
		reserve = r;
	else
		free(r);
}

void
req_each(void (*f)(struct req *, void *), void *arg)
{
	struct req *r, *next;
	size_t i;

	for (i = 0; i < BUCKETS; i++)
		for (r = by_rid[i]; r != NULL; r = next) {
			next = r->rnext;
			f(r, arg);
		}
}

static uint64_t
owed_number(uint64_t rid, enum proc_kind by)
{
	return rid * PROC_COUNT + (uint64_t)by;
}

void
req_remember_cancelled(uint64_t rid, enum proc_kind owed)
{
	late_add(&cancelled, owed_number(rid, owed));
}

int
req_was_cancelled(uint64_t rid, enum proc_kind by, int last)
{
	return rid != 0 && late_take(&cancelled, owed_number(rid, by), last);
}
