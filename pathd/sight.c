/*
 * SPDX-License-Identifier: ISC
 *
 * Entries judged again (design: paths, "Use"): what is denied, and links that
 * lead out of the asking roots or to something denied, are not for the
 * caller.  Never follows a link but by the walk that facts come from.
 */
#include <sys/stat.h>

#include <string.h>

#include "pathd/beneath.h"
#include "pathd/sight.h"

int
sight_new(struct sight *s, const struct pathd *pd, const struct rootref *refs,
    size_t nrefs, uint16_t flags, const struct strlist *deny)
{
	memset(s, 0, sizeof(*s));
	s->pd = pd;
	s->refs = refs;
	s->nrefs = nrefs;
	s->flags = flags;
	return deny_new(&s->deny, deny);
}

void
sight_clear(struct sight *s)
{
	deny_clear(&s->deny);
	memset(s, 0, sizeof(*s));
}

/* missing: it may lead to what does not exist. */
static int
link_ok(const struct sight *s, const char *path, int missing)
{
	struct resolve_item it = {.refs = NULL, .nrefs = s->nrefs};
	struct rootref refs[ABX_MAX_ROOTREFS];
	char copy[ABX_PATH_MAX + 1];
	struct facts f;
	size_t i;
	int ok;

	if ((s->flags & PF_NOSYMLINKS) != 0 || s->nrefs > nitems(refs) ||
	    strlcpy(copy, path, sizeof(copy)) >= sizeof(copy))
		return 0;
	memcpy(refs, s->refs, s->nrefs * sizeof(*refs));
	it.path = copy;
	it.refs = refs;
	if (walk_resolve(&s->pd->roots, &it, WALK_FACTS, &f, NULL) == -1)
		return 0;
	ok = f.status == FS_OK && !deny_covers(&s->deny, f.path) &&
	     (missing || f.missing == 0);
	for (i = 0; ok && i < f.via.n; i++)
		ok = !deny_covers(&s->deny, f.via.v[i]);
	facts_clear(&f);
	return ok;
}

int
sight_entry(const struct sight *s, const char *path, const struct stat *st)
{
	const char *name = strrchr(path, '/');

	/* what is being made is nobody's yet */
	if (name != NULL && beneath_is_ours(name + 1, strlen(name + 1)))
		return 0;
	if (deny_covers(&s->deny, path))
		return 0;
	return !S_ISLNK(st->st_mode) || link_ok(s, path, 1);
}

int
sight_leads(const struct sight *s, const char *path)
{
	return link_ok(s, path, 0);
}

int
sight_content(const struct sight *s, const struct stat *st)
{
	return S_ISREG(st->st_mode) &&
	       (st->st_nlink <= 1 || (s->flags & PF_HARDLINKS) != 0);
}
