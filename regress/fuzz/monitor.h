/*
 * SPDX-License-Identifier: ISC
 *
 * The target "monitor" (monitor.c): what its parts know of one another.
 */
#ifndef REGRESS_FUZZ_MONITOR_H
#define REGRESS_FUZZ_MONITOR_H

#include "monitor/mon.h"
#include "monitor/proctab.h"
#include "regress/fuzz/fuzz.h"

#define TOKEN_READER "reader-token-0123"
#define TOKEN_ADMIN "admin-token-01234"

struct chan {
	struct chan *next;
	int fd;
	chan_msg_cb msg;
	struct peer *peer;
};
/* A question of the listener and what it was told. */
struct asked {
	uint64_t lid;
	int answered, kind, flags;
	int cancelled, put_end, put_fin, run_in, fin;
};
/* An order of the monitor to a worker. */
struct order {
	enum proc_kind to;
	uint16_t type;
	uint64_t rid;
	uint8_t *p;
	size_t n;
	uint32_t generation; /* of the worker */
	int over;	     /* of a run: it ended, or never was */
};

/* monitor.c: a message of the parent for the monitor, as it takes it. */
int fm_hears_parent(struct imsg *);

/* monitor_heard.c: what the monitor sent; checked as it comes. */
extern struct chan *fm_chans;
extern int fm_file, fm_pipe[2], fm_dir, fm_sock[2], fm_audit; /* to be sent */
extern uint64_t fm_now_us;
extern struct asked fm_asks[64];
extern struct order fm_orders[160];
extern size_t fm_nasks, fm_norders;
/* The ids of processes, as they were told. */
extern char fm_known[8][PROC_ID_LEN + 1];
extern size_t fm_nknown;
void fm_is_json(const char *);
/* A run of that worker is over, as in struct order. */
void fm_ended(const struct peer *, uint64_t run, int how);

/* monitor_parent.c: the parent, and the siblings that it starts and ends. */
extern size_t fm_ndrained;
void fm_child_lost(uint8_t kind, uint32_t gen);
void fm_child_start(enum proc_kind, uint32_t epoch);
/* Workers that nobody needs any more end. */
void fm_reap(void);
struct chan *fm_chan_of(enum proc_kind);
/* The newest of a kind says that; the writer is freed. */
void fm_says(enum proc_kind, uint16_t type, uint64_t id, int fd, struct wbuf *);
/* An answer of the worker that was asked. */
void fm_answers(const struct order *, uint16_t type, int fd, struct wbuf *);
/* A sealed memfd with those bytes. */
int fm_sealed(const void *, size_t);
void fm_policy_says(uint32_t epoch, uint8_t need);
/* A new configuration, and the workers that it needs. */
void fm_reload(uint8_t choice);

#endif
