/*
 * SPDX-License-Identifier: ISC
 *
 * A child of the real abxd whose strings the test holds: it was started by
 * abxd, is killed and started again by it, and says what the test says.
 */
#ifndef ABX_PUPPET_H
#define ABX_PUPPET_H

#include "common/imsg.h"
#include "common/msg.h"
#include "common/payload.h"
#include "regress/privsep/stage.h"

struct puppet {
	struct stage *st;
	enum proc_kind kind;
	int door;	     /* where stand-ins come to */
	int ctl;	     /* to the stand-in; at its end when that is dead */
	pid_t pid;	     /* of the stand-in */
	struct imsgbuf *up;  /* to abxd */
	struct imsgbuf *mon; /* to the monitor, NULL before START */
	int listed;	     /* pathd: it said which workspaces there are */
	uint32_t nroots;     /* pathd: of its configuration */
	struct boot_path roots[8];
};

/* Before the stage is started: replace that program. */
void puppet_new(
    struct puppet *, struct stage *, enum proc_kind, const char *standin);
void puppet_free(struct puppet *);
/* Wait for the next stand-in and lead it to work, answering what must be. */
void puppet_take(struct puppet *);
/* 1 when the stand-in is dead within ms. */
int puppet_dead(struct puppet *, int ms);
/* Messages to the monitor (or with up, to abxd). */
void puppet_say(struct puppet *, int up, uint16_t type, uint64_t id, int fd,
    const void *, size_t);
/* The next message of the monitor of that type; others are dropped, and so
 * are descriptors. */
struct imsg *puppet_hear(struct puppet *, uint16_t type);

#endif
