/*
 * SPDX-License-Identifier: ISC
 *
 * The mount namespace that execd and every sandbox live in.
 */
#ifndef ABX_EXECD_MOUNTS_H
#define ABX_EXECD_MOUNTS_H

#include "common/payload.h"

#define MOUNTS_LAUNCHER "/run/abx-launch"
/* What covers are made of: nothing is in them. */
#define MOUNTS_EMPTY_DIR "/run/abx-empty"
#define MOUNTS_EMPTY_FILE "/run/abx-empty.file"

struct mounts_conf {
	const struct boot_path *binds; /* shown at their canonical paths */
	size_t nbinds;
	const struct strlist *protect; /* never shown, whatever lies above */
	const char *launcher;	       /* host path of abx-launch */
	uid_t uid;		       /* what the sandbox's passwd says */
	gid_t gid;
};

/*
 * Build the namespace and enter it (design: architecture).  Must be called
 * in a mount and pid namespace of its own, with CAP_SYS_ADMIN over them.  A
 * bind that does not exist is logged and left out; everything else that
 * fails is fatal.  0, or the errno of mounting /proc: nothing can run then.
 */
int mounts_enter(const struct mounts_conf *);

#endif
