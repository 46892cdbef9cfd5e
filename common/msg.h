/*
 * SPDX-License-Identifier: ISC
 *
 * The table of messages (msg.def) and the check that every receiver makes
 * first: known type, size within bounds, descriptor present exactly when
 * announced and of the announced kind.  Whether a message is permitted now is
 * the gate's business (monitor/gate.c), not known here.
 */
#ifndef ABX_MSG_H
#define ABX_MSG_H

#include "common/imsg.h"

enum msg_type {
#define MSG(sym, num, min, max, fdk) sym = num,
#include "common/msg.def"
#undef MSG
	MSG_NONE = 0
};

enum fd_kind {
	FDK_NONE, /* none may come */
	FDK_ANY,  /* one must come, of any kind (parent only) */
	FDK_SOCKET,
	FDK_MEMFD, /* sealed: SHRINK, GROW, WRITE and SEAL */
	FDK_MEMFD_OPT,
	FDK_FILE_R,   /* regular file, opened read-only */
	FDK_PIPE_R,   /* pipe, read end */
	FDK_PIPE_W,   /* pipe, write end */
	FDK_DIR,      /* directory, O_PATH or read-only */
	FDK_ANS_OPT,  /* none, FILE_R, PIPE_R or PIPE_W */
	FDK_FACTS_OPT /* none, FILE_R or DIR */
};

/* Kinds of PC_FD. */
enum proc_fd {
	PFD_LISTEN = 1, /* listening socket, index into the listen list */
	PFD_JOURNAL,	/* append-only file in the state directory */
	PFD_CONTROL,	/* control socket */
	PFD_CGROUP,	/* directory that execd makes groups of runs in */
	PFD_SESSIONS	/* lines about workspaces: 0 to read, 1 to append to */
};

/* The processes, as they are named in CHILD_UP. */
enum proc_kind {
	PROC_PARENT,
	PROC_LISTENER,
	PROC_MONITOR,
	PROC_PATHD,
	PROC_EXECD,
	PROC_LOADER,
	PROC_COUNT
};

/* The number of a request towards pathd and execd says in its upper bits whose
 * it is, 0 nobody's; pathd is fair by it and knows no more of callers. */
#define ID_OWNER_SHIFT 48
#define ID_OWNER(id) ((id) >> ID_OWNER_SHIFT)

struct msg_row {
	uint16_t type;
	const char *name;
	uint32_t min, max;
	enum fd_kind fd;
};

/* The row of a type, or NULL. */
const struct msg_row *msg_row(uint16_t type);
/* The name of a type for logs; never NULL. */
const char *msg_name(uint16_t type);
/* What a descriptor really is, asked from the kernel: FDK_SOCKET,
 * FDK_MEMFD, FDK_FILE_R, FDK_PIPE_R, FDK_PIPE_W, FDK_DIR or FDK_ANY for
 * anything else. */
enum fd_kind msg_fd_kind(int fd);
/* 0 when the message fits its row (size and descriptor), else -1 and *why is
 * a constant sentence. */
int msg_check(struct imsg *, const char **why);
/* Name of a process kind, "abx-pathd" and so on. */
const char *proc_name(enum proc_kind);

#endif
