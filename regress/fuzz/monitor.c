/*
 * SPDX-License-Identifier: ISC
 *
 * The whole monitor, between a listener, a pathd and an execd that say
 * anything.  Honest messages follow from what the monitor asked; others are
 * made of bytes.  Whatever comes, each question of the listener is answered at
 * most once and in the order of the protocol, what the monitor sends is what
 * the other end can decode, with the descriptor that it expects, every audit
 * line and every body is JSON, and nothing is left when all are gone.  Input:
 * 2 bytes an event (which, choice) and what it takes.  What the monitor sends
 * is checked in monitor_heard.c, its parent is in monitor_parent.c.
 */
#include <sys/mman.h>
#include <sys/socket.h>

#include <fcntl.h>

#include <event2/event.h>
#include <jansson.h>

int monitor_main(int, char **);
#define main monitor_main
#include "monitor/main.c"
#undef main

#include "common/frame.h"
#include "regress/fuzz/decide.h"
#include "regress/fuzz/monitor.h"

int
fm_hears_parent(struct imsg *m)
{
	return mon_parent_msg(m);
}

/* ---- what the others say ---- */

static int
give(uint8_t which)
{
	switch (which % 8) {
	case 0:
		return dup(fm_file);
	case 1:
		return dup(fm_pipe[0]);
	case 2:
		return dup(fm_pipe[1]);
	case 3:
		return dup(fm_dir);
	case 4:
		return dup(fm_sock[0]);
	case 5:
		return fm_sealed("\0", 2);
	default:
		return -1;
	}
}

/* "pN" as an id stands for the N-th process. */
static void
name_process(struct args *args)
{
	struct arg *id = args_find(args, "id");

	if (id != NULL && id->type <= A_QUERY && id->len == 2 &&
	    id->s[0] == 'p' && fm_nknown > 0)
		CHECK(arg_set_str(id,
			  fm_known[(unsigned char)id->s[1] % 16 % fm_nknown %
				   nitems(fm_known)],
			  PROC_ID_LEN) == 0);
}

/* A well-formed question with any arguments. */
static void
listener_asks(uint8_t choice, struct feed *f)
{
	static const char *const ids[] = {"files.stat", "files.download",
	    "files.list", "files.upload", "files.mkdir", "files.move",
	    "files.delete", "commands.run", "core.check", "core.health",
	    "core.capabilities", "core.posture", "system.info", "no.such",
	    "files.edit", "files.copy", "files.search", "files.archive",
	    "files.export", "files.import", "process.start", "process.list",
	    "process.get", "process.output", "process.stdin", "process.wait",
	    "process.signal"};
	static const char *const tokens[] = {
	    TOKEN_READER, TOKEN_ADMIN, TOKEN_ADMIN, "wrong"};
	struct ask a = {.reqid = "r-AAAAAAAAAAAAAAAAAAAAAA", .remote = "unix"};
	const struct op_param *q;
	struct args args = {0};
	struct wbuf w, v;
	uint8_t b = feed_u8(f);
	int fd = -1;

	a.op = op_find(ids[choice % nitems(ids)]);
	strlcpy(a.opname, ids[choice % nitems(ids)], sizeof(a.opname));
	a.has_cred = (b & 0x40) == 0;
	strlcpy(a.token, tokens[b & 3], sizeof(a.token));
	a.flags = b >> 2 & 3;
	b = feed_u8(f);
	a.body = b & 3;
	a.length = b & 4 ? UINT64_MAX : b;
	a.bad_idem = (b & 0xf8) == 0xf8;
	a.has_digest = b >> 3 & 1;
	a.bad_digest = (b & 0xf8) == 0xf0;
	strlcpy(a.if_none_match, b & 16 ? "*" : "", sizeof(a.if_none_match));
	strlcpy(a.idem, b & 32 ? "k1" : "", sizeof(a.idem));
	a.args_in_fd = (b & 0xc0) == 0xc0;
	if (a.op != OP_NONE)
		for (q = ops[a.op].params; q->name != NULL; q++)
			feed_arg(&args, q, f);
	name_process(&args);
	wbuf_init(&w, ABX_BODY_MAX);
	a.args = args;
	ask_put(&w, &a);
	if (a.args_in_fd) {
		wbuf_init(&v, ABX_BODY_MAX);
		args_put(&v, &args);
		fd = fm_sealed(v.p, v.len);
		wbuf_free(&v);
	}
	if (w.len <= msg_row(LM_ASK)->max && fm_nasks < nitems(fm_asks)) {
		fm_asks[fm_nasks] = (struct asked){.lid = fm_nasks + 1};
		fm_nasks++;
		fm_says(PROC_LISTENER, LM_ASK, fm_nasks, fd, &w);
	} else {
		wbuf_free(&w);
		if (fd != -1)
			close(fd);
	}
	args_clear(&args);
}

/* The next thing that an honest listener would say of a question. */
static void
listener_goes_on(uint8_t choice, struct feed *f)
{
	struct asked *a;
	struct fin fin = {1, 2, 0, 3};
	struct wbuf w;

	if (fm_nasks == 0)
		return;
	a = &fm_asks[feed_u8(f) % fm_nasks];
	if (a->lid == UINT64_MAX)
		return;
	wbuf_init(&w, 64);
	fin.outcome = choice >> 4 & 1;
	if (a->kind == ANS_PUT && a->answered && !a->put_end && choice & 1 &&
	    !a->fin && !a->cancelled) {
		a->put_end = 1;
		wput_u64(&w, 5);
		wput_u8(&w, choice >> 1 & 1);
		fm_says(PROC_LISTENER, LM_PUT_END, a->lid, -1, &w);
	} else if (!a->fin && !a->cancelled && (choice & 6) == 6) {
		a->cancelled = 1;
		fm_says(PROC_LISTENER, LM_CANCEL, a->lid, -1, &w);
	} else if (!a->fin &&
		   (a->cancelled ||
		       (a->answered && (a->kind != ANS_PUT || a->put_fin)))) {
		a->fin = 1;
		fin_put(&w, &fin);
		fm_says(PROC_LISTENER, LM_FIN, a->lid, -1, &w);
	}
	wbuf_free(&w);
}

/* Facts in which everything is there, or what the choice says. */
static void
pathd_found(const struct order *o, uint8_t choice, struct feed *f)
{
	struct resolve v;
	struct facts facts;
	struct rbuf r;
	struct wbuf w;
	size_t i;
	int fd = -1;

	rbuf_init(&r, o->p, o->n);
	CHECK(resolve_get(&r, &v) == 0);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	wput_u32(&w, (uint32_t)v.n);
	for (i = 0; i < v.n; i++) {
		struct plan_item it = {
		    v.v[i].path, v.v[i].nofollow, v.v[i].refs, v.v[i].nrefs};

		memset(&facts, 0, sizeof(facts));
		facts_plain(mon.cur->policy, &it, &facts,
		    choice & 0x80		  ? feed_u8(f) % 5
		    : (v.flags & RESOLVE_OPENDIR) ? FK_DIR
						  : FK_FILE);
		facts.size = choice;
		facts.err = choice & 0x40 ? 13 : 0;
		facts_put(&w, &facts);
		if (i == 0 && facts.kind == FK_FILE && (v.flags & 1) != 0)
			fd = dup(fm_file);
		if (i == 0 && facts.kind == FK_DIR && (v.flags & 2) != 0)
			fd = dup(fm_dir);
		facts_clear(&facts);
	}
	resolve_clear(&v);
	fm_answers(o, MP_FACTS, fd, &w);
}

/* The first answer to an order of that type, or MSG_NONE when it is DONE;
 * *fd goes with it. */
static uint16_t
first_answer(uint16_t type, uint8_t choice, struct wbuf *w, int *fd)
{
	struct edit_fin edited = {.count = 1, .size = 3};
	struct pack_fin packed = {.entries = choice};
	struct covers covers = {0};

	switch (type) {
	case MP_PUT:
	case MP_IMPORT:
		wput_u32(w, 0);
		*fd = dup(fm_pipe[1]);
		return MP_PUT_ANS;
	case MP_LIST:
	case MP_SEARCH:
	case MP_EXPORT:
		wput_u32(w, 0);
		*fd = dup(fm_pipe[0]);
		return MP_LIST_ANS;
	case MP_DENIED:
		if ((choice & 4) != 0)
			covers_add(&covers, "hid/x", FK_FILE, 1, choice);
		covers_put(w, &covers);
		covers_clear(&covers);
		return MP_DENIED_ANS;
	case MP_EDIT:
		edit_fin_put(w, &edited);
		return MP_EDIT_ANS;
	case MP_ARCHIVE:
		pack_fin_put(w, &packed);
		return MP_ARCHIVE_ANS;
	default:
		return MSG_NONE;
	}
}

/* The answer to an order: what it fm_asks for, or a failure, or the end. */
static void
pathd_answers(uint8_t choice, struct feed *f)
{
	struct done d = {choice & 0x80 ? C_FS_IO : C_OK, 1};
	struct put_fin fin = {.code = d.code, .has_digest = 1};
	const struct order *o;
	uint16_t type = MSG_NONE;
	struct wbuf w;
	int fd = -1;

	if (fm_norders == 0)
		return;
	o = &fm_orders[choice & 1 ? fm_norders - 1 : feed_u8(f) % fm_norders];
	if (o->type == MP_RESOLVE) {
		pathd_found(o, feed_u8(f), f);
		return;
	}
	wbuf_init(&w, 256);
	if ((o->type == MP_PUT || o->type == MP_IMPORT) && (choice & 2) != 0) {
		put_fin_put(&w, &fin);
		type = MP_PUT_FIN;
	} else if (d.code == C_OK)
		type = first_answer(o->type, choice, &w, &fd);
	if (type == MSG_NONE) {
		done_put(&w, &d);
		type = MP_DONE;
	}
	fm_answers(o, type, fd, &w);
}

static void
execd_answers(uint8_t choice, struct feed *f)
{
	struct spawn_failed failed = {C_POL_EXEC_NOT_FOUND, 2, "exec"};
	struct run_end end = {.status = choice, .flags = END_EMPTY};
	const struct order *o;
	struct wbuf w;

	if (fm_norders == 0)
		return;
	o = &fm_orders[choice & 1 ? fm_norders - 1 : feed_u8(f) % fm_norders];
	wbuf_init(&w, 4096);
	switch (choice >> 1 & 7) {
	case 0:
		wput_u32(&w, 7);
		fm_answers(o, ME_STARTED, -1, &w);
		break;
	case 1:
		fm_answers(o, ME_RUN, dup(fm_pipe[0]), &w);
		break;
	case 2:
		fm_answers(o, ME_HELD, -1, &w);
		break;
	case 3:
		fm_answers(o, ME_IN, dup(fm_pipe[1]), &w);
		break;
	case 4:
		spawn_failed_put(&w, &failed);
		fm_answers(o, ME_FAILED, -1, &w);
		break;
	case 6:
		wput_u16(&w, choice & 0x80 ? C_PROC_ENDED : C_OK);
		fm_answers(o, ME_DONE, -1, &w);
		break;
	default:
		if ((choice & 0x40) != 0) {
			end.nappeared = sizeof(end.appeared);
			memset(end.appeared, choice, end.nappeared - 1);
		}
		run_end_put(&w, &end);
		fm_answers(o, ME_END, -1, &w);
	}
}

/* Any message: type, id, descriptor and a line of payload. */
static void
anything(enum proc_kind kind, struct feed *f)
{
	uint16_t type = (uint16_t)feed_uint(f, 2);
	uint8_t id = feed_u8(f), fd = feed_u8(f);
	uint64_t no = id;
	size_t n = feed_u8(f);
	struct wbuf w;

	if ((id & 0x80) != 0 && fm_norders > 0)
		no = fm_orders[id % fm_norders].rid;
	if (n > f->n)
		n = f->n;
	wbuf_init(&w, 256);
	wput_raw(&w, f->p, n);
	fm_says(kind, type, no, give(fd), &w);
	f->p += n;
	f->n -= n;
}

/* The listener knows these: what it was told does not bind a broken one. */
static void
listener_lies(struct feed *f)
{
	size_t i;

	anything(PROC_LISTENER, f);
	for (i = 0; i < fm_nasks; i++)
		fm_asks[i].lid = UINT64_MAX;
	if (fm_chan_of(PROC_LISTENER) != NULL)
		fm_child_lost(PROC_LISTENER, mon.listener->generation);
	fm_child_start(PROC_LISTENER, mon.cur->epoch);
}

static void
hand_over(uint8_t choice, struct feed *f)
{
	struct wbuf w;

	wbuf_init(&w, 16);
	wput_u64(&w, feed_u8(f) % 4);
	if ((choice & 0x10) != 0)
		fm_says(PROC_LISTENER, LM_PEER_GONE, 0, -1, &w);
	else
		fm_says(PROC_LISTENER, LM_PEER, 0, dup(fm_sock[0]), &w);
}

static void
lose(uint8_t choice)
{
	static const enum proc_kind kinds[] = {
	    PROC_LISTENER, PROC_PATHD, PROC_EXECD};
	enum proc_kind kind = kinds[(choice >> 4) % 3];
	struct chan *c = fm_chan_of(kind);
	uint32_t epoch;

	if (c == NULL)
		return;
	epoch = c->peer->epoch;
	fm_child_lost((uint8_t)kind, c->peer->generation);
	fm_child_start(kind, epoch);
	fm_reap();
}

/* Those who wait for a process have waited long enough. */
static void
waited(void)
{
	struct req *r;
	size_t i;

	for (i = 0; i < fm_nasks; i++) {
		r = req_by_lid(fm_asks[i].lid);
		if (r != NULL && r->wait_timer != NULL)
			event_active(r->wait_timer, EV_TIMEOUT, 1);
	}
	event_base_loop(mon.base, EVLOOP_NONBLOCK);
}

static void
event(struct feed *f)
{
	uint8_t which = feed_u8(f), choice = feed_u8(f);

	switch (which % 16) {
	case 0:
	case 1:
	case 2:
		listener_asks(choice, f);
		break;
	case 3:
	case 4:
		listener_goes_on(choice, f);
		break;
	case 5:
	case 6:
	case 7:
		pathd_answers(choice, f);
		break;
	case 8:
	case 9:
		execd_answers(choice, f);
		break;
	case 10:
		anything(choice & 1 ? PROC_PATHD : PROC_EXECD, f);
		break;
	case 11:
		listener_lies(f);
		break;
	case 12:
		lose(choice);
		break;
	case 13:
		hand_over(choice, f);
		break;
	case 14:
		if (choice >= 0xe0) /* it takes its time */
			fm_reload(choice);
		break;
	default:
		fm_now_us += (uint64_t)choice * 1000000;
		if (choice % 2 != 0)
			waited();
	}
}

/* ---- the target ---- */

static void
quiet(enum log_level level, const char *line)
{
	CHECK(strchr(line, '\n') == NULL);
}

static void
set_up(void)
{
	log_set_sink(quiet);
	CHECK((mon.base = event_base_new()) != NULL);
	CHECK((fm_file = open("/proc/self/exe", O_RDONLY)) != -1);
	CHECK((fm_dir = open("/", O_PATH | O_DIRECTORY)) != -1);
	CHECK(pipe(fm_pipe) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fm_sock) == 0);
	CHECK((fm_audit = memfd_create("audit", MFD_CLOEXEC)) != -1);
	audit_init();
	sink_init(mon.base, 1);
	sink_set(0, fm_audit);
	fm_policy_says(1, 3);
	fm_child_start(PROC_PATHD, 1);
	fm_child_start(PROC_EXECD, 1);
	CHECK(mon.announced);
}

/* Every record is one object on its line. */
static void
check_audit(void)
{
	char *buf, *s, *line;
	off_t n;

	sink_flush();
	n = lseek(fm_audit, 0, SEEK_CUR);
	buf = s = fuzz_alloc((size_t)n + 1);
	CHECK(pread(fm_audit, buf, (size_t)n, 0) == (ssize_t)n);
	while ((line = strsep(&s, "\n")) != NULL)
		if (s != NULL)
			fm_is_json(line);
		else
			CHECK(*line == '\0');
	free(buf);
	CHECK(ftruncate(fm_audit, 0) == 0 && lseek(fm_audit, 0, SEEK_SET) == 0);
	CHECK(sink_lost() == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	static int ready;
	int before;

	if (!ready)
		set_up();
	ready = 1;
	while (fm_chans != NULL)
		fm_child_lost(
		    (uint8_t)fm_chans->peer->kind, fm_chans->peer->generation);
	CHECK((before = dup(STDERR_FILENO)) != -1);
	close(before);
	fm_nasks = fm_nknown = 0;
	fm_child_start(PROC_LISTENER, mon.cur->epoch);
	fm_child_start(PROC_PATHD, mon.cur->pathd_epoch);
	fm_child_start(PROC_EXECD, mon.cur->execd_epoch);
	while (f.n > 0)
		event(&f);
	while (fm_chans != NULL)
		fm_child_lost(
		    (uint8_t)fm_chans->peer->kind, fm_chans->peer->generation);
	fm_ndrained = 0;
	CHECK(req_count() == 0);
	check_audit();
	while (fm_norders > 0)
		free(fm_orders[--fm_norders].p);
	fm_now_us +=
	    25ULL * 3600 * 1000000; /* keys and processes are forgotten */
	CHECK(proc_first() == NULL);
	CHECK(dup(STDERR_FILENO) == before);
	close(before);
	return 0;
}
