/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl's socket: who connects is asked of the kernel, what it asks is one
 * word, the answer is JSON text.  The socket was bound by the parent.
 */
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <jansson.h>

#include "common/entry.h"
#include "common/log.h"
#include "common/proc.h"
#include "monitor/mon.h"
#include "monitor/proc.h"
#include "monitor/sink.h"

#define MAX_CLIENTS 16

/* One connected abxctl. */
struct client {
	struct client *next;
	struct chan *chan;
	uid_t uid;
	uint64_t waiting; /* id of a reload that is to be answered, 0: none */
	uint32_t ticket;  /* which one: the first that began after this */
};

static struct client *clients;
static size_t nclients;
static uint32_t last_ticket;
static struct event *accept_ev;

static void
client_free(struct client *c)
{
	struct client **p;

	for (p = &clients; *p != c; p = &(*p)->next)
		continue;
	*p = c->next;
	nclients--;
	chan_free(c->chan);
	free(c);
}

/* text is the call's, NULL: out of memory. */
static void
reply_text(struct client *c, uint64_t id, int ok, char *text)
{
	struct wbuf w;

	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	wput_u8(&w, (uint8_t)(ok && text != NULL));
	json_raw_put(&w, text == NULL ? "{\"error\":\"out of memory\"}" : text);
	free(text);
	if (w.err || chan_send(c->chan, CT_ANS, id, -1, w.p, w.len) == -1)
		log_warnx("cannot answer abxctl");
	wbuf_free(&w);
}

static void
reply(struct client *c, uint64_t id, int ok, json_t *j)
{
	reply_text(c, id, ok, core_json_text(j));
}

/* ---- verbs ---- */

static json_t *
worker_json(const struct peer *p)
{
	if (p == NULL)
		return json_pack("{s:b}", "ready", 0);
	return json_pack(
	    "{s:b, s:i}", "ready", p->ready, "generation", (int)p->generation);
}

static void
verb_status(struct client *c, uint64_t id)
{
	uint32_t layers = mon.cur->execd == NULL ? 0 : mon.cur->execd->layers;
	uint64_t up = (proc_now_us() - mon.start_us) / 1000000;

	reply(c, id, 1,
	    json_pack("{s:s, s:s, s:I, s:i, s:I, s:b, s:b, s:{s:o, s:o, s:o},"
		      " s:{s:b, s:b, s:b, s:b}}",
		"version", ABX_VERSION, "revision", mon.cur->revision,
		"uptime_s", (json_int_t)up, "requests", (int)req_count(),
		"audit_lost", (json_int_t)sink_lost(), "panic", mon.panic,
		"reloading", mon.next != NULL, "processes", "listener",
		worker_json(mon.listener), "pathd", worker_json(mon.cur->pathd),
		"execd", worker_json(mon.cur->execd), "sandbox", "namespaces",
		(layers & LAYER_NAMESPACES) != 0, "seccomp",
		(layers & LAYER_SECCOMP) != 0, "landlock",
		(layers & LAYER_LANDLOCK) != 0, "cgroup",
		(layers & LAYER_CGROUP) != 0));
}

static void
verb_sessions(struct client *c, uint64_t id)
{
	reply_text(c, id, 1, sessions_text());
}

static void
verb_top(struct client *c, uint64_t id)
{
	reply_text(c, id, 1, top_text());
}

static void
verb_reload(struct client *c, uint64_t id)
{
	struct wbuf w;
	int rc = -1;

	wbuf_init(&w, 16);
	wput_u32(&w, last_ticket + 1);
	if (c->waiting == 0 && !w.err)
		rc = proc_tell(PC_RELOAD, -1, w.p, w.len);
	wbuf_free(&w);
	if (rc == -1) {
		reply(c, id, 0,
		    json_pack("{s:s}", "error", "no more can be asked for"));
		return;
	}
	c->ticket = ++last_ticket;
	c->waiting = id;
}

static void
kill_run(struct req *r, void *arg)
{
	if (req_owed_by(r, PROC_EXECD))
		(void)peer_send(r->peer, ME_CANCEL, r->rid, -1, NULL);
}

static void
verb_panic(struct client *c, uint64_t id)
{
	mon.panic = 1;
	log_warnx("panic by uid %u: every command is killed and none may start",
	    c->uid);
	req_each(kill_run, NULL);
	proc_kill_all();
	reply(c, id, 1, json_pack("{s:b}", "panic", 1));
}

static void
verb_resume(struct client *c, uint64_t id)
{
	mon.panic = 0;
	log_info("resume by uid %u: commands may start again", c->uid);
	reply(c, id, 1, json_pack("{s:b}", "panic", 0));
}

static const struct {
	const char *name;
	void (*f)(struct client *, uint64_t);
} verbs[] = {
    {"status", verb_status},
    {"reload", verb_reload},
    {"panic", verb_panic},
    {"resume", verb_resume},
    {"sessions", verb_sessions},
    {"top", verb_top},
};

static int
control_msg_cb(struct chan *ch, struct imsg *m, void *arg)
{
	struct client *c = arg;
	const char *why;
	size_t i;

	/* who does not read what he asked for asks no more */
	if (msg_check(m, &why) == -1 || m->type != CT_ASK || m->id == 0 ||
	    chan_queued(ch) > CHAN_HIGH)
		return -1;
	for (i = 0; i < nitems(verbs); i++)
		if (strlen(verbs[i].name) == m->len &&
		    memcmp(verbs[i].name, m->payload, m->len) == 0) {
			verbs[i].f(c, m->id);
			return 0;
		}
	reply(c, m->id, 0, json_pack("{s:s}", "error", "unknown verb"));
	return 0;
}

static void
control_gone_cb(struct chan *ch, int error, void *arg)
{
	client_free(arg);
}

/* ---- who ---- */

static int
in_group(int fd, gid_t gid, gid_t primary)
{
	gid_t groups[256];
	socklen_t len = sizeof(groups);
	size_t i;

	if (gid == (gid_t)-1)
		return 0;
	if (gid == primary)
		return 1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) == -1)
		return 0;
	for (i = 0; i < len / sizeof(gid_t); i++)
		if (groups[i] == gid)
			return 1;
	return 0;
}

/* Root, who started the service, and the members of control.group. */
static int
admitted(int fd, struct client *c)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1 ||
	    len != sizeof(cred))
		return 0;
	c->uid = cred.uid;
	return cred.uid == 0 || cred.uid == mon.starter ||
	       in_group(fd, mon.control_gid, cred.gid);
}

static void
resume_cb(evutil_socket_t fd, short what, void *arg)
{
	if (event_add(accept_ev, NULL) == -1)
		log_warnx("control socket: cannot wait for clients again");
}

static void
pause_accept(void)
{
	static const struct timeval tv = {1, 0};

	log_warn("control socket");
	if (event_base_once(mon.base, -1, EV_TIMEOUT, resume_cb, NULL, &tv) ==
	    0)
		(void)event_del(accept_ev);
}

static void
accept_cb(evutil_socket_t fd, short what, void *arg)
{
	struct client *c;
	int s;

	s = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (s == -1) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM)
			pause_accept(); /* else it is readable for ever */
		return;
	}
	if (nclients >= MAX_CLIENTS || (c = calloc(1, sizeof(*c))) == NULL) {
		close(s);
		return;
	}
	if (!admitted(s, c)) {
		log_warnx("control: uid %u is not admitted", c->uid);
		close(s);
		free(c);
		return;
	}
	c->chan = chan_new(mon.base, s, control_msg_cb, control_gone_cb, c);
	if (c->chan == NULL) {
		close(s);
		free(c);
		return;
	}
	c->next = clients;
	clients = c;
	nclients++;
}

void
control_init(int fd)
{
	int fl = fcntl(fd, F_GETFL);

	if (accept_ev != NULL || fl == -1 ||
	    fcntl(fd, F_SETFL, fl | O_NONBLOCK) == -1)
		fatalx("control socket");
	accept_ev =
	    event_new(mon.base, fd, EV_READ | EV_PERSIST, accept_cb, NULL);
	if (accept_ev == NULL || event_add(accept_ev, NULL) == -1)
		fatalx("control socket");
}

void
control_reloaded(uint32_t ticket, int ok, const char *text)
{
	struct client *c;

	for (c = clients; c != NULL; c = c->next) {
		if (c->waiting == 0 || c->ticket > ticket)
			continue;
		reply(c, c->waiting, ok,
		    json_pack("{s:s}", ok ? "revision" : "error", text));
		c->waiting = 0;
	}
}
