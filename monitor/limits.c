/*
 * SPDX-License-Identifier: ISC
 *
 * Token buckets and concurrency counters, keyed by principal, the selector of
 * the winning statement and its rate.  Buckets live in a bounded table; one
 * that is full again and holds no slot is forgotten first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/proc.h"
#include "monitor/mon.h"

#define MAX_SLOTS 4096
#define SLOT_BUCKETS 256

struct limit_slot {
	struct limit_slot *next;
	char *key; /* principal NUL selector NUL rate, as one allocation */
	size_t keylen;
	uint32_t used;	/* concurrency */
	double tokens;	/* left in the bucket */
	uint64_t stamp; /* when tokens was right, microseconds */
	uint32_t count; /* capacity the bucket was last used with */
	uint64_t period_ms;
};

static struct limit_slot *table[SLOT_BUCKETS];
static size_t nslots;

static void
refill(struct limit_slot *s, uint32_t count, uint64_t period_ms, uint64_t now)
{
	double add;

	if (s->count == 0)
		s->tokens = count;
	else {
		add = (double)(now - s->stamp) / 1000.0 * count /
		      (double)period_ms;
		s->tokens += add;
	}
	if (s->tokens > count)
		s->tokens = count;
	s->count = count;
	s->period_ms = period_ms;
	s->stamp = now;
}

/* Drop slots that nobody would miss. */
static void
sweep(uint64_t now)
{
	struct limit_slot **p, *s;
	size_t i;

	for (i = 0; i < SLOT_BUCKETS; i++)
		for (p = &table[i]; (s = *p) != NULL;) {
			if (s->count != 0)
				refill(s, s->count, s->period_ms, now);
			if (s->used == 0 && s->tokens >= s->count) {
				*p = s->next;
				free(s->key);
				free(s);
				nslots--;
			} else
				p = &s->next;
		}
}

/* Statements of one selector with another rate are another bucket: what one
 * gains in a second may be what the other has for an hour. */
static char *
key_of(const char *who, const struct decision *d, size_t *n)
{
	char *key;
	int len;

	len = asprintf(&key, "%s%c%s%c%" PRIu32 "/%" PRIu64, who, 0,
	    d->limit_key == NULL ? "" : d->limit_key, 0, d->rate_count,
	    d->rate_period_ms);
	*n = (size_t)len;
	return len == -1 ? NULL : key;
}

static struct limit_slot *
slot_get(const char *who, const struct decision *d, uint64_t now)
{
	struct limit_slot *s;
	size_t n, b;
	char *key;

	if ((key = key_of(who, d, &n)) == NULL)
		return NULL;
	b = fnv32(key, n) % SLOT_BUCKETS;
	for (s = table[b]; s != NULL; s = s->next)
		if (s->keylen == n && memcmp(s->key, key, n) == 0) {
			free(key);
			return s;
		}
	if (nslots >= MAX_SLOTS)
		sweep(now);
	if (nslots >= MAX_SLOTS || (s = calloc(1, sizeof(*s))) == NULL) {
		free(key);
		return NULL;
	}
	s->key = key;
	s->keylen = n;
	s->next = table[b];
	table[b] = s;
	nslots++;
	return s;
}

enum code
limit_take(struct req *r, uint32_t *retry)
{
	const struct decision *d = &r->dec;
	uint64_t now = proc_now_us();
	struct limit_slot *s;
	double wait;

	*retry = 1;
	if (d->rate_count == 0 && d->concurrency == 0)
		return C_OK;
	s = slot_get(r->who.id, d, now);
	if (s == NULL)
		return C_SRV_UNAVAILABLE;
	if (d->rate_count != 0) {
		refill(s, d->rate_count, d->rate_period_ms, now);
		if (s->tokens < 1.0) {
			wait = (1.0 - s->tokens) * (double)d->rate_period_ms /
			       d->rate_count / 1000.0;
			*retry = (uint32_t)wait + 1;
			return C_LIM_RATE;
		}
		s->tokens -= 1.0;
	}
	if (d->concurrency != 0) {
		if (s->used >= d->concurrency)
			return C_LIM_CONCURRENCY;
		s->used++;
		r->slot = s;
	}
	return C_OK;
}

void
limit_release(struct limit_slot *s)
{
	if (s != NULL && s->used > 0)
		s->used--;
}
