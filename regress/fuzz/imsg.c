/*
 * SPDX-License-Identifier: ISC
 *
 * Packets over a real socket: what a hostile peer sends is taken exactly when
 * it is well-formed and has as many descriptors as it says, what we send
 * arrives, and no descriptor is left open.  Input: 2 bytes (descriptors,
 * messages of our own), then the packet.
 */
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/imsg.h"
#include "common/msg.h"
#include "regress/fuzz/fuzz.h"

/* Most that are sent at once; more than are taken. */
#define FDS_MAX (IMSG_PACKET_FDS + 6)

static void
send_raw(int fd, const uint8_t *p, size_t n, size_t nfds)
{
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} cm;
	struct iovec iov = {(void *)(uintptr_t)p, n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	int fds[FDS_MAX];
	size_t i;

	for (i = 0; i < nfds; i++)
		fds[i] = fd;
	if (nfds > 0) {
		memset(&cm, 0, sizeof(cm));
		msg.msg_control = cm.buf;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	}
	CHECK(sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)n);
}

static uint64_t
number(const uint8_t *p, size_t n)
{
	return n == 0 ? 0 : p[0] | number(p + 1, n - 1) << 8;
}

/* Messages of a well-formed packet, -1 for any other. */
static long
count(const uint8_t *p, size_t n, size_t nfds)
{
	size_t len, fds = 0;
	long k = 0;

	if (n > IMSG_PACKET_MAX || nfds > IMSG_PACKET_FDS)
		return -1;
	for (; n > 0; k++) {
		if (n < IMSG_HDR || number(p + 6, 2) > 1)
			return -1;
		len = number(p, 4);
		if (len > IMSG_MAX_PAYLOAD || len > n - IMSG_HDR)
			return -1;
		fds += number(p + 6, 2);
		p += IMSG_HDR + len;
		n -= IMSG_HDR + len;
	}
	return fds == nfds && k > 0 ? k : -1;
}

static void
take_all(struct imsgbuf *b, const uint8_t *p, long want)
{
	struct imsg m;
	const char *why;

	for (; imsg_get(b, &m) == 1; want--) {
		CHECK(m.len == number(p, 4) && m.type == number(p + 4, 2));
		CHECK(m.id == number(p + 8, 8));
		CHECK((m.fd != -1) == (number(p + 6, 2) == 1));
		CHECK(memcmp(m.payload, p + IMSG_HDR, m.len) == 0);
		CHECK(m.fd == -1 || (fcntl(m.fd, F_GETFD) & FD_CLOEXEC) != 0);
		if (msg_check(&m, &why) == 0)
			CHECK(msg_row(m.type) != NULL);
		else
			CHECK(why != NULL && *why != '\0');
		if (m.fd != -1)
			close(m.fd);
		p += IMSG_HDR + m.len;
	}
	CHECK(want == 0);
}

static void
hostile(struct imsgbuf *b, int peer, const uint8_t *p, size_t n, size_t nfds)
{
	long want = count(p, n, nfds);
	int rc;

	send_raw(peer, p, n, nfds);
	rc = imsg_read(b);
	if (want == -1) {
		CHECK(rc == -1);
		CHECK(errno == (n == 0 && nfds == 0 ? EPIPE : EBADMSG));
		return;
	}
	CHECK(rc == 1);
	/* an owner that gives up half-way closes the rest */
	if (p[8] != 0xff)
		take_all(b, p, want);
}

/* n messages, sent and received. */
static void
friendly(struct imsgbuf *b, struct imsgbuf *peer, const uint8_t *p, size_t size,
    unsigned n)
{
	struct imsg m;
	unsigned i;

	for (i = 0; i < n; i++)
		CHECK(imsg_compose(peer, (uint16_t)i, i,
			  (i & 1) == 0 ? -1 : dup(imsg_fd(peer)), p,
			  (i & 2) == 0 ? size : 0) == 0);
	CHECK(imsg_queued(peer) > 0 || n == 0);
	CHECK(imsg_flush(peer) == 0 && imsg_queued(peer) == 0);
	for (i = 0; i < n;) {
		CHECK(imsg_read(b) == 1);
		for (; imsg_get(b, &m) == 1; i++) {
			CHECK(m.id == i && m.type == i);
			CHECK(m.len == ((i & 2) == 0 ? size : 0));
			CHECK(memcmp(m.payload, p, m.len) == 0);
			CHECK((m.fd != -1) == ((i & 1) == 1));
			if (m.fd != -1)
				close(m.fd);
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	size_t nfds = feed_u8(&f) % (FDS_MAX + 1);
	unsigned n = feed_u8(&f) % 80;
	int sv[2], before, after;
	struct imsgbuf *a, *b;
	uint8_t *p = fuzz_copy(f.p, f.n);

	CHECK((before = dup(STDERR_FILENO)) != -1);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
		  0, sv) == 0);
	CHECK((a = imsg_new(sv[0])) != NULL && (b = imsg_new(sv[1])) != NULL);
	if (f.n <= 2048)
		friendly(b, a, p, f.n, n % 16);
	hostile(b, sv[0], p, f.n, nfds);
	imsg_free(a);
	imsg_free(b);
	close(before);
	CHECK((after = dup(STDERR_FILENO)) == before);
	close(after);
	free(p);
	return 0;
}
