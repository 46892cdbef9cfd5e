/*
 * SPDX-License-Identifier: ISC
 *
 * Directories that come from outside, found again in execd's own mount
 * namespace, and the protected names in those that are writable.
 */
#ifndef ABX_EXECD_PROTECT_H
#define ABX_EXECD_PROTECT_H

#include "execd/profile.h"

/*
 * Add the directory fd (borrowed) at inner, which lies in the configured
 * directory root (NULL: not known).  Bubblewrap can only mount what its own
 * namespace holds, so the directory is opened again by the path that the
 * kernel gives for fd, no link on the way, and must be the same object.  A
 * directory inside a protected one is never writable.  0, or -1 with errno:
 * ESTALE when it is another or not to be seen, else as profile_bind.
 */
int protect_bind(struct profile_binds *, const struct strlist *names,
    const char *root, const char *inner, int fd, int rw);

/*
 * Add the protected names of the writable bind b->v[i] (design: protected
 * names): each that is there becomes read-only, or for ".git" its hooks and
 * configuration, and every directory on the way a mount point of its own, so
 * that it cannot be renamed.  For a link what it leads to is, when that lies
 * inside; a link in a directory above a name is ELOOP.  What is missing or a
 * link is watched (b->watch).  0, or -1 with errno.
 */
int protect_names(
    struct profile_binds *, const struct strlist *names, size_t i);

/* Make every directory on the way from the bind b->v[i] to rel (split in place)
 * a mount point of its own: the index of the last, or -1 with errno. */
ssize_t protect_way(struct profile_binds *, size_t i, char *rel);

/* Start-up: open what covers are made of.  fatal on failure. */
void protect_init(void);
/* Is it one of these? */
int protect_is_empty(uint64_t dev, uint64_t ino);
/*
 * Cover what must not be seen below the bind b->v[i] (design: sandbox, "Deny
 * globs reach programs too"): an empty file or an empty directory lies where
 * each entry is, and every directory on the way is a mount point of its own.
 * Each must still be the object that pathd found.  0, or -1 with errno: ESTALE
 * when it is another, ENFILE when there are too many.
 */
int protect_covers(struct profile_binds *, size_t i, const struct covers *);

/* Show a program's directory that nothing shows yet, read-only.  A directory
 * that execd does not see is not an error: the program is not found then. */
int protect_program(struct profile_binds *, const char *prog);

#endif
