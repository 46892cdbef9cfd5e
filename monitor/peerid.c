/*
 * SPDX-License-Identifier: ISC
 *
 * Who is at the other end of a unix socket: asked of the kernel when the
 * listener hands the socket over, kept under a handle until the connection
 * ends.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/log.h"
#include "monitor/mon.h"

struct peerid {
	struct peerid *next;
	uint64_t no; /* the listener's number */
	uint8_t handle[16];
	uid_t uid;
};

static struct peerid *ids;
static size_t nids;

static void
drop(struct peerid **p)
{
	struct peerid *d = *p;

	*p = d->next;
	explicit_bzero(d, sizeof(*d));
	free(d);
	nids--;
}

static void
answer(const struct peerid *d)
{
	struct wbuf w;

	wbuf_init(&w, 32);
	wput_u64(&w, d->no);
	wput_raw(&w, d->handle, sizeof(d->handle));
	peer_must(mon.listener, LM_PEER_ANS, 0, -1, &w);
	wbuf_free(&w);
}

/* Whether a client made this connection, to a named socket of ours.  Only of
 * such one does the kernel say who is at the other end; channels, listening
 * sockets and what was inherited tell of the one who made them, which may be
 * root. */
static int
is_client(int fd)
{
	struct sockaddr_un sa;
	socklen_t len = sizeof(sa), size = sizeof(int);
	int type = 0, listening = 1;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == -1 ||
	    type != SOCK_STREAM)
		return 0;
	size = sizeof(int);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) ==
		-1 ||
	    listening)
		return 0;
	return getsockname(fd, (struct sockaddr *)&sa, &len) == 0 &&
	       len > offsetof(struct sockaddr_un, sun_path) &&
	       sa.sun_family == AF_UNIX;
}

int
peerid_new(const struct imsg *m)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct peerid *d;
	struct rbuf r;
	uint64_t no;

	rbuf_init(&r, m->payload, m->len);
	no = rget_u64(&r);
	for (d = ids; d != NULL; d = d->next)
		if (d->no == no)
			return -1;
	if (rget_end(&r) == -1 || no == 0 ||
	    nids >= (size_t)mon.cur->conf->max_connections +
			mon.cur->conf->max_pre_auth + 64)
		return -1;
	if (!is_client(m->fd) ||
	    getsockopt(m->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1 ||
	    len != sizeof(cred))
		return -1;
	if ((d = calloc(1, sizeof(*d))) == NULL)
		return -1;
	d->no = no;
	d->uid = cred.uid;
	random_bytes(d->handle, sizeof(d->handle));
	d->next = ids;
	ids = d;
	nids++;
	answer(d);
	return 0;
}

int
peerid_gone(const struct imsg *m)
{
	struct peerid **p;
	struct rbuf r;
	uint64_t no;

	rbuf_init(&r, m->payload, m->len);
	no = rget_u64(&r);
	if (rget_end(&r) == -1)
		return -1;
	for (p = &ids; *p != NULL; p = &(*p)->next)
		if ((*p)->no == no) {
			drop(p);
			return 0;
		}
	return -1;
}

void
peerid_clear(void)
{
	while (ids != NULL)
		drop(&ids);
}

int
peerid_uid(const uint8_t handle[16], uid_t *uid)
{
	const struct peerid *d;

	for (d = ids; d != NULL; d = d->next)
		if (ct_equal(d->handle, handle, sizeof(d->handle))) {
			*uid = d->uid;
			return 0;
		}
	return -1;
}
