/*
 * SPDX-License-Identifier: ISC
 *
 * The workspaces of sessions: a directory each that pathd makes and removes,
 * kept until it is deleted or was not used for long.
 */
#ifndef ABX_MONITOR_WORKSPACE_H
#define ABX_MONITOR_WORKSPACE_H

#include <stdint.h>

#include "common/imsg.h"
#include "monitor/wstab.h"

struct mutate;
struct peer;
struct req;

extern struct wstab workspaces;

/* wsfile.c: the lines in the state directory. */

/* A descriptor of the parent: 0 to read the lines of the last run, 1 to write
 * those of this one.  Taken on 0; else -1. */
int wsfile_fd(uint32_t index, int fd);
/* Start-up: read, and write what is left of it anew; the parent gives the new
 * file its name when the monitor is ready. */
void wsfile_open(void);
/* Whether lines can be kept at all. */
int wsfile_there(void);
/* Write that it is there and when it was used, or that it is gone: 0, or -1
 * when it could not be written. */
int wsfile_save(struct ws *);
int wsfile_gone(const struct ws *);

/* workspace.c: their life. */

/* Start-up: the clock that looks for old and large ones. */
void workspace_init(void);
/* The service ends: write when they were used last. */
void workspace_close(void);
/* r is about to run something in its session: 0 and r->ws says where, or -1
 * and r was answered.  Ended by workspace_leave. */
int workspace_begin(struct req *);
/* It does not run there (any more); sets *ws to NULL. */
void workspace_leave(struct ws **);
/* Its directory could not be made: forget it when nobody else uses it. */
void workspace_unmade(struct ws **);
/* A call on files of a workspace: 0, or -1 and r was answered. */
int workspace_touch(struct req *);
/* Another policy is in force. */
void workspace_reloaded(void);
/* ws_work.c: what workers are asked on nobody's behalf. */

/* The workspaces are known; until then no service is announced. */
int workspace_ready(void);
/* That worker owes an answer of that number about a workspace. */
int workspace_owes(const struct peer *, uint64_t id);
/* SPACE_ANS or DONE of such a number: 0, or -1 when malformed. */
int workspace_job(struct peer *, const struct imsg *);
/* That worker is gone. */
void workspace_peer_lost(const struct peer *);
/* Remove one as soon as nothing runs in it any more, which is killed. */
void workspace_end(struct ws *);
/* Kill what runs in it, and its sandboxes; nothing starts in it meanwhile. */
void ws_kill(struct ws *);
/* Go on with a removal when nothing is in its way any more. */
void ws_advance(struct ws *);
/* Ask how large those are that are due, as many as can be asked about now; the
 * others' turn comes with the answers.  Whether some are still due. */
int ws_ask_sizes(void);
/* Ask which there are, unless that was done, and whether they are known. */
void ws_list_once(void);
int ws_listed(void);

/* ws_ops.c: the operations. */
void workspace_list(struct req *, int *fd);
void workspace_delete(struct req *, int *fd);
/* SPACE_ANS of a list: 0, or -1 when it did not ask for that. */
int workspace_list_ans(struct req *, struct imsg *);
/* Answer those who wait for the removal of that one. */
void workspace_wake(struct ws *, uint16_t code);
/* r waits for nothing any more. */
void workspace_unwait(struct req *);

#endif
