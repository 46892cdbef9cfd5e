/*
 * SPDX-License-Identifier: ISC
 *
 * The work of an admitted command: the order to execd, made from the decision
 * alone.  The working directory travels as a descriptor; what the policy denies
 * below it is listed by pathd before the sandbox is built and once more when
 * it is, before the program starts (design: sandbox).
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/glob.h"
#include "common/log.h"
#include "common/memfd.h"
#include "monitor/mon.h"
#include "monitor/proc.h"
#include "monitor/work.h"
#include "monitor/workspace.h"

#define KILL_GRACE_MS 2000
#define RETRY_LAYER_S 60		   /* it takes somebody to mend it */
#define SPAWN_BYTES_MAX (8U * 1024 * 1024) /* execd takes no more */

/* 0 when every layer that the policy requires was seen to work. */
static int
layers_missing(const struct req *r, char *details, size_t size)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} names[] = {{LAYER_NAMESPACES, "namespaces"},
	    {LAYER_SECCOMP, "seccomp"}, {LAYER_LANDLOCK, "landlock"},
	    {LAYER_CGROUP, "cgroup"}};
	const struct peer *p = r->snap->execd;
	uint32_t have = p == NULL ? 0 : p->layers;
	const char *layer = NULL;
	size_t i;

	if (p == NULL || !p->ready)
		return 0; /* 503 server.unavailable says more */
	if (mon.panic)
		layer = "panic";

	if (!r->snap->conf->sandbox_enabled)
		layer = "disabled";
	for (i = 0; layer == NULL && i < nitems(names); i++)
		if ((r->snap->conf->require & names[i].bit) != 0 &&
		    (have & names[i].bit) == 0)
			layer = i == 0 && p->lacks[0] != '\0' ? p->lacks
							      : names[i].name;
	if (layer == NULL)
		return 0;
	snprintf(details, size, "{\"layer\":\"%s\"}", layer);
	return 1;
}

static void
refuse_layer(struct req *r, const char *details)
{
	struct ans a = {0};

	a.kind = ANS_JSON;
	a.code = C_SBX_UNAVAILABLE;
	a.status = codes[a.code].status;
	a.flags = ANS_RETRY;
	a.retry_after = RETRY_LAYER_S;
	a.body = code_body(C_SBX_UNAVAILABLE, r->ask.reqid, ops[r->call.op].id,
	    NULL, NULL, details);
	answer_send(r, &a, -1);
	ans_clear(&a);
}

static int
send_bind(struct req *r, int *dirfd)
{
	struct spawn_bind b = {0};
	struct wbuf w;
	int rc;

	b.rw = r->dec.cwd_readonly ? 0 : 1;
	b.inner = r->facts[r->dec.cwd_item].path; /* borrowed */
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	spawn_bind_put(&w, &b);
	rc = peer_send(r->snap->execd, ME_SPAWN_BIND, r->rid, *dirfd, &w);
	*dirfd = -1;
	wbuf_free(&w);
	return rc;
}

/* The order as execd takes it: what it would not is refused here, since there
 * it would be taken for a broken monitor. */
static int
order_put(struct wbuf *w, const struct spawn *s)
{
	struct spawn back;
	struct rbuf r;

	wbuf_init(w, SPAWN_BYTES_MAX);
	spawn_put(w, s);
	if (w->err)
		return -1;
	rbuf_init(&r, w->p, w->len);
	if (spawn_get(&r, &back) == -1)
		return -1;
	spawn_clear(&back);
	return 0;
}

static int
send_covers(struct req *r)
{
	struct wbuf w;
	int rc;

	if (r->covers.n == 0)
		return 0;
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	covers_put(&w, &r->covers);
	rc = peer_send(r->snap->execd, ME_SPAWN_COVER, r->rid, -1, &w);
	wbuf_free(&w);
	return rc;
}

static void
put_feed(struct wbuf *w, uint64_t run, int eof)
{
	wbuf_init(w, 16);
	wput_u64(w, run);
	wput_u8(w, eof ? 1 : 0);
}

void
work_feed(struct req *r, struct peer *p, uint64_t run, int data, int eof)
{
	struct wbuf w;

	put_feed(&w, run, eof);
	work_send(r, p, ME_FEED, data, &w);
	wbuf_free(&w);
}

/* The stdin that a process is started with; nobody waits for it. */
static void
first_input(struct req *r)
{
	const struct arg *a = args_find(&r->ask.args, "stdin");
	struct wbuf w;
	int fd;

	if (a == NULL || (fd = memfd_sealed("abx-spawn", a->s, a->len)) == -1) {
		(void)peer_send(r->peer, ME_CANCEL, r->rid, -1, NULL);
		return;
	}
	put_feed(&w, r->rid, !ask_bool(r, "stdin_open"));
	if (peer_send(r->peer, ME_FEED, r->rid, fd, &w) == -1)
		(void)peer_send(r->peer, ME_CANCEL, r->rid, -1, NULL);
	wbuf_free(&w);
}

/* *dirfd is taken; -1 when there is no working directory of the policy. */
static void
send_order(struct req *r, struct wbuf *w, int *dirfd)
{
	int fd = -1;

	if (w->len > ABX_INLINE_BODY) {
		if ((fd = memfd_sealed("abx-spawn", w->p, w->len)) == -1) {
			answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
			return;
		}
		wbuf_reset(w);
		wput_raw(w, (const uint8_t[16]){0}, 16);
	}
	if (*dirfd != -1 &&
	    (send_bind(r, dirfd) == -1 || send_covers(r) == -1)) {
		if (fd != -1)
			close(fd);
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		(void)peer_send(r->snap->execd, ME_CANCEL, r->rid, -1, NULL);
		return;
	}
	r->is_run = 1;
	work_send(r, r->snap->execd, ME_SPAWN, fd, w);
	if (r->peer != NULL)
		return;
	r->is_run = 0;
	/* binds without their spawn would be taken for another's */
	(void)peer_send(r->snap->execd, ME_CANCEL, r->rid, -1, NULL);
}

/* The lesser of what the rule allows and what any command may have. */
static void
bound(struct spawn *s, const struct conf *c)
{
	uint64_t most = (uint64_t)c->max_memory_mb * 1024 * 1024;

	if (most != 0 && (s->memory == 0 || s->memory > most))
		s->memory = most;
	if (c->max_pids != 0 && (s->procs == 0 || s->procs > c->max_pids))
		s->procs = c->max_pids;
}

/* Its workspace is to be removed, and nothing more starts there. */
static int
ws_is_going(const struct req *r)
{
	return r->ws != NULL && r->ws->state != WS_KEPT;
}

static void
spawn(struct req *r, int *dirfd)
{
	struct spawn *s = &r->dec.spawn;
	int keep = r->call.op == OP_process_start;
	struct wbuf w;

	if (ws_is_going(r)) {
		answer_error(r, C_SRV_UNAVAILABLE, "session", NULL, 1);
		return;
	}
	if (keep && proc_reserve(r) == -1)
		return;
	if (!peer_can_take(r->snap->execd) || !req_room_to_end(r)) {
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		return;
	}
	if (r->covers.n > 0)
		s->flags |= SPAWN_HOLD;
	bound(s, r->snap->conf);
	s->grace_ms = KILL_GRACE_MS;
	if (ask_has(r, "stdin") || (keep && ask_bool(r, "stdin_open")))
		s->flags |= SPAWN_STDIN;
	if (keep) {
		s->flags |= SPAWN_KEEP;
		s->max_output = r->snap->conf->output_spool;
	} else if (ask_bool(r, "stream") || (r->ask.flags & ASK_SSE) != 0)
		s->flags |= SPAWN_STREAM;
	if (order_put(&w, s) == -1)
		answer_error(r, C_ARGS_TOO_LARGE, NULL, NULL, 0);
	else {
		send_order(r, &w, dirfd);
		if (keep && r->peer != NULL && ask_has(r, "stdin"))
			first_input(r);
	}
	wbuf_free(&w);
}

/* ---- what the command must not see ---- */

/* 1 when a pattern may match something below the directory. */
static int
may_match(const char *pattern, const char *dir)
{
	const char *why;
	struct glob *g = glob_new(pattern, NULL, &why);
	int yes = g == NULL || glob_below(g, dir);

	glob_free(g);
	return yes;
}

/* Most denies lie elsewhere, and then nothing need be looked for. */
static int
denies_below(const struct req *r)
{
	const struct strlist *hidden = policy_protected(r->snap->policy);
	const struct decision *d = &r->dec;
	char *text;
	size_t i, k;

	for (i = 0; i < d->deny.n; i++) {
		if (!may_match(d->deny.v[i], r->facts[d->cwd_item].path))
			continue;
		/* execd hides the service's own directories by itself */
		for (k = 0, text = NULL; k < hidden->n; k++) {
			text = glob_quote(hidden->v[k], "");
			if (text != NULL && strcmp(text, d->deny.v[i]) == 0)
				break;
			free(text);
			text = NULL;
		}
		free(text);
		if (k == hidden->n)
			return 1;
	}
	return 0;
}

/* Ask pathd what is denied below the working directory.  Answers and leaves
 * another state than RS_COVER when it cannot be asked. */
static void
ask_denied(struct req *r)
{
	struct denied q = {0};
	struct wbuf w;

	q.target = r->dec.cwd; /* all borrowed */
	q.deny = r->dec.deny;
	q.skip = *policy_protected(r->snap->policy);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	denied_put(&w, &q);
	work_send(r, r->snap->pathd, MP_DENIED, -1, &w);
	if (r->state == RS_WORK)
		req_enter(r, RS_COVER);
	wbuf_free(&w);
}

/* The working directory is open: go on. */
static void
cover(struct req *r, int *fd)
{
	if (!denies_below(r)) {
		spawn(r, fd);
		return;
	}
	r->dirfd = *fd;
	*fd = -1;
	ask_denied(r);
}

static void
unhold(struct req *r)
{
	if (r->holder != NULL)
		peer_unref(r->holder);
	r->holder = NULL;
}

void
work_run_release(struct req *r)
{
	if (req_owed_by(r, PROC_PATHD)) {
		(void)peer_send(r->peer, MP_CANCEL, r->rid, -1, NULL);
		req_remember_cancelled(r->rid, PROC_PATHD);
		req_owed(r, NULL);
	}
	if (r->holder == NULL)
		return;
	(void)peer_send(r->holder, ME_CANCEL, r->rid, -1, NULL);
	req_owed(r, r->holder);
	unhold(r);
}

void
work_run_unheld(struct req *r)
{
	if (r->holder == NULL)
		return;
	unhold(r);
	work_run_release(r);
}

int
work_run_lost(struct req *r, struct peer *p)
{
	if (r->holder == NULL || (r->holder != p && r->peer != p))
		return 0;
	if (r->holder == p) {
		r->is_run = 0;
		work_run_unheld(r);
	} else
		work_run_release(r);
	answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
	return 1;
}

int
work_run_held(struct req *r, struct imsg *m)
{
	if (!r->is_run || r->covers.n == 0 || r->holder != NULL)
		return -1;
	r->holder = peer_ref(r->peer);
	ask_denied(r);
	if (r->state != RS_COVER)
		work_run_release(r);
	return 0;
}

/* The second list: nothing may have changed. */
static void
go(struct req *r, const struct covers *now)
{
	if (mon.panic) {
		work_run_release(r);
		refuse_layer(r, "{\"layer\":\"panic\"}");
	} else if (ws_is_going(r)) {
		work_run_release(r);
		answer_error(r, C_SRV_UNAVAILABLE, "session", NULL, 1);
	} else if (!covers_equal(&r->covers, now)) {
		work_run_release(r);
		answer_error(r, C_POL_PATH_CHANGED, "cwd", NULL, 0);
	} else {
		req_owed(r, r->holder);
		unhold(r);
		covers_clear(&r->covers); /* it is held once */
		req_enter(r, RS_WORK);
		if (peer_send(r->peer, ME_GO, r->rid, -1, NULL) == -1) {
			r->is_run = 0;
			req_owed(r, NULL);
			answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		}
	}
}

/* pathd could not say. */
static int
denied_failed(struct req *r, struct rbuf *b)
{
	struct done d;

	if (done_get(b, &d) == -1 || rget_end(b) == -1 || d.code == C_OK)
		return -1;
	req_owed(r, NULL);
	work_run_release(r);
	answer_error(r, (enum code)d.code, "cwd", NULL, 0);
	return 0;
}

int
work_run_denied(struct req *r, struct imsg *m)
{
	char details[64];
	struct covers c;
	struct rbuf b;
	int fd = r->dirfd;

	rbuf_init(&b, m->payload, m->len);
	if (m->type == MP_DONE)
		return denied_failed(r, &b);
	if (covers_get(&b, &c) == -1)
		return -1;
	if (rget_end(&b) == -1) {
		covers_clear(&c);
		return -1;
	}
	req_owed(r, NULL);
	if (r->holder != NULL) {
		go(r, &c);
		covers_clear(&c);
		return 0;
	}
	r->covers = c;
	r->dirfd = -1;
	if (layers_missing(r, details, sizeof(details)))
		refuse_layer(r, details);
	else
		spawn(r, &fd);
	if (fd != -1)
		close(fd);
	return 0;
}

/* The directory of a session that was not used before. */
static void
make_workspace(struct req *r)
{
	struct mutate m = {0};
	struct wbuf w;

	r->making = 1;
	m.src.ref.root = r->dec.cwd.ref.root;
	m.src.rel = r->dec.cwd.ref.sub; /* borrowed */
	m.mode = 0700;
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	mutate_put(&w, &m);
	work_send(r, r->snap->pathd, MP_MKDIR, -1, &w);
	wbuf_free(&w);
}

void
work_run_made(struct req *r, const struct done *d)
{
	req_owed(r, NULL);
	/* several may be the first */
	if (d->code == C_OK || d->code == C_FS_EXISTS) {
		work_reopen(r, (size_t)r->dec.cwd_item, RESOLVE_OPENDIR);
		return;
	}
	workspace_unmade(&r->ws);
	answer_error(r, (enum code)d->code, "session", NULL, 0);
}

void
work_run_start(struct req *r, int *fd)
{
	char details[64];

	if (layers_missing(r, details, sizeof(details)))
		refuse_layer(r, details);
	else if (r->dec.spawn.session[0] != '\0' && workspace_begin(r) == -1)
		return;
	else if (r->ws != NULL && r->facts[r->dec.cwd_item].kind == FK_MISSING)
		make_workspace(r);
	else if (r->dec.cwd_item < 0)
		spawn(r, fd);
	else if (*fd != -1 && r->plan.nitems == 1)
		cover(r, fd);
	else
		work_reopen(r, (size_t)r->dec.cwd_item, RESOLVE_OPENDIR);
}

void
work_run_reopened(struct req *r, int *fd)
{
	cover(r, fd);
}
