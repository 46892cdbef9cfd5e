/*
 * SPDX-License-Identifier: ISC
 *
 * Remembers directories by device, inode and times, a bounded number below
 * each of a few trees.  Knows no paths: what is found is what the directory
 * holds wherever it lies now.  Owns its texts; touches no file, and is
 * forgotten with this process.
 */
#include "common/recall.h"

#include <stdlib.h>
#include <string.h>

#include "common/abx.h"

#define EACH (sizeof(struct recall_dir) + 16) /* with what malloc adds */
#define NS 1000000000

struct recall_tree {
	void *key;
	size_t klen, max;
	uint64_t turn; /* of its last walk, 0: never */
	struct recall_dir *v;
	size_t n, cap;
	size_t sorted; /* so many of the first are in order */
	size_t bytes;  /* of those that this walk uses */
};
static struct recall_tree trees[RECALL_TREES];
static uint64_t turns;

int
recall_settled(
    const struct recall_id *id, const struct timespec *now, uint64_t ns)
{
	struct timespec t = id->ctime;

	/* where 32 bits end every later change has the same */
	if (t.tv_sec == INT32_MAX)
		return 0;
	t.tv_sec += (time_t)(ns / NS);
	t.tv_nsec += (long)(ns % NS);
	if (t.tv_nsec >= NS) {
		t.tv_sec++;
		t.tv_nsec -= NS;
	}
	return t.tv_sec < now->tv_sec ||
	       (t.tv_sec == now->tv_sec && t.tv_nsec < now->tv_nsec);
}

/* ---- one tree ---- */

/* All its directories. */
static void
tree_forget(struct recall_tree *t)
{
	while (t->n > 0)
		free(t->v[--t->n].text);
	t->sorted = t->bytes = 0;
}

static void
tree_clear(struct recall_tree *t)
{
	tree_forget(t);
	free(t->v);
	free(t->key);
	memset(t, 0, sizeof(*t));
}

static int
place_cmp(const void *a, const void *b)
{
	const struct recall_dir *x = a, *y = b;

	if (x->id.dev != y->id.dev)
		return x->id.dev < y->id.dev ? -1 : 1;
	if (x->id.ino != y->id.ino)
		return x->id.ino < y->id.ino ? -1 : 1;
	return 0;
}

static int
same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static int
same_state(const struct recall_id *a, const struct recall_id *b)
{
	return a->mount == b->mount && same_time(&a->ctime, &b->ctime) &&
	       same_time(&a->mtime, &b->mtime);
}

/* The tree of that key, or NULL. */
static struct recall_tree *
tree_of(const void *key, size_t len)
{
	size_t i;

	for (i = 0; i < nitems(trees); i++)
		if (trees[i].turn != 0 && trees[i].klen == len &&
		    memcmp(trees[i].key, key, len) == 0)
			return &trees[i];
	return NULL;
}

/* The oldest, which an unused one is; used: of those that are not. */
static struct recall_tree *
tree_oldest(int used)
{
	struct recall_tree *t = NULL;
	size_t i;

	for (i = 0; i < nitems(trees); i++)
		if ((!used || trees[i].turn != 0) &&
		    (t == NULL || trees[i].turn < t->turn))
			t = &trees[i];
	return t;
}

/* Bytes of all trees. */
static size_t
total(void)
{
	size_t i, n = 0;

	for (i = 0; i < nitems(trees); i++)
		n += trees[i].bytes + trees[i].klen;
	return n;
}

struct recall_tree *
recall_begin(const void *key, size_t len, size_t max)
{
	struct recall_tree *t = tree_of(key, len);

	if (t == NULL) {
		t = tree_oldest(0);
		tree_clear(t);
		if ((t->key = malloc(len)) == NULL)
			return NULL;
		memcpy(t->key, key, len);
		t->klen = len;
	}
	t->max = max;
	t->turn = ++turns;
	t->bytes = 0;
	return t;
}

int
recall_empty(const struct recall_tree *t)
{
	return t->sorted == 0;
}

/* The first of those of that device and inode, which may have been remembered
 * at several moments or places; NULL: none. */
static struct recall_dir *
first_of(const struct recall_tree *t, const struct recall_id *id)
{
	struct recall_dir key = {.id = *id}, *d = NULL;

	if (t->sorted > 0)
		d = bsearch(&key, t->v, t->sorted, sizeof(*d), place_cmp);
	while (d != NULL && d > t->v && place_cmp(d - 1, &key) == 0)
		d--;
	return d;
}

const struct recall_dir *
recall_find(struct recall_tree *t, const struct recall_id *id,
    int (*fits_cb)(const struct recall_dir *, const void *arg), const void *arg)
{
	const struct recall_dir key = {.id = *id};
	struct recall_dir *d, *end = t->v + t->sorted;

	if ((d = first_of(t, id)) == NULL)
		return NULL;
	while (!same_state(&d->id, id) || (fits_cb != NULL && !fits_cb(d, arg)))
		if (++d == end || place_cmp(d, &key) != 0)
			return NULL;
	if (!d->used && t->bytes + EACH + d->len <= t->max) {
		d->used = 1;
		t->bytes += EACH + d->len;
	}
	return d;
}

/* Room for one more: 0 or -1. */
static int
grow(struct recall_tree *t)
{
	size_t cap = t->cap == 0 ? 16 : 2 * t->cap;
	struct recall_dir *v;

	if (t->n < t->cap)
		return 0;
	if ((v = reallocarray(t->v, cap, sizeof(*v))) == NULL)
		return -1;
	t->v = v;
	t->cap = cap;
	return 0;
}

void
recall_keep(struct recall_tree *t, const struct recall_dir *d)
{
	char *text = NULL;

	if (t->bytes + EACH + d->len > t->max || grow(t) == -1)
		return;
	if (d->len > 0) {
		if ((text = malloc(d->len)) == NULL)
			return;
		memcpy(text, d->text, d->len);
	}
	t->v[t->n] = *d;
	t->v[t->n].text = text;
	t->v[t->n++].used = 1;
	t->bytes += EACH + d->len;
}

void
recall_end(struct recall_tree *t)
{
	size_t i, n = 0, sorted = 0;
	struct recall_tree *old;
	struct recall_dir *v;

	for (i = 0; i < t->n; i++) {
		if (!t->v[i].used) {
			free(t->v[i].text);
			continue;
		}
		t->v[n] = t->v[i];
		t->v[n++].used = 0;
		if (i < t->sorted)
			sorted = n;
	}
	t->n = t->sorted = n;
	/* qsort(3) would ask the kernel for the size of memory */
	if (sorted < n && heapsort(t->v, n, sizeof(*t->v), place_cmp) == -1) {
		tree_forget(t);
		return;
	}
	if (n > 0 && n < t->cap &&
	    (v = reallocarray(t->v, n, sizeof(*v))) != NULL) {
		t->v = v;
		t->cap = n;
	}
	/* this one is the youngest, and not too much by itself */
	while (total() > RECALL_TOTAL && (old = tree_oldest(1)) != t)
		tree_clear(old);
}

void
recall_clear(void)
{
	size_t i;

	for (i = 0; i < nitems(trees); i++)
		tree_clear(&trees[i]);
}
