/*
 * SPDX-License-Identifier: ISC
 *
 * Plays the parent and the monitor for one abx-execd, so that it can be tested
 * alone, and attacked.  Blocking; dies with a message when something is odd.
 */
#ifndef ABX_EXECD_PEER_H
#define ABX_EXECD_PEER_H

#include <sys/types.h>

#include "common/imsg.h"
#include "common/payload.h"

struct peer {
	pid_t pid; /* of execd */
	struct imsgbuf *parent, *mon;
	char ready[512]; /* what READY said */
	struct exec_hello hello;
	uint64_t next_id;
	struct {
		uint64_t id;
		struct run_end end;
	} ends[64]; /* that came while something else was awaited */
	size_t nends;
};

struct peer_conf {
	const char *build; /* directory of the programs */
	uid_t uid;	   /* to run as; started by root when we are */
	gid_t gid;
	const struct boot_path *binds;
	size_t nbinds;
	const char *const *protect; /* ends with NULL; may be NULL */
	uint32_t require;
	uint64_t tmp_size;
	const char *launcher; /* another one than the build's, or NULL */
	uint64_t idle_ms;     /* of sessions' sandboxes; 0: the usual */
	/* directory of a control group to make groups of runs in, whose group
	 * "self" execd goes into; or NULL */
	const char *group;
};

/* Start execd and take it to HELLO. */
void peer_start(struct peer *, const struct peer_conf *);
/* Kill it when it lives, and reap it.  The wait status. */
int peer_stop(struct peer *, int sig);

/* One run. */
struct run {
	const char *dir;	     /* bound and cwd, or NULL: "/" */
	int ro;			     /* bind it read-only */
	const char *inner;	     /* bind it there instead */
	const char *below;	     /* begin there, below dir; or NULL */
	const char *prog;	     /* NULL: look argv[0] up in /usr/bin */
	const char *const *argv;     /* ends with NULL */
	const char *const *env;	     /* ends with NULL; NULL: PATH only */
	const char *input;	     /* stdin; NULL: none */
	const struct covers *covers; /* below dir, or NULL */
	/* Called at HELD: 1 to go, 0 to cancel. */
	int (*held)(uint64_t id);
	struct spawn s; /* flags and limits; words are filled in */
	/* what came back */
	uint64_t id;
	int failed;
	struct spawn_failed fail;
	struct run_end end;  /* of the exit frame */
	struct run_end told; /* of ME_END */
	char *out, *err;     /* NUL-terminated, owned */
	size_t nout, nerr;
	uint64_t gap;  /* bytes that gap frames counted */
	int frames_fd; /* while it runs */
	double us;     /* from the SPAWN to the exit frame */
};
/* Send the spawn and wait for STARTED or FAILED: 0, or -1 and r->failed. */
int peer_spawn(struct peer *, struct run *);
/* An END came while something else was awaited: for peer_end. */
void peer_keep_end(struct peer *, const struct imsg *);
/* Read frames to the end, and END. */
void peer_finish(struct peer *, struct run *);
/* The first half of that, and the second: the id of an END. */
void run_frames(struct run *);
uint64_t peer_end(struct peer *, struct run_end *);
/* Both, and clear what was there before. */
void peer_run(struct peer *, struct run *);
void run_clear(struct run *);
/* Send a message without payload but these bytes. */
void peer_send(
    struct peer *, uint16_t type, uint64_t id, int fd, const void *, size_t);
/* The next message of execd to the monitor; 0 after ms without one. */
int peer_next(struct peer *, struct imsg *, int ms);

void __attribute__((noreturn, format(printf, 1, 2))) die(const char *, ...);

#endif
