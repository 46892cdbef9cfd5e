/*
 * SPDX-License-Identifier: ISC
 *
 * The whole monitor, between a listener, a pathd and an execd that say
 * anything.  Honest messages follow from what the monitor asked; others are
 * made of bytes.  Whatever comes, each question of the listener is answered at
 * most once and in the order of the protocol, what the monitor sends is what
 * the other end can decode, with the descriptor that it expects, every audit
 * line and every body is JSON, and nothing is left when all are gone.  Input:
 * 2 bytes an event (which, choice) and what it takes.
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
#include "monitor/proctab.h"
#include "regress/fuzz/decide.h"
#include "regress/fuzz/fuzz.h"

#define TOKEN_READER "reader-token-0123"
#define TOKEN_ADMIN "admin-token-01234"

static const char text[] =
    "{\"version\":1,\"auth\":{\"anonymous_health\":true,\"tokens\":["
    "{\"id\":\"reader\",\"roles\":[\"reader\"],\"token_sha256\":\"%s\"},"
    "{\"id\":\"boss\",\"roles\":[\"admin\"],\"token_sha256\":\"%s\"}]},"
    "\"state_dir\":\"/var/lib/abx\",\"rules\":["
    "{\"allow\":[\"files.list\",\"files.stat\",\"files.download\"],"
    "\"principals\":\"role:reader\",\"paths\":{\"roots\":[\"/srv/data\","
    "\"/srv/two\"],\"deny\":[\"**/.env\"],\"max_bytes\":\"1MB\"}},"
    "{\"allow\":[\"files.*\",\"group:core\",\"system.info\","
    "\"core.posture\"],\"principals\":\"role:admin\","
    "\"paths\":[\"/srv/data\",\"/srv/work\"]},"
    "{\"allow\":[\"process.list\",\"process.get\",\"process.output\","
    "\"process.stdin\",\"process.wait\",\"process.signal\"],"
    "\"principals\":\"role:admin\"},"
    "{\"allow\":[\"commands.run\",\"process.start\"],"
    "\"principals\":\"role:admin\","
    "\"commands\":{\"allow\":[\"cat {path}\",\"echo ...\"],"
    "\"cwd\":{\"roots\":\"/srv/work\",\"deny\":\"hid/"
    "*\"}},\"limits\":{\"rate\":\"20/s\","
    "\"concurrency\":3}},"
    "{\"deny\":\"files.*\",\"paths\":\"*.key\",\"reason\":\"no \\\"keys\\\"\"}"
    "]}";

/* ---- the others, as the monitor sees them ---- */

struct chan {
	struct chan *next;
	int fd;
	chan_msg_cb msg;
	struct peer *peer;
};
static struct chan *chans;
static int fd_file, fd_pipe[2], fd_dir, fd_sock[2], fd_audit;
static uint64_t now_us = 1;
static uint32_t generation;

/* A question of the listener and what it was told. */
struct asked {
	uint64_t lid;
	int answered, kind, flags;
	int cancelled, put_end, put_fin, run_in, fin;
};
/* An order of the monitor to a worker. */
struct order {
	enum proc_kind to;
	uint16_t type;
	uint64_t rid;
	uint8_t *p;
	size_t n;
	uint32_t generation; /* of the worker */
	int over;	     /* of a run: it ended, or never was */
};
static struct asked asks[64];
static struct order orders[160];
static size_t nasks, norders;

static struct asked *
asked_find(uint64_t lid)
{
	size_t i;

	for (i = 0; i < nasks; i++)
		if (asks[i].lid == lid)
			return &asks[i];
	return NULL;
}

/* The ids of processes, as they were told. */
#define PROC_ID "{\"id\":\""
static char known[8][PROC_ID_LEN + 1];
static size_t nknown;

static void
learn(const char *body)
{
	if (strncmp(body, PROC_ID, sizeof(PROC_ID) - 1) == 0)
		strlcpy(known[nknown++ % nitems(known)],
		    body + sizeof(PROC_ID) - 1, sizeof(known[0]));
}

static void
is_json(const char *s)
{
	json_t *o = json_loads(s, JSON_REJECT_DUPLICATES, NULL);

	CHECK(json_is_object(o));
	json_decref(o);
}

static void
got_ans(struct asked *a, struct rbuf *r, int fd)
{
	static const enum fd_kind want[] = {[ANS_JSON] = FDK_NONE,
	    [ANS_FILE] = FDK_FILE_R,
	    [ANS_PUT] = FDK_PIPE_W,
	    [ANS_LIST] = FDK_PIPE_R,
	    [ANS_BYTES] = FDK_PIPE_R,
	    [ANS_RUN] = FDK_PIPE_R};
	struct ans ans;

	CHECK(ans_get(r, &ans) == 0 && rget_end(r) == 0);
	CHECK(!a->answered && !a->fin && !a->cancelled);
	CHECK(ans.kind < nitems(want));
	CHECK((fd != -1) == (want[ans.kind] != FDK_NONE));
	CHECK(fd == -1 || msg_fd_kind(fd) == want[ans.kind]);
	CHECK((ans.code == C_OK) == (ans.status < 300));
	CHECK(ans.code == C_OK || ans.kind == ANS_JSON);
	if (ans.kind == ANS_JSON) {
		is_json(ans.body);
		learn(ans.body);
	}
	a->answered = 1;
	a->kind = ans.kind;
	a->flags = ans.flags;
	ans_clear(&ans);
}

static void
to_listener(const struct imsg *m)
{
	struct asked *a = asked_find(m->id);
	struct lconf conf;
	struct ans ans;
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	switch (m->type) {
	case LM_CONF:
		CHECK(lconf_get(&r, &conf) == 0 && rget_end(&r) == 0);
		lconf_clear(&conf);
		break;
	case LM_ANS:
		CHECK(a != NULL);
		got_ans(a, &r, m->fd);
		break;
	case LM_PUT_FIN:
		CHECK(a != NULL && a->answered && a->kind == ANS_PUT);
		CHECK(!a->put_fin && !a->fin && !a->cancelled);
		CHECK(ans_get(&r, &ans) == 0 && rget_end(&r) == 0);
		CHECK(ans.kind == ANS_JSON);
		is_json(ans.body);
		ans_clear(&ans);
		a->put_fin = 1;
		break;
	case LM_RUN_IN:
		CHECK(a != NULL && a->answered && a->kind == ANS_RUN);
		CHECK((a->flags & ANS_STDIN) != 0 && !a->run_in);
		a->run_in = 1;
		break;
	case LM_DROP:
		CHECK(a != NULL && !a->fin);
		break;
	default:
		CHECK(m->type == LM_PEER_ANS);
	}
}

#define TAKES(name)                                                  \
	do {                                                         \
		struct name x;                                       \
                                                                     \
		CHECK(name##_get(&r, &x) == 0 && rget_end(&r) == 0); \
		name##_clear(&x);                                    \
	} while (0)

/* The order to run that under this number, or NULL. */
static struct order *
spawned(uint64_t rid)
{
	size_t i;

	for (i = 0; i < norders; i++)
		if (orders[i].type == ME_SPAWN && orders[i].rid == rid)
			return &orders[i];
	return NULL;
}

/* What is said of a run goes to the execd that has it, while it has it. */
static void
about(const struct peer *p, uint64_t run, int over)
{
	const struct order *o = spawned(run);

	if (norders == nitems(orders))
		return; /* it may be one that is not known here */
	CHECK(o != NULL && o->generation == p->generation);
	CHECK(over == -1 ? o->over < 2 : o->over == over);
}

static void
ended(const struct peer *p, uint64_t run, int how)
{
	struct order *o = spawned(run);

	if (o != NULL && o->generation == p->generation)
		o->over = how;
}

static void
to_worker(const struct peer *p, const struct imsg *m)
{
	struct order *o = &orders[norders];
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	switch (m->type) {
	case MP_RESOLVE:
		TAKES(resolve);
		break;
	case MP_PUT:
		TAKES(put);
		break;
	case MP_LIST:
		TAKES(list);
		break;
	case MP_COPY:
	case MP_SEARCH:
	case MP_EXPORT:
	case MP_ARCHIVE:
	case MP_IMPORT:
		TAKES(bulk);
		break;
	case MP_EDIT:
		TAKES(edit);
		break;
	case MP_MKDIR:
	case MP_RENAME:
	case MP_UNLINK:
		TAKES(mutate);
		break;
	case MP_DENIED:
		TAKES(denied);
		break;
	case ME_SPAWN_BIND:
		TAKES(spawn_bind);
		return;
	case ME_SPAWN_COVER:
		TAKES(covers);
		return;
	case ME_SPAWN:
		if (m->fd == -1)
			TAKES(spawn);
		break;
	case ME_FOLLOW:
		about(p, rget_u64(&r), -1);
		(void)rget_u64(&r);
		(void)rget_u64(&r);
		CHECK(rget_u8(&r) <= 1 && rget_end(&r) == 0);
		break;
	case ME_SESSION_END:
		CHECK(m->len == ABX_WORKSPACE_LEN);
		break;
	case ME_FEED:
		about(p, rget_u64(&r), 0);
		CHECK(rget_u8(&r) <= 1 && rget_end(&r) == 0);
		break;
	case ME_SIGNAL:
	case ME_CANCEL:
	case ME_GO:
		about(p, m->id, 0);
		return;
	case ME_FORGET:
		about(p, m->id, 1);
		ended(p, m->id, 2); /* no more of it */
		return;
	default:
		CHECK(m->type == MP_ROOTS || m->type == MP_PUT_END ||
		      m->type == MP_CANCEL);
		return;
	}
	if (norders == nitems(orders))
		return;
	*o = (struct order){
	    p->kind, m->type, m->id, NULL, m->len, p->generation, 0};
	o->p = fuzz_copy(m->payload, m->len);
	norders++;
}

int
chan_send(struct chan *c, uint16_t type, uint64_t id, int fd, const void *p,
    size_t len)
{
	struct imsg m = {type, id, fd, p, len, -1};
	const char *why;

	CHECK(msg_check(&m, &why) == 0);
	if (c->peer->kind == PROC_LISTENER)
		to_listener(&m);
	else
		to_worker(c->peer, &m);
	if (fd != -1)
		close(fd);
	return 0;
}

struct chan *
chan_new(struct event_base *base, int fd, chan_msg_cb msg, chan_gone_cb gone,
    void *arg)
{
	struct chan *c = fuzz_alloc(sizeof(*c));

	*c = (struct chan){chans, fd, msg, arg};
	chans = c;
	return c;
}

void
chan_free(struct chan *c)
{
	struct chan **p;

	if (c == NULL)
		return;
	for (p = &chans; *p != c; p = &(*p)->next)
		CHECK(*p != NULL);
	*p = c->next;
	close(c->fd);
	free(c);
}

size_t
chan_queued(const struct chan *c)
{
	return 0; /* they all read at once */
}

int
chan_set_aside(struct chan *c, size_t packets)
{
	return 0;
}

int
chan_passcred(struct chan *c)
{
	return 0;
}

/* ---- the parent ---- */

static struct {
	uint8_t kind;
	uint32_t gen;
} drained[16];
static size_t ndrained;

int
proc_tell(uint16_t type, int fd, const void *p, size_t len)
{
	struct imsg m = {type, 0, fd, p, len, -1};
	const char *why;
	struct rbuf r;

	CHECK(fd == -1 && msg_check(&m, &why) == 0);
	if (type == PC_DRAINED && ndrained < nitems(drained)) {
		rbuf_init(&r, p, len);
		drained[ndrained].kind = rget_u8(&r);
		drained[ndrained++].gen = rget_u32(&r);
	}
	return 0;
}

uint64_t
proc_now_us(void)
{
	return now_us;
}

void
proc_exit(int status)
{
	CHECK(status == 0); /* no message of a sibling ends the monitor */
}

uint32_t
proc_generation(void)
{
	return 1;
}

int
load_main(int argc, char **argv)
{
	return 0; /* another program in the same file */
}

int
proc_main(const struct proc_ops *p, int argc, char **argv)
{
	return 0;
}

static void
parent_says(uint16_t type, int fd, const struct wbuf *w)
{
	struct imsg m = {type, 0, fd, w->p, w->len, -1};
	const char *why;

	CHECK(!w->err && msg_check(&m, &why) == 0);
	CHECK(mon_parent_msg(&m) == 0);
	if (m.fd != -1)
		close(m.fd);
}

static void
child_lost(uint8_t kind, uint32_t gen)
{
	struct wbuf w;

	wbuf_init(&w, 16);
	wput_u8(&w, kind);
	wput_u32(&w, gen);
	parent_says(PC_CHILD_GONE, -1, &w);
	wbuf_free(&w);
}

/* Workers that nobody needs any more end. */
static void
reap(void)
{
	size_t i;

	for (i = 0; i < ndrained; i++)
		child_lost(drained[i].kind, drained[i].gen);
	ndrained = 0;
}

static struct chan *
chan_of(enum proc_kind kind)
{
	struct chan *c;

	for (c = chans; c != NULL && c->peer->kind != kind; c = c->next)
		continue;
	return c;
}

static void child_start(enum proc_kind, uint32_t epoch);

/* A message of a sibling; the parent ends one that breaks the protocol, and
 * starts another unless its time was over. */
static void
tells(struct chan *c, uint16_t type, uint64_t id, int fd, struct wbuf *w)
{
	uint8_t *copy = fuzz_copy(w->p, w->len);
	struct imsg m = {type, id, fd, copy, w->len, -1};
	struct peer was;
	int newest;

	CHECK(!w->err);
	wbuf_free(w);
	if (c != NULL) {
		was = *c->peer;
		if (type == ME_END || type == ME_FAILED)
			ended(c->peer, id, type == ME_END ? 1 : 2);
		if (c->msg(c, &m, c->peer) != 0) {
			CHECK(c->peer->broken);
			newest = c == chan_of(was.kind);
			child_lost((uint8_t)was.kind, was.generation);
			if (newest)
				child_start(was.kind, was.epoch);
		}
	}
	if (m.fd != -1)
		close(m.fd);
	free(copy);
	reap();
}

static void
says_w(enum proc_kind kind, uint16_t type, uint64_t id, int fd, struct wbuf *w)
{
	tells(chan_of(kind), type, id, fd, w);
}

/* An answer of the worker that was asked. */
static void
answers(const struct order *o, uint16_t type, int fd, struct wbuf *w)
{
	struct chan *c = chans;

	while (c != NULL && c->peer->generation != o->generation)
		c = c->next;
	/* it is gone: another one knows the number */
	tells(c != NULL ? c : chan_of(o->to), type, o->rid, fd, w);
}

static void
greet(enum proc_kind kind)
{
	struct exec_hello h = {15, 3, ""};
	struct policy_root pr;
	struct root_ok o = {0};
	struct wbuf w;
	size_t i;

	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	if (kind == PROC_EXECD) {
		exec_hello_put(&w, &h);
		says_w(kind, ME_HELLO, 0, -1, &w);
	} else if (kind == PROC_PATHD) {
		wput_u32(&w, (uint32_t)policy_nroots(mon.cur->policy));
		for (i = 0; i < policy_nroots(mon.cur->policy); i++) {
			policy_root(mon.cur->policy, i, &pr);
			o.id = (uint32_t)i;
			o.path = (char *)(uintptr_t)pr.path;
			root_ok_put(&w, &o);
		}
		says_w(kind, MP_ROOTS_OK, 0, -1, &w);
	}
}

static void
child_start(enum proc_kind kind, uint32_t epoch)
{
	struct wbuf w;
	size_t i;

	if (kind == PROC_LISTENER)
		for (i = 0; i < nasks; i++) /* it knows of none */
			asks[i].lid = UINT64_MAX;
	wbuf_init(&w, 16);
	wput_u8(&w, (uint8_t)kind);
	wput_u32(&w, ++generation);
	wput_u32(&w, epoch);
	parent_says(PC_CHILD_UP, dup(fd_sock[0]), &w);
	wbuf_free(&w);
	greet(kind);
}

/* A sealed memfd with those bytes. */
static int
sealed(const void *p, size_t n)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd != -1 && write(fd, p, n) == (ssize_t)n);
	CHECK(fcntl(fd, F_ADD_SEALS, 0xf) == 0);
	return fd;
}

static void
policy_says(uint32_t epoch, uint8_t need)
{
	char buf[sizeof(text) + 128], hex[2][65];
	uint8_t digest[SHA256_LEN];
	struct wbuf w;
	int n;

	sha256(TOKEN_READER, strlen(TOKEN_READER), digest);
	hex_encode(digest, sizeof(digest), hex[0]);
	sha256(TOKEN_ADMIN, strlen(TOKEN_ADMIN), digest);
	hex_encode(digest, sizeof(digest), hex[1]);
	n = snprintf(buf, sizeof(buf), text, hex[0], hex[1]);
	wbuf_init(&w, 16);
	wput_u32(&w, epoch);
	wput_u32(&w, 0);
	wput_u8(&w, need);
	parent_says(PC_SNAPSHOT, sealed(buf, (size_t)n), &w);
	wbuf_free(&w);
	CHECK(mon.cur != NULL);
}

/* A new configuration, and the workers that it needs. */
static void
reload(uint8_t choice)
{
	uint32_t epoch = mon.cur->epoch + 1;

	if (mon.next != NULL)
		epoch = mon.next->epoch;
	else
		policy_says(epoch, choice & 3);
	if ((choice & 1) != 0)
		child_start(PROC_PATHD, epoch);
	if ((choice & 2) != 0)
		child_start(PROC_EXECD, epoch);
	reap();
}

/* ---- what the others say ---- */

static int
give(uint8_t which)
{
	switch (which % 8) {
	case 0:
		return dup(fd_file);
	case 1:
		return dup(fd_pipe[0]);
	case 2:
		return dup(fd_pipe[1]);
	case 3:
		return dup(fd_dir);
	case 4:
		return dup(fd_sock[0]);
	case 5:
		return sealed("\0", 2);
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
	    id->s[0] == 'p' && nknown > 0)
		CHECK(arg_set_str(id,
			  known[(unsigned char)id->s[1] % 16 % nknown %
				nitems(known)],
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
		fd = sealed(v.p, v.len);
		wbuf_free(&v);
	}
	if (w.len <= msg_row(LM_ASK)->max && nasks < nitems(asks)) {
		asks[nasks] = (struct asked){.lid = nasks + 1};
		nasks++;
		says_w(PROC_LISTENER, LM_ASK, nasks, fd, &w);
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

	if (nasks == 0)
		return;
	a = &asks[feed_u8(f) % nasks];
	if (a->lid == UINT64_MAX)
		return;
	wbuf_init(&w, 64);
	fin.outcome = choice >> 4 & 1;
	if (a->kind == ANS_PUT && a->answered && !a->put_end && choice & 1 &&
	    !a->fin && !a->cancelled) {
		a->put_end = 1;
		wput_u64(&w, 5);
		wput_u8(&w, choice >> 1 & 1);
		says_w(PROC_LISTENER, LM_PUT_END, a->lid, -1, &w);
	} else if (!a->fin && !a->cancelled && (choice & 6) == 6) {
		a->cancelled = 1;
		says_w(PROC_LISTENER, LM_CANCEL, a->lid, -1, &w);
	} else if (!a->fin &&
		   (a->cancelled ||
		       (a->answered && (a->kind != ANS_PUT || a->put_fin)))) {
		a->fin = 1;
		fin_put(&w, &fin);
		says_w(PROC_LISTENER, LM_FIN, a->lid, -1, &w);
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
			fd = dup(fd_file);
		if (i == 0 && facts.kind == FK_DIR && (v.flags & 2) != 0)
			fd = dup(fd_dir);
		facts_clear(&facts);
	}
	resolve_clear(&v);
	answers(o, MP_FACTS, fd, &w);
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
		*fd = dup(fd_pipe[1]);
		return MP_PUT_ANS;
	case MP_LIST:
	case MP_SEARCH:
	case MP_EXPORT:
		wput_u32(w, 0);
		*fd = dup(fd_pipe[0]);
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

/* The answer to an order: what it asks for, or a failure, or the end. */
static void
pathd_answers(uint8_t choice, struct feed *f)
{
	struct done d = {choice & 0x80 ? C_FS_IO : C_OK, 1};
	struct put_fin fin = {.code = d.code, .has_digest = 1};
	const struct order *o;
	uint16_t type = MSG_NONE;
	struct wbuf w;
	int fd = -1;

	if (norders == 0)
		return;
	o = &orders[choice & 1 ? norders - 1 : feed_u8(f) % norders];
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
	answers(o, type, fd, &w);
}

static void
execd_answers(uint8_t choice, struct feed *f)
{
	struct spawn_failed failed = {C_POL_EXEC_NOT_FOUND, 2, "exec"};
	struct run_end end = {.status = choice, .flags = END_EMPTY};
	const struct order *o;
	struct wbuf w;

	if (norders == 0)
		return;
	o = &orders[choice & 1 ? norders - 1 : feed_u8(f) % norders];
	wbuf_init(&w, 4096);
	switch (choice >> 1 & 7) {
	case 0:
		wput_u32(&w, 7);
		answers(o, ME_STARTED, -1, &w);
		break;
	case 1:
		answers(o, ME_RUN, dup(fd_pipe[0]), &w);
		break;
	case 2:
		answers(o, ME_HELD, -1, &w);
		break;
	case 3:
		answers(o, ME_IN, dup(fd_pipe[1]), &w);
		break;
	case 4:
		spawn_failed_put(&w, &failed);
		answers(o, ME_FAILED, -1, &w);
		break;
	case 6:
		wput_u16(&w, choice & 0x80 ? C_PROC_ENDED : C_OK);
		answers(o, ME_DONE, -1, &w);
		break;
	default:
		if ((choice & 0x40) != 0) {
			end.nappeared = sizeof(end.appeared);
			memset(end.appeared, choice, end.nappeared - 1);
		}
		run_end_put(&w, &end);
		answers(o, ME_END, -1, &w);
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

	if ((id & 0x80) != 0 && norders > 0)
		no = orders[id % norders].rid;
	if (n > f->n)
		n = f->n;
	wbuf_init(&w, 256);
	wput_raw(&w, f->p, n);
	says_w(kind, type, no, give(fd), &w);
	f->p += n;
	f->n -= n;
}

/* The listener knows these: what it was told does not bind a broken one. */
static void
listener_lies(struct feed *f)
{
	size_t i;

	anything(PROC_LISTENER, f);
	for (i = 0; i < nasks; i++)
		asks[i].lid = UINT64_MAX;
	if (chan_of(PROC_LISTENER) != NULL)
		child_lost(PROC_LISTENER, mon.listener->generation);
	child_start(PROC_LISTENER, mon.cur->epoch);
}

static void
hand_over(uint8_t choice, struct feed *f)
{
	struct wbuf w;

	wbuf_init(&w, 16);
	wput_u64(&w, feed_u8(f) % 4);
	if ((choice & 0x10) != 0)
		says_w(PROC_LISTENER, LM_PEER_GONE, 0, -1, &w);
	else
		says_w(PROC_LISTENER, LM_PEER, 0, dup(fd_sock[0]), &w);
}

static void
lose(uint8_t choice)
{
	static const enum proc_kind kinds[] = {
	    PROC_LISTENER, PROC_PATHD, PROC_EXECD};
	enum proc_kind kind = kinds[(choice >> 4) % 3];
	struct chan *c = chan_of(kind);
	uint32_t epoch;

	if (c == NULL)
		return;
	epoch = c->peer->epoch;
	child_lost((uint8_t)kind, c->peer->generation);
	child_start(kind, epoch);
	reap();
}

/* Those who wait for a process have waited long enough. */
static void
waited(void)
{
	struct req *r;
	size_t i;

	for (i = 0; i < nasks; i++) {
		r = req_by_lid(asks[i].lid);
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
			reload(choice);
		break;
	default:
		now_us += (uint64_t)choice * 1000000;
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
	CHECK((fd_file = open("/proc/self/exe", O_RDONLY)) != -1);
	CHECK((fd_dir = open("/", O_PATH | O_DIRECTORY)) != -1);
	CHECK(pipe(fd_pipe) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd_sock) == 0);
	CHECK((fd_audit = memfd_create("audit", MFD_CLOEXEC)) != -1);
	audit_init();
	sink_init(mon.base, 1);
	sink_set(0, fd_audit);
	policy_says(1, 3);
	child_start(PROC_PATHD, 1);
	child_start(PROC_EXECD, 1);
	CHECK(mon.announced);
}

/* Every record is one object on its line. */
static void
check_audit(void)
{
	char *buf, *s, *line;
	off_t n;

	sink_flush();
	n = lseek(fd_audit, 0, SEEK_CUR);
	buf = s = fuzz_alloc((size_t)n + 1);
	CHECK(pread(fd_audit, buf, (size_t)n, 0) == (ssize_t)n);
	while ((line = strsep(&s, "\n")) != NULL)
		if (s != NULL)
			is_json(line);
		else
			CHECK(*line == '\0');
	free(buf);
	CHECK(ftruncate(fd_audit, 0) == 0 && lseek(fd_audit, 0, SEEK_SET) == 0);
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
	while (chans != NULL)
		child_lost((uint8_t)chans->peer->kind, chans->peer->generation);
	CHECK((before = dup(STDERR_FILENO)) != -1);
	close(before);
	nasks = nknown = 0;
	child_start(PROC_LISTENER, mon.cur->epoch);
	child_start(PROC_PATHD, mon.cur->pathd_epoch);
	child_start(PROC_EXECD, mon.cur->execd_epoch);
	while (f.n > 0)
		event(&f);
	while (chans != NULL)
		child_lost((uint8_t)chans->peer->kind, chans->peer->generation);
	ndrained = 0;
	CHECK(req_count() == 0);
	check_audit();
	while (norders > 0)
		free(orders[--norders].p);
	now_us += 25ULL * 3600 * 1000000; /* keys and processes are forgotten */
	CHECK(proc_first() == NULL);
	CHECK(dup(STDERR_FILENO) == before);
	close(before);
	return 0;
}
