/*
 * SPDX-License-Identifier: ISC
 *
 * The life of a child, one order for all: CONF, open, ids, confinement,
 * READY, START, loop.  Owns fd 3.  What a program does is in its proc_ops.
 */
#include "common/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/hash.h"
#include "common/log.h"

static const struct proc_ops *ops;
static struct proc_conf conf;
static struct imsgbuf *early; /* fd 3 before the loop runs */
static struct chan *parent;   /* and after */
static struct event_base *base;
static struct jail jail; /* large, so not on the stack */

static void
proc_log(enum log_level level, const char *line)
{
	uint8_t buf[2048];
	size_t n = strlen(line);

	if (n > sizeof(buf) - 1)
		n = sizeof(buf) - 1;
	buf[0] = (uint8_t)level;
	memcpy(buf + 1, line, n);
	if (parent != NULL) {
		if (chan_send(parent, PC_LOG, 0, -1, buf, n + 1) == 0 &&
		    level == LOGL_ERR)
			chan_flush(parent, 100);
	} else if (early != NULL) {
		if (imsg_compose(early, PC_LOG, 0, -1, buf, n + 1) == 0)
			(void)imsg_flush(early);
	} else
		log_write(level, log_name(), line);
}

static int
take_conf(const struct imsg *m)
{
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	if (proc_conf_get(&r, &conf) == -1)
		return -1;
	log_init(ops->name, conf.debug);
	if (ops->conf != NULL && ops->conf(&conf, &r) == -1)
		return -1;
	return rget_end(&r);
}

static int
take_fd(struct imsg *m)
{
	struct rbuf r;
	uint8_t kind;
	uint32_t idx;

	rbuf_init(&r, m->payload, m->len);
	kind = rget_u8(&r);
	idx = rget_u32(&r);
	if (rget_end(&r) == -1 || ops->fd == NULL ||
	    ops->fd((enum proc_fd)kind, idx, m->fd) != 0)
		return -1;
	m->fd = -1;
	return 0;
}

/* The next message of the parent, waited for.  A parent that breaks the
 * protocol cannot be survived. */
static void
early_next(struct imsg *m)
{
	const char *why;

	while (!imsg_get(early, m))
		if (imsg_read(early) != 1)
			_exit(1);
	if (msg_check(m, &why) == -1)
		fatalx("%s from the parent: %s", msg_name(m->type), why);
}

static void
read_conf(void)
{
	struct imsg m;

	for (;;) {
		early_next(&m);
		if (m.type == PC_CONF) {
			if (take_conf(&m) == -1)
				fatalx("CONF cannot be decoded");
			return;
		}
		if (m.type != PC_FD || take_fd(&m) == -1)
			fatalx("unexpected %s before CONF", msg_name(m.type));
	}
}

static struct event_base *
make_base(void)
{
	struct event_config *cfg;
	struct event_base *b;

	if ((cfg = event_config_new()) == NULL)
		fatalx("event_config_new");
	if (ops->use_poll && (event_config_avoid_method(cfg, "epoll") != 0 ||
				 event_config_avoid_method(cfg, "select") != 0))
		fatalx("event_config_avoid_method");
	if (event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK) != 0)
		fatalx("event_config_set_flag");
	if ((b = event_base_new_with_config(cfg)) == NULL)
		fatalx("event_base_new");
	event_config_free(cfg);
	return b;
}

/* Things that libc opens on first use must be open before the empty root. */
static void
warm_up(void)
{
	time_t t = time(NULL);
	struct tm tm;
	uint8_t r;

	/* newer ones count processors, in files, for their first random byte */
	random_bytes(&r, sizeof(r));
	setenv("TZ", "UTC", 1);
	tzset();
	if (gmtime_r(&t, &tm) == NULL)
		fatalx("gmtime_r");
}

static void
confine(void)
{
	char text[256];
	int status;

	if ((status = open("/proc/self/status", O_RDONLY | O_CLOEXEC)) == -1)
		fatal("/proc/self/status");
	if (ops->open != NULL)
		ops->open(&conf);
	ops->jail(&conf, &jail);
	jail_drop(&jail, conf.root, conf.uid, conf.gid);
	if (ops->opened != NULL)
		ops->opened(&conf, &jail);
	base = make_base();
	jail_confine(&jail, conf.ppid, status, text, sizeof(text));
	close(status);
	if (imsg_compose(early, PC_READY, 0, -1, text, strlen(text)) == -1 ||
	    imsg_flush(early) != 0)
		fatal("cannot tell the parent that it is ready");
}

static int
parent_cb(struct chan *c, struct imsg *m, void *arg)
{
	const char *why;

	if (msg_check(m, &why) == -1)
		fatalx("%s from the parent: %s", msg_name(m->type), why);
	if (m->type == PC_SHUTDOWN) {
		if (ops->shutdown == NULL)
			proc_exit(0);
		ops->shutdown();
		return 0;
	}
	if (ops->parent_msg == NULL || ops->parent_msg(m) != 0)
		fatalx("unexpected %s from the parent", msg_name(m->type));
	return 0;
}

static void
parent_gone_cb(struct chan *c, int error, void *arg)
{
	_exit(1);
}

/* Wait for START and go over to the loop; what came in the same packet is
 * handled as if it had come later. */
static void
enter_loop(void)
{
	struct imsg m, rest[8];
	size_t n = 0, i;
	int mon = -1, fd;

	if (ops->parent_msg == NULL) {
		do
			early_next(&m);
		while (m.type == PC_SHUTDOWN);
		if (m.type != PC_START)
			fatalx("%s instead of START", msg_name(m.type));
		mon = m.fd;
	}
	while (n < nitems(rest) && imsg_get(early, &rest[n]))
		n++;
	if (n > 0 && ops->parent_msg == NULL) {
		/* only SHUTDOWN can be behind START */
		for (i = 0; i < n; i++)
			if (rest[i].type != PC_SHUTDOWN)
				fatalx(
				    "%s behind START", msg_name(rest[i].type));
		exit(0);
	}
	if (n > 0)
		fatalx("%s before the loop", msg_name(rest[0].type));
	fd = imsg_detach(early);
	early = NULL;
	parent = chan_new(base, fd, parent_cb, parent_gone_cb, NULL);
	if (parent == NULL)
		_exit(1);
	ops->start(base, mon);
}

int
proc_main(const struct proc_ops *o, int argc, char **argv)
{
	static const int ignore[] = {
	    SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
	size_t i;

	ops = o;
	log_init(o->name, 0);
	if (argc != 1 || fcntl(ABX_FD_PARENT, F_GETFD) == -1) {
		fprintf(stderr, "%s is started by abxd\n", o->name);
		return 2;
	}
	for (i = 0; i < nitems(ignore); i++)
		if (signal(ignore[i], SIG_IGN) == SIG_ERR)
			fatal("signal");
	warm_up();
	if (fcntl(ABX_FD_PARENT, F_SETFD, FD_CLOEXEC) == -1 ||
	    (early = imsg_new(ABX_FD_PARENT)) == NULL)
		fatal("fd 3");
	log_set_sink(proc_log);
	read_conf();
	confine();
	enter_loop();
	if (event_base_dispatch(base) == -1)
		fatalx("event loop");
	proc_exit(0);
	return 0;
}

void
proc_exit(int status)
{
	if (parent != NULL)
		chan_flush(parent, 100);
	exit(status);
}

int
proc_tell(uint16_t type, int fd, const void *payload, size_t len)
{
	return chan_send(parent, type, 0, fd, payload, len);
}

uint64_t
proc_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint32_t
proc_generation(void)
{
	return conf.generation;
}
