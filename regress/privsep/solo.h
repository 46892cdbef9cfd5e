/*
 * SPDX-License-Identifier: ISC
 *
 * One real listener, pathd or execd, confined, whose parent and monitor are
 * played by the test.
 */
#ifndef ABX_SOLO_H
#define ABX_SOLO_H

#include "common/imsg.h"
#include "common/msg.h"
#include "common/payload.h"
#include "regress/privsep/stage.h"

struct solo {
	struct stage *st;
	enum proc_kind kind;
	pid_t pid; /* -1: not running */
	struct imsgbuf *up, *mon;
	int door;	/* listener: its listening socket */
	size_t logged;	/* lines, warnings and errors */
	char line[512]; /* the last of them */
};

/* Start it and lead it to work; one that runs is ended first. */
void solo_start(struct solo *, struct stage *, enum proc_kind);
void solo_stop(struct solo *);
/* 1 when it ends by itself within ms; its wait status. */
int solo_ended(struct solo *, int ms, int *status);
/* As the monitor; w is freed, fd taken. */
void solo_say(
    struct solo *, uint16_t type, uint64_t id, int fd, struct wbuf *w);
void solo_bytes(
    struct solo *, uint16_t type, uint64_t id, int fd, const void *, size_t);
/* What it says to the monitor, of that type; NULL after a while. */
struct imsg *solo_hear(struct solo *, uint16_t type);

#endif
