/*
 * SPDX-License-Identifier: ISC
 *
 * The table of processes.  A list: it is bounded, and nothing is looked up
 * more often than once a request.  Pure.
 */
#include "monitor/proctab.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

static int
owned(const struct proc *p, const char *owner, int known)
{
	return p->known == known && strcmp(p->owner, owner) == 0;
}

struct proc *
proctab_add(struct proctab *t, const char *owner, int known, uint64_t run,
    const uint8_t random[16])
{
	struct proc *p;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	if ((p->owner = strdup(owner)) == NULL ||
	    base64url_encode(random, 16, p->id, sizeof(p->id)) == -1) {
		free(p->owner);
		free(p);
		return NULL;
	}
	p->known = known;
	p->run = run;
	p->next = t->all;
	t->all = p;
	t->n++;
	return p;
}

void
proctab_remove(struct proctab *t, struct proc *p)
{
	struct proc **q;

	for (q = &t->all; *q != p; q = &(*q)->next)
		continue;
	*q = p->next;
	t->n--;
	free(p->owner);
	free(p);
}

/* How many an owner has, of which so many have not ended. */
static size_t
count(const struct proctab *t, const char *owner, int known, size_t *live)
{
	const struct proc *p;
	size_t n = 0;

	*live = 0;
	for (p = t->all; p != NULL; p = p->next)
		if (owned(p, owner, known)) {
			n++;
			*live += p->state != PROC_OVER;
		}
	return n;
}

/* That which ended first: of that owner, or, when there is none, of whoever has
 * most. */
static struct proc *
oldest(const struct proctab *t, const char *owner, int known)
{
	struct proc *p, *old = NULL;
	size_t n, live, most = 0;

	for (p = t->all; p != NULL; p = p->next) {
		if (p->state != PROC_OVER ||
		    (owner != NULL && !owned(p, owner, known)))
			continue;
		n = count(t, p->owner, p->known, &live);
		if (old == NULL || n > most ||
		    (n == most && p->ended_us < old->ended_us)) {
			old = p;
			most = n;
		}
	}
	return old;
}

int
proctab_room(
    const struct proctab *t, const char *owner, int known, struct proc **victim)
{
	const struct proc *p;
	size_t n, mine, live = 0;

	*victim = NULL;
	for (p = t->all; p != NULL; p = p->next)
		live += p->state != PROC_OVER;
	n = count(t, owner, known, &mine);
	/* nobody runs more than are left for all others: so some are */
	if (mine >= t->max - live)
		return -1;
	if (n < t->max_each && t->n < t->max)
		return 0;
	/* who has too many loses one of his own */
	*victim = oldest(t, n >= t->max_each ? owner : NULL, known);
	return *victim == NULL ? -1 : 1;
}

struct proc *
proctab_find(
    const struct proctab *t, const char *owner, int known, const char *id)
{
	struct proc *p;

	for (p = t->all; p != NULL; p = p->next)
		if (owned(p, owner, known) && p->state != PROC_STARTING &&
		    strcmp(p->id, id) == 0)
			return p;
	return NULL;
}

struct proc *
proctab_by_run(const struct proctab *t, uint64_t run)
{
	struct proc *p;

	for (p = t->all; p != NULL; p = p->next)
		if (p->run == run && p->state == PROC_RUNNING)
			return p;
	return NULL;
}

struct proc *
proctab_expired(const struct proctab *t, uint64_t now, uint64_t ttl)
{
	struct proc *p;

	for (p = t->all; p != NULL; p = p->next)
		if (p->state == PROC_OVER && now - p->ended_us >= ttl)
			return p;
	return NULL;
}

void
proctab_started(struct proc *p, uint32_t pid, int64_t sec, uint32_t ns)
{
	p->state = PROC_RUNNING;
	p->pid = pid;
	p->started = sec;
	p->started_ns = ns;
}

void
proctab_ended(struct proc *p, const struct run_end *e, uint64_t now)
{
	p->state = PROC_OVER;
	p->end = *e;
	p->ended_us = now;
	p->stdin_open = 0;
}
