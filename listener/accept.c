/*
 * SPDX-License-Identifier: ISC
 *
 * New connections: accepted until there are none, put into the pre-auth
 * pool, or turned away when that is full of complete requests.
 */
#include "listener/accept.h"

#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/hash.h"
#include "common/log.h"
#include "listener/conn.h"
#include "listener/peer.h"
#include "listener/pool.h"
#include "listener/request.h"
#include "listener/send.h"

#define SOCKETS_MAX 64
#define TURNS 16	/* accepted before others get their turn */
#define PAUSE_US 100000 /* when descriptors have run out */

static struct door {
	int fd;
	struct event ev;
} doors[SOCKETS_MAX];
static size_t ndoors;
static struct event pause_ev;
static struct event_base *loop;

int
accept_add(uint32_t index, int fd)
{
	static const int one = 1;
	int fl;

	if (ndoors == SOCKETS_MAX || (fl = fcntl(fd, F_GETFL)) == -1 ||
	    fcntl(fd, F_SETFL, fl | O_NONBLOCK) == -1)
		return -1;
	/* what is accepted from it inherits that; one of a path has no such */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	doors[ndoors++].fd = fd;
	return 0;
}

/* The peer's numeric address. */
static void
address(const struct sockaddr_storage *ss, char *out, size_t size)
{
	const void *a = NULL;

	if (ss->ss_family == AF_INET)
		a = &((const struct sockaddr_in *)ss)->sin_addr;
	else if (ss->ss_family == AF_INET6)
		a = &((const struct sockaddr_in6 *)ss)->sin6_addr;
	if (a == NULL ||
	    inet_ntop(ss->ss_family, a, out, (socklen_t)size) == NULL)
		strlcpy(out, "unix", size);
}

/* Everybody who waits has asked already: one answer, then the door. */
static void
turn_away(int fd, const char *remote)
{
	struct conn *c;

	if ((c = conn_new(loop, fd, remote)) == NULL)
		return;
	request_id(c->req.id);
	c->close = 1;
	c->linger = 1;
	send_refusal(c, C_REQ_BUSY, 1);
	conn_do(c);
}

static void
take(int fd, const struct sockaddr_storage *ss)
{
	char remote[64];
	struct conn *c;

	address(ss, remote, sizeof(remote));
	if (pool_make_room() == -1) {
		turn_away(fd, remote);
		return;
	}
	if ((c = conn_new(loop, fd, remote)) == NULL) {
		log_warnx("no room for a connection");
		return;
	}
	if (!peer_ask(c))
		conn_do(c);
}

static void
pause_cb(evutil_socket_t fd, short what, void *arg)
{
	size_t i;

	for (i = 0; i < ndoors; i++)
		(void)event_add(&doors[i].ev, NULL);
}

/* Out of descriptors or memory: leave the rest in the backlog for a while. */
static void
rest(void)
{
	static const struct timeval tv = {0, PAUSE_US};
	size_t i;

	log_warn("accept");
	for (i = 0; i < ndoors; i++)
		event_del(&doors[i].ev);
	(void)event_add(&pause_ev, &tv);
}

static void
accept_cb(evutil_socket_t sock, short what, void *arg)
{
	struct sockaddr_storage ss;
	socklen_t len;
	int fd, i;

	for (i = 0; i < TURNS; i++) {
		memset(&ss, 0, sizeof(ss));
		len = sizeof(ss);
		fd = accept4(sock, (struct sockaddr *)&ss, &len,
		    SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd != -1) {
			take(fd, &ss);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno != EAGAIN)
			rest();
		return;
	}
}

void
accept_start(struct event_base *base)
{
	size_t i;

	if (loop != NULL)
		return;
	loop = base;
	event_assign(&pause_ev, base, -1, 0, pause_cb, NULL);
	for (i = 0; i < ndoors; i++) {
		event_assign(&doors[i].ev, base, doors[i].fd,
		    EV_READ | EV_PERSIST, accept_cb, NULL);
		if (event_add(&doors[i].ev, NULL) == -1)
			fatalx("event_add");
	}
}

void
accept_stop(void)
{
	size_t i;

	for (i = 0; i < ndoors; i++) {
		if (loop != NULL)
			event_del(&doors[i].ev);
		close(doors[i].fd);
	}
	if (loop != NULL)
		event_del(&pause_ev);
	ndoors = 0;
}
