/*
 * SPDX-License-Identifier: ISC
 *
 * What a platform must offer to run programs in a sandbox.  The job table
 * knows nothing else of it; Linux's is spawn.c.
 */
#ifndef ABX_EXECD_DRIVER_H
#define ABX_EXECD_DRIVER_H

#include "common/payload.h"
#include "execd/profile.h"

/* A sandbox that was started: its outermost process, whose death ends it,
 * and what the launcher inside speaks on. */
struct sandbox {
	pid_t pid;
	int sock; /* SEQPACKET, the launcher's status socket */
	int err;  /* pipe, what the sandbox's builder complains about; or -1 */
};

struct driver {
	const char *name;
	/* Begin to look whether the tools are there and able, once, after
	 * confinement. */
	void (*check_begin)(void);
	/* What came of it.  0, or -1 and text says what is missing. */
	int (*check)(char *text, size_t size);
	/* The launcher's set-up for these binds: 0, or -1 with errno. */
	int (*profile_for)(const struct profile_binds *, struct xl_setup *);
	/* Start a sandbox whose launcher waits for XL_SETUP, from its first
	 * process on in the control group (a directory, -1: where this process
	 * is).  Non-blocking ends in *out.  0, or -1 with errno. */
	int (*run)(
	    const struct profile_binds *, int group, struct sandbox *out);
};

extern const struct driver driver_bubblewrap;

/* Start-up of the Linux driver: compile the filters, look at the system's
 * directories, open the launcher.  tmp_size in bytes.  fatal on failure. */
void spawn_init(uint64_t tmp_size, uint32_t require);

#endif
