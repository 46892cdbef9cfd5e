/*
 * SPDX-License-Identifier: ISC
 *
 * The audit log: one JSON line an operation, written when the request ends.
 * The only file that says what it says; sink.c brings it away.  Never
 * content, environment values, tokens or command lines; strings that a caller
 * chose are escaped.
 */
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/proc.h"
#include "monitor/mon.h"
#include "monitor/proctab.h"
#include "monitor/sink.h"

/* All paths of a call came in one message, and a byte of them may need six
 * here; the rest is small. */
#define LINE_MAX (6 * IMSG_MAX_PAYLOAD + 64 * 1024)

static struct wbuf line;

void
audit_init(void)
{
	wbuf_init(&line, LINE_MAX);
}

static void
line_end(void)
{
	json_raw_put(&line, "}\n");
	if (line.err) {
		sink_count_lost();
		log_warnx("an audit record is too large");
		return;
	}
	sink_put(line.p, line.len);
}

/* ---- members ---- */

static void
put_str(const char *name, const char *v)
{
	json_raw_put(&line, ",\"");
	json_raw_put(&line, name);
	json_raw_put(&line, "\":");
	json_str_put(&line, v, strlen(v));
}

static void
put_uint(const char *name, uint64_t v)
{
	json_raw_put(&line, ",\"");
	json_raw_put(&line, name);
	json_raw_put(&line, "\":");
	json_uint_put(&line, v);
}

static void
put_bool(const char *name, int v)
{
	json_raw_put(&line, ",\"");
	json_raw_put(&line, name);
	json_raw_put(&line, v ? "\":true" : "\":false");
}

static void
line_begin(void)
{
	struct timespec ts;
	char t[RFC3339_SIZE];

	clock_gettime(CLOCK_REALTIME, &ts);
	time_rfc3339(t, ts.tv_sec, (uint32_t)ts.tv_nsec);
	wbuf_reset(&line);
	json_raw_put(&line, "{\"ts\":\"");
	json_raw_put(&line, t);
	json_raw_put(&line, "\"");
}

static void
put_who(const struct req *r)
{
	size_t i;

	put_str("principal", r->who.id == NULL ? "" : r->who.id);
	json_raw_put(&line, ",\"roles\":[");
	for (i = 0; i < r->who.nroles; i++) {
		if (i > 0)
			json_raw_put(&line, ",");
		json_str_put(&line, r->who.roles[i], strlen(r->who.roles[i]));
	}
	json_raw_put(&line, "]");
}

/* A member a parameter; all paths of a list parameter are one member. */
static void
put_paths(const struct req *r)
{
	const struct dpath *d = r->dec.paths;
	const struct op_param *q;
	size_t i, n = r->dec.npaths;
	int list, more;

	json_raw_put(&line, ",\"paths\":{");
	for (i = 0; i < n; i++) {
		q = op_param_find(&ops[r->call.op], d[i].param);
		list = q != NULL && q->type == T_PATHLIST;
		if (i == 0 || !list ||
		    strcmp(d[i - 1].param, d[i].param) != 0) {
			json_str_put(&line, d[i].param, strlen(d[i].param));
			json_raw_put(&line, list ? ":[" : ":");
		}
		json_str_put(&line, d[i].canonical, strlen(d[i].canonical));
		more = i + 1 < n;
		if (list && (!more || strcmp(d[i + 1].param, d[i].param) != 0))
			json_raw_put(&line, "]");
		if (more)
			json_raw_put(&line, ",");
	}
	json_raw_put(&line, "}");
}

/* An HMAC under a key of this start: equal command lines look equal, and
 * nobody can guess them back. */
static void
put_argv_hash(const struct strlist *argv)
{
	uint8_t mac[SHA256_LEN];
	char hex[2 * SHA256_LEN + 1];
	struct wbuf w;

	wbuf_init(&w, ABX_BODY_MAX);
	strlist_put(&w, argv);
	if (!w.err) {
		hmac_sha256(
		    mon.argv_key, sizeof(mon.argv_key), w.p, w.len, mac);
		hex_encode(mac, sizeof(mac), hex);
		put_str("argv_hash", hex);
	}
	wbuf_free(&w);
}

/* Of the command policy: names, never what they matched. */
static void
put_list(const char *name, const struct strlist *l)
{
	size_t i;

	json_raw_put(&line, ",\"");
	json_raw_put(&line, name);
	json_raw_put(&line, "\":[");
	for (i = 0; i < l->n; i++) {
		if (i > 0)
			json_raw_put(&line, ",");
		json_str_put(&line, l->v[i], strlen(l->v[i]));
	}
	json_raw_put(&line, "]");
}

/* Protected names that a command made (design: protected names). */
static void
put_appeared(const struct run_end *e)
{
	const char *p;
	size_t at, n;

	for (at = 0; at < e->nappeared; at += n + 1) {
		p = e->appeared + at;
		n = strlen(p);
		json_raw_put(&line, at == 0 ? ",\"sandbox_appeared\":[" : ",");
		json_str_put(&line, p, n);
	}
	if (at > 0)
		json_raw_put(&line, "]");
}

/* How a program ended; nothing of one whose end was not seen. */
static void
put_end(const struct run_end *e)
{
	if ((e->flags & END_LOST) != 0)
		return;
	if (WIFEXITED(e->status))
		put_uint("exit_code", (uint64_t)WEXITSTATUS(e->status));
	else if (WIFSIGNALED(e->status) &&
		 sigabbrev_np(WTERMSIG(e->status)) != NULL)
		put_str("signal", sigabbrev_np(WTERMSIG(e->status)));
	put_bool("timed_out", (e->flags & END_TIMED_OUT) != 0);
	put_bool(
	    "truncated", (e->flags & (END_TRUNC_OUT | END_TRUNC_ERR)) != 0);
	put_uint("sandbox_layers", e->layers);
	put_appeared(e);
}

static void
put_run(const struct req *r)
{
	const char *prog =
	    r->dec.spawn.progs.n > 0 ? r->dec.spawn.progs.v[0] : "";

	put_argv_hash(&r->dec.spawn.argv);
	put_str("program", prog);
	if (r->end_seen)
		put_end(&r->end);
}

void
audit_request(const struct req *r, const char *outcome)
{
	int known = r->decided || r->status != 0;

	if (outcome == NULL || !sink_any())
		return;
	line_begin();
	put_str("request_id", r->ask.reqid);
	put_str("op", r->ask.op == OP_NONE ? r->ask.opname : ops[r->ask.op].id);
	put_who(r);
	/* one whose caller went before was neither allowed nor refused */
	put_bool("allowed", r->code == C_OK && known);
	if (known)
		put_str("code", codes[r->code].code);
	if (r->decided && r->dec.rule >= 0)
		put_str("rule",
		    policy_rule_origin(r->snap->policy, (size_t)r->dec.rule));
	put_uint("status", r->status);
	put_uint("duration_ms",
	    (r->fin_seen && r->fin.us != 0 ? r->fin.us
					   : proc_now_us() - r->start_us) /
		1000);
	if (r->decided)
		put_bool("mounted", r->dec.mounted);
	if (r->decided && r->dec.npaths > 0)
		put_paths(r);
	if (r->dec.spawn.argv.n > 0 && !r->checking)
		put_run(r);
	if (r->proc_mark[0] != '\0')
		put_str("process", r->proc_mark);
	if (session_ok(ask_text(r, "session")))
		put_str("session", ask_text(r, "session"));
	if (r->dec.rules.n > 0)
		put_list("rules", &r->dec.rules);
	put_uint("bytes_in", r->fin.bytes_in);
	put_uint("bytes_out", r->fin.bytes_out);
	put_str("remote_addr", r->ask.remote);
	put_str("outcome", outcome);
	line_end();
}

void
audit_process(const struct proc *p)
{
	char mark[7];

	if (!sink_any())
		return;
	strlcpy(mark, p->id, sizeof(mark));
	line_begin();
	put_str("request_id", p->reqid);
	put_str("op", "process.end");
	put_str("principal", p->owner);
	json_raw_put(&line, ",\"roles\":[]");
	put_bool("allowed", 1);
	put_str("code", codes[C_OK].code);
	put_uint("status", 0);
	put_uint("duration_ms", p->end.us / 1000);
	put_str("process", mark);
	if (p->session[0] != '\0')
		put_str("session", p->session);
	put_str("program", p->program);
	put_end(&p->end);
	put_str("remote_addr", p->remote);
	put_str("outcome", (p->end.flags & END_LOST) != 0	 ? "lost"
			   : (p->end.flags & END_CANCELLED) != 0 ? "cancelled"
								 : "ok");
	line_end();
}

void
audit_reject(const struct reject *j)
{
	if (!sink_any())
		return;
	line_begin();
	put_str("request_id", j->reqid);
	json_raw_put(&line, ",\"op\":\"\",\"principal\":\"\",\"roles\":[]"
			    ",\"allowed\":false");
	put_str("code", codes[j->code].code);
	put_uint("status", codes[j->code].status);
	put_uint("duration_ms", 0);
	if (j->remote[0] != '\0')
		put_str("remote_addr", j->remote);
	else
		put_uint("count", j->count);
	line_end();
}

void
audit_reload(const char *old, const char *new, const char *why)
{
	char id[ABX_REQID_LEN + 1];

	if (!sink_any())
		return;
	request_id(id);
	line_begin();
	put_str("request_id", id);
	json_raw_put(&line,
	    ",\"op\":\"core.reload\",\"principal\":\"operator\","
	    "\"roles\":[]");
	put_bool("allowed", new != NULL);
	put_str("code", new != NULL ? "ok" : "config.refused");
	put_uint("status", new != NULL ? 200 : 409);
	put_uint("duration_ms", 0);
	put_bool("ok", new != NULL);
	put_str("old_revision", old);
	if (new != NULL)
		put_str("new_revision", new);
	if (why != NULL)
		put_str("reason", why);
	line_end();
}
