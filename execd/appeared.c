/*
 * SPDX-License-Identifier: ISC
 *
 * Looks, when a run is over, for protected names that nothing could be
 * mounted on when it began (design: protected names).  Holds directories by
 * descriptor; changes nothing.
 */
#include "execd/appeared.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct entry {
	char *path; /* inside the sandbox, of the name */
	const char *name;
	int dir;	/* O_PATH, owned by the first entry that has it */
	int owner;	/* of dir */
	int from;	/* the caller's descriptor then */
	int link;	/* it was a link: */
	struct stat st; /* that one */
};
struct appeared {
	struct entry *v;
	size_t n;
	int partial;
};

static struct entry *
entry_new(struct appeared **a)
{
	struct entry *v;

	if (*a == NULL && (*a = calloc(1, sizeof(**a))) == NULL)
		return NULL;
	v = reallocarray((*a)->v, (*a)->n + 1, sizeof(*v));
	if (v == NULL)
		return NULL;
	(*a)->v = v;
	memset(&v[(*a)->n], 0, sizeof(*v));
	v[(*a)->n].dir = -1;
	return &v[(*a)->n];
}

int
appeared_watch(struct appeared **a, const char *inner, int dir,
    const char *name, const struct stat *st)
{
	struct entry *e, *last;

	if ((e = entry_new(a)) == NULL ||
	    asprintf(&e->path, "%s/%s", inner, name) == -1)
		return -1;
	e->name = e->path + strlen(inner) + 1;
	last = (*a)->n > 0 ? &(*a)->v[(*a)->n - 1] : NULL;
	if (last != NULL && last->from == dir)
		e->dir = last->dir;
	else if ((e->dir = fcntl(dir, F_DUPFD_CLOEXEC, 3)) == -1) {
		free(e->path);
		return -1;
	} else
		e->owner = 1;
	e->from = dir;
	if (st != NULL) {
		e->link = 1;
		e->st = *st;
	}
	(*a)->n++;
	return 0;
}

int
appeared_partial(struct appeared **a)
{
	if (*a == NULL && (*a = calloc(1, sizeof(**a))) == NULL)
		return -1;
	(*a)->partial = 1;
	return 0;
}

static int
changed(const struct entry *e)
{
	struct stat st;
	int there = fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0;

	if (!e->link || !there)
		return there != e->link;
	/* a link is never changed, only made anew, which its times tell */
	return st.st_dev != e->st.st_dev || st.st_ino != e->st.st_ino ||
	       st.st_ctim.tv_sec != e->st.st_ctim.tv_sec ||
	       st.st_ctim.tv_nsec != e->st.st_ctim.tv_nsec;
}

void
appeared_report(const struct appeared *a, struct run_end *e)
{
	size_t i, n;

	if (a != NULL && a->partial)
		e->flags |= END_PARTIAL;
	for (i = 0; a != NULL && i < a->n; i++) {
		if (!changed(&a->v[i]))
			continue;
		n = strlen(a->v[i].path) + 1;
		if (e->nappeared + n > sizeof(e->appeared)) {
			e->flags |= END_MORE_APPEARED;
			return;
		}
		memcpy(e->appeared + e->nappeared, a->v[i].path, n);
		e->nappeared += n;
	}
}

size_t
appeared_fds(const struct appeared *a)
{
	size_t i, n = 0;

	for (i = 0; a != NULL && i < a->n; i++)
		n += a->v[i].owner != 0;
	return n;
}

void
appeared_free(struct appeared *a)
{
	size_t i;

	if (a == NULL)
		return;
	for (i = 0; i < a->n; i++) {
		free(a->v[i].path);
		if (a->v[i].owner)
			close(a->v[i].dir);
	}
	free(a->v);
	free(a);
}
