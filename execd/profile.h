/*
 * SPDX-License-Identifier: ISC
 *
 * What one sandbox consists of, and its rendering as bubblewrap arguments and
 * as the launcher's set-up.  Pure.
 */
#ifndef ABX_EXECD_PROFILE_H
#define ABX_EXECD_PROFILE_H

#include "execd/launch/xl.h"

#define PROFILE_MAX_BINDS 1024
#define PROFILE_MAX_LINKS 8

/* Something outside that is mounted inside, by descriptor only. */
struct profile_bind {
	char *inner; /* absolute, normal, owned */
	int fd; /* O_PATH in execd's own mount namespace, owned; -1 absent */
	uint8_t rw;
	uint8_t cover;	   /* a protected name: no Landlock rule of its own */
	uint8_t git;	   /* it is a repository's ".git" itself */
	uint64_t dev, ino; /* what the launcher must find at inner */
};
struct profile_binds {
	struct profile_bind v[PROFILE_MAX_BINDS];
	size_t n;
	struct appeared *watch; /* names to look for afterwards, owned */
};
/* names: entries that are read-only whole wherever a bind is writable; of
 * ".git" only what makes git run programs is.  Where inner lies below root
 * (NULL or not above it: nowhere in particular): at or below a protected name,
 * or at ".git" itself. */
enum profile_place { PLACE_FREE, PLACE_GIT, PLACE_PROTECTED };
enum profile_place profile_place(
    const struct strlist *names, const char *root, const char *inner);

/* Take fd (set to -1 in the caller's hands by convention) and copy inner.  0,
 * or -1 with errno: EINVAL for a place that is the sandbox's own, ENFILE when
 * there are too many, EEXIST when the place is taken.  fd stays the caller's
 * on failure. */
int profile_bind(struct profile_binds *, const char *inner, int fd, int rw,
    int cover, uint64_t dev, uint64_t ino);
/* The bind of exactly that place, NULL when there is none; valid until the
 * next change. */
const struct profile_bind *profile_find(
    const struct profile_binds *, const char *inner);
/* The same, read-only, in place of what is there, and nothing below it: what
 * lies at inner is not to be seen. */
int profile_hide(struct profile_binds *, const char *inner, int fd,
    uint64_t dev, uint64_t ino);
/* Close and free. */
void profile_clear(struct profile_binds *);
/* Order them so that what lies above is mounted first. */
void profile_sort(struct profile_binds *);
/* Does a bind, or a directory of the system, show this path? */
int profile_shows(const struct profile_binds *, const char *path);

/* A name beside /usr: a link, or a directory when target is "". */
struct profile_link {
	char name[16];	 /* "/bin" */
	char target[64]; /* "usr/bin" */
};
/* What all sandboxes of this execd have in common. */
struct profile_base {
	struct profile_link links[PROFILE_MAX_LINKS];
	size_t nlinks;
	uint64_t tmp_size; /* bytes of /tmp */
	int landlock;	   /* the kernel has it */
};

/* The NUL-separated arguments for bubblewrap's --args.  Errors stick in the
 * writer. */
void profile_args(
    struct wbuf *, const struct profile_base *, const struct profile_binds *);
/* Add the Landlock paths and the checks to *s (filters and layers are left
 * alone): 0, or -1 when out of memory. */
int profile_setup(struct xl_setup *s, const struct profile_base *,
    const struct profile_binds *);

#endif
