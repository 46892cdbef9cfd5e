/*
 * SPDX-License-Identifier: ISC
 *
 * imsg on a libevent loop: a channel to one peer.  Messages queued in one
 * turn of the loop leave as few packets, arriving packets are drained to
 * EAGAIN before the loop goes on.
 */
#ifndef ABX_CHAN_H
#define ABX_CHAN_H

#include "common/imsg.h"

struct chan;
struct event_base;

/* A message arrived.  Return 0; anything else declares the peer broken: the
 * channel stops reading and gone is called.  The descriptor of the message
 * is closed after the call unless the handler set imsg.fd to -1. */
typedef int (*chan_msg_cb)(struct chan *, struct imsg *, void *arg);
/* The peer is gone (error 0 or EPIPE), broke the protocol (EBADMSG), or the
 * socket failed.  Called once, from the loop; the owner frees the channel
 * there or later. */
typedef void (*chan_gone_cb)(struct chan *, int error, void *arg);

/* Take ownership of the socket and start to read.  NULL with errno. */
struct chan *chan_new(
    struct event_base *, int fd, chan_msg_cb, chan_gone_cb, void *arg);
/* Another owner from now on, who is told what comes. */
void chan_hand(struct chan *, chan_msg_cb, chan_gone_cb, void *arg);
/* Close and free; unsent messages are dropped.  Safe inside callbacks. */
void chan_free(struct chan *);
/* Queue a message for the end of this turn; fd is taken.  0, or -1 with
 * errno (EMSGSIZE, ENOMEM, EPIPE when the peer is gone).  A failed send on a
 * living channel leaves it as it was. */
int chan_send(struct chan *, uint16_t type, uint64_t id, int fd,
    const void *payload, size_t len);
/* The same for a message that nobody waits for: it goes with the next that is
 * sent, in the same packet and in order, or by itself within a millisecond. */
int chan_send_late(
    struct chan *, uint16_t type, uint64_t id, const void *payload, size_t len);
/* Send now what is queued, waiting at most ms for room (shutdown only). */
void chan_flush(struct chan *, int ms);
/* Bytes waiting to be sent; above chan_high the caller should stop asking. */
size_t chan_queued(const struct chan *);
#define CHAN_HIGH (1024 * 1024)
/* Memory for so many packets, for what must be said when there is none: what
 * is owed in answer.  0 or -1. */
int chan_set_aside(struct chan *, size_t packets);
#define CHAN_OWED 16 /* thousands of such messages */
/* Ask for the sender's pid in each message. */
int chan_passcred(struct chan *);
/* Stop and resume reading (back-pressure). */
void chan_pause(struct chan *, int on);

#endif
