/*
 * SPDX-License-Identifier: ISC
 *
 * What the files of the parent (abxd) share.  The parent starts, restarts and
 * stops the other processes, takes or binds sockets and opens audit files.  It
 * parses no configuration and reads not one byte that came from a client.
 */
#ifndef ABX_PARENT_H
#define ABX_PARENT_H

#include <sys/types.h>

#include "common/chan.h"
#include "common/msg.h"
#include "common/payload.h"

struct event;
struct event_base;

/* Command line. */
struct options {
	const char *file;	   /* -f, or NULL */
	const char *preset, *root; /* -p, -r */
	const char *listen;	   /* --listen */
	int foreground;		   /* -d */
	int check_only;		   /* -n */
	int require_auth;
};

/* Ids that a process is given. */
struct ids {
	uid_t uid;
	gid_t gid;
};

/* One child and its restarts. */
struct child {
	enum proc_kind kind;
	pid_t pid;	   /* -1: not running */
	struct chan *chan; /* fd 3 of the child, NULL when not running */
	uint32_t generation;
	int ready;	     /* READY came, START was sent */
	uint64_t starts[32]; /* times of the last restarts, microseconds */
	size_t nstarts;
	struct event *timer; /* pending restart */
};

struct parent {
	struct options opt;
	int root;     /* started as root */
	char *libdir; /* directory of the sibling programs */
	struct boot boot;
	int policy; /* sealed memfd for the monitor, -1 once handed on */
	struct ids ids[PROC_COUNT];
	int *socks; /* listening sockets */
	size_t nsocks;
	int *audit; /* descriptors of the sinks, -1 once handed on */
	struct event_base *base;
	struct child kids[PROC_COUNT];
	int stopping;	 /* 0, or the stage of shutdown */
	int workers_up;	 /* the monitor has its roots and its sandbox */
	int announced;	 /* ready was said */
	int status;	 /* exit status */
	int daemon_pipe; /* tells the starter how it went, -1: none */
};

/* boot.c: run the loader once.  0, or -1 when the configuration may not be
 * started (findings were written to stderr). */
int boot_load(struct parent *);
/* Look users up, make directories, open audit sinks.  0 or -1 (logged). */
int boot_prepare(struct parent *);
/* A new descriptor of audit sink i, or -1 with errno. */
int boot_open_audit(const struct parent *, size_t i);

/* sock.c: take (LISTEN_FDS) or bind every listening socket.  0 or -1. */
int sock_open(struct parent *);
/* Tell the service manager (sd_notify(3)), when there is one. */
void sock_notify(const char *text);
/* Read NOTIFY_SOCKET and LISTEN_FDS; before the environment is cleared. */
void sock_environ(void);
/* "127.0.0.1:8765 /run/x" of the sockets, for the log. */
void sock_names(const struct parent *, char *out, size_t size);

/* spawn.c: fork (or clone into new namespaces) and exec a sibling program with
 * fd as its descriptor 3; argv and envp as for execve.  The pid, or -1. */
pid_t spawn_child(const struct parent *, enum proc_kind, int fd,
    char *const argv[], char *const envp[]);

/* parent.c: start everything and run the loop; the exit status. */
int parent_run(struct parent *);

#endif
