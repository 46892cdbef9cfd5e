/*
 * SPDX-License-Identifier: ISC
 *
 * The operations on processes.  What is refused for an id is the same for one
 * that does not exist and for one of somebody else.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/entry.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/run_render.h"
#include "monitor/mon.h"
#include "monitor/proc.h"
#include "monitor/proctab.h"
#include "monitor/work.h"

#define JSON_MAX (88 * 1024) /* of one answer */
#define WAIT_MS 60000	     /* where nothing is said */
#define WAIT_MAX_MS 3600000
#define COARSE_MS 10 /* of the clock that libevent reads */

/* ---- as JSON ---- */

/* brief: the names that appeared are only said to be there, so that a list of
 * all processes fits into one answer. */
static void
put_proc(struct wbuf *w, const struct proc *p, int brief)
{
	struct run_end end = p->end;
	char t[RFC3339_SIZE];

	if (brief && end.nappeared > 0) {
		end.nappeared = 0;
		end.flags |= END_MORE_APPEARED;
	}
	json_raw_put(w, "{\"id\":\"");
	json_raw_put(w, p->id);
	json_raw_put(w, "\",\"pid\":");
	json_uint_put(w, p->pid);
	json_raw_put(w, p->state == PROC_OVER ? ",\"state\":\"ended\""
					      : ",\"state\":\"running\"");
	json_raw_put(w, ",\"argv0\":");
	json_str_put(w, p->argv0, strlen(p->argv0));
	time_rfc3339(t, p->started, p->started_ns);
	json_raw_put(w, ",\"session\":");
	if (p->session[0] != '\0')
		json_str_put(w, p->session, strlen(p->session));
	else
		json_raw_put(w, "null");
	json_raw_put(w, ",\"started\":\"");
	json_raw_put(w, t);
	json_raw_put(w, "\",\"result\":");
	if (p->state == PROC_OVER)
		run_result_put(w, &end, NULL, NULL);
	else
		json_raw_put(w, "null");
	json_raw_put(w, "}");
}

char *
proc_json(const struct proc *p)
{
	struct wbuf w;

	wbuf_init(&w, JSON_MAX);
	put_proc(&w, p, 0);
	return wbuf_text(&w);
}

static char *
result_json(const struct proc *p)
{
	struct wbuf w;

	wbuf_init(&w, JSON_MAX);
	run_result_put(&w, &p->end, NULL, NULL);
	return wbuf_text(&w);
}

static void
answer_empty(struct req *r)
{
	answer_json(r, 200, strdup("{}"));
}

/* ---- list, get ---- */

void
proc_list(struct req *r, int *fd)
{
	const char *sep = "";
	const struct proc *p;
	struct wbuf w;

	wbuf_init(&w, JSON_MAX);
	json_raw_put(&w, "{\"processes\":[");
	for (p = proc_first(); p != NULL; p = p->next)
		if (proc_is_mine(r, p)) {
			json_raw_put(&w, sep);
			put_proc(&w, p, 1);
			sep = ",";
		}
	json_raw_put(&w, "]}");
	answer_json(r, 200, wbuf_text(&w));
}

void
proc_get(struct req *r, int *fd)
{
	struct proc *p = proc_of(r);

	if (p != NULL)
		answer_json(r, 200, proc_json(p));
}

/* ---- wait ---- */

void
proc_unwait(struct req *r)
{
	struct req **q;

	if (r->waited != NULL) {
		for (q = &r->waited->waiters; *q != r; q = &(*q)->wait_next)
			continue;
		*q = r->wait_next;
		r->waited = NULL;
	}
	if (r->wait_timer != NULL)
		event_free(r->wait_timer);
	r->wait_timer = NULL;
}

void
proc_wake(struct proc *p)
{
	struct req *r;

	while ((r = p->waiters) != NULL) {
		proc_unwait(r);
		if (r->state == RS_WORK)
			answer_json(r, 200, result_json(p));
	}
}

static void
wait_cb(evutil_socket_t fd, short what, void *arg)
{
	struct req *r = arg;

	proc_unwait(r);
	if (r->state == RS_WORK)
		answer_json(r, 200, strdup("{\"state\":\"running\"}"));
}

void
proc_wait(struct req *r, int *fd)
{
	uint64_t ms = r->dec.wait_ms == UINT64_MAX ? WAIT_MS : r->dec.wait_ms;
	struct proc *p = proc_of(r);
	struct timeval tv;

	if (p == NULL)
		return;
	if (p->state == PROC_OVER) {
		answer_json(r, 200, result_json(p));
		return;
	}
	if (ms > WAIT_MAX_MS)
		ms = WAIT_MAX_MS;
	ms += COARSE_MS; /* timers may be early by that; an answer may not */
	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	r->wait_timer = event_new(mon.base, -1, 0, wait_cb, r);
	if (r->wait_timer == NULL || event_add(r->wait_timer, &tv) == -1) {
		proc_unwait(r);
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		return;
	}
	r->waited = p;
	r->wait_next = p->waiters;
	p->waiters = r;
	req_enter(r, RS_WORK);
}

/* ---- signal ---- */

static int
signal_number(const char *name)
{
	const char *s;
	int i;

	for (i = 1; i < 32; i++)
		if ((s = sigabbrev_np(i)) != NULL && strcmp(s, name) == 0)
			return i;
	return 0;
}

void
proc_signal(struct req *r, int *fd)
{
	int sig = signal_number(ask_text(r, "signal"));
	struct proc *p = proc_of(r);
	struct wbuf w;

	if (p == NULL)
		return;
	if (p->state == PROC_OVER) {
		answer_error(r, C_PROC_ENDED, "id", NULL, 0);
		return;
	}
	if (sig == 0) {
		/* the policy names one that this system does not have */
		answer_error(r, C_ARGS_INVALID, "signal", NULL, 0);
		return;
	}
	wbuf_init(&w, 1);
	wput_u8(&w, (uint8_t)sig);
	if (peer_send(p->peer, ME_SIGNAL, p->run, -1, &w) == -1)
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
	else
		answer_empty(r);
	wbuf_free(&w);
}

/* ---- output ---- */

/* "A-B" of an event's id: 0 or -1. */
static int
event_offsets(const char *s, uint64_t at[2])
{
	char *end;

	if (*s < '0' || *s > '9')
		return -1;
	errno = 0;
	at[0] = strtoull(s, &end, 10);
	if (errno != 0 || *end != '-' || end[1] < '0' || end[1] > '9')
		return -1;
	at[1] = strtoull(end + 1, &end, 10);
	return errno != 0 || *end != '\0' ? -1 : 0;
}

void
proc_output(struct req *r, int *fd)
{
	uint64_t at[2] = {0, 0};
	struct proc *p = proc_of(r);
	int64_t offset;
	struct wbuf w;

	if (p == NULL)
		return;
	if (policy_arg_int(&r->ask.args, "offset", &offset) && offset > 0)
		at[0] = at[1] = (uint64_t)offset;
	if (r->ask.last_event[0] != '\0' &&
	    event_offsets(r->ask.last_event, at) == -1) {
		answer_error(r, C_ARGS_INVALID, "Last-Event-ID", NULL, 0);
		return;
	}
	wbuf_init(&w, 32);
	wput_u64(&w, p->run);
	wput_u64(&w, at[0]);
	wput_u64(&w, at[1]);
	wput_u8(&w, policy_arg_bool(&r->ask.args, "follow") ? 1 : 0);
	work_send(r, p->peer, ME_FOLLOW, -1, &w);
	wbuf_free(&w);
}

int
proc_follow_ans(struct req *r, struct imsg *m)
{
	struct ans a = {0};

	if (r->call.op != OP_process_output)
		return -1;
	req_owed(r, NULL);
	a.kind = ANS_RUN;
	a.status = 200;
	a.flags = ANS_STREAM;
	answer_send(r, &a, m->fd);
	m->fd = -1;
	return 0;
}

/* ---- stdin ---- */

/* The bytes of the argument data in a sealed file: 0; C_ARGS_INVALID for what
 * is not in its encoding. */
static enum code
stdin_bytes(struct req *r, int *data)
{
	const struct arg *a = args_find(&r->ask.args, "data");
	const char *enc = policy_arg_str(&r->ask.args, "encoding");
	uint8_t *raw;
	int n;

	if (enc == NULL || strcmp(enc, "utf-8") == 0) {
		*data = memfd_sealed(
		    "abx-spawn", a == NULL ? "" : a->s, a == NULL ? 0 : a->len);
		return *data == -1 ? C_SRV_UNAVAILABLE : C_OK;
	}
	if (a == NULL || strcmp(enc, "base64") != 0)
		return C_ARGS_INVALID;
	if ((raw = malloc(a->len + 1)) == NULL)
		return C_SRV_UNAVAILABLE;
	n = base64_decode(a->s, a->len, raw, a->len + 1);
	*data = n == -1 ? -1 : memfd_sealed("abx-spawn", raw, (size_t)n);
	freezero(raw, a->len + 1);
	if (n == -1)
		return C_ARGS_INVALID;
	return *data == -1 ? C_SRV_UNAVAILABLE : C_OK;
}

void
proc_stdin(struct req *r, int *fd)
{
	int eof = policy_arg_bool(&r->ask.args, "eof");
	struct proc *p = proc_of(r);
	enum code code;
	int data;

	if (p == NULL)
		return;
	if (p->state == PROC_OVER)
		answer_error(r, C_PROC_ENDED, "id", NULL, 0);
	else if (!p->stdin_open)
		answer_error(r, C_PROC_STDIN_CLOSED, "id", NULL, 0);
	else if ((code = stdin_bytes(r, &data)) != C_OK)
		answer_error(r, code, code == C_ARGS_INVALID ? "data" : NULL,
		    NULL, code == C_SRV_UNAVAILABLE);
	else
		/* its end counts when execd has taken it */
		work_feed(r, p->peer, p->run, data, eof);
}

int
proc_done(struct req *r, struct imsg *m)
{
	struct rbuf b;
	uint16_t code;

	rbuf_init(&b, m->payload, m->len);
	code = rget_u16(&b);
	if (rget_end(&b) == -1 || code >= C_COUNT ||
	    (r->call.op != OP_process_stdin &&
		(r->call.op != OP_process_output || code == C_OK)))
		return -1;
	req_owed(r, NULL);
	if (code == C_OK)
		answer_empty(r);
	else
		answer_error(r, (enum code)code, "id", NULL,
		    codes[code].status == 429 || codes[code].status == 503);
	return 0;
}
