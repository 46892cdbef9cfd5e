/*
 * SPDX-License-Identifier: ISC
 *
 * The life of the children: started, made known to the monitor, restarted
 * with back-off, stopped in order.  The monitor's death ends everything.
 */
#include "monitor/parent.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/log.h"

#define STOP_DEADLINE_S 7 /* all gone within eight seconds */
#define RESTART_WINDOW_US 60000000ULL

enum stop_stage { STOP_NO, STOP_LISTENER, STOP_WORKERS, STOP_MONITOR };

static struct parent *self; /* for callbacks without an argument */

static void child_start(struct parent *, enum proc_kind);
static void stop_next(struct parent *);

static uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void
kill_all(struct parent *p)
{
	int k;

	for (k = 0; k < PROC_COUNT; k++)
		if (p->kids[k].pid > 0)
			(void)kill(p->kids[k].pid, SIGKILL);
}

/* End at once with this status: nothing may go on without us. */
static void
end_now(struct parent *p, int status)
{
	p->status = status;
	kill_all(p);
	event_base_loopbreak(p->base);
}

/* ---- telling ---- */

static void
send_num(struct child *c, uint16_t type, int fd, uint8_t kind, uint32_t gen)
{
	struct wbuf w;

	wbuf_init(&w, 64);
	wput_u8(&w, kind);
	wput_u32(&w, gen);
	if (w.err || c->chan == NULL) {
		if (fd != -1)
			close(fd);
	} else if (chan_send(c->chan, type, 0, fd, w.p, w.len) == -1)
		log_warn(
		    "cannot send %s to %s", msg_name(type), proc_name(c->kind));
	wbuf_free(&w);
}

static void
send_fd(struct child *c, uint8_t kind, uint32_t index, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 4);

	if (copy == -1)
		log_warn("cannot copy a descriptor for %s", proc_name(c->kind));
	else
		send_num(c, PC_FD, copy, kind, index);
}

static void
send_audit(struct parent *p, size_t i, int fd)
{
	struct child *m = &p->kids[PROC_MONITOR];
	uint8_t index = (uint8_t)i;

	if (m->chan == NULL ||
	    chan_send(m->chan, PC_AUDIT_FD, 0, fd, &index, 1) == -1)
		log_warn("cannot hand audit sink %zu on", i);
}

/* ---- CONF of each program ---- */

static void
put_paths(struct wbuf *w, const struct boot_path *v, size_t n)
{
	size_t i;

	wput_u32(w, (uint32_t)n);
	for (i = 0; i < n; i++)
		boot_path_put(w, &v[i]);
}

static void
put_execd(const struct parent *p, struct wbuf *w)
{
	char launch[ABX_PATH_MAX];

	snprintf(launch, sizeof(launch), "%s/abx-launch", p->libdir);
	put_paths(w, p->boot.binds, p->boot.nbinds);
	wput_u64(w, p->boot.tmp_size);
	wput_u32(w, p->boot.require);
	wput_str(w, launch);
	strlist_put(w, &p->boot.protect);
	wput_u32(w, 4096);
}

/* The crash journal of pathd, in the state directory. */
static void
send_journal(const struct parent *p, struct child *c)
{
	char path[ABX_PATH_MAX + 32];
	int fd;

	snprintf(path, sizeof(path), "%s/pathd.journal", p->boot.state_dir);
	fd = open(path,
	    O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
	    0600);
	if (fd == -1)
		log_warn("journal %s", path);
	else
		send_num(c, PC_FD, fd, PFD_JOURNAL, 0);
}

static void
child_conf(struct parent *p, struct child *c)
{
	struct proc_conf pc = {0};
	struct wbuf w;
	size_t i;

	pc.root = (uint8_t)p->root;
	pc.debug = (uint8_t)log_debugging();
	pc.uid = p->ids[c->kind].uid;
	pc.gid = p->ids[c->kind].gid;
	pc.generation = c->generation;
	pc.ppid = c->kind == PROC_EXECD ? 0 : getpid();
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	proc_conf_put(&w, &pc);
	switch (c->kind) {
	case PROC_LISTENER:
		for (i = 0; i < p->nsocks; i++)
			send_fd(c, PFD_LISTEN, (uint32_t)i, p->socks[i]);
		break;
	case PROC_MONITOR:
		strlist_put(&w, &p->boot.audit);
		strlist_put(&w, &p->boot.protect);
		wput_u8(&w, p->boot.exec_used);
		break;
	case PROC_PATHD:
		send_journal(p, c);
		put_paths(&w, p->boot.roots, p->boot.nroots);
		wput_u32(&w, p->boot.umask);
		break;
	case PROC_EXECD:
		put_execd(p, &w);
		break;
	default:
		break;
	}
	if (w.err || chan_send(c->chan, PC_CONF, 0, -1, w.p, w.len) == -1)
		fatalx(
		    "the configuration of %s is too large", proc_name(c->kind));
	wbuf_free(&w);
}

/* ---- coming up ---- */

/* Connect a ready child and the monitor with a fresh pair of sockets. */
static void
child_connect(struct parent *p, struct child *c)
{
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		0, sv) == -1) {
		log_warn("socketpair");
		return;
	}
	if (chan_send(c->chan, PC_START, 0, sv[0], NULL, 0) == -1) {
		close(sv[1]);
		return;
	}
	send_num(&p->kids[PROC_MONITOR], PC_CHILD_UP, sv[1], (uint8_t)c->kind,
	    c->generation);
}

static void
announce(struct parent *p)
{
	char names[1024];

	if (p->announced || p->stopping)
		return;
	p->announced = 1;
	sock_names(p, names, sizeof(names));
	log_info("ready on %s, revision %s", names, p->boot.revision);
	sock_notify("READY=1\n");
	if (p->daemon_pipe != -1) {
		if (write(p->daemon_pipe, "0", 1) != 1)
			log_warn("cannot tell the starter");
		close(p->daemon_pipe);
		p->daemon_pipe = -1;
	}
}

static void
monitor_ready(struct parent *p)
{
	struct child *m = &p->kids[PROC_MONITOR], *c;
	size_t i;
	int k;

	if (chan_send(m->chan, PC_POLICY, 0, p->policy, NULL, 0) == -1)
		fatal("cannot hand the policy on");
	p->policy = -1;
	for (i = 0; i < p->boot.audit.n; i++) {
		send_audit(p, i, p->audit[i]);
		p->audit[i] = -1;
	}
	for (k = 0; k < PROC_COUNT; k++) {
		c = &p->kids[k];
		if (c->ready && (k == PROC_PATHD || k == PROC_EXECD))
			child_connect(p, c);
	}
}

/* Let clients in: the listener is connected last, when the monitor has its
 * roots and its sandbox. */
static void
open_door(struct parent *p)
{
	struct child *c = &p->kids[PROC_LISTENER];

	if (!p->workers_up || !c->ready)
		return;
	child_connect(p, c);
	announce(p);
}

static void
child_ready(struct parent *p, struct child *c, const struct imsg *m)
{
	if (c->ready)
		return;
	c->ready = 1;
	log_info("%s[%d]: %.*s", proc_name(c->kind), c->pid, (int)m->len,
	    (const char *)m->payload);
	if (c->kind == PROC_MONITOR)
		monitor_ready(p);
	else if (c->kind == PROC_LISTENER)
		open_door(p);
	else if (p->kids[PROC_MONITOR].ready)
		child_connect(p, c);
}

/* ---- messages of children ---- */

static void
child_log(const struct child *c, const struct imsg *m)
{
	char line[2048];
	enum log_level level = m->payload[0];

	snprintf(line, sizeof(line), "%.*s", (int)(m->len - 1),
	    (const char *)m->payload + 1);
	if (self->opt.foreground)
		log_write(level, proc_name(c->kind), line);
	else if (level <= LOGL_WARN)
		log_warnx("%s: %s", proc_name(c->kind), line);
	else
		log_info("%s: %s", proc_name(c->kind), line);
}

static int
monitor_says(struct parent *p, const struct imsg *m)
{
	struct rbuf r;
	struct child *c;
	uint8_t kind;
	uint32_t gen;

	switch (m->type) {
	case PC_MON_READY:
		if (!p->workers_up) {
			p->workers_up = 1;
			open_door(p);
		}
		return 0;
	case PC_BROKEN:
		rbuf_init(&r, m->payload, m->len);
		kind = rget_u8(&r);
		gen = rget_u32(&r);
		if (rget_end(&r) == -1 || kind >= PROC_COUNT)
			return -1;
		c = &p->kids[kind];
		if (c->pid > 0 && c->generation == gen)
			(void)kill(c->pid, SIGKILL);
		return 0;
	case PC_PROBE_FAIL:
		log_warnx("the probe sandbox failed: %.*s", (int)m->len,
		    (const char *)m->payload);
		return 0;
	default:
		return -1;
	}
}

static int
child_msg_cb(struct chan *ch, struct imsg *m, void *arg)
{
	struct child *c = arg;
	const char *why;

	if (msg_check(m, &why) == -1) {
		log_warnx("%s from %s: %s", msg_name(m->type),
		    proc_name(c->kind), why);
		return -1;
	}
	switch (m->type) {
	case PC_READY:
		child_ready(self, c, m);
		return 0;
	case PC_LOG:
		child_log(c, m);
		return 0;
	default:
		if (c->kind == PROC_MONITOR && c->ready)
			return monitor_says(self, m);
		return -1;
	}
}

/* The death itself is seen by waitpid; a channel that broke kills. */
static void
child_gone_cb(struct chan *ch, int error, void *arg)
{
	struct child *c = arg;

	if (error == EBADMSG) {
		log_warnx("%s breaks the protocol", proc_name(c->kind));
		if (c->pid > 0)
			(void)kill(c->pid, SIGKILL);
	}
}

/* ---- start and restart ---- */

#ifdef ABX_SANITIZE
static char asan_options[] = "ASAN_OPTIONS=detect_leaks=0:abort_on_error=1";
#endif
/* What a child finds in its environment: nothing. */
static char *const child_env[] = {
#ifdef ABX_SANITIZE
    asan_options,
#endif
    NULL};

static void
child_start(struct parent *p, enum proc_kind kind)
{
	struct child *c = &p->kids[kind];
	char name[32];
	char *argv[] = {name, NULL};
	int sv[2];

	strlcpy(name, proc_name(kind), sizeof(name));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1)
		fatal("socketpair");
	c->kind = kind;
	c->generation++;
	c->ready = 0;
	c->pid = spawn_child(p, kind, sv[1], argv, child_env);
	if (c->pid == -1)
		fatal("cannot start %s", name);
	close(sv[1]);
	c->chan = chan_new(p->base, sv[0], child_msg_cb, child_gone_cb, c);
	if (c->chan == NULL)
		fatal("channel to %s", name);
	child_conf(p, c);
}

static void
restart_cb(evutil_socket_t fd, short what, void *arg)
{
	struct child *c = arg;

	event_free(c->timer);
	c->timer = NULL;
	if (!self->stopping)
		child_start(self, c->kind);
}

/* Restarts of the last minute, this one included. */
static uint32_t
count_restart(struct child *c)
{
	uint64_t now = now_us();
	size_t i, n = 0;

	for (i = 0; i < c->nstarts; i++)
		if (now - c->starts[i] < RESTART_WINDOW_US)
			c->starts[n++] = c->starts[i];
	if (n == nitems(c->starts))
		memmove(c->starts, c->starts + 1, --n * sizeof(c->starts[0]));
	c->starts[n++] = now;
	c->nstarts = n;
	return (uint32_t)n;
}

static void
child_restart(struct parent *p, struct child *c)
{
	uint32_t n = count_restart(c), ms;
	struct timeval tv;

	if (n > p->boot.restart_limit) {
		log_warnx("%s died %u times in a minute: giving up",
		    proc_name(c->kind), n);
		end_now(p, 1);
		return;
	}
	ms = n == 1 ? 10 : n > 5 ? 1000 : 50U << n;
	if (ms > 1000)
		ms = 1000;
	tv.tv_sec = ms / 1000;
	tv.tv_usec = (suseconds_t)(ms % 1000) * 1000;
	c->timer = evtimer_new(p->base, restart_cb, c);
	if (c->timer == NULL || evtimer_add(c->timer, &tv) == -1)
		fatalx("timer");
}

static void
log_death(const struct child *c, int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		log_warnx("%s[%d] was killed by its system call filter",
		    proc_name(c->kind), c->pid);
	else if (WIFSIGNALED(status))
		log_warnx("%s[%d] died of signal %d", proc_name(c->kind),
		    c->pid, WTERMSIG(status));
	else
		log_warnx("%s[%d] exited with %d", proc_name(c->kind), c->pid,
		    WEXITSTATUS(status));
}

static void
child_died(struct parent *p, struct child *c, int status)
{
	int was_ready = c->ready;

	if (!p->stopping)
		log_death(c, status);
	chan_free(c->chan);
	c->chan = NULL;
	c->pid = -1;
	c->ready = 0;
	if (c->kind != PROC_MONITOR)
		send_num(&p->kids[PROC_MONITOR], PC_CHILD_GONE, -1,
		    (uint8_t)c->kind, c->generation);
	if (p->stopping) {
		stop_next(p);
		return;
	}
	if (c->kind == PROC_MONITOR) {
		log_warnx("without the monitor nothing can be decided: "
			  "stopping");
		end_now(p, 1);
	} else if (!was_ready && !p->announced) {
		log_warnx("%s did not come up", proc_name(c->kind));
		end_now(p, 1);
	} else
		child_restart(p, c);
}

/* ---- stopping ---- */

static int
running(const struct parent *p, enum proc_kind k)
{
	return p->kids[k].pid > 0;
}

static void
shut(struct parent *p, enum proc_kind k)
{
	if (running(p, k) &&
	    (!p->kids[k].ready ||
		chan_send(p->kids[k].chan, PC_SHUTDOWN, 0, -1, NULL, 0) == -1))
		(void)kill(p->kids[k].pid, SIGKILL);
}

/* Go on with stopping when the processes of the present stage are gone. */
static void
stop_next(struct parent *p)
{
	if (p->stopping == STOP_LISTENER && !running(p, PROC_LISTENER)) {
		p->stopping = STOP_WORKERS;
		shut(p, PROC_PATHD);
		shut(p, PROC_EXECD);
	}
	if (p->stopping == STOP_WORKERS && !running(p, PROC_PATHD) &&
	    !running(p, PROC_EXECD)) {
		p->stopping = STOP_MONITOR;
		shut(p, PROC_MONITOR);
	}
	if (p->stopping == STOP_MONITOR && !running(p, PROC_MONITOR))
		event_base_loopbreak(p->base);
}

static void
grace_cb(evutil_socket_t fd, short what, void *arg)
{
	struct parent *p = arg;

	if (p->stopping == STOP_LISTENER && running(p, PROC_LISTENER))
		(void)kill(p->kids[PROC_LISTENER].pid, SIGKILL);
}

static void
deadline_cb(evutil_socket_t fd, short what, void *arg)
{
	struct parent *p = arg;

	log_warnx("not everything stopped in time: killing");
	end_now(p, p->status);
}

static void
after_ms(struct parent *p, uint64_t ms, event_callback_fn cb)
{
	struct timeval tv = {
	    (time_t)(ms / 1000), (suseconds_t)(ms % 1000) * 1000};

	if (event_base_once(p->base, -1, EV_TIMEOUT, cb, p, &tv) == -1)
		fatalx("timer");
}

static void
stop_begin(struct parent *p)
{
	uint64_t grace = p->boot.shutdown_grace_ms;
	size_t i;

	log_info("stopping");
	sock_notify("STOPPING=1\n");
	for (i = 0; i < p->nsocks; i++)
		close(p->socks[i]);
	p->nsocks = 0;
	p->stopping = STOP_LISTENER;
	if (grace > 5000)
		grace = 5000;
	after_ms(p, grace + 200, grace_cb);
	after_ms(p, STOP_DEADLINE_S * 1000, deadline_cb);
	shut(p, PROC_LISTENER);
	stop_next(p);
}

/* ---- signals ---- */

static void
sigterm_cb(evutil_socket_t sig, short what, void *arg)
{
	struct parent *p = arg;

	if (p->stopping)
		end_now(p, 0);
	else
		stop_begin(p);
}

static void
sigchld_cb(evutil_socket_t sig, short what, void *arg)
{
	struct parent *p = arg;
	int status, k;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (k = 0; k < PROC_COUNT; k++)
			if (p->kids[k].pid == pid)
				child_died(p, &p->kids[k], status);
}

/* Open the audit files anew, for whoever renamed them. */
static void
sigusr1_cb(evutil_socket_t sig, short what, void *arg)
{
	struct parent *p = arg;
	size_t i;
	int fd;

	for (i = 0; i < p->boot.audit.n; i++) {
		if (strncmp(p->boot.audit.v[i], "file:", 5) != 0)
			continue;
		if ((fd = boot_open_audit(p, i)) == -1)
			log_warn("audit sink %s", p->boot.audit.v[i]);
		else
			send_audit(p, i, fd);
	}
}

static void
sighup_cb(evutil_socket_t sig, short what, void *arg)
{
	log_warnx("reload is not supported by this version: restart instead");
}

static void
watch(struct parent *p, int sig, event_callback_fn cb)
{
	struct event *ev = evsignal_new(p->base, sig, cb, p);

	if (ev == NULL || evsignal_add(ev, NULL) == -1)
		fatalx("signal %d", sig);
}

int
parent_run(struct parent *p)
{
	static const enum proc_kind order[] = {
	    PROC_MONITOR, PROC_EXECD, PROC_PATHD, PROC_LISTENER};
	size_t i;
	int k;

	self = p;
	for (k = 0; k < PROC_COUNT; k++)
		p->kids[k].pid = -1;
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		fatal("signal");
	if ((p->base = event_base_new()) == NULL)
		fatalx("event_base_new");
	watch(p, SIGTERM, sigterm_cb);
	watch(p, SIGINT, sigterm_cb);
	watch(p, SIGCHLD, sigchld_cb);
	watch(p, SIGUSR1, sigusr1_cb);
	watch(p, SIGHUP, sighup_cb);
	for (i = 0; i < nitems(order); i++)
		child_start(p, order[i]);
	if (event_base_dispatch(p->base) == -1)
		log_warnx("event loop");
	kill_all(p);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		continue;
	log_info("stopped");
	return p->status;
}
