/*
 * SPDX-License-Identifier: ISC
 *
 * Packets of framed messages and their descriptors; the only file that calls
 * sendmsg or recvmsg.  It knows frames and counts, not what a type means.
 * libc only: the static launcher links it.
 */
#include "common/imsg.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A packet being filled, or waiting to be sent. */
struct packet {
	struct packet *next;
	size_t len, cap;
	uint8_t *data;
	int fds[IMSG_PACKET_FDS];
	size_t nfds;
};

/* Frames are packed up to this; a larger one travels alone. */
#define PACK_TARGET (16 * 1024)
/* What is larger is not worth the memory that was set aside. */
#define RESERVE_MAX 4096

struct imsgbuf {
	int fd;
	struct packet *head, *tail;
	size_t queued;	      /* bytes in the queue */
	struct packet *spare; /* one kept, so that a quiet wire never mallocs */
	struct packet *aside; /* of PACK_TARGET, for when there is no memory */
	size_t lent;	      /* of those that are in the queue */
	uint8_t *in;	      /* IMSG_PACKET_MAX, allocated on first read */
	size_t inlen, inpos;
	int infds[IMSG_PACKET_FDS];
	size_t ninfds, infdpos;
	pid_t pid;
};

struct imsgbuf *
imsg_new(int fd)
{
	struct imsgbuf *b;

	if ((b = calloc(1, sizeof(*b))) == NULL)
		return NULL;
	b->fd = fd;
	b->pid = -1;
	return b;
}

static void
packet_free(struct packet *p)
{
	size_t i;

	if (p == NULL)
		return;
	for (i = 0; i < p->nfds; i++)
		close(p->fds[i]);
	free(p->data);
	free(p);
}

static void
close_unread(struct imsgbuf *b)
{
	while (b->infdpos < b->ninfds)
		close(b->infds[b->infdpos++]);
	b->ninfds = b->infdpos = 0;
	b->inlen = b->inpos = 0;
}

void
imsg_free(struct imsgbuf *b)
{
	struct packet *p;

	if (b == NULL)
		return;
	while ((p = b->head) != NULL) {
		b->head = p->next;
		packet_free(p);
	}
	while ((p = b->aside) != NULL) {
		b->aside = p->next;
		packet_free(p);
	}
	packet_free(b->spare);
	close_unread(b);
	if (b->fd != -1)
		close(b->fd);
	free(b->in);
	free(b);
}

int
imsg_detach(struct imsgbuf *b)
{
	int fd = b->fd;

	b->fd = -1;
	imsg_free(b);
	return fd;
}

int
imsg_fd(const struct imsgbuf *b)
{
	return b->fd;
}

int
imsg_passcred(struct imsgbuf *b)
{
	int on = 1;

	return setsockopt(b->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
}

size_t
imsg_queued(const struct imsgbuf *b)
{
	return b->queued;
}

static void
put_le(uint8_t *p, uint64_t v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++, v >>= 8)
		p[i] = v & 0xff;
}

static uint64_t
get_le(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

/* Room for need more bytes: 0 or -1. */
static int
packet_grow(struct packet *p, size_t need)
{
	size_t cap = p->len + need < 4096 ? 4096 : p->len + need;
	uint8_t *data;

	if (p->cap - p->len >= need)
		return 0;
	if (cap > 4096 && cap < PACK_TARGET)
		cap = PACK_TARGET;
	if ((data = realloc(p->data, cap)) == NULL)
		return -1;
	p->data = data;
	p->cap = cap;
	return 0;
}

/* Have a spare packet with room for need bytes: 0, or -1. */
static int
spare_grow(struct imsgbuf *b, size_t need)
{
	if (b->spare == NULL &&
	    (b->spare = calloc(1, sizeof(*b->spare))) == NULL)
		return -1;
	return packet_grow(b->spare, need);
}

int
imsg_reserve(struct imsgbuf *b, size_t len)
{
	return spare_grow(b, IMSG_HDR + len);
}

int
imsg_set_aside(struct imsgbuf *b, size_t packets)
{
	struct packet *p;

	while (packets-- > 0) {
		if ((p = calloc(1, sizeof(*p))) == NULL)
			return -1;
		if (packet_grow(p, PACK_TARGET) == -1) {
			packet_free(p);
			return -1;
		}
		p->next = b->aside;
		b->aside = p;
	}
	return 0;
}

/* A packet that is in no queue, with room for need bytes; NULL when there is
 * no memory. */
static struct packet *
packet_take(struct imsgbuf *b, size_t need)
{
	struct packet *p;

	if (spare_grow(b, need) == 0) {
		p = b->spare;
		b->spare = NULL;
		return p;
	}
	if (need > RESERVE_MAX || (p = b->aside) == NULL)
		return NULL;
	b->aside = p->next;
	b->lent++;
	return p;
}

/* A packet at the tail with room for need bytes and a descriptor.  One without
 * a frame is never queued: the peer would take it for the end. */
static struct packet *
packet_room(struct imsgbuf *b, size_t need)
{
	struct packet *p = b->tail;

	if (p != NULL && p->nfds < IMSG_PACKET_FDS &&
	    p->len + need <= PACK_TARGET && packet_grow(p, need) == 0)
		return p;
	if ((p = packet_take(b, need)) == NULL)
		return NULL;
	p->next = NULL;
	if (b->tail != NULL)
		b->tail->next = p;
	else
		b->head = p;
	b->tail = p;
	return p;
}

int
imsg_compose(struct imsgbuf *b, uint16_t type, uint64_t id, int fd,
    const void *payload, size_t len)
{
	struct packet *p;
	uint8_t *h;
	int save;

	if (len > IMSG_MAX_PAYLOAD) {
		errno = EMSGSIZE;
		goto fail;
	}
	if ((p = packet_room(b, IMSG_HDR + len)) == NULL)
		goto fail;
	h = p->data + p->len;
	put_le(h, len, 4);
	put_le(h + 4, type, 2);
	put_le(h + 6, fd != -1, 2);
	put_le(h + 8, id, 8);
	if (len > 0)
		memcpy(h + IMSG_HDR, payload, len);
	p->len += IMSG_HDR + len;
	b->queued += IMSG_HDR + len;
	if (fd != -1)
		p->fds[p->nfds++] = fd;
	return 0;
fail:
	save = errno;
	if (fd != -1)
		close(fd);
	errno = save;
	return -1;
}

static ssize_t
packet_send(int fd, const struct packet *p)
{
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(sizeof(int) * IMSG_PACKET_FDS)];
	} cm;
	struct msghdr msg = {0};
	struct iovec iov = {p->data, p->len};
	struct cmsghdr *c;
	ssize_t n;

	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	if (p->nfds > 0) {
		memset(&cm, 0, sizeof(cm));
		msg.msg_control = cm.buf;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * p->nfds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * p->nfds);
		memcpy(CMSG_DATA(c), p->fds, sizeof(int) * p->nfds);
	}
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (n == -1 && errno == EINTR);
	return n;
}

int
imsg_flush(struct imsgbuf *b)
{
	struct packet *p;
	size_t i;

	while ((p = b->head) != NULL) {
		if (packet_send(b->fd, p) == -1) {
			/* ETOOMANYREFS: too many descriptors in flight for
			 * our uid; they drain as the peer reads.  Memory of
			 * the kernel's comes back, too */
			if (errno == EAGAIN || errno == ENOBUFS ||
			    errno == ENOMEM || errno == ETOOMANYREFS)
				return 1;
			return -1;
		}
		b->queued -= p->len;
		b->head = p->next;
		if (b->head == NULL)
			b->tail = NULL;
		for (i = 0; i < p->nfds; i++)
			close(p->fds[i]);
		p->nfds = 0;
		explicit_bzero(p->data, p->len);
		p->len = 0;
		if (b->lent > 0 && p->cap == PACK_TARGET) {
			b->lent--;
			p->next = b->aside;
			b->aside = p;
		} else if (b->spare == NULL && p->cap <= PACK_TARGET)
			b->spare = p;
		else
			packet_free(p);
	}
	return 0;
}

/* Take descriptors and credentials out of the control data: 0, or -1 when
 * there are more descriptors than a packet may have. */
static int
take_control(struct imsgbuf *b, struct msghdr *msg)
{
	struct cmsghdr *c;
	struct ucred cred;
	size_t i, n;
	int fd, rc = 0;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS &&
		    c->cmsg_len >= CMSG_LEN(sizeof(cred))) {
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			b->pid = cred.pid;
		}
		if (c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (b->ninfds < IMSG_PACKET_FDS)
				b->infds[b->ninfds++] = fd;
			else {
				close(fd);
				rc = -1;
			}
		}
	}
	return rc;
}

/* All frames complete and as many flagged as descriptors came: 0, else -1. */
static int
check_frames(const struct imsgbuf *b)
{
	size_t pos = 0, fds = 0, len;
	uint64_t flags;

	if (b->inlen == 0)
		return -1;
	while (pos < b->inlen) {
		if (b->inlen - pos < IMSG_HDR)
			return -1;
		len = get_le(b->in + pos, 4);
		flags = get_le(b->in + pos + 6, 2);
		if (flags > 1 || len > IMSG_MAX_PAYLOAD ||
		    len > b->inlen - pos - IMSG_HDR)
			return -1;
		fds += flags;
		pos += IMSG_HDR + len;
	}
	return fds == b->ninfds ? 0 : -1;
}

int
imsg_read(struct imsgbuf *b)
{
	/* Room for more than may come, so that surplus is seen and closed. */
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(sizeof(int) * (IMSG_PACKET_FDS + 190)) +
			 CMSG_SPACE(sizeof(struct ucred))];
	} cm;
	struct msghdr msg = {0};
	struct iovec iov;
	ssize_t n;
	int surplus;

	close_unread(b);
	if (b->in == NULL && (b->in = malloc(IMSG_PACKET_MAX)) == NULL)
		return -1;
	iov.iov_base = b->in;
	iov.iov_len = IMSG_PACKET_MAX;
	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	msg.msg_control = cm.buf;
	msg.msg_controllen = sizeof(cm.buf);
	b->pid = -1;
	do
		n = recvmsg(b->fd, &msg, MSG_CMSG_CLOEXEC);
	while (n == -1 && errno == EINTR);
	/* the kernel says once that the peer went without having read all, and
	 * before what it said: its last words come next */
	if (n == -1 && errno == ECONNRESET)
		n = recvmsg(b->fd, &msg, MSG_CMSG_CLOEXEC);
	if (n == -1)
		return errno == EAGAIN || errno == ENOMEM ? 0 : -1;
	surplus = take_control(b, &msg);
	if (n == 0 && b->ninfds == 0) {
		errno = EPIPE;
		return -1;
	}
	b->inlen = (size_t)n;
	if ((msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || surplus == -1 ||
	    check_frames(b) == -1) {
		close_unread(b);
		errno = EBADMSG;
		return -1;
	}
	return 1;
}

int
imsg_get(struct imsgbuf *b, struct imsg *m)
{
	const uint8_t *h;

	if (b->inpos >= b->inlen)
		return 0;
	h = b->in + b->inpos;
	m->len = get_le(h, 4);
	m->type = (uint16_t)get_le(h + 4, 2);
	m->id = get_le(h + 8, 8);
	m->payload = h + IMSG_HDR;
	m->fd = get_le(h + 6, 2) != 0 ? b->infds[b->infdpos++] : -1;
	m->pid = b->pid;
	b->inpos += IMSG_HDR + m->len;
	return 1;
}
