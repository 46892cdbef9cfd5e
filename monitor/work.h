/*
 * SPDX-License-Identifier: ISC
 *
 * What is done once a call is admitted: one function an operation.
 */
#ifndef ABX_WORK_H
#define ABX_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes.h"
#include "common/msg.h"

struct req;
struct facts;
struct plan_item;
struct peer;

/* Start the work of an admitted call.  *fd is what RESOLVE opened or -1; work
 * that keeps it sets it to -1. */
void work_start(struct req *, int *fd);
/* The one thing that was resolved again, opened; *fd likewise. */
void work_reopened(struct req *, const struct facts *, int *fd);
/* work_files.c */
void work_copy(struct req *, int *fd);
void work_edit(struct req *, int *fd);
void work_search(struct req *, int *fd);
void work_watch(struct req *, int *fd);
void work_export(struct req *, int *fd);
void work_import(struct req *, int *fd);
void work_archive(struct req *, int *fd);
/* 1 when that text argument says tar.gz, 0 when it says tar or nothing, -1 for
 * anything else. */
int work_gzip(const struct req *, const char *param);
/* If-Match and If-None-Match (RFC 9110, 13.1) against the first path: C_OK and
 * PF_ flags, or C_FS_CHANGED. */
enum code work_preconditions(const struct req *, uint16_t *flags);
/* work_run.c */
void work_run_start(struct req *, int *fd);
void work_run_reopened(struct req *, int *fd);
/* DONE of pathd for the workspace that r makes. */
struct done;
void work_run_made(struct req *, const struct done *);

struct imsg;
/* DENIED_ANS and DONE of pathd, and HELD: 0, or -1 for a breach. */
int work_run_denied(struct req *, struct imsg *);
int work_run_held(struct req *, struct imsg *);
/* The run is not wanted any more: pathd need not answer, and execd, if it
 * holds the run, owes FAILED. */
void work_run_release(struct req *);
/* execd says itself that a held run failed. */
void work_run_unheld(struct req *);
/* A worker of a held run is gone: 1 and it is answered, 0 when none is held. */
int work_run_lost(struct req *, struct peer *);

/* Ask pathd for item i of the plan again, alone and to be opened; flags as in
 * struct resolve. */
void work_reopen(struct req *, size_t item, uint8_t flags);
/* That item of the plan. */
const struct plan_item *work_reopening(const struct req *);
/* The kind of descriptor that a RESOLVE with these flags may answer with. */
enum fd_kind work_wanted(uint8_t flags);
/* Send a worker its order and wait for the first answer. */
struct wbuf;
void work_send(
    struct req *, struct peer *, uint16_t type, int fd, const struct wbuf *);

/* ME_FEED for r; the descriptor is taken. */
void work_feed(struct req *, struct peer *, uint64_t run, int data, int eof);

#endif
