/*
 * SPDX-License-Identifier: ISC
 *
 * Idempotency keys (draft-ietf-httpapi-idempotency-key-header): what a
 * principal's key was used for, and what it was answered.  In memory only,
 * bounded in number, bytes and time.  A call whose answer was not kept is
 * never done a second time.
 */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/log.h"
#include "common/proc.h"
#include "monitor/mon.h"

#define IDEM_MAX 10000	      /* keys remembered */
#define IDEM_SHARE 1000	      /* of one principal, when there is no more room */
#define IDEM_BODY (64 * 1024) /* bytes of one answer kept */
#define IDEM_BYTES (32 * 1024 * 1024)	 /* and of all */
#define IDEM_US (24ULL * 3600 * 1000000) /* for a day */
#define IDEM_BUCKETS 1024

struct idem {
	struct idem *chain;	    /* hash bucket */
	struct idem *newer, *older; /* by time of first use */
	char *name;		    /* principal, NUL, key */
	size_t namelen;
	uint8_t hash[SHA256_LEN]; /* of the request */
	uint64_t since;
	struct req *owner; /* at work, NULL: done */
	struct req *waiters;
	uint16_t status;
	uint16_t code;
	char *body; /* NULL: not kept */
};

static struct idem *buckets[IDEM_BUCKETS], *newest, *oldest;
static size_t count, bytes;

/* Where what has that name hangs. */
static struct idem **
bucket(const char *name, size_t n)
{
	return &buckets[fnv32(name, n) % IDEM_BUCKETS];
}

static void
drop_body(struct idem *e)
{
	if (e->body == NULL)
		return;
	bytes -= strlen(e->body);
	free(e->body);
	e->body = NULL;
}

static void
forget(struct idem *e)
{
	struct idem **p = bucket(e->name, e->namelen);

	for (; *p != e; p = &(*p)->chain)
		continue;
	*p = e->chain;
	*(e->newer != NULL ? &e->newer->older : &newest) = e->older;
	*(e->older != NULL ? &e->older->newer : &oldest) = e->newer;
	if (e->owner != NULL)
		e->owner->idem = NULL;
	drop_body(e);
	free(e->name);
	free(e);
	count--;
}

/* What is past its day, and answers that are too many. */
static void
expire(uint64_t now)
{
	struct idem *e, *next;

	for (e = oldest; e != NULL; e = next) {
		next = e->newer;
		if (e->owner != NULL)
			continue;
		if (now - e->since < IDEM_US)
			break;
		forget(e);
	}
	for (e = oldest; e != NULL && bytes > IDEM_BYTES; e = e->newer)
		if (e->owner == NULL)
			drop_body(e);
}

/* Room for a key of that principal: the oldest that is not at work goes, and
 * who has many loses one of his own, since a retry of a forgotten key is done
 * a second time. */
static void
make_room(const char *who)
{
	struct idem *e, *any = NULL, *own = NULL;
	size_t n = 0;

	if (count < IDEM_MAX)
		return;
	for (e = oldest; e != NULL; e = e->newer) {
		if (any == NULL && e->owner == NULL)
			any = e;
		if (strcmp(e->name, who) != 0)
			continue;
		n++;
		if (own == NULL && e->owner == NULL)
			own = e;
	}
	e = n >= IDEM_SHARE ? own : any;
	if (e != NULL)
		forget(e);
}

static struct idem *
look_up(const char *name, size_t n)
{
	struct idem *e = *bucket(name, n);

	for (; e != NULL; e = e->chain)
		if (e->namelen == n && memcmp(e->name, name, n) == 0)
			return e;
	return NULL;
}

/* principal NUL key; NULL when out of memory. */
static char *
name_of(const struct req *r, size_t *n)
{
	size_t pl = strlen(r->who.id) + 1, kl = strlen(r->ask.idem);
	char *s = malloc(pl + kl);

	if (s == NULL)
		return NULL;
	memcpy(s, r->who.id, pl);
	memcpy(s + pl, r->ask.idem, kl);
	*n = pl + kl;
	return s;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(
	    ((const struct arg *)a)->name, ((const struct arg *)b)->name);
}

/* The operation and its arguments, whatever order they came in.  0 or -1. */
static int
request_hash(struct req *r, uint8_t out[SHA256_LEN])
{
	struct wbuf w;
	int rc = -1;

	if (r->ask.args.n > 1)
		qsort(r->ask.args.v, r->ask.args.n, sizeof(*r->ask.args.v),
		    by_name);
	wbuf_init(&w, ABX_BODY_MAX);
	wput_u16(&w, r->ask.op);
	args_put(&w, &r->ask.args);
	if (r->ask.has_digest)
		wput_raw(&w, r->ask.digest, sizeof(r->ask.digest));
	wput_str(&w, r->ask.if_match);
	wput_str(&w, r->ask.if_none_match);
	if (!w.err) {
		sha256(w.p, w.len, out);
		rc = 0;
	}
	wbuf_free(&w);
	return rc;
}

static struct idem *
remember(struct req *r, char *name, size_t n, const uint8_t *hash)
{
	struct idem *e, **b = bucket(name, n);

	if ((e = calloc(1, sizeof(*e))) == NULL)
		return NULL;
	e->name = name;
	e->namelen = n;
	memcpy(e->hash, hash, SHA256_LEN);
	e->since = proc_now_us();
	e->owner = r;
	e->chain = *b;
	*b = e;
	e->older = newest;
	*(newest != NULL ? &newest->newer : &oldest) = e;
	newest = e;
	count++;
	r->idem = e;
	return e;
}

/* ---- answers ---- */

static void
replay(struct req *r, const struct idem *e)
{
	struct ans a = {0};

	if (e->body == NULL) {
		answer_error(r, C_IDEM_GONE, NULL, NULL, 0);
		return;
	}
	a.kind = ANS_JSON;
	a.status = e->status;
	a.code = e->code;
	a.body = e->body; /* borrowed */
	answer_send(r, &a, -1);
}

static void
mismatch(struct req *r)
{
	answer_error(r, C_IDEM_MISMATCH, NULL, NULL, 0);
}

int
idem_begin(struct req *r)
{
	uint8_t hash[SHA256_LEN];
	struct idem *e;
	char *name;
	size_t n;

	if (r->ask.idem[0] == '\0' || r->idem != NULL)
		return 0;
	if (op_has_get(r->ask.op))
		return 0; /* an old answer would be a wrong one */
	if (ops[r->ask.op].stream == S_PUT && !r->ask.has_digest) {
		/* the key must cover the content */
		answer_error(r, C_ARGS_INVALID, "Idempotency-Key", NULL, 0);
		return 1;
	}
	expire(proc_now_us());
	if ((name = name_of(r, &n)) == NULL || request_hash(r, hash) == -1) {
		free(name);
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		return 1;
	}
	if ((e = look_up(name, n)) == NULL) {
		make_room(r->who.id);
		if (count < IDEM_MAX && remember(r, name, n, hash) != NULL)
			return 0;
		free(name);
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		return 1;
	}
	free(name);
	if (!ct_equal(e->hash, hash, sizeof(hash)))
		mismatch(r);
	else if (e->owner == NULL)
		replay(r, e);
	else {
		/* the first is still at work: its answer is ours too */
		r->idem_next = e->waiters;
		e->waiters = r;
		r->idem_wait = e;
		req_enter(r, RS_WORK);
	}
	return 1;
}

/* Answers that say "not now" are not results, nor is content that did not
 * come as it was sent. */
static int
is_result(uint16_t status, uint16_t code)
{
	return status != 429 && status < 500 && code != C_FS_DIGEST_MISMATCH &&
	       code != C_REQ_BAD_FRAMING;
}

static struct req *
next_waiter(struct idem *e)
{
	struct req *r = e->waiters;

	if (r == NULL)
		return NULL;
	e->waiters = r->idem_next;
	r->idem_next = NULL;
	r->idem_wait = NULL;
	return r;
}

static void
wake(struct idem *e)
{
	struct req *r;

	while ((r = next_waiter(e)) != NULL)
		replay(r, e);
}

/* It ended and nothing was done: the key is as new. */
static void
idem_void(struct req *r)
{
	struct idem *e = r->idem;
	struct req *w;

	r->idem = NULL;
	e->owner = NULL;
	while ((w = next_waiter(e)) != NULL)
		answer_error(w, C_SRV_UNAVAILABLE, NULL, NULL, 1);
	forget(e);
}

void
idem_done(struct req *r, uint16_t status, uint16_t code, const char *body)
{
	struct idem *e = r->idem;

	if (e == NULL)
		return;
	r->idem = NULL;
	e->owner = NULL;
	e->status = status;
	e->code = code;
	if (body != NULL && strlen(body) <= IDEM_BODY &&
	    (e->body = strdup(body)) != NULL)
		bytes += strlen(body);
	wake(e);
	if (!is_result(status, code))
		forget(e);
}

void
idem_leave(struct req *r)
{
	struct req **p;

	if (r->idem_wait == NULL)
		return;
	for (p = &r->idem_wait->waiters; *p != r; p = &(*p)->idem_next)
		continue;
	*p = r->idem_next;
	r->idem_wait = NULL;
}

void
idem_end(struct req *r)
{
	idem_leave(r);
	if (r->idem != NULL && ops[r->ask.op].stream == S_PUT && !r->put_whole)
		idem_void(r);
	/* it ended without an answer that we saw: done, but not kept */
	idem_done(r, 200, C_OK, NULL);
}
