/*
 * SPDX-License-Identifier: ISC
 *
 * A monitor that went wrong, against a real listener, pathd and execd: each
 * ends, in order and with a word, at the first thing that is not right, and
 * none does anything outside of what it was given at its start.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/ops.h"
#include "regress/privsep/cells.h"
#include "regress/privsep/evil.h"
#include "regress/privsep/solo.h"

static struct stage st;
static struct solo solo;
static int failures;

int
solo_begin(void **state)
{
	stage_new(&st, evil_build, NULL);
	stage_put(&st, "w/f", "hello");
	stage_put(&st, "r/f", MARKER);
	return 0;
}

int
solo_finish(void **state)
{
	solo_stop(&solo);
	stage_free(&st);
	return 0;
}

static void
wrong(const char *what, const char *how)
{
	print_error("%s: %s: %s\n", proc_name(solo.kind), what, how);
	if (++failures > 20)
		fail_msg("and so on");
}

/* It ends by itself, and says why, or it goes on. */
static void
verdict(const char *what, int ends)
{
	int status = 0;

	if (!solo_ended(&solo, ends ? 15000 : 15, &status)) {
		if (ends)
			wrong(what, "it goes on");
		else
			return;
	} else if (!ends)
		wrong(what, "it ends");
	else if (!WIFEXITED(status))
		wrong(what, "it does not end in order");
	else if (solo.logged == 0)
		wrong(what, "it does not say why");
	solo_start(&solo, &st, solo.kind);
}

/* ---- every type, out of the blue ---- */

/* With a payload of zeros these mean something, or nothing bad. */
static int
harmless(uint16_t type)
{
	switch (solo.kind) {
	case PROC_LISTENER:
		return type == LM_DROP;
	case PROC_PATHD:
		return type == MP_ROOTS || type == MP_CANCEL ||
		       type == MP_PUT_END;
	default:
		return type == ME_CANCEL || type == ME_GO ||
		       type == ME_FOLLOW || type == ME_FORGET;
	}
}

/* Only the tables of fd kinds need a lab; here a plain one will do. */
static int
some_fd(uint16_t type)
{
	const struct msg_row *row = msg_row(type);
	int p[2];

	switch (row == NULL ? FDK_NONE : row->fd) {
	case FDK_DIR:
		return open(
		    stage_path(&st, "w"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	case FDK_PIPE_R:
	case FDK_PIPE_W:
		if (pipe2(p, O_CLOEXEC) == -1)
			die("pipe");
		close(p[row->fd == FDK_PIPE_R]);
		return p[row->fd == FDK_PIPE_W];
	case FDK_NONE:
	case FDK_ANS_OPT:
	case FDK_FACTS_OPT:
	case FDK_MEMFD_OPT:
		return -1;
	default:
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
}

static void
every_type(enum proc_kind kind)
{
	static const uint8_t zeros[256];
	const struct msg_row *row;
	char what[64];
	size_t i;

	failures = 0;
	solo_start(&solo, &st, kind);
	for (i = 0; i < n_types; i++) {
		row = msg_row(all_types[i]);
		snprintf(what, sizeof(what), "%s (%#x)", msg_name(all_types[i]),
		    all_types[i]);
		solo_bytes(&solo, all_types[i], 7, some_fd(all_types[i]), zeros,
		    row == NULL ? 0 : row->min);
		verdict(what, !harmless(all_types[i]));
	}
	assert_int_equal(failures, 0);
}

void
solo_types_listener(void **state)
{
	every_type(PROC_LISTENER);
}

void
solo_types_pathd(void **state)
{
	every_type(PROC_PATHD);
}

void
solo_types_execd(void **state)
{
	every_type(PROC_EXECD);
}

/* ---- lengths ---- */

static void
target(struct target *t, const char *rel, enum facts_kind kind)
{
	memset(t, 0, sizeof(*t));
	t->rel = strdup(rel);
	t->kind = (uint8_t)kind;
	if (kind != FK_MISSING)
		t->dev = t->ino = 1;
}

static void
put_pathd(struct wbuf *w, uint16_t type, const char *rel)
{
	struct rootref ref = {0, ""};
	struct resolve_item it = {.refs = &ref, .nrefs = 1};
	struct resolve v = {.v = &it, .n = 1};
	struct put p = {.max_bytes = 10, .mode = UINT32_MAX};
	struct list l = {.max_entries = 10, .depth = 1};
	struct mutate m = {.mode = UINT32_MAX};
	char path[512];

	switch (type) {
	case MP_RESOLVE:
		snprintf(
		    path, sizeof(path), "%s/%s", stage_path(&st, "w"), rel);
		it.path = path;
		resolve_put(w, &v);
		break;
	case MP_PUT:
		target(&p.target, rel, FK_MISSING);
		put_put(w, &p);
		put_clear(&p);
		break;
	case MP_LIST:
		target(&l.target, rel, FK_DIR);
		l.refs = &ref;
		l.nrefs = 1;
		list_put(w, &l);
		target_clear(&l.target);
		break;
	case MP_PUT_END:
		wput_u64(w, 5);
		wput_u8(w, 1);
		break;
	default:
		target(&m.src, rel, FK_MISSING);
		target(&m.dst, rel, FK_MISSING);
		mutate_put(w, &m);
		mutate_clear(&m);
		break;
	}
}

static void
put_exec(struct wbuf *w, uint16_t type)
{
	static char word[] = "/usr/bin/true", root[] = "/", dir[512];
	char *words[] = {word};
	struct spawn_bind b = {.rw = 1, .inner = dir};
	struct spawn s = {.cwd = root, .max_output = 100};

	if (type == ME_SPAWN_BIND) {
		strlcpy(dir, stage_path(&st, "w"), sizeof(dir));
		spawn_bind_put(w, &b);
		return;
	}
	s.progs.v = s.argv.v = words;
	s.progs.n = s.argv.n = 1;
	spawn_put(w, &s);
}

static void
sample(struct wbuf *w, uint16_t type)
{
	struct lconf c = {.open = 1, .max_connections = 16};

	wbuf_init(w, IMSG_MAX_PAYLOAD);
	if (type >> 8 == 3)
		put_exec(w, type);
	else if (type >> 8 == 2)
		put_pathd(w, type, "new");
	else if (type == LM_CONF)
		lconf_put(w, &c);
}

/* Every length but the right one; step: how many of them are tried. */
static void
lengths(enum proc_kind kind, uint16_t type, size_t step)
{
	uint8_t bytes[4096] = {0};
	struct wbuf w;
	char what[64];
	size_t n;

	sample(&w, type);
	if (w.len + 64 > sizeof(bytes))
		die("sample");
	memcpy(bytes, w.p, w.len);
	for (n = 0; n <= w.len + 64; n += n < w.len ? step : 32) {
		if (n == w.len)
			n++;
		solo_bytes(&solo, type, 9, some_fd(type), bytes, n);
		snprintf(what, sizeof(what), "%s, %zu bytes of %zu",
		    msg_name(type), n, w.len);
		verdict(what, 1);
	}
	wbuf_free(&w);
}

void
solo_lengths(void **state)
{
	static const uint16_t pathd[] = {MP_RESOLVE, MP_PUT, MP_PUT_END,
	    MP_LIST, MP_MKDIR, MP_RENAME, MP_UNLINK};
	size_t i;

	failures = 0;
	solo_start(&solo, &st, PROC_PATHD);
	for (i = 0; i < nitems(pathd); i++)
		lengths(PROC_PATHD, pathd[i], 1);
	solo_start(&solo, &st, PROC_LISTENER);
	lengths(PROC_LISTENER, LM_CONF, 1);
	solo_start(&solo, &st, PROC_EXECD);
	lengths(PROC_EXECD, ME_SPAWN_BIND, 5);
	lengths(PROC_EXECD, ME_SPAWN, 7);
	assert_int_equal(failures, 0);
}

/* ---- the listener, with a client ---- */

/* A request that waits for its answer; its number. */
static uint64_t
ask(int *client, const char *method, const char *target_)
{
	struct imsg *m;

	if (*client != -1)
		close(*client);
	if ((*client = http_connect(&st)) == -1 ||
	    http_send(*client, "x", method, target_, NULL,
		strcmp(method, "PUT") == 0 ? 5 : 0) == -1 ||
	    (m = solo_hear(&solo, LM_ASK)) == NULL)
		die("no question: %s", solo.line);
	if (m->fd != -1)
		close(m->fd);
	return m->id;
}

static void
put_ans(struct wbuf *w, enum ans_kind kind, uint16_t flags)
{
	char body[] = "{}";
	struct ans a = {.kind = (uint8_t)kind,
	    .status = 200,
	    .size = 5,
	    .flags = flags,
	    .body = body};

	wbuf_init(w, 1024);
	ans_put(w, &a);
}

static int
pipe_end(int which)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) == -1)
		die("pipe");
	/* the other end stays, so that nothing ends */
	return p[which];
}

enum lstate { L_WAIT, L_PUT, L_RUN, L_RUN_IN, L_DONE, L_COUNT };

/* What the monitor may say next: ANS, PUT_FIN, RUN_IN, DROP. */
static const struct {
	const char *name, *may;
} lstates[] = {
    [L_WAIT] = {"a question", "y..y"},
    [L_PUT] = {"an upload", ".y.y"},
    [L_RUN] = {"a run", "...y"},
    [L_RUN_IN] = {"a run with stdin", "..yy"},
    [L_DONE] = {"an answer", "...y"},
};

static uint64_t
go(int *client, enum lstate s)
{
	uint64_t id;
	struct wbuf w;

	if (s == L_PUT)
		id = ask(client, "PUT", "/files/upload-stream?path=a");
	else if (s == L_RUN || s == L_RUN_IN)
		id = ask(client, "GET", "/files/list?path=a");
	else
		id = ask(client, "GET", "/health");
	if (s == L_PUT) {
		put_ans(&w, ANS_PUT, 0);
		solo_say(&solo, LM_ANS, id, pipe_end(1), &w);
	} else if (s == L_RUN || s == L_RUN_IN) {
		put_ans(&w, ANS_RUN, s == L_RUN_IN ? ANS_STDIN : 0);
		solo_say(&solo, LM_ANS, id, pipe_end(0), &w);
	} else if (s == L_DONE) {
		put_ans(&w, ANS_JSON, 0);
		solo_say(&solo, LM_ANS, id, -1, &w);
		if (solo_hear(&solo, LM_FIN) == NULL)
			die("no FIN");
	}
	return id;
}

void
solo_listener(void **state)
{
	static const uint16_t types[] = {
	    LM_ANS, LM_PUT_FIN, LM_RUN_IN, LM_DROP};
	int client = -1, s;
	struct wbuf w;
	char what[128];
	uint64_t id;
	size_t t;

	failures = 0;
	solo_start(&solo, &st, PROC_LISTENER);
	for (s = 0; s < L_COUNT; s++)
		for (t = 0; t < nitems(types); t++) {
			id = go(&client, (enum lstate)s);
			put_ans(&w, ANS_JSON, 0);
			if (types[t] == LM_RUN_IN || types[t] == LM_DROP)
				w.len = 0;
			solo_say(&solo, types[t], id,
			    types[t] == LM_RUN_IN ? pipe_end(1) : -1, &w);
			snprintf(what, sizeof(what), "%s behind %s",
			    msg_name(types[t]), lstates[s].name);
			verdict(what, lstates[s].may[t] == '.');
		}
	/* a descriptor that the answer does not speak of, and none */
	for (s = ANS_JSON; s <= ANS_RUN; s++) {
		id = ask(&client, "GET", "/health");
		put_ans(&w, (enum ans_kind)s, 0);
		solo_say(
		    &solo, LM_ANS, id, s == ANS_JSON ? pipe_end(0) : -1, &w);
		verdict("an answer with another descriptor", 1);
	}
	/* an upload's pipe for what is no upload */
	id = ask(&client, "GET", "/health");
	put_ans(&w, ANS_PUT, 0);
	solo_say(&solo, LM_ANS, id, pipe_end(1), &w);
	verdict("an upload that nobody asked for", 1);
	close(client);
	assert_int_equal(failures, 0);
}

/* A monitor that is slow may answer when as many were cancelled since as its
 * channel holds; who hangs up all the time may not end the listener so. */
void
solo_late(void **state)
{
	static const struct linger now = {1, 0};
	int client = -1, i;
	uint64_t first;
	struct wbuf w;

	failures = 0;
	solo_start(&solo, &st, PROC_LISTENER);
	first = ask(&client, "GET", "/health");
	for (i = 0; i < 8000; i++) {
		/* closing resets the connection */
		if (setsockopt(
			client, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) == -1)
			die("SO_LINGER");
		(void)ask(&client, "GET", "/health");
	}
	put_ans(&w, ANS_JSON, 0);
	solo_say(&solo, LM_ANS, first, -1, &w);
	verdict("a late answer", 0);
	put_ans(&w, ANS_JSON, 0);
	solo_say(&solo, LM_ANS, first + (1ULL << 40), -1, &w);
	verdict("an answer that nobody asked for", 1);
	close(client);
	assert_int_equal(failures, 0);
}

/* A pipe that was given away is still the giver's too: he may make it one
 * that blocks, and the listener must not wait in it. */
void
solo_blocking(void **state)
{
	static const uint8_t byte = 1;
	enum ans_kind kinds[] = {ANS_LIST, ANS_RUN, ANS_PUT};
	int client = -1, other = -1, p[2], k, i;
	char bytes[5] = "hello";
	struct wbuf w;
	uint64_t id;

	solo_start(&solo, &st, PROC_LISTENER);
	for (i = 0; i < 3; i++) {
		if (pipe2(p, O_CLOEXEC) == -1)
			die("pipe");
		k = kinds[i] == ANS_PUT;
		id = k ? ask(&client, "PUT", "/files/upload-stream?path=a")
		       : ask(&client, "GET", "/files/list?path=a");
		put_ans(&w, kinds[i], 0);
		solo_say(&solo, LM_ANS, id, dup(p[k]), &w);
		nap_ms(30);
		/* by now it has made it one that does not block */
		(void)fcntl(p[k], F_SETFL, O_NONBLOCK);
		while (k && write(p[1], &byte, 1) == 1)
			continue; /* full */
		assert_int_equal(fcntl(p[k], F_SETFL, 0), 0);
		if (k)
			assert_int_equal(write(client, bytes, 5), 5);
		else
			assert_int_equal(write(p[1], &byte, 1), 1);
		nap_ms(30);
		(void)ask(&other, "GET", "/health");
		close(p[0]);
		close(p[1]);
	}
	close(client);
	close(other);
	solo_stop(&solo);
}

/* ---- pathd: never outside ---- */

/* Names that are no names, and roots that are none. */
void
solo_pathd(void **state)
{
	static const char *const names[] = {"..", "../r/f", "a/../../r/f",
	    "/etc/passwd", "a//b", ".", "a/.", "a/"};
	static const uint16_t types[] = {
	    MP_PUT, MP_LIST, MP_MKDIR, MP_RENAME, MP_UNLINK};
	struct rootref ref = {77, ""};
	struct mutate mu = {.src = {.ref = ref}, .mode = UINT32_MAX};
	struct wbuf w;
	char what[128];
	size_t i, t;

	failures = 0;
	solo_start(&solo, &st, PROC_PATHD);
	for (i = 0; i < nitems(names); i++)
		for (t = 0; t < nitems(types); t++) {
			wbuf_init(&w, IMSG_MAX_PAYLOAD);
			put_pathd(&w, types[t], names[i]);
			solo_say(&solo, types[t], 5, -1, &w);
			snprintf(what, sizeof(what), "%s of \"%s\"",
			    msg_name(types[t]), names[i]);
			verdict(what, 1);
		}
	mu.src.rel = strdup("x");
	for (i = 0; i < 3; i++) {
		mu.src.ref.root = i == 0 ? 77 : 0;
		strlcpy(mu.src.ref.sub,
		    i == 1   ? ".."
		    : i == 2 ? "a/b"
			     : "",
		    sizeof(mu.src.ref.sub));
		wbuf_init(&w, IMSG_MAX_PAYLOAD);
		mutate_put(&w, &mu);
		solo_say(&solo, MP_MKDIR, 5, -1, &w);
		verdict("a root that there is not", 1);
	}
	free(mu.src.rel);
	/* the same upload twice */
	for (i = 0; i < 2; i++) {
		wbuf_init(&w, IMSG_MAX_PAYLOAD);
		put_pathd(&w, MP_PUT, "up");
		solo_say(&solo, MP_PUT, 5, -1, &w);
	}
	verdict("PUT twice", 1);
	assert_int_equal(failures, 0);
}

/* ---- execd: only what it was given ---- */

void
solo_execd(void **state)
{
	static char inner[512];
	struct spawn_bind b = {.rw = 1, .inner = inner};
	struct spawn_failed f;
	struct imsg *m;
	struct rbuf r;
	struct wbuf w;
	size_t i;

	failures = 0;
	solo_start(&solo, &st, PROC_EXECD);
	/* a directory that it cannot see, by descriptor and by name */
	strlcpy(inner, stage_path(&st, "r"), sizeof(inner));
	wbuf_init(&w, 4096);
	spawn_bind_put(&w, &b);
	solo_say(&solo, ME_SPAWN_BIND, 5,
	    open(inner, O_PATH | O_DIRECTORY | O_CLOEXEC), &w);
	wbuf_init(&w, 8192);
	put_exec(&w, ME_SPAWN);
	solo_say(&solo, ME_SPAWN, 5, -1, &w);
	assert_non_null(m = solo_hear(&solo, ME_FAILED));
	rbuf_init(&r, m->payload, m->len);
	assert_int_equal(spawn_failed_get(&r, &f), 0);
	assert_int_equal(f.code, C_POL_PATH_CHANGED);
	/* binds for one run and a spawn of another; the same run twice */
	wbuf_init(&w, 4096);
	put_exec(&w, ME_SPAWN_BIND);
	solo_say(&solo, ME_SPAWN_BIND, 6, some_fd(ME_SPAWN_BIND), &w);
	wbuf_init(&w, 8192);
	put_exec(&w, ME_SPAWN);
	solo_say(&solo, ME_SPAWN, 7, -1, &w);
	verdict("the binds of another", 1);
	for (i = 0; i < 2; i++) {
		wbuf_init(&w, 8192);
		put_exec(&w, ME_SPAWN);
		solo_say(&solo, ME_SPAWN, 8, -1, &w);
	}
	verdict("SPAWN twice", 1);
	assert_int_equal(failures, 0);
}
