/*
 * SPDX-License-Identifier: ISC
 *
 * The life of a child process, the same for all: exec, read CONF and
 * descriptors from fd 3, open what it needs, groups, gid, uid, PDEATHSIG and a
 * check that the parent lives, no_new_privs, Landlock, DUMPABLE 0, seccomp,
 * READY, START, loop.  A program fills struct proc_ops and calls proc_main.
 */
#ifndef ABX_PROC_H
#define ABX_PROC_H

#include "common/chan.h"
#include "common/jail.h"
#include "common/msg.h"
#include "common/payload.h"

struct event_base;

struct proc_ops {
	const char *name; /* "abx-pathd" */
	/* Decode the program's part of CONF; must consume all of it.  0/-1. */
	int (*conf)(const struct proc_conf *, struct rbuf *);
	/* A descriptor before CONF; taken on 0.  NULL: none is expected. */
	int (*fd)(enum proc_fd kind, uint32_t index, int fd);
	/* Open what is needed while still privileged.  fatal on failure. */
	void (*open)(const struct proc_conf *);
	/* Fill in what is confined and how; called before ids change. */
	void (*jail)(const struct proc_conf *, struct jail *);
	/* Optional: runs with the final ids, before Landlock and seccomp; may
	 * open things as that user and add paths to the jail. */
	void (*opened)(const struct proc_conf *, struct jail *);
	/* Start work: mon is the channel's socket to the monitor (-1 in the
	 * monitor itself, whose peers come by handler).  fatal on failure. */
	void (*start)(struct event_base *, int mon);
	/* Messages of the parent that proc does not handle itself (monitor
	 * only; NULL elsewhere).  As chan_msg_cb. */
	int (*parent_msg)(struct imsg *);
	/* SHUTDOWN or SIGTERM: end soon; exit by proc_exit.  NULL: at once. */
	void (*shutdown)(void);
	/* 1: use poll instead of epoll (epoll watches are counted by uid and
	 * shared with commands). */
	int use_poll;
};

/* Never returns to the caller with the loop running; the exit status. */
int proc_main(const struct proc_ops *, int argc, char **argv);
/* Leave the loop and exit with this status. */
void proc_exit(int status);
/* Send to the parent (monitor's wires 0x02x).  0 or -1. */
int proc_tell(uint16_t type, int fd, const void *payload, size_t len);
/* The monotonic clock in microseconds. */
uint64_t proc_now_us(void);
/* This child's generation, from CONF. */
uint32_t proc_generation(void);

#endif
