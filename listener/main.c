/*
 * SPDX-License-Identifier: ISC
 *
 * abx-listener: the process that reads hostile bytes.  It parses HTTP, turns
 * strangers away and moves bytes between sockets and the descriptors that
 * the monitor hands it.  It is taken for compromised by all others: it cannot
 * open a file, make a socket, start a program or see the policy.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <jansson.h>

#include "common/entry.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/proc.h"
#include "listener/accept.h"
#include "listener/listener.h"
#include "listener/mon.h"
#include "listener/pool.h"
#include "listener/rejects.h"

struct lconf lconf;

static struct event_base *loop;
static struct chan *mon;
static struct event drain_ev;
static rlim_t nofile = ABX_NOFILE; /* what there will be */

/* Descriptors: of a connection that waits and of one that is served, and those
 * that all others, a packet and the sockets themselves may need. */
#define OF_CONN 5
#define OF_US 256

struct chan *
listener_mon(void)
{
	return mon;
}

uint32_t
listener_bound(uint32_t n)
{
	rlim_t most = nofile > OF_US ? (nofile - OF_US) / OF_CONN : 0;

	return n <= most ? n : most < 2 ? 2 : (uint32_t)most;
}

const char *
listener_date(void)
{
	static char text[HTTPDATE_SIZE];
	static time_t then = -1;
	struct timespec ts;

	if (clock_gettime(CLOCK_REALTIME_COARSE, &ts) == 0 &&
	    ts.tv_sec != then) {
		then = ts.tv_sec;
		time_http(text, then);
	}
	return text;
}

void
listener_configured(void)
{
	if (!pool_draining())
		accept_start(loop);
}

static int
take_fd(enum proc_fd kind, uint32_t index, int fd)
{
	return kind == PFD_LISTEN ? accept_add(index, fd) : -1;
}

static void
prepare(const struct proc_conf *conf)
{
	size_t seed;

	/* else jansson opens /dev/urandom at the first object */
	random_bytes(&seed, sizeof(seed));
	json_object_seed(seed | 1);
}

static void
confinement(const struct proc_conf *conf, struct jail *j)
{
	rlim_t most = jail_nofile_now().rlim_max;

	if (most < nofile)
		nofile = most;
	j->nofile = nofile;
	j->empty_root = 1;
	j->landlock = 1;
	j->calls = filter_calls;
}

static void
start(struct event_base *base, int fd)
{
	loop = base;
	pool_init(base);
	rejects_init(base);
	if ((mon = chan_new(base, fd, mon_msg, mon_gone, NULL)) == NULL)
		fatal("channel to the monitor");
}

static void
drained(void)
{
	chan_flush(mon, 100);
	proc_exit(0);
}

static void
drain_cb(evutil_socket_t fd, short what, void *arg)
{
	pool_kill_all();
	drained();
}

static void
shut_down(void)
{
	uint64_t ms = lconf.shutdown_grace_ms;
	struct timeval tv = {
	    (time_t)(ms / 1000), (suseconds_t)(ms % 1000) * 1000};
	if (pool_draining())
		drained();
	accept_stop();
	if (mon == NULL)
		proc_exit(0);
	event_assign(&drain_ev, loop, -1, 0, drain_cb, NULL);
	(void)event_add(&drain_ev, &tv);
	pool_drain(drained);
}

static const struct proc_ops program = {
    .name = "abx-listener",
    .fd = take_fd,
    .open = prepare,
    .jail = confinement,
    .start = start,
    .shutdown = shut_down,
};

int
main(int argc, char **argv)
{
	return proc_main(&program, argc, argv);
}
