/*
 * SPDX-License-Identifier: ISC
 *
 * The whole listener at one connection, between a client that sends anything
 * and a monitor that answers each question in its way.  However the bytes
 * arrive, the same is asked and the same is answered; the answers are whole
 * HTTP responses, one behind the other; and nothing is left at the end.
 * Input: 3 bytes (configuration, which questions are refused, portions), with
 * bit 3 of the first 1 byte more and that many times 4 bytes that workers say,
 * then what the client sends.
 */
#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

int listener_main(int, char **);
#define main listener_main
#include "listener/main.c"
#undef main

#include "common/frame.h"
#include "common/msg.h"
#include "listener/ask.h"
#include "listener/conn.h"
#include "regress/fuzz/fuzz.h"
#include "regress/fuzz/responses.h"

#define TOKEN "token-0123456789"
#define ASKS 64
#define FILE_TEXT "abcdefghijklmnopqrstuvwxyz"

/* What became of one connection. */
struct story {
	struct wbuf told; /* what the monitor was told, in order */
	struct wbuf got;  /* what the client got */
};

/* ---- the others ---- */

struct chan {
	int dummy;
};
static struct chan monitor;
static struct event_base *base;
static struct story *story;
static uint64_t now_us = 1;
static uint8_t refused;	       /* bit k: the k-th question of eight is */
static const uint8_t *hostile; /* what workers say, or NULL */
static size_t nhostile;

/* A question that is not over. */
static struct question {
	uint64_t id;
	uint16_t op;
	int fd;	      /* our end of its pipe, -1 */
	int put;      /* an upload flows into it */
	int sse;      /* events are wanted */
	int answered; /* or withdrawn */
	int put_end;
	struct wbuf body; /* that was uploaded */
} questions[ASKS];
static size_t nquestions, nasked;

uint64_t
proc_now_us(void)
{
	return now_us;
}

void
proc_exit(int status)
{
	CHECK(!"the listener ends");
	abort();
}

int
proc_main(const struct proc_ops *p, int argc, char **argv)
{
	return 0;
}

struct chan *
chan_new(
    struct event_base *b, int fd, chan_msg_cb msg, chan_gone_cb gone, void *arg)
{
	return &monitor;
}

void
chan_free(struct chan *c)
{
}

void
chan_flush(struct chan *c, int ms)
{
}

size_t
chan_queued(const struct chan *c)
{
	return 0;
}

void
jail_seccomp(const struct jail_call *calls, int deny_list)
{
}

static struct question *
find(uint64_t id)
{
	size_t i;

	for (i = 0; i < nquestions; i++)
		if (questions[i].id == id)
			return &questions[i];
	return NULL;
}

/* Without what is another one each time. */
static void
tell_ask(struct ask *a)
{
	CHECK(strlen(a->reqid) == ABX_REQID_LEN);
	memset(a->reqid, 'x', ABX_REQID_LEN);
	ask_put(&story->told, a);
	if (a->args_in_fd)
		args_put(&story->told, &a->args);
}

static void
on_ask(uint64_t id, int fd, const void *p, size_t len)
{
	struct question *q = &questions[nquestions];
	struct rbuf r, v;
	struct ask a;
	uint8_t *text;
	off_t n;

	CHECK(nquestions < ASKS && find(id) == NULL);
	rbuf_init(&r, p, len);
	CHECK(ask_get(&r, &a) == 0 && rget_end(&r) == 0);
	CHECK(a.args_in_fd == (fd != -1));
	if (fd != -1) {
		CHECK((n = lseek(fd, 0, SEEK_END)) > 0);
		text = fuzz_alloc((size_t)n);
		CHECK(pread(fd, text, (size_t)n, 0) == n);
		rbuf_init(&v, text, (size_t)n);
		CHECK(args_get(&v, &a.args) == 0 && rget_end(&v) == 0);
		free(text);
	}
	tell_ask(&a);
	*q = (struct question){
	    .id = id, .op = a.op, .fd = -1, .sse = (a.flags & ASK_SSE) != 0};
	nquestions++;
	ask_clear(&a);
}

/* Take what was uploaded: 1 when there was something. */
static int
drain(struct question *q)
{
	uint8_t buf[8192];
	ssize_t n, all = 0;

	while ((n = read(q->fd, buf, sizeof(buf))) > 0) {
		all += n;
		wput_raw(&q->body, buf, (size_t)n);
	}
	return all > 0;
}

static void
on_fin(struct question *q, const void *p, size_t len)
{
	struct rbuf r;
	struct fin f;

	rbuf_init(&r, p, len);
	CHECK(fin_get(&r, &f) == 0 && rget_end(&r) == 0);
	wput_u8(&story->told, f.outcome);
	wput_u64(&story->told, f.bytes_in);
	if (f.outcome == FIN_OK)
		wput_u64(&story->told, f.bytes_out);
	if (q->fd != -1) {
		(void)drain(q);
		close(q->fd);
		wput_bytes(&story->told, q->body.p, q->body.len);
		wbuf_free(&q->body);
	}
	*q = questions[--nquestions];
}

/* Of those that are named each was answered with 401. */
static void
on_rejects(struct rbuf *r)
{
	uint16_t n = rget_u16(r);
	struct reject j;

	CHECK(n > 0);
	while (n-- > 0) {
		CHECK(reject_get(r, &j) == 0);
		CHECK(j.reqid[0] == '\0' || codes[j.code].status == 401);
	}
	CHECK(rget_end(r) == 0);
}

int
chan_send(struct chan *c, uint16_t type, uint64_t id, int fd, const void *p,
    size_t len)
{
	const struct msg_row *row = msg_row(type);
	struct question *q = find(id);
	struct rbuf r;

	CHECK(row != NULL && len >= row->min && len <= row->max);
	if (story != NULL && type != LM_REJECTS)
		wput_u16(&story->told, type);
	rbuf_init(&r, p, len);
	switch (type) {
	case LM_ASK:
		on_ask(id, fd, p, len);
		break;
	case LM_FIN:
		CHECK(q != NULL && q->answered);
		on_fin(q, p, len);
		break;
	case LM_CANCEL:
		CHECK(q != NULL);
		q->answered = 1;
		break;
	case LM_PUT_END:
		CHECK(q != NULL && q->put && !q->put_end);
		q->put_end = 1;
		wput_u64(&story->told, rget_u64(&r));
		wput_u8(&story->told, rget_u8(&r));
		break;
	case LM_RESULT:
		CHECK(q != NULL);
		wput_bytes(&story->told, p, len);
		break;
	default:
		CHECK(type == LM_REJECTS);
		on_rejects(&r);
	}
	if (fd != -1)
		close(fd);
	return 0;
}

int
chan_send_late(
    struct chan *c, uint16_t type, uint64_t id, const void *p, size_t len)
{
	return chan_send(c, type, id, -1, p, len);
}

/* ---- what the monitor says ---- */

static void
say(uint16_t type, const struct question *q, struct ans *a, int fd)
{
	struct imsg m = {type, q->id, fd, NULL, 0, -1};
	uint8_t *copy;
	struct wbuf w;

	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	ans_put(&w, a);
	CHECK(!w.err);
	m.payload = copy = fuzz_copy(w.p, w.len);
	m.len = w.len;
	wbuf_free(&w);
	CHECK(mon_msg(&monitor, &m, NULL) == 0);
	if (m.fd != -1)
		close(m.fd);
	free(copy);
}

static void
frame(struct wbuf *w, uint8_t kind, const struct wbuf *payload)
{
	uint8_t head[FRAME_HDR];

	frame_head(head, kind, (uint32_t)payload->len);
	wput_raw(w, head, sizeof(head));
	wput_raw(w, payload->p, payload->len);
}

/* All that a worker would say, in a pipe that ends then. */
static int
worker_says(uint8_t kind)
{
	struct list_entry e = {.type = FK_FILE, .name = "a", .namelen = 1};
	struct list_event v = {.path = "a", .pathlen = 1, .to = ""};
	struct run_end end = {0};
	struct wbuf w, p;
	int fds[2];

	wbuf_init(&w, 4096);
	wbuf_init(&p, 4096);
	switch (kind) {
	case ANS_LIST:
		list_entry_put(&p, &e);
		frame(&w, FR_ENTRY, &p);
		wbuf_reset(&p);
		wput_u16(&p, C_OK);
		wput_u8(&p, 0);
		frame(&w, FR_END, &p);
		break;
	case ANS_WATCH:
		v.type = FK_FILE;
		list_event_put(&p, &v);
		frame(&w, FR_EVENT, &p);
		break;
	case ANS_RUN:
		wput_raw(&p, "out\n", 4);
		frame(&w, FR_OUT, &p);
		wbuf_reset(&p);
		run_end_put(&p, &end);
		frame(&w, FR_EXIT, &p);
		break;
	default:
		wput_raw(&p, "bytes", 5);
		frame(&w, FR_OUT, &p);
		wbuf_reset(&p);
		wput_u16(&p, C_OK);
		wput_u8(&p, 0);
		frame(&w, FR_END, &p);
	}
	if (hostile != NULL) {
		wbuf_reset(&w);
		wput_raw(&w, hostile, nhostile);
	}
	CHECK(!w.err && !p.err && pipe(fds) == 0);
	CHECK(write(fds[1], w.p, w.len) == (ssize_t)w.len);
	close(fds[1]);
	wbuf_free(&w);
	wbuf_free(&p);
	return fds[0];
}

static void
answer(struct question *q)
{
	struct ans a = {.kind = ANS_JSON, .status = 200};
	enum op_stream stream = q->op == OP_NONE ? S_NONE : ops[q->op].stream;
	int fds[2], fd = -1;

	q->answered = 1;
	if (q->op == OP_NONE || (refused >> (nasked++ % 8) & 1) != 0) {
		a.code = C_POL_DENIED_BY_RULE;
		a.status = codes[a.code].status;
		stream = S_NONE;
	}
	a.body = strdup(stream == S_LIST || stream == S_BYTES ? "dir" : "{}");
	CHECK(a.body != NULL);
	switch (stream) {
	case S_FILE:
		a.kind = ANS_FILE;
		a.size = sizeof(FILE_TEXT) - 1;
		fd = memfd_create("file", MFD_CLOEXEC);
		CHECK(fd != -1 &&
		      write(fd, FILE_TEXT, a.size) == (ssize_t)a.size);
		break;
	case S_PUT:
		a.kind = ANS_PUT;
		CHECK(pipe2(fds, O_NONBLOCK) == 0);
		q->fd = fds[0];
		wbuf_init(&q->body, SIZE_MAX);
		q->put = 1;
		fd = fds[1];
		break;
	case S_LIST:
		a.kind = ANS_LIST;
		break;
	case S_BYTES:
		a.kind = ANS_BYTES;
		break;
	case S_RUN:
		a.kind = ANS_RUN;
		a.flags = q->sse ? ANS_STREAM : 0;
		break;
	case S_SSE:
		a.kind = q->op == OP_files_watch ? ANS_WATCH : ANS_RUN;
		a.flags = q->op == OP_files_watch ? 0 : ANS_STREAM;
		break;
	default:
		break;
	}
	if (fd == -1 && a.kind != ANS_JSON) {
		a.size = a.kind == ANS_RUN ? 1024 : 0;
		fd = worker_says(a.kind);
	}
	say(LM_ANS, q, &a, fd);
	ans_clear(&a);
}

/* Everything that the monitor can do now: 1 when it did something. */
static int
monitor_turn(void)
{
	struct ans a = {.kind = ANS_JSON, .status = 201};
	struct question *q;
	int did = 0;
	size_t i;

	for (i = 0; i < nquestions; i++) {
		q = &questions[i];
		if (!q->answered) {
			answer(q);
			return 1;
		}
		if (q->fd == -1)
			continue;
		did |= drain(q);
		if (q->put_end != 1)
			continue;
		q->put_end = 2;
		a.body = strdup("{}");
		CHECK(a.body != NULL);
		say(LM_PUT_FIN, q, &a, -1);
		ans_clear(&a);
		return 1;
	}
	return did;
}

/* ---- the client ---- */

static int
client_reads(int fd)
{
	uint8_t buf[16384];
	ssize_t n;
	int did = 0;

	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		wput_raw(&story->got, buf, (size_t)n);
		did = 1;
	}
	return did;
}

/* Send all in portions, a turn of everybody between them; then no more. */
static void
converse(
    const uint8_t *p, size_t n, uint32_t seed, unsigned step, struct story *s)
{
	size_t left = n, m;
	int sp[2], open = 1, did;
	struct conn *c;
	ssize_t k;

	story = s;
	wbuf_init(&s->told, SIZE_MAX);
	wbuf_init(&s->got, SIZE_MAX);
	nasked = 0;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sp) == 0);
	CHECK((c = conn_new(base, sp[0], "127.0.0.1")) != NULL);
	conn_do(c);
	do {
		did = 0;
		m = step == 0 ? left : 1 + fuzz_rand(&seed) % step;
		if (m > left)
			m = left;
		if (m > 0 && (k = send(sp[1], p + (n - left), m,
				  MSG_NOSIGNAL | MSG_DONTWAIT)) != 0) {
			did = 1;
			/* a client that was sent away sends into nothing */
			left -= k > 0 ? (size_t)k : errno == EAGAIN ? 0 : left;
		}
		event_base_loop(base, EVLOOP_NONBLOCK);
		while (monitor_turn())
			event_base_loop(base, EVLOOP_NONBLOCK);
		did |= client_reads(sp[1]);
		if (!did && left == 0 && open) {
			(void)shutdown(sp[1], SHUT_WR);
			open = 0;
			did = 1;
		}
	} while (did);
	pool_kill_all();
	event_base_loop(base, EVLOOP_NONBLOCK);
	close(sp[1]);
	CHECK(nquestions == 0);
	story = NULL;
}

/* ---- the target ---- */

static int
same(const struct wbuf *a, const struct wbuf *b)
{
	return a->len == b->len &&
	       (a->len == 0 || memcmp(a->p, b->p, a->len) == 0);
}

static void
quiet(enum log_level level, const char *line)
{
	CHECK(strchr(line, '\n') == NULL);
}

static void
set_up(void)
{
	static char host[] = "example.org", origin[] = "https://example.org",
		    proxy[] = "127.0.0.1";
	uint8_t digest[SHA256_LEN], mac[SHA256_LEN];

	log_set_sink(quiet);
	CHECK((base = event_base_new()) != NULL);
	loop = base;
	mon = &monitor;
	pool_init(base);
	rejects_init(base);
	lconf.tokens = fuzz_alloc(sizeof(*lconf.tokens));
	lconf.ntokens = 1;
	sha256(TOKEN, strlen(TOKEN), digest);
	hmac_sha256(lconf.hmac_key, sizeof(lconf.hmac_key), digest,
	    sizeof(digest), mac);
	lconf.tokens[0] = (uint32_t)mac[0] | (uint32_t)mac[1] << 8 |
			  (uint32_t)mac[2] << 16 | (uint32_t)mac[3] << 24;
	lconf.header_timeout_ms = lconf.head_deadline_ms = 1000;
	lconf.idle_timeout_ms = 1000;
	lconf.max_pre_auth = lconf.max_connections = 8;
	lconf.max_header_bytes = 2048;
	lconf.max_request_bytes = 4096;
	lconf.min_rate = 1024;
	CHECK(strlist_add(&lconf.allowed_hosts, host, strlen(host)) == 0);
	CHECK(strlist_add(&lconf.allowed_origins, origin, strlen(origin)) == 0);
	CHECK(strlist_add(&lconf.trusted_proxies, proxy, strlen(proxy)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	struct story whole, parts;
	static int ready;
	uint8_t how = feed_u8(&f), step;
	int before;

	if (!ready)
		set_up();
	ready = 1;
	refused = feed_u8(&f);
	step = feed_u8(&f);
	hostile = NULL;
	if ((how & 8) != 0) {
		nhostile = feed_u8(&f) * 4U;
		if (nhostile > f.n)
			nhostile = f.n;
		hostile = f.p;
		f.p += nhostile;
		f.n -= nhostile;
	}
	lconf.open = how & 1;
	lconf.anonymous = how >> 1 & 1;
	lconf.anonymous_health = how >> 2 & 1;
	CHECK((before = dup(STDERR_FILENO)) != -1);
	close(before);
	converse(f.p, f.n, 0, 0, &whole);
	now_us += 3600ULL * 1000000; /* wrong tokens are forgotten */
	converse(f.p, f.n, how, step + 1U, &parts);
	now_us += 3600ULL * 1000000;
	/* a stream that breaks breaks its response */
	if (f.n > 0 && hostile == NULL && memmem(f.p, f.n, "HEAD", 4) == NULL) {
		responses_check(&whole.got);
		responses_check(&parts.got);
	}
	responses_plain(&whole.got);
	responses_plain(&parts.got);
	CHECK(same(&whole.told, &parts.told));
	CHECK(same(&whole.got, &parts.got));
	wbuf_free(&whole.told);
	wbuf_free(&whole.got);
	wbuf_free(&parts.told);
	wbuf_free(&parts.got);
	CHECK(dup(STDERR_FILENO) == before);
	close(before);
	return 0;
}
