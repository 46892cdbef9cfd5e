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

int
facts_walk(
    const struct walk_roots *roots, const struct plan *plan, struct facts **out)
{
	struct resolve_item item;
	struct facts *v;
	size_t i;
	int fd = -1;

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
		if (walk_resolve(roots, &item, WALK_FACTS, &v[i], &fd) == -1) {
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
