/*
 * SPDX-License-Identifier: ISC
 *
 * Pools of connections.  Owns who is in which and who must go; never looks
 * at what a client sent.
 */
#include "listener/pool.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/proc.h"
#include "listener/conn.h"
#include "listener/listener.h"

#define TICK_US 100000
#define SLOTS_MAX 65535 /* a slot is 16 bits of a request's number */
#define LINGER_MAX 64
#define SLOW_BODY_US 1000000

TAILQ_HEAD(conns, conn);

static struct {
	struct conns list[POOL_COUNT];
	size_t count[POOL_COUNT];
	struct conn **slots;
	uint32_t nslots, free_hint;
	struct event tick;
	int ticking;
	int draining;
	void (*done)(void);
} pool;

static void
tick_cb(evutil_socket_t fd, short what, void *arg)
{
	uint64_t now = proc_now_us();
	struct conn *c, *next;
	int i;

	for (i = 0; i < POOL_COUNT; i++)
		TAILQ_FOREACH_SAFE(c, &pool.list[i], entry, next)
			conn_tick(c, now);
}

void
pool_init(struct event_base *base)
{
	int i;

	for (i = 0; i < POOL_COUNT; i++)
		TAILQ_INIT(&pool.list[i]);
	if (event_assign(&pool.tick, base, -1, EV_PERSIST, tick_cb, NULL) == -1)
		fatalx("event_assign");
}

/* The clock runs only while there is somebody to wait for. */
static void
set_tick(void)
{
	static const struct timeval tv = {0, TICK_US};
	size_t n = pool.count[POOL_PRE] + pool.count[POOL_AUTH] +
		   pool.count[POOL_LINGER];

	if (n > 0 && !pool.ticking)
		pool.ticking = event_add(&pool.tick, &tv) == 0;
	else if (n == 0 && pool.ticking) {
		event_del(&pool.tick);
		pool.ticking = 0;
	}
	if (n == 0 && pool.draining && pool.done != NULL)
		pool.done();
}

static int
more_slots(void)
{
	uint32_t n = pool.nslots == 0 ? 64 : pool.nslots * 2;
	struct conn **p;

	if (n > SLOTS_MAX)
		n = SLOTS_MAX;
	if (n == pool.nslots)
		return -1;
	p = recallocarray(pool.slots, pool.nslots, n, sizeof(struct conn *));
	if (p == NULL)
		return -1;
	pool.free_hint = pool.nslots;
	pool.slots = p;
	pool.nslots = n;
	return 0;
}

static int
take_slot(struct conn *c)
{
	uint32_t i, s;

	for (i = 0; i < pool.nslots; i++) {
		s = (pool.free_hint + i) % pool.nslots;
		if (pool.slots[s] == NULL)
			break;
	}
	if (i == pool.nslots) {
		if (more_slots() == -1)
			return -1;
		s = pool.free_hint;
	}
	pool.slots[s] = c;
	pool.free_hint = s + 1 == pool.nslots ? 0 : s + 1;
	c->slot = s;
	return 0;
}

int
pool_add(struct conn *c)
{
	if (take_slot(c) == -1)
		return -1;
	c->pool = POOL_PRE;
	TAILQ_INSERT_TAIL(&pool.list[POOL_PRE], c, entry);
	pool.count[POOL_PRE]++;
	set_tick();
	return 0;
}

void
pool_remove(struct conn *c)
{
	pool.slots[c->slot] = NULL;
	pool.free_hint = c->slot;
	TAILQ_REMOVE(&pool.list[c->pool], c, entry);
	pool.count[c->pool]--;
	set_tick();
}

void
pool_move(struct conn *c, enum conn_pool to)
{
	struct conn *old;

	TAILQ_REMOVE(&pool.list[c->pool], c, entry);
	pool.count[c->pool]--;
	c->pool = to;
	TAILQ_INSERT_TAIL(&pool.list[to], c, entry);
	pool.count[to]++;
	if (to == POOL_LINGER && pool.count[to] > LINGER_MAX) {
		old = TAILQ_FIRST(&pool.list[to]);
		conn_kill(old, FIN_CLIENT_GONE);
	}
}

struct conn *
pool_find(uint32_t slot)
{
	return slot < pool.nslots ? pool.slots[slot] : NULL;
}

static int
is_idle(const struct conn *c)
{
	return c->state == CONN_IDLE || c->state == CONN_HEAD;
}

/* It has its answers and does not read them. */
static int
is_deaf(const struct conn *c)
{
	return c->state == CONN_SEND;
}

static int
kill_first(int (*is)(const struct conn *), enum conn_pool in)
{
	struct conn *c;

	TAILQ_FOREACH(c, &pool.list[in], entry)
		if (is(c)) {
			conn_kill(c, FIN_CLIENT_GONE);
			return 0;
		}
	return -1;
}

int
pool_make_room(void)
{
	if (pool.count[POOL_PRE] < lconf.max_pre_auth)
		return 0;
	if (kill_first(is_idle, POOL_PRE) == 0)
		return 0;
	return kill_first(is_deaf, POOL_PRE);
}

/* Who drips a body in may not keep others out: the one that was waited for
 * longest, when that is longer than any fair client needs. */
static struct conn *
slowest_body(void)
{
	uint64_t most = SLOW_BODY_US, w, now = proc_now_us();
	struct conn *c, *slow = NULL;

	TAILQ_FOREACH(c, &pool.list[POOL_AUTH], entry)
		if (c->state == CONN_BODY &&
		    (w = conn_body_waited(c, now)) >= most) {
			most = w;
			slow = c;
		}
	return slow;
}

int
pool_promote(struct conn *c, size_t max)
{
	struct conn *old;

	if (c->pool == POOL_AUTH)
		return 0;
	if (pool.count[POOL_AUTH] >= max) {
		TAILQ_FOREACH(old, &pool.list[POOL_AUTH], entry)
			if (is_idle(old))
				break;
		if (old == NULL && (old = slowest_body()) == NULL)
			return -1;
		conn_kill(old, FIN_CLIENT_GONE);
	}
	pool_move(c, POOL_AUTH);
	return 0;
}

void
pool_drain(void (*done)(void))
{
	struct conn *c, *next;
	int i;

	pool.draining = 1;
	for (i = 0; i < POOL_COUNT; i++)
		TAILQ_FOREACH_SAFE(c, &pool.list[i], entry, next)
			if (is_idle(c))
				conn_kill(c, FIN_CLIENT_GONE);
	pool.done = done;
	set_tick();
}

void
pool_kill_all(void)
{
	struct conn *c, *next;
	int i;

	pool.done = NULL;
	for (i = 0; i < POOL_COUNT; i++)
		TAILQ_FOREACH_SAFE(c, &pool.list[i], entry, next)
			conn_kill(c, FIN_CANCELLED);
}

int
pool_draining(void)
{
	return pool.draining;
}
