/*
 * SPDX-License-Identifier: ISC
 *
 * Cursors and packets: what is put comes out, what is short, long or odd
 * sticks as an error, surplus descriptors break the peer.
 */
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/imsg.h"
#include "common/wire.h"

static void
test_round(void **state)
{
	struct wbuf w;
	struct rbuf r;
	char buf[8], *s;

	wbuf_init(&w, 1024);
	wput_u8(&w, 7);
	wput_u16(&w, 0xabcd);
	wput_u32(&w, 0xdeadbeef);
	wput_u64(&w, UINT64_MAX - 1);
	wput_i64(&w, -5);
	wput_str(&w, "hello");
	wput_str(&w, NULL);
	assert_false(w.err);
	rbuf_init(&r, w.p, w.len);
	assert_int_equal(rget_u8(&r), 7);
	assert_int_equal(rget_u16(&r), 0xabcd);
	assert_int_equal(rget_u32(&r), 0xdeadbeef);
	assert_true(rget_u64(&r) == UINT64_MAX - 1);
	assert_true(rget_i64(&r) == -5);
	assert_int_equal(rget_strto(&r, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "hello");
	s = rget_str(&r, 10);
	assert_non_null(s);
	assert_string_equal(s, "");
	free(s);
	assert_int_equal(rget_end(&r), 0);
	wbuf_free(&w);
}

static void
test_bounds(void **state)
{
	struct wbuf w;
	struct rbuf r;
	char buf[4];
	size_t n;

	wbuf_init(&w, 5);
	wput_u32(&w, 1);
	assert_false(w.err);
	wput_u16(&w, 1);
	assert_true(w.err);
	assert_int_equal(w.len, 4);
	wput_u8(&w, 1); /* sticky */
	assert_int_equal(w.len, 4);
	wbuf_free(&w);

	rbuf_init(&r, "\4\0\0\0abcd", 8);
	assert_int_equal(rget_strto(&r, buf, sizeof(buf)), -1);
	assert_int_equal(rget_end(&r), -1);
	rbuf_init(&r, "\5\0\0\0abcd", 8);
	assert_null(rget_bytes(&r, &n, 100));
	rbuf_init(&r, "\4\0\0\0a\0cd", 8);
	assert_null(rget_str(&r, 100));
	rbuf_init(&r, "\377\377\377\377abcd", 8);
	assert_null(rget_bytes(&r, &n, SIZE_MAX));
	rbuf_init(&r, "\2", 1);
	assert_int_equal(rget_bool(&r), 0);
	assert_true(r.err);
	rbuf_init(&r, "ab", 2);
	rget_u8(&r);
	assert_int_equal(rget_end(&r), -1); /* trailing byte */
}

static void
test_packet(void **state)
{
	struct imsgbuf *a, *b;
	struct imsg m;
	int sv[2], p[2], i;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	a = imsg_new(sv[0]);
	b = imsg_new(sv[1]);
	assert_int_equal(pipe(p), 0);
	assert_int_equal(imsg_compose(a, 1, 10, -1, "abc", 3), 0);
	assert_int_equal(imsg_compose(a, 2, 11, p[0], NULL, 0), 0);
	assert_int_equal(imsg_compose(a, 3, 12, p[1], "z", 1), 0);
	assert_int_equal(imsg_flush(a), 0);
	assert_int_equal(imsg_read(b), 1);
	for (i = 1; i <= 3; i++) {
		assert_int_equal(imsg_get(b, &m), 1);
		assert_int_equal(m.type, i);
		assert_int_equal(m.id, 9 + i);
		assert_int_equal(m.fd == -1, i == 1);
		if (m.fd != -1)
			close(m.fd);
	}
	assert_int_equal(imsg_get(b, &m), 0);
	imsg_free(a);
	assert_int_equal(imsg_read(b), -1);
	assert_int_equal(errno, EPIPE);
	imsg_free(b);
}

/* Raw packets of a hostile peer: header bytes, whether a descriptor goes. */
static const struct {
	const char *bytes;
	size_t len;
	int fd;
} bad[] = {
    {"", 1, 0}, {"\1\0\0\0\1\0\0\0\0\0\0\0\0\0\0", 15, 0},
    {"\1\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0", 16, 0}, /* one byte missing */
    {"\0\0\0\0\1\0\1\0\0\0\0\0\0\0\0\0", 16, 0}, /* descriptor missing */
    {"\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0", 16, 1}, /* one too many */
    {"\0\0\0\0\1\0\2\0\0\0\0\0\0\0\0\0", 16, 0}, /* unknown flag */
    {"\377\377\377\377\1\0\0\0\0\0\0\0\0\0\0\0", 16, 0},
    {"\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0x", 17, 0}, /* trailing byte */
};

/* Who goes without having read all is heard to the end. */
static void
test_last_words(void **state)
{
	struct imsgbuf *a, *b;
	struct imsg m;
	int sv[2], i;

	assert_int_equal(
	    socketpair(
		AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv),
	    0);
	assert_non_null(a = imsg_new(sv[0]));
	assert_non_null(b = imsg_new(sv[1]));
	for (i = 0; i < 2; i++) {
		assert_int_equal(
		    imsg_compose(a, 7, (uint64_t)i, -1, "x", 1), 0);
		assert_int_equal(imsg_flush(a), 0);
		assert_int_equal(imsg_compose(b, 8, 1, -1, "unread", 6), 0);
		assert_int_equal(imsg_flush(b), 0);
	}
	imsg_free(a);
	for (i = 0; i < 2; i++) {
		assert_int_equal(imsg_read(b), 1);
		assert_int_equal(imsg_get(b, &m), 1);
		assert_int_equal(m.type, 7);
		assert_int_equal(m.id, i);
		assert_int_equal(imsg_get(b, &m), 0);
	}
	assert_int_equal(imsg_read(b), -1);
	assert_int_equal(errno, EPIPE);
	imsg_free(b);
}

static void
test_hostile(void **state)
{
	struct imsgbuf *b;
	struct msghdr msg;
	struct iovec iov;
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(sizeof(int))];
	} cm;
	struct cmsghdr *c;
	int sv[2], fd = STDERR_FILENO, probe;
	char copy[32];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
		b = imsg_new(sv[1]);
		memset(&msg, 0, sizeof(msg));
		memcpy(copy, bad[i].bytes, bad[i].len);
		iov.iov_base = copy;
		iov.iov_len = bad[i].len;
		msg.msg_iov = &iov;
		msg.msg_iovlen = 1;
		if (bad[i].fd) {
			msg.msg_control = cm.buf;
			msg.msg_controllen = sizeof(cm.buf);
			c = CMSG_FIRSTHDR(&msg);
			c->cmsg_level = SOL_SOCKET;
			c->cmsg_type = SCM_RIGHTS;
			c->cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		}
		assert_true(sendmsg(sv[0], &msg, 0) != -1);
		probe = dup(0);
		close(probe);
		assert_int_equal(imsg_read(b), -1);
		assert_int_equal(errno, EBADMSG);
		assert_int_equal(dup(0), probe); /* nothing was kept open */
		close(probe);
		close(sv[0]);
		imsg_free(b);
	}
}

/* A packet of n empty frames that each announce a descriptor, with nfds. */
static int
send_flagged(int sock, size_t n, size_t nfds)
{
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(sizeof(int) * 80)];
	} cm;
	uint8_t frames[80 * IMSG_HDR] = {0};
	struct iovec iov = {frames, n * IMSG_HDR};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	int fds[80];
	size_t i;

	for (i = 0; i < n; i++)
		frames[i * IMSG_HDR + 6] = 1;
	for (i = 0; i < nfds; i++)
		fds[i] = STDERR_FILENO;
	memset(&cm, 0, sizeof(cm));
	msg.msg_control = cm.buf;
	msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	return sendmsg(sock, &msg, 0) == -1 ? -1 : 0;
}

/* As many descriptors as frames announce, but never more than may come. */
static void
test_many_fds(void **state)
{
	static const struct {
		size_t frames, fds;
		int rc;
	} t[] = {
	    {1, 1, 1},
	    {IMSG_PACKET_FDS, IMSG_PACKET_FDS, 1},
	    {IMSG_PACKET_FDS, IMSG_PACKET_FDS - 1, -1},
	    {IMSG_PACKET_FDS, IMSG_PACKET_FDS + 1, -1},
	    {IMSG_PACKET_FDS + 1, IMSG_PACKET_FDS + 1, -1},
	    {IMSG_PACKET_FDS + 1, IMSG_PACKET_FDS, -1},
	    {IMSG_PACKET_FDS, 80, -1},
	};
	struct imsgbuf *b;
	int sv[2], probe;
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
		probe = dup(0);
		close(probe);
		b = imsg_new(sv[1]);
		assert_int_equal(send_flagged(sv[0], t[i].frames, t[i].fds), 0);
		assert_int_equal(imsg_read(b), t[i].rc);
		close(sv[0]);
		imsg_free(b); /* closes what was not taken */
		assert_int_equal(dup(0), sv[0]);
		close(sv[0]);
		assert_true(probe > sv[0]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_round),
	    cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_packet),
	    cmocka_unit_test(test_last_words),
	    cmocka_unit_test(test_hostile),
	    cmocka_unit_test(test_many_fds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
