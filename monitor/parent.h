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

/* One child. */
struct child {
	struct child *next; /* in the list of those that drain */
	enum proc_kind kind;
	pid_t pid;	   /* -1: not running */
	struct chan *chan; /* fd 3 of the child, NULL when not running */
	uint32_t generation;
	uint32_t epoch;	   /* the configuration it was started for */
	int ready;	   /* READY came */
	char posture[256]; /* what it said of its confinement then */
	/* its log lines: so many more may come, as of then; not taken */
	unsigned lines, lost_lines;
	uint64_t lines_at; /* microseconds */
};

/* The restarts of one kind of child. */
struct restarts {
	uint64_t at[1001]; /* times of the last ones, microseconds; one more
			    * than restart_limit can be */
	size_t n;
	struct event *timer; /* pending restart, or NULL */
};

/* What one run of the loader brought. */
struct load {
	struct boot boot;
	int policy;	 /* sealed memfd, -1: none or handed on */
	unsigned need;	 /* 1 << kind: a worker of its own */
	char text[4096]; /* first findings, for abxctl */
};

struct parent {
	struct options opt;
	int root;	  /* started as root */
	char *libdir;	  /* directory of the sibling programs */
	struct boot boot; /* the configuration in force */
	int policy;	  /* sealed memfd for the monitor, -1 once handed on */
	uint32_t epoch;	  /* of the configuration in force */
	struct ids ids[PROC_COUNT];
	int *socks; /* listening sockets */
	size_t nsocks;
	int control;	   /* listening control socket, -1: none or handed on */
	gid_t control_gid; /* whose members it admits, -1: nobody's */
	int *audit;	   /* descriptors of the sinks, -1 once handed on */
	struct event_base *base;
	struct child *kids[PROC_COUNT]; /* NULL: not running */
	/* that the monitor takes the worker of a kind for: one that a reload
	 * did not replace keeps its own, also when it is started again */
	uint32_t kid_epoch[PROC_COUNT];
	struct child *drain; /* serve only requests of an old policy */
	uint32_t generations[PROC_COUNT];
	struct restarts restarts[PROC_COUNT];
	/* a reload under way: its configuration and its own workers */
	struct load *next;
	uint32_t next_epoch;
	uint32_t next_ticket; /* of the last who asked before it began */
	int again;	      /* one was asked for meanwhile, or at the start */
	uint32_t asked;	      /* the last ticket of the monitor, PC_RELOAD */
	struct child *next_kids[PROC_COUNT];
	int stopping;	 /* 0, or the stage of shutdown */
	int workers_up;	 /* the monitor has its roots and its sandbox */
	int announced;	 /* ready was said */
	int status;	 /* exit status */
	int daemon_pipe; /* tells the starter how it went, -1: none */
};

/* boot.c: run the loader once, with this environment (NULL: our own, else a
 * reload).  0, or -1 when the configuration may not be started (findings were
 * written to stderr, the first also to text). */
int boot_load(struct parent *, struct load *, char *const *envp);
/* Look users up, make directories, open audit sinks.  0 or -1 (logged). */
int boot_prepare(struct parent *);
/* Make the directory for workspaces, when there is to be one.  0 or -1. */
int boot_workspaces(const struct parent *, const struct boot *);
/* A new descriptor of audit sink i, or -1 with errno. */
int boot_open_audit(const struct parent *, size_t i);

/* reload.c: read the configuration again.  What comes of it goes to the
 * monitor, the log and whoever asked. */
void reload_begin(struct parent *);
/* The monitor went over to the next policy, or could not. */
void reload_done(struct parent *, uint32_t epoch, int ok);
/* parent.c: start a process of that kind again after a pause, or give up. */
void parent_restart(struct parent *, enum proc_kind);
/* A worker that was started for the next policy died. */
void reload_child_died(struct parent *, enum proc_kind);
/* The monitor does not need that child any more. */
void reload_drained(struct parent *, enum proc_kind, uint32_t generation);

/* sock.c: take (LISTEN_FDS) or bind every listening socket.  0 or -1. */
int sock_open(struct parent *);
/* Bind the control socket into p->control, when there is a path.  0 or -1. */
int sock_control(struct parent *);
/* Remove the names of what was bound here, when the service ends. */
void sock_remove(const struct parent *);
void sock_remove_control(const struct parent *);
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

/* groups.c: make the control groups of the service, when its own was
 * delegated; before the first child. */
void groups_open(const struct parent *);
void groups_close(void);
/* Bound all commands together as the configuration says. */
void groups_bound(const struct boot *);
/* Put a new execd into its group: the directory that it makes groups in, a
 * new descriptor, or -1 when there are none. */
int groups_enter(pid_t);
/* Remove what an execd of that generation left. */
void groups_bury(uint32_t generation);

/* child.c: start a child of a kind for a configuration.  It is the caller's to
 * keep; NULL when it cannot be started now, which the log says. */
struct child *child_start(
    struct parent *, enum proc_kind, const struct boot *, uint32_t epoch);
/* Connect a ready child and the monitor with a fresh pair of sockets. */
void child_connect(struct parent *, struct child *);
/* Ask it to end; one that cannot be asked is killed.  NULL is fine. */
void child_shut(struct child *);
void child_free(struct child *);
/* Send a kind and a generation (and an epoch when it is not 0): 0, or -1 when
 * it cannot be sent.  fd is taken. */
int child_send(struct child *, uint16_t type, int fd, uint8_t kind,
    uint32_t generation, uint32_t epoch);
void child_send_audit(struct parent *, size_t i, int fd);
/* A message of a child arrived; its READY was seen (parent.c). */
int parent_says(struct child *, struct imsg *);

/* stop.c: stop in order, until the loop ends. */
void stop_begin(struct parent *);
/* Go on with it when the processes of the present stage are gone. */
void stop_next(struct parent *);
/* End at once with this status: nothing may go on without us. */
void stop_now(struct parent *, int status);
/* Kill a child, NULL is fine; and all of them. */
void stop_kill(const struct child *);
void stop_all(struct parent *);

/* parent.c: start everything and run the loop; the exit status. */
int parent_run(struct parent *);

#endif
