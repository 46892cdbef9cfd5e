/*
 * SPDX-License-Identifier: ISC
 *
 * One client connection and the request that it is at.  conn.c owns the state
 * machine; each other file of the listener owns the steps of some states and
 * the fields that are named after it.
 */
#ifndef LISTENER_CONN_H
#define LISTENER_CONN_H

#include <sys/queue.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/abx.h"
#include "common/codes.h"
#include "listener/body.h"
#include "listener/http_chunk.h"
#include "listener/http_parse.h"
#include "listener/obuf.h"
#include "listener/route.h"

enum conn_state {
	CONN_IDLE,    /* between requests, not one byte of the next */
	CONN_HEAD,    /* a head is dripping in */
	CONN_BODY,    /* a JSON body is */
	CONN_WAIT,    /* the monitor was asked */
	CONN_PUT,     /* the body flows into a pipe */
	CONN_PUT_END, /* it has, or cannot; the monitor will say how it went */
	CONN_LIST,    /* entry frames flow in */
	CONN_RUN,     /* run frames flow in */
	CONN_WATCH,   /* event frames flow in */
	CONN_SEND,    /* the answer flows out */
	CONN_LINGER,  /* answered and shut down; the rest is read and dropped */
	CONN_DEAD,    /* closed, to be freed */
	CONN_STATES
};

enum conn_pool { POOL_PRE, POOL_AUTH, POOL_LINGER, POOL_COUNT };

/* What a step returns: AGAIN and GONE, or what it waits for as bits. */
#define WANT_NONE 0 /* a message of the monitor */
#define WANT_READ 1
#define WANT_WRITE 2
#define WANT_DATA_R 4 /* the data descriptor */
#define WANT_DATA_W 8
#define STEP_AGAIN 16 /* the state changed, or there is more to do */
#define STEP_GONE 32  /* the client is gone or too slow */

/* The request at hand.  Zeroed between requests. */
struct req {
	char id[ABX_REQID_LEN + 1];
	struct route route;
	struct http_slice query; /* raw, in the head; len 0: none */
	uint8_t is_head;	 /* HEAD: no body in the answer */
	uint8_t has_body;	 /* the head announced one */
	uint8_t body_done;	 /* all of it was read */
	uint8_t continued;	 /* 100 Continue was sent, or is not wanted */
	uint8_t busy;		 /* monitor and workers are still at it */
	uint8_t sort;		 /* list: sort=name */
	uint64_t began;		 /* us, when the head was whole */
	uint64_t bytes_in, bytes_out; /* of bodies */
	/* ask.c */
	uint64_t ask_id;     /* 0 when no question is live */
	size_t ask_fd_bytes; /* of the memfd that went with it */
	/* request.c: the body in memory */
	uint64_t body_left; /* of Content-Length */
	uint64_t body_max;
	struct chunk_dec chunk;
	uint8_t *body;
	size_t body_len, body_cap;
	/* what must be kept of the arguments */
	struct body_content content;
	char *path; /* download as JSON: the caller's spelling */
	char *in;   /* run: stdin */
	size_t in_len;
};

struct upload;
struct listing;
struct run;
struct watching;

struct conn {
	TAILQ_ENTRY(conn) entry; /* in its pool, longest idle first */
	enum conn_pool pool;
	uint32_t slot; /* in the table of connections */
	int fd;
	enum conn_state state; /* written by conn_enter only */
	unsigned armed;	       /* WANT_ bits that events are set for */
	struct event rev, wev, dev;
	uint64_t deadline;   /* us, 0: none */
	uint64_t head_since; /* us, since when a head is incomplete */
	uint64_t wait_from;  /* us, waiting for body bytes since; 0: not */
	uint64_t waited;     /* us, waited for body bytes in all */
	uint64_t sent;	     /* bytes that the kernel took */
	uint64_t behind; /* us, since when the client lags, 0: it does not */
	uint64_t behind_sent; /* what sent was then */
	uint8_t eof;	      /* the client will send no more */
	uint8_t full;	      /* what it sent ahead fills the input */
	uint8_t close;	      /* close after this answer */
	uint8_t linger;	      /* the client may still be sending */
	uint8_t broken;	      /* a write failed */
	uint8_t served;	      /* it had an answer before */
	uint8_t readable;     /* a read is worth trying */
	char remote[64];
	uint64_t peer_no; /* 0: the monitor was not asked who it is */
	uint8_t has_peer; /* it was, and answered */
	uint8_t peer[16];
	/* input: the head stays at its start until the answer is out */
	uint8_t *in;
	size_t in_len, in_cap, in_used;
	struct http_head head;
	struct req req;
	struct obuf out;
	/* data descriptor: file, or pipe; -1 when none */
	int data_fd;
	uint64_t file_off, file_left; /* get.c */
	struct upload *upload;
	struct listing *listing;
	struct watching *watching;
	struct run *run;
};

/* A new connection on that socket (taken) in the pre-auth pool, waiting for
 * its first byte; NULL when out of memory or slots, the socket is closed
 * then. */
struct conn *conn_new(struct event_base *, int fd, const char *remote);
/* Close at once, whatever it is at; a live question ends with that outcome
 * (enum fin_outcome).  Frees it. */
void conn_kill(struct conn *, uint8_t outcome);
/* Run the machine until it waits, then wait.  May free the connection; every
 * event and message ends in it. */
void conn_do(struct conn *);
/* The only writer of state; sets the deadline of the new state. */
void conn_enter(struct conn *, enum conn_state);
/* Read into the input buffer, growing it up to max bytes.  Bytes read, 0 at
 * the end of input, -1 when there is nothing now, -2 when the socket failed
 * or memory did, -3 when the buffer is full. */
int conn_fill(struct conn *, size_t max);
/* Make room for size bytes of input in all; only a wish. */
void conn_reserve(struct conn *, size_t size);
/* Bytes of input behind what was used. */
size_t conn_unread(const struct conn *);
/* Pass over n of them. */
void conn_use(struct conn *, size_t n);
/* Write now what fits, keep the rest.  flags are those of send(2).  Failure
 * shows in broken. */
void conn_write(struct conn *, const void *, size_t n, int flags);
/* Try to empty the output: 1 empty, 0 more is left, -1 broken. */
int conn_flush(struct conn *);
/* The client takes nothing now: start the time-out unless it runs. */
void conn_stalled(struct conn *);
/* Wait for room to write too, besides what is waited for. */
void conn_want_write(struct conn *);
/* Replace the data descriptor (closing the one before); it becomes
 * non-blocking.  -1: none. */
void conn_set_data(struct conn *, int fd);
/* The request is over, with everything written: FIN, then the next request,
 * linger or close. */
void conn_finish(struct conn *, uint8_t outcome);
/* Look for the end of the client while something else is waited for: what to
 * want for that, or STEP_GONE. */
int conn_watch(struct conn *);
/* 1 when the request at hand is over once the client sends no more: a command
 * has nobody to run for then, and events have nobody to read them. */
int conn_ends_with_client(const struct conn *);
/* ---- conn_time.c ---- */
/* Time passed: close what is too slow.  May free the connection. */
void conn_tick(struct conn *, uint64_t now);
/* A body byte is waited for (1) or is not; for the time-outs of bodies. */
void conn_body_wait(struct conn *, int on);
/* How long it was waited for in all, in microseconds. */
uint64_t conn_body_waited(const struct conn *, uint64_t now);

#endif
