/*
 * SPDX-License-Identifier: ISC
 *
 * Packets of framed messages over a SOCK_SEQPACKET socket.  One packet holds
 * the frames that were queued in one turn of a loop, and their descriptors in
 * the frames' order.  This is the only file that calls sendmsg or recvmsg.
 *
 * Frame: u32 payload length, u16 type, u16 flags (bit 0: one descriptor goes
 * with it), u64 id, payload; little-endian, packed one behind the other.
 * The number of received descriptors must equal the number of flagged frames
 * exactly; anything else is a broken peer and every descriptor is closed.
 */
#ifndef ABX_IMSG_H
#define ABX_IMSG_H

#include <sys/types.h>
#include <stddef.h>
#include <stdint.h>

#define IMSG_HDR 16
#define IMSG_MAX_PAYLOAD (96 * 1024) /* bytes of one message */
#define IMSG_PACKET_MAX (IMSG_HDR + IMSG_MAX_PAYLOAD)
#define IMSG_PACKET_FDS 64 /* descriptors of one packet */

/* One received message.  payload is borrowed until the next imsg_read. */
struct imsg {
	uint16_t type;
	uint64_t id;
	int fd; /* -1 when none; the handler that keeps it sets it to -1 */
	const uint8_t *payload;
	size_t len;
	pid_t pid;    /* sender, only after imsg_passcred, else -1 */
	uint8_t kind; /* enum fd_kind, of fd, once msg_check has looked */
};

struct imsgbuf;

/* Take ownership of a connected SEQPACKET socket (any blocking mode).  NULL
 * when out of memory; the socket then stays the caller's. */
struct imsgbuf *imsg_new(int fd);
/* Close the socket and every descriptor queued or unread.  NULL is fine. */
void imsg_free(struct imsgbuf *);
/* Free the buffer but give the socket back, which is then the caller's. */
int imsg_detach(struct imsgbuf *);
/* The socket, still owned by the buffer. */
int imsg_fd(const struct imsgbuf *);
/* Ask the kernel for the sender's pid with each packet.  0 or -1, errno. */
int imsg_passcred(struct imsgbuf *);

/* Queue one message; fd is taken (closed after sending, and on failure) or
 * -1.  0, or -1 with errno EMSGSIZE or ENOMEM. */
int imsg_compose(struct imsgbuf *, uint16_t type, uint64_t id, int fd,
    const void *payload, size_t len);
/* Make room for one message of len bytes: while nothing is queued, queueing it
 * cannot fail.  0, or -1 with errno ENOMEM. */
int imsg_reserve(struct imsgbuf *, size_t len);
/* Set so many packets aside, so that as many bytes of small messages can still
 * be queued when there is no memory: what is owed to the peer.  Their pages
 * come with their use, which the kernel has promised (mmap(2) and brk(2) fail,
 * not the use).  0 or -1. */
int imsg_set_aside(struct imsgbuf *, size_t packets);
/* Send what is queued.  0 when the queue is empty, 1 when the socket would
 * block (the rest stays queued), -1 with errno. */
int imsg_flush(struct imsgbuf *);
/* Messages and payload bytes queued and not sent. */
size_t imsg_queued(const struct imsgbuf *);

/* Receive one packet.  1 when frames are there, 0 when it would block, -1
 * with errno: EPIPE end of file, EBADMSG a malformed packet, else the
 * system's.  All frames of the packet before must have been taken. */
int imsg_read(struct imsgbuf *);
/* Take the next frame of the packet: 1, or 0 when there is none left.  The
 * descriptor is the caller's from then on. */
int imsg_get(struct imsgbuf *, struct imsg *);

#endif
