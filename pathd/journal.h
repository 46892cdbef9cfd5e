/*
 * SPDX-License-Identifier: ISC
 *
 * Temporary names that a crash could leave behind, written down before they
 * are made.
 */
#ifndef ABX_PATHD_JOURNAL_H
#define ABX_PATHD_JOURNAL_H

#include <sys/types.h>

#include "pathd/beneath.h"
#include "pathd/pathd.h"

#define JOURNAL_NAME_LEN OURS_LEN   /* no NUL */
#define JOURNAL_LARGE (1024 * 1024) /* bytes after which to sweep */
/* Bytes after which no more is said about a name, and after twice as many no
 * name is added: it lies beside the audit log, one archive may bring a million
 * of long names, and a start takes a minute for some hundred MiB of it. */
#define JOURNAL_MAX (128 * 1024 * 1024)

/* A fresh temporary name; out is JOURNAL_NAME_LEN + 1 bytes. */
void journal_name(char *out);
/* 1 when it has the form of such a name. */
int journal_is_name(const char *);

/* Write down that name, in the directory dir beneath root, is about to become
 * the inode ino (0: one that is not made yet), and hold off sweeps until
 * journal_done.  full is the path of the target below the root.  Without a
 * journal nothing happens.  0, or -1 with errno. */
int journal_add(const struct pathd *, const struct walk_root *,
    const char *full, int dir, const char *name, ino_t ino);
void journal_done(const struct pathd *);
/* Write more down about a name that journal_add has: what undo_again will read
 * as soon as sweeps come to it, before the name goes.  0, or -1 with errno. */
int journal_more(const struct pathd *, const struct walk_root *,
    const char *full, int dir, const char *name, ino_t ino, const char *text);

/* 1 while another process holds sweeps off. */
int journal_busy(const struct pathd *);
/* Remove what is written down and still there as the same inode, trees
 * included, then empty the journal; skipped when a commit is under way.
 * Returns how many names were removed. */
size_t journal_sweep(const struct pathd *);
/* Bytes of it: 0 right after a sweep, and without one. */
off_t journal_size(const struct pathd *);

#endif
