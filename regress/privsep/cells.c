/*
 * SPDX-License-Identifier: ISC
 *
 * Points of a request's life and how to get there; what may be said at each,
 * by hand.  See cells.h.
 */
#include "regress/privsep/cells.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/ops.h"

/* Two statements for downloads, so that a file is opened in a second step. */
const char cells_conf[] =
    "\"rules\":[{\"allow\":[\"core.health\"]},"
    "{\"allow\":[\"files.list\",\"files.stat\",\"files.download\","
    "\"files.upload\",\"files.mkdir\",\"files.move\",\"files.delete\"],"
    "\"paths\":{\"roots\":[\"@/w\"]}},"
    "{\"allow\":[\"files.download\"],"
    "\"paths\":{\"roots\":[\"@/w\",\"@/r\"]}},"
    "{\"allow\":[\"commands.run\",\"process.start\",\"process.output\"],"
    "\"commands\":"
    "{\"allow\":[\"true\"],\"cwd\":{\"roots\":[\"@/w\"]}}},"
    "{\"allow\":[\"workspace.list\"]},"
    "{\"allow\":[\"commands.run\"],\"commands\":{\"allow\":[\"false\"],"
    "\"cwd\":{\"roots\":[\"@/w\"],\"deny\":[\"@/w/hidden*\"]}}}]";

/* ---- what is permitted ---- */

/* clang-format off */
static const struct {
	enum proc_kind from;
	uint16_t type;
	const char *want;
} rows[] = {
    /*                       free, old
     *                       | resolve, reopen, put, list, change
     *                       | |    body, commit, answered
     *                       | |    |  spawn, started
     *                       | |    |  | spawn_in, started_in, run_in
     *                       | |    |  | |  running, ending
     *                       | |    |  | |  | cancelled, cancel_run, late
     *                       | |    |  | |  | |  cover, hold, held
     *                       | |    |  | |  | |  |  process, over, follow, size */
    {PROC_LISTENER, LM_ASK,      "y.........................."},
    {PROC_LISTENER, LM_CANCEL,   "..yyyyyyyyyyyyyy....yyy..yy"},
    {PROC_LISTENER, LM_PUT_END,  ".......y..................."},
    {PROC_LISTENER, LM_FIN,      ".........y.....y.yy........"},
    {PROC_LISTENER, LM_REJECTS,  "yyyyyyyyyyyyyyyyyyyyyyyyyyy"},
    {PROC_PATHD, MP_FACTS,       "..yy.............y.y......."},
    {PROC_PATHD, MP_PUT_ANS,     "....y............y.y......."},
    {PROC_PATHD, MP_PUT_FIN,     ".......yy........y.y......."},
    {PROC_PATHD, MP_LIST_ANS,    ".....y...........y.y......."},
    {PROC_PATHD, MP_DONE,        "....yyy..........y.yy.y...y"},
    {PROC_PATHD, MP_EDIT_ANS,    ".................y.y......."},
    {PROC_PATHD, MP_ARCHIVE_ANS, ".................y.y......."},
    {PROC_PATHD, MP_DENIED_ANS,  ".................y.yy.y...."},
    {PROC_PATHD, MP_SPACE_ANS,   ".................y.y......y"},
    {PROC_EXECD, ME_STARTED,     "..........y.y...y.y........"},
    {PROC_EXECD, ME_RUN,         "...........y.y..y.y......y."},
    {PROC_EXECD, ME_IN,          "..............y.y.y........"},
    {PROC_EXECD, ME_FAILED,      "..........y.y...y.y..yy...."},
    {PROC_EXECD, ME_END,         "...........y.yyyy.y....y..."},
    {PROC_EXECD, ME_HELD,        "................y.y..y....."},
    {PROC_EXECD, ME_DONE,        ".........................y."},
};
/* clang-format on */

const char *
cell_row(enum proc_kind from, uint16_t type)
{
	size_t i;

	for (i = 0; i < nitems(rows); i++)
		if (rows[i].from == from && rows[i].type == type)
			return rows[i].want;
	return "...........................";
}

const uint16_t all_types[] = {
    0,	    /* there is no such type */
    0xffff, /* nor this one */
#define MSG(sym, num, min, max, fdk) num,
#include "common/msg.def"
#undef MSG
};
const size_t n_types = nitems(all_types);

/* ---- messages ---- */

int
sample_alone(uint16_t type)
{
	return type == LM_REJECTS || type == LM_PEER || type == LM_PEER_GONE ||
	       type == MP_ROOTS_OK || type == ME_HELLO;
}

/* As many facts as were asked for. */
static void
put_facts(struct lab *l, struct wbuf *w, enum point p)
{
	struct rootref ref = {l->root_w, ""};
	struct resolve_item it = {0};
	uint32_t i, n = p == P_RESOLVE ? 2 : 1;
	char path[512];
	struct facts f;

	strlcpy(path, stage_path(&l->st, "w/f"), sizeof(path));
	it.path = path;
	it.refs = &ref;
	it.nrefs = 1;
	wput_u32(w, n);
	for (i = 0; i < n; i++) {
		lab_fact(l, &it, FK_FILE, &f);
		facts_put(w, &f);
		facts_clear(&f);
	}
}

/* One denied entry. */
static void
put_covers(struct wbuf *w)
{
	struct covers c = {0};

	if (covers_add(&c, "hidden", FK_FILE, 1, 9) == -1)
		die("covers");
	covers_put(w, &c);
	covers_clear(&c);
}

/* How large the one workspace is. */
static void
put_spaces(struct wbuf *w)
{
	struct space_ans a = {0};

	if (space_ans_add(&a, LAB_WORKSPACE, 4096, 0) == -1)
		die("space_ans");
	space_ans_put(w, &a);
	space_ans_clear(&a);
}

static void
put_exec(struct wbuf *w, uint16_t type)
{
	struct spawn_failed failed = {C_SRV_UNAVAILABLE, 5, "start"};
	struct exec_hello hello = {LAYER_NAMESPACES, 7, ""};
	struct run_end end = {.status = 0, .flags = END_EMPTY};

	if (type == ME_STARTED)
		wput_u32(w, 2);
	else if (type == ME_FAILED)
		spawn_failed_put(w, &failed);
	else if (type == ME_HELLO)
		exec_hello_put(w, &hello);
	else
		run_end_put(w, &end);
}

void
sample_put(struct lab *l, struct wbuf *w, uint16_t type, enum point p)
{
	static const char *const none[] = {NULL};
	static const uint8_t zeros[64];
	struct put_fin put_fin = {.code = C_FS_NO_SPACE};
	struct done done = {.code = C_FS_IO};
	struct reject many = {C_AUTH_INVALID, 3, "", ""};
	struct fin fin = {0};
	const struct msg_row *row = msg_row(type);

	wbuf_init(w, IMSG_MAX_PAYLOAD);
	switch (type) {
	case LM_ASK:
		lab_ask_put(w, OP_core_health, none);
		break;
	case LM_PUT_END:
	case MP_PUT_END:
		wput_u64(w, 5);
		wput_u8(w, 1);
		break;
	case LM_FIN:
		fin_put(w, &fin);
		break;
	case LM_REJECTS:
		wput_u16(w, 1);
		reject_put(w, &many);
		break;
	case MP_FACTS:
		put_facts(l, w, p);
		break;
	case MP_PUT_FIN:
		put_fin_put(w, &put_fin);
		break;
	case MP_PUT_ANS:
	case MP_LIST_ANS:
		wput_u32(w, 0);
		break;
	case MP_DONE:
		done_put(w, &done);
		break;
	case MP_DENIED_ANS:
		put_covers(w);
		break;
	case MP_SPACE_ANS:
		put_spaces(w);
		break;
	case ME_DONE:
		wput_u16(w, C_ID_NOT_FOUND);
		break;
	case ME_STARTED:
	case ME_FAILED:
	case ME_HELLO:
	case ME_END:
		put_exec(w, type);
		break;
	default:
		wput_raw(w, zeros, row == NULL ? 0 : row->min);
		break;
	}
}

int
sample_fd(struct lab *l, uint16_t type)
{
	const struct msg_row *row = msg_row(type);

	switch (row == NULL ? FDK_NONE : row->fd) {
	case FDK_SOCKET:
		return odd_fd(l, ODD_SOCKET, "", 0);
	case FDK_ANY:
	case FDK_FILE_R:
		return odd_fd(l, ODD_FILE_R, "hello", 5);
	case FDK_MEMFD:
		return odd_fd(l, ODD_MEMFD, "hello", 5);
	case FDK_PIPE_R:
		return odd_fd(l, ODD_PIPE_R, "", 0);
	case FDK_PIPE_W:
		return odd_fd(l, ODD_PIPE_W, "", 0);
	case FDK_DIR:
		return odd_fd(l, ODD_DIR, "", 0);
	default:
		return -1;
	}
}

/* ---- the way to each point ---- */

static void
say(struct lab *l, enum proc_kind k, uint16_t type, uint64_t id)
{
	struct wbuf w;

	sample_put(l, &w, type, P_FREE);
	lab_send(l, k, type, id, sample_fd(l, type), &w);
}

/* Wait for a message and forget it. */
static uint64_t
hear(struct lab *l, enum proc_kind k, uint16_t type)
{
	struct imsg *m = lab_next(l, k, type);

	if (m->fd != -1)
		close(m->fd);
	return m->id;
}

static void
to_resolve(struct lab *l, struct at *at)
{
	at->lid = lab_ask(l, OP_files_download, "path", "f", NULL);
	at->rid = hear(l, PROC_PATHD, MP_RESOLVE);
}

static void
to_reopen(struct lab *l, struct at *at)
{
	at->lid = lab_ask(l, OP_files_download, "path", "f", NULL);
	at->rid = lab_facts(l, FK_FILE, -1);
	(void)hear(l, PROC_PATHD, MP_RESOLVE);
}

static void
to_work(struct lab *l, struct at *at, uint16_t op, const char *name,
    enum facts_kind kind, uint16_t order)
{
	at->lid = lab_ask(l, op, "path", name, NULL);
	at->rid = lab_facts(l, kind, -1);
	(void)hear(l, PROC_PATHD, order);
}

static void
to_body(struct lab *l, struct at *at)
{
	to_work(l, at, OP_files_upload, "n", FK_MISSING, MP_PUT);
	say(l, PROC_PATHD, MP_PUT_ANS, at->rid);
	(void)hear(l, PROC_LISTENER, LM_ANS);
}

static void
to_commit(struct lab *l, struct at *at)
{
	to_body(l, at);
	say(l, PROC_LISTENER, LM_PUT_END, at->lid);
	(void)hear(l, PROC_PATHD, MP_PUT_END);
}

static void
to_answered(struct lab *l, struct at *at)
{
	to_work(l, at, OP_files_mkdir, "n", FK_MISSING, MP_MKDIR);
	say(l, PROC_PATHD, MP_DONE, at->rid);
	(void)hear(l, PROC_LISTENER, LM_ANS);
}

static void
to_spawn(struct lab *l, struct at *at, int with_stdin)
{
	int dir = odd_fd(l, ODD_DIR, "", 0);

	at->lid = with_stdin
		      ? lab_ask(l, OP_commands_run, "*argv", "true", "stdin",
			    "x", NULL)
		      : lab_ask(l, OP_commands_run, "*argv", "true", NULL);
	at->rid = lab_facts(l, FK_DIR, dir);
	(void)hear(l, PROC_EXECD, ME_SPAWN_BIND);
	(void)hear(l, PROC_EXECD, ME_SPAWN);
}

static void
to_started(struct lab *l, struct at *at, int with_stdin)
{
	to_spawn(l, at, with_stdin);
	say(l, PROC_EXECD, ME_STARTED, at->rid);
}

/* A run whose working directory may hold denied entries. */
static void
to_cover(struct lab *l, struct at *at)
{
	int dir = odd_fd(l, ODD_DIR, "", 0);

	at->lid = lab_ask(l, OP_commands_run, "*argv", "false", NULL);
	at->rid = lab_facts(l, FK_DIR, dir);
	(void)hear(l, PROC_PATHD, MP_DENIED);
}

static void
to_hold(struct lab *l, struct at *at)
{
	to_cover(l, at);
	say(l, PROC_PATHD, MP_DENIED_ANS, at->rid);
	(void)hear(l, PROC_EXECD, ME_SPAWN_BIND);
	(void)hear(l, PROC_EXECD, ME_SPAWN_COVER);
	(void)hear(l, PROC_EXECD, ME_SPAWN);
}

static void
to_held(struct lab *l, struct at *at)
{
	to_hold(l, at);
	say(l, PROC_EXECD, ME_HELD, at->rid);
	(void)hear(l, PROC_PATHD, MP_DENIED);
}

/* A process that runs on behind its request; its name for clients. */
static void
to_process(struct lab *l, struct at *at, char id[64])
{
	int dir = odd_fd(l, ODD_DIR, "", 0);
	const struct imsg *m;
	const char *p;

	at->lid = lab_ask(l, OP_process_start, "*argv", "true", NULL);
	at->rid = lab_facts(l, FK_DIR, dir);
	(void)hear(l, PROC_EXECD, ME_SPAWN_BIND);
	(void)hear(l, PROC_EXECD, ME_SPAWN);
	say(l, PROC_EXECD, ME_STARTED, at->rid);
	m = lab_next(l, PROC_LISTENER, LM_ANS);
	p = memmem(m->payload, m->len, "\"id\":\"", 6);
	if (p == NULL)
		die("process.start: %.*s", (int)m->len - 51,
		    (const char *)m->payload + 51);
	snprintf(id, 64, "%.*s", (int)strcspn(p + 6, "\""), p + 6);
	say(l, PROC_LISTENER, LM_FIN, at->lid);
}

static void
to_follow(struct lab *l, struct at *at)
{
	char id[64];

	to_process(l, at, id);
	at->lid = lab_ask(l, OP_process_output, "id", id, NULL);
	at->rid = hear(l, PROC_EXECD, ME_FOLLOW);
}

static void
to_running(struct lab *l, struct at *at)
{
	to_started(l, at, 0);
	say(l, PROC_EXECD, ME_RUN, at->rid);
	(void)hear(l, PROC_LISTENER, LM_ANS);
}

/* Later points begin with earlier ones. */
static void
go_on(struct lab *l, enum point p, struct at *at)
{
	char id[64];

	switch (p) {
	case P_OLD:
		to_answered(l, at);
		say(l, PROC_LISTENER, LM_FIN, at->lid);
		break;
	case P_RUN_IN:
		to_started(l, at, 1);
		say(l, PROC_EXECD, ME_RUN, at->rid);
		break;
	case P_ENDING:
		to_running(l, at);
		say(l, PROC_LISTENER, LM_FIN, at->lid);
		break;
	case P_CANCELLED:
	case P_LATE:
		to_resolve(l, at);
		say(l, PROC_LISTENER, LM_CANCEL, at->lid);
		(void)hear(l, PROC_PATHD, MP_CANCEL);
		if (p == P_LATE)
			say(l, PROC_LISTENER, LM_FIN, at->lid);
		break;
	case P_COVER:
		to_cover(l, at);
		break;
	case P_HOLD:
		to_hold(l, at);
		break;
	case P_HELD:
		to_held(l, at);
		break;
	case P_PROCESS:
	case P_OVER:
		to_process(l, at, id);
		if (p == P_OVER)
			say(l, PROC_EXECD, ME_END, at->rid);
		break;
	case P_FOLLOW:
		to_follow(l, at);
		break;
	case P_SIZE:
		at->lid = lab_ask(l, OP_workspace_list, NULL);
		at->rid = hear(l, PROC_PATHD, MP_SPACE);
		break;
	case P_CANCEL_RUN:
		to_spawn(l, at, 0);
		say(l, PROC_LISTENER, LM_CANCEL, at->lid);
		(void)hear(l, PROC_EXECD, ME_CANCEL);
		break;
	default:
		break;
	}
}

struct at
point_go(struct lab *l, enum point p)
{
	struct at at = {l->lid + 1000, 1000000000};

	switch (p) {
	case P_FREE:
		break;
	case P_RESOLVE:
		to_resolve(l, &at);
		break;
	case P_REOPEN:
		to_reopen(l, &at);
		break;
	case P_PUT:
		to_work(l, &at, OP_files_upload, "n", FK_MISSING, MP_PUT);
		break;
	case P_LIST:
		to_work(l, &at, OP_files_list, ".", FK_DIR, MP_LIST);
		break;
	case P_CHANGE:
		to_work(l, &at, OP_files_mkdir, "n", FK_MISSING, MP_MKDIR);
		break;
	case P_BODY:
		to_body(l, &at);
		break;
	case P_COMMIT:
		to_commit(l, &at);
		break;
	case P_ANSWERED:
		to_answered(l, &at);
		break;
	case P_SPAWN:
	case P_SPAWN_IN:
		to_spawn(l, &at, p == P_SPAWN_IN);
		break;
	case P_STARTED:
	case P_STARTED_IN:
		to_started(l, &at, p == P_STARTED_IN);
		break;
	case P_RUNNING:
		to_running(l, &at);
		break;
	default:
		go_on(l, p, &at);
		break;
	}
	if (lab_sync(l) == -1)
		die("on the way to a point: %s", l->line);
	if (p == P_FREE)
		at.lid = ++l->lid; /* it is used up */
	return at;
}
