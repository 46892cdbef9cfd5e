/*
 * SPDX-License-Identifier: ISC
 *
 * Handing unix sockets over and taking handles back.  Who the peer is stays
 * the monitor's knowledge.
 */
#include "listener/peer.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "listener/conn.h"
#include "listener/listener.h"
#include "listener/pool.h"

static uint32_t sequence;

int
peer_ask(struct conn *c)
{
	struct wbuf w;
	int copy, rc;

	if (!lconf.has_peers || strcmp(c->remote, "unix") != 0)
		return 0;
	if ((copy = fcntl(c->fd, F_DUPFD_CLOEXEC, 4)) == -1) {
		log_warn("peer");
		return 0; /* it goes on as a stranger */
	}
	c->peer_no = (uint64_t)++sequence << 32 | c->slot;
	wbuf_init(&w, 16);
	wput_u64(&w, c->peer_no);
	rc = w.err ? -1
		   : chan_send(listener_mon(), LM_PEER, 0, copy, w.p, w.len);
	if (w.err)
		close(copy);
	wbuf_free(&w);
	return rc == 0;
}

int
peer_answer(const struct imsg *m)
{
	const uint8_t *handle;
	struct conn *c;
	struct rbuf r;
	uint64_t no;

	rbuf_init(&r, m->payload, m->len);
	no = rget_u64(&r);
	handle = rget_raw(&r, sizeof(c->peer));
	if (rget_end(&r) == -1 || m->id != 0)
		return -1;
	c = pool_find((uint32_t)no);
	if (c == NULL || c->peer_no != no)
		return 0; /* it has gone, and said so */
	if (c->has_peer)
		return -1;
	memcpy(c->peer, handle, sizeof(c->peer));
	c->has_peer = 1;
	conn_do(c);
	return 0;
}

void
peer_forget(struct conn *c)
{
	struct wbuf w;

	if (c->peer_no == 0)
		return;
	/* by number: the handle may still be on its way */
	wbuf_init(&w, 16);
	wput_u64(&w, c->peer_no);
	if (w.err ||
	    chan_send(listener_mon(), LM_PEER_GONE, 0, -1, w.p, w.len) == -1)
		log_warn("cannot tell that a peer is gone");
	wbuf_free(&w);
	c->peer_no = 0;
}
