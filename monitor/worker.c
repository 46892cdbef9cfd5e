/*
 * SPDX-License-Identifier: ISC
 *
 * Answers of pathd and execd: each is decoded, and leads to the next step of
 * its request.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/hash.h"
#include "common/log.h"
#include "monitor/mon.h"
#include "monitor/proc.h"
#include "monitor/work.h"
#include "monitor/workspace.h"

/* ---- facts ---- */

static int
facts_decode(struct imsg *m, struct facts *v, size_t n)
{
	struct rbuf b;
	size_t i = 0;

	rbuf_init(&b, m->payload, m->len);
	if (rget_u32(&b) != n)
		return -1;
	for (i = 0; i < n; i++)
		if (facts_get(&b, &v[i]) == -1)
			break;
	if (i == n && rget_end(&b) == 0)
		return 0;
	while (i-- > 0)
		facts_clear(&v[i]);
	return -1;
}

/* The claims of pathd that a decision rests on are checked as far as they can
 * be: the root is one that was asked for. */
static int
facts_plausible(const struct facts *f, const struct plan_item *it)
{
	return f->status != FS_OK || f->ref < it->nrefs;
}

/* Nothing but what was to be opened is passed on. */
static int
opened_as_asked(const struct req *r, const struct imsg *m)
{
	return m->fd == -1 || (r->wanted != FDK_NONE && m->kind == r->wanted);
}

int
worker_facts(struct req *r, struct imsg *m)
{
	struct facts one = {0};
	size_t i;

	if (!opened_as_asked(r, m))
		return -1;
	if (r->state == RS_REOPEN) {
		if (facts_decode(m, &one, 1) == -1)
			return -1;
		if (!facts_plausible(&one, work_reopening(r))) {
			facts_clear(&one);
			return -1;
		}
		work_reopened(r, &one, &m->fd);
		facts_clear(&one);
		return 0;
	}
	if ((r->facts = calloc(r->plan.nitems, sizeof(*r->facts))) == NULL)
		return -1;
	if (facts_decode(m, r->facts, r->plan.nitems) == -1) {
		free(r->facts);
		r->facts = NULL;
		return -1;
	}
	for (i = 0; i < r->plan.nitems; i++)
		if (!facts_plausible(&r->facts[i], &r->plan.items[i]))
			return -1;
	req_owed(r, NULL);
	step_facts(r, &m->fd);
	return 0;
}

/* ---- upload ---- */

/* A u32 0 and nothing else. */
static int
empty_ans(const struct imsg *m)
{
	struct rbuf b;

	rbuf_init(&b, m->payload, m->len);
	return rget_u32(&b) != 0 ? -1 : rget_end(&b);
}

int
worker_put_ans(struct req *r, struct imsg *m)
{
	struct ans a = {0};

	if (r->call.op == OP_NONE || ops[r->call.op].stream != S_PUT ||
	    empty_ans(m) == -1)
		return -1;
	a.kind = ANS_PUT;
	a.status = 200;
	a.size = r->dec.max_bytes;
	answer_send(r, &a, m->fd);
	m->fd = -1;
	return 0;
}

static char *
upload_body(const struct req *r, const struct put_fin *f)
{
	const char *path = plan_spelling(&r->plan, "path");
	char etag[ETAG_SIZE], hex[2 * SHA256_LEN + 1];
	struct wbuf w;

	etag_make(etag, f->dev, f->ino, f->bytes, f->mtime, f->mtime_ns);
	wbuf_init(&w, 64 * 1024);
	json_raw_put(&w, "{\"path\":");
	json_str_put(&w, path, strlen(path));
	json_raw_put(&w, ",\"bytes\":");
	json_uint_put(&w, f->bytes);
	json_raw_put(&w, ",\"etag\":");
	json_str_put(&w, etag, strlen(etag));
	if (ask_bool(r, "checksum")) {
		hex_encode(f->digest, sizeof(f->digest), hex);
		json_raw_put(&w, ",\"sha256\":");
		json_str_put(&w, hex, strlen(hex));
	}
	json_raw_put(&w, "}");
	return wbuf_text(&w);
}

int
worker_put_fin(struct req *r, struct imsg *m)
{
	struct put_fin f;
	struct ans a = {0};
	struct rbuf b;
	struct wbuf w;

	rbuf_init(&b, m->payload, m->len);
	if (put_fin_get(&b, &f) == -1 || rget_end(&b) == -1)
		return -1;
	/* nothing is committed before PUT_END says that it is whole */
	if (f.code == C_OK &&
	    (r->state == RS_BODY || (ask_bool(r, "checksum") && !f.has_digest)))
		return -1;
	req_owed(r, NULL);
	a.kind = ANS_JSON;
	a.code = f.code;
	a.status = f.code != C_OK ? codes[f.code].status
		   : f.created	  ? 201
				  : 200;
	a.body = f.code == C_OK ? (r->call.op == OP_files_import
					  ? worker_import_body(r, &f)
					  : upload_body(r, &f))
				: code_body((enum code)f.code, r->ask.reqid,
				      ops[r->call.op].id, NULL, "path", NULL);
	if (a.body == NULL && a.code == C_OK) {
		a.code = C_SRV_INTERNAL;
		a.status = codes[a.code].status;
		a.body = code_body(C_SRV_INTERNAL, r->ask.reqid,
		    ops[r->call.op].id, NULL, NULL, NULL);
	}
	r->status = a.status;
	r->code = (enum code)a.code;
	r->early_fin = r->state == RS_BODY;
	req_enter(r, RS_ANSWERED);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	ans_put(&w, &a);
	listener_answer(r, LM_PUT_FIN, -1, &w);
	wbuf_free(&w);
	idem_done(r, a.status, a.code, a.body);
	ans_clear(&a);
	return 0;
}

/* ---- list and the changes ---- */

int
worker_list_ans(struct req *r, struct imsg *m)
{
	int bytes = ops[r->call.op].stream == S_BYTES;
	int watch = r->call.op == OP_files_watch;
	struct ans a = {0};
	const char *path;

	if ((!bytes && !watch && ops[r->call.op].stream != S_LIST) ||
	    r->dec.npaths == 0 || empty_ans(m) == -1)
		return -1;
	path = plan_spelling(&r->plan, r->dec.paths[0].param);
	req_owed(r, NULL);
	a.kind = bytes ? ANS_BYTES : watch ? ANS_WATCH : ANS_LIST;
	a.status = 200;
	a.size = r->dec.max_entries;
	if (bytes)
		path = work_gzip(r, "format") == 1 ? TYPE_TAR_GZ : TYPE_TAR;
	if ((a.body = strdup(path)) == NULL) {
		/* pathd sees that nobody reads */
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		return 0;
	}
	answer_send(r, &a, m->fd);
	m->fd = -1;
	ans_clear(&a);
	return 0;
}

static char *
done_body(const struct req *r, const struct done *d)
{
	const char *s;
	struct wbuf w;

	wbuf_init(&w, 64 * 1024);
	if (r->call.op == OP_files_delete) {
		json_raw_put(&w, "{\"deleted\":");
		json_uint_put(&w, d->count);
	} else if (r->call.op == OP_files_move || r->call.op == OP_files_copy) {
		s = plan_spelling(&r->plan, "src");
		json_raw_put(&w, "{\"src\":");
		json_str_put(&w, s, strlen(s));
		s = plan_spelling(&r->plan, "dst");
		json_raw_put(&w, ",\"dst\":");
		json_str_put(&w, s, strlen(s));
	} else {
		s = plan_spelling(&r->plan, "path");
		json_raw_put(&w, "{\"path\":");
		json_str_put(&w, s, strlen(s));
	}
	json_raw_put(&w, "}");
	return wbuf_text(&w);
}

int
worker_done(struct req *r, struct imsg *m)
{
	struct done d;
	struct rbuf b;
	int stream = ops[r->call.op].stream != S_NONE;

	rbuf_init(&b, m->payload, m->len);
	if (done_get(&b, &d) == -1 || rget_end(&b) == -1)
		return -1;
	if (r->making) {
		work_run_made(r, &d);
		return 0;
	}
	/* for PUT, LIST and EDIT it only ever says a failure */
	if (d.code == C_OK && (stream || r->call.op == OP_files_edit ||
				  r->call.op == OP_files_archive ||
				  r->call.op == OP_workspace_list))
		return -1;
	req_owed(r, NULL);
	if (d.code != C_OK)
		answer_error(r, (enum code)d.code,
		    d.code == C_ARGS_INVALID && r->call.op == OP_files_search
			? "pattern"
		    : r->dec.npaths == 0 ? NULL
					 : r->dec.paths[0].param,
		    NULL, d.code == C_LIM_CONCURRENCY);
	else
		answer_json(r, r->call.op == OP_files_mkdir ? 201 : 200,
		    done_body(r, &d));
	return 0;
}

/* ---- runs ---- */

int
worker_started(struct req *r, struct imsg *m)
{
	struct rbuf b;
	uint32_t pid;

	rbuf_init(&b, m->payload, m->len);
	pid = rget_u32(&b);
	/* one that is to be held starts behind GO */
	if (!r->is_run || r->started || r->covers.n > 0 || rget_end(&b) == -1)
		return -1;
	r->started = 1;
	if (r->proc != NULL)
		proc_started(r, pid);
	return 0;
}

/* The frame pipe, and the stdin pipe when there is one, go to the listener
 * together. */
static void
answer_run(struct req *r)
{
	struct ans a = {0};
	int in = r->stdin_fd, frames = r->frame_fd;

	r->stdin_fd = r->frame_fd = -1;
	a.kind = ANS_RUN;
	a.status = 200;
	a.size = r->dec.spawn.max_output;
	a.flags = (in != -1 ? ANS_STDIN : 0) |
		  ((r->dec.spawn.flags & SPAWN_STREAM) != 0 ? ANS_STREAM : 0);
	answer_send(r, &a, frames);
	if (in != -1)
		listener_answer(r, LM_RUN_IN, in, NULL);
}

int
worker_run(struct req *r, struct imsg *m)
{
	if (!r->is_run)
		return proc_follow_ans(r, m);
	if (!r->started || r->frame_fd != -1 || r->proc != NULL)
		return -1;
	r->frame_fd = m->fd;
	m->fd = -1;
	if ((r->dec.spawn.flags & SPAWN_STDIN) == 0)
		answer_run(r);
	return 0;
}

int
worker_in(struct req *r, struct imsg *m)
{
	if (!r->is_run || r->frame_fd == -1 ||
	    (r->dec.spawn.flags & SPAWN_STDIN) == 0)
		return -1;
	r->stdin_fd = m->fd;
	m->fd = -1;
	answer_run(r);
	return 0;
}

/* A run that will not be: nothing was started. */
static void
run_over(struct req *r)
{
	req_owed(r, NULL);
	r->is_run = 0;
	workspace_leave(&r->ws);
	if (r->state == RS_ENDING)
		req_finish(r, answer_outcome(r));
}

int
worker_failed(struct req *r, struct imsg *m)
{
	struct spawn_failed f;
	struct rbuf b;

	rbuf_init(&b, m->payload, m->len);
	if (!r->is_run || r->started || spawn_failed_get(&b, &f) == -1 ||
	    rget_end(&b) == -1)
		return -1;
	work_run_unheld(r);
	req_owed(r, NULL);
	r->is_run = 0;
	workspace_leave(&r->ws);
	if (f.err != 0 || f.layer[0] != '\0')
		log_debug("spawn: %s: %s", f.layer, strerror(f.err));
	answer_error(r, (enum code)f.code, NULL, NULL, 0);
	return 0;
}

int
worker_end(struct req *r, struct imsg *m)
{
	struct spawn_failed f;
	struct rbuf b;

	if (!r->is_run || (r->state == RS_WORK && !r->started))
		return -1;
	/* a held run that was given up can only fail */
	if (r->state == RS_ANSWERED && !r->started && m->type == ME_END)
		return -1;
	rbuf_init(&b, m->payload, m->len);
	if (m->type == ME_FAILED) {
		if ((r->state == RS_ANSWERED && r->started) ||
		    spawn_failed_get(&b, &f) == -1 || rget_end(&b) == -1)
			return -1;
		run_over(r);
		return 0;
	}
	if (run_end_get(&b, &r->end) == -1 || rget_end(&b) == -1)
		return -1;
	r->end_seen = 1;
	workspace_leave(&r->ws);
	/* a process that nobody was told of */
	if (r->proc != NULL)
		(void)peer_send(r->peer, ME_FORGET, r->rid, -1, NULL);
	req_owed(r, NULL);
	if (r->state == RS_WORK)
		/* ended before it was answered for: it never ran */
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
	else if (r->state == RS_ENDING)
		req_finish(r, answer_outcome(r));
	return 0;
}
