/*
 * SPDX-License-Identifier: ISC
 *
 * Stands in for pathd in abxctl: holds the roots and walks.  It sees the
 * files with the rights of whoever runs abxctl.
 */
#include "monitor/ctl/facts.h"

#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int
root_open(struct walk_root *r, uint32_t id, const char *path)
{
	struct stat st;

	*r = (struct walk_root){.id = id, .fd = -1};
	if ((r->conf = strdup(path)) == NULL)
		return -1;
	r->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r->fd == -1 || fstat(r->fd, &st) == -1) {
		r->err = errno;
		return 0;
	}
	r->dev = st.st_dev;
	r->ino = st.st_ino;
	if ((r->path = realpath(path, NULL)) == NULL)
		r->err = errno;
	return r->err == ENOMEM ? -1 : 0;
}

int
facts_open(struct walk_roots *roots, struct policy *policy)
{
	struct policy_root pr;
	struct walk_root *r;
	size_t i, n = policy_nroots(policy);

	memset(roots, 0, sizeof(*roots));
	if ((roots->v = calloc(n + 1, sizeof(*roots->v))) == NULL)
		return -1;
	for (i = 0; i < n; i++) {
		policy_root(policy, i, &pr);
		r = &roots->v[roots->n++];
		if (root_open(r, (uint32_t)i, pr.path) == -1)
			return -1;
		if (r->path != NULL &&
		    policy_set_root(policy, i, r->path) == -1)
			return -1;
	}
	return 0;
}

void
facts_close(struct walk_roots *roots)
{
	size_t i;

	for (i = 0; i < roots->n; i++) {
		if (roots->v[i].fd != -1)
			close(roots->v[i].fd);
		free(roots->v[i].conf);
		free(roots->v[i].path);
	}
	free(roots->v);
	memset(roots, 0, sizeof(*roots));
}

/* Before the first start there is no directory for workspaces, and so nothing
 * in it: 1 with the facts of that, 0 when this is not so, -1 out of memory. */
static int
not_made(
    const struct walk_roots *roots, const struct plan_item *it, struct facts *f)
{
	const struct walk_root *r;
	const char *p;
	size_t n;

	if (it->nrefs != 1 || it->refs[0].sub[0] == '\0' ||
	    (r = walk_root(roots, it->refs[0].root)) == NULL || r->fd != -1 ||
	    r->err != ENOENT)
		return 0;
	n = strlen(r->conf) + 1 + strlen(it->refs[0].sub);
	memset(f, 0, sizeof(*f));
	f->rel = (uint16_t)n;
	if (strlen(it->path) < n)
		return 0;
	for (f->missing = 1, p = it->path + n; *p != '\0'; p++)
		f->missing += *p == '/';
	f->path = strdup(it->path);
	return f->path == NULL ? -1 : 1;
}

int
facts_walk(
    const struct walk_roots *roots, const struct plan *plan, struct facts **out)
{
	struct resolve_item item;
	struct facts *v;
	size_t i;
	int fd = -1, r;

	*out = NULL;
	if (plan->nitems == 0)
		return 0;
	if ((v = calloc(plan->nitems, sizeof(*v))) == NULL)
		return -1;
	for (i = 0; i < plan->nitems; i++) {
		item = (struct resolve_item){
		    .path = plan->items[i].path,
		    .nofollow = (uint8_t)plan->items[i].nofollow,
		    .refs = plan->items[i].refs,
		    .nrefs = plan->items[i].nrefs,
		};
		r = not_made(roots, &plan->items[i], &v[i]);
		if (r == -1 || (r == 0 && walk_resolve(roots, &item, WALK_FACTS,
					      &v[i], &fd) == -1)) {
			facts_free(v, i + 1);
			return -1;
		}
	}
	*out = v;
	return 0;
}

void
facts_free(struct facts *v, size_t n)
{
	size_t i;

	for (i = 0; v != NULL && i < n; i++)
		facts_clear(&v[i]);
	free(v);
}
