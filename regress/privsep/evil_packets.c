/*
 * SPDX-License-Identifier: ISC
 *
 * Packets that no library of ours would send, and descriptors where others,
 * or none, belong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/ops.h"
#include "regress/privsep/cells.h"
#include "regress/privsep/evil.h"

/* ---- packets ---- */

/* A frame's head by hand. */
static size_t
head(uint8_t *p, uint32_t len, uint16_t type, uint16_t flags, uint64_t id)
{
	struct wbuf w;

	wbuf_init(&w, IMSG_HDR);
	wput_u32(&w, len);
	wput_u16(&w, type);
	wput_u16(&w, flags);
	wput_u64(&w, id);
	memcpy(p, w.p, IMSG_HDR);
	wbuf_free(&w);
	return IMSG_HDR;
}

/* What a packet is made of: n bytes, frames of which so many are flagged, and
 * so many descriptors. */
struct packet {
	const char *what;
	uint32_t len;  /* that the first head says */
	uint16_t type; /* of all frames */
	uint16_t flags;
	size_t frames;
	size_t body; /* bytes behind the last head */
	size_t nfds;
	int cut; /* bytes taken off the end */
};

static const struct packet packets[] = {
    {"a head cut short", 0, LM_REJECTS, 0, 1, 0, 0, 1},
    {"one byte", 0, LM_REJECTS, 0, 1, 0, 0, 15},
    {"a length beyond the packet", 100, LM_REJECTS, 0, 1, 8, 0, 0},
    {"a length of everything", UINT32_MAX, LM_REJECTS, 0, 1, 8, 0, 0},
    {"a length over the limit", IMSG_MAX_PAYLOAD + 1, LM_REJECTS, 0, 1, 8, 0,
	0},
    {"bytes behind the last frame", 0, LM_CANCEL, 0, 1, 5, 0, 0},
    {"an unknown flag", 0, LM_CANCEL, 2, 1, 0, 0, 0},
    {"all flags", 0, LM_CANCEL, 0xffff, 1, 0, 1, 0},
    {"a flag without a descriptor", 0, LM_CANCEL, 1, 1, 0, 0, 0},
    {"a descriptor without a flag", 0, LM_CANCEL, 0, 1, 0, 1, 0},
    {"two descriptors for one flag", 0, LM_CANCEL, 1, 1, 0, 2, 0},
    {"one descriptor for two flags", 0, LM_CANCEL, 1, 2, 0, 1, 0},
    {"64 descriptors for one flag", 0, LM_CANCEL, 1, 1, 0, 64, 0},
    {"65 descriptors", 0, LM_CANCEL, 1, 65, 0, 65, 0},
    {"253 descriptors", 0, LM_CANCEL, 1, 1, 0, 253, 0},
    {"253 descriptors for 253 flags", 0, LM_CANCEL, 1, 253, 0, 253, 0},
    {"no byte but a descriptor", 0, LM_CANCEL, 1, 0, 0, 1, 0},
    {"a packet over the limit", IMSG_MAX_PAYLOAD, LM_CONF, 0, 1,
	IMSG_MAX_PAYLOAD + 64, 0, 0},
    {"a packet far over the limit", 0, LM_CANCEL, 0, 1, 150 * 1024, 0, 0},
};

static void
send_packet(struct lab *l, enum proc_kind from, const struct packet *p)
{
	static uint8_t bytes[256 * 1024];
	int fds[253];
	size_t i, n = 0;

	memset(bytes, 0, sizeof(bytes));
	for (i = 0; i < p->frames; i++)
		n += head(bytes + n, p->len, p->type, p->flags, l->lid);
	n += p->body;
	for (i = 0; i < p->nfds; i++)
		fds[i] = odd_fd(l, ODD_NULL, "", 0);
	if (lab_raw(l, from, bytes, n - (size_t)p->cut, fds, p->nfds) == -1)
		die("%s", p->what);
	for (i = 0; i < p->nfds; i++)
		close(fds[i]);
}

void
packets_odd(void **state)
{
	static const enum proc_kind all[] = {
	    PROC_LISTENER, PROC_PATHD, PROC_EXECD};
	struct lab *l = *state;
	size_t i, k;

	evil_failures = 0;
	for (k = 0; k < nitems(all); k++)
		for (i = 0; i < nitems(packets); i++) {
			(void)point_go(l, P_RUNNING);
			send_packet(l, all[k], &packets[i]);
			evil_verdict(l, all[k], packets[i].what, 1);
		}
	assert_int_equal(evil_failures, 0);
}

/* Nothing, and the end: whoever has no channel any more is of no use, and is
 * to be killed, without a word about the protocol. */
void
packets_end(void **state)
{
	static const enum proc_kind all[] = {
	    PROC_LISTENER, PROC_PATHD, PROC_EXECD};
	struct lab *l = *state;
	size_t k;
	int how;

	for (k = 0; k < nitems(all); k++)
		for (how = 0; how < 2; how++) {
			(void)point_go(l, P_RUNNING);
			if (how == 0)
				assert_int_equal(
				    lab_raw(l, all[k], "", 0, NULL, 0), 0);
			else
				assert_int_equal(
				    shutdown(
					imsg_fd(l->side[all[k]].im), SHUT_WR),
				    0);
			assert_true(lab_broken(l, all[k], 3000));
			lab_fresh(l);
			assert_int_equal(proc_fds(l->pid), l->fds);
		}
}

/* ---- descriptors ---- */

/* A message and the one kind that belongs to it (ODD_COUNT: none). */
static const struct {
	enum proc_kind from;
	uint16_t type;
	enum point p;
	enum odd_fd right;
} wants[] = {
    {PROC_LISTENER, LM_ASK, P_FREE, ODD_COUNT},
    {PROC_LISTENER, LM_CANCEL, P_RESOLVE, ODD_COUNT},
    {PROC_LISTENER, LM_PUT_END, P_BODY, ODD_COUNT},
    {PROC_LISTENER, LM_FIN, P_ANSWERED, ODD_COUNT},
    {PROC_LISTENER, LM_REJECTS, P_FREE, ODD_COUNT},
    {PROC_PATHD, MP_FACTS, P_RESOLVE, ODD_COUNT},
    {PROC_PATHD, MP_FACTS, P_REOPEN, ODD_FILE_R},
    {PROC_PATHD, MP_PUT_ANS, P_PUT, ODD_PIPE_W},
    {PROC_PATHD, MP_PUT_FIN, P_COMMIT, ODD_COUNT},
    {PROC_PATHD, MP_LIST_ANS, P_LIST, ODD_PIPE_R},
    {PROC_PATHD, MP_DONE, P_CHANGE, ODD_COUNT},
    {PROC_EXECD, ME_STARTED, P_SPAWN, ODD_COUNT},
    {PROC_EXECD, ME_RUN, P_STARTED, ODD_PIPE_R},
    {PROC_EXECD, ME_IN, P_RUN_IN, ODD_PIPE_W},
    {PROC_EXECD, ME_FAILED, P_SPAWN, ODD_COUNT},
    {PROC_EXECD, ME_END, P_RUNNING, ODD_COUNT},
    {PROC_PATHD, MP_FACTS, P_CANCELLED, ODD_FILE_R},
    {PROC_PATHD, MP_LIST_ANS, P_LATE, ODD_PIPE_R},
    {PROC_EXECD, ME_RUN, P_ENDING, ODD_PIPE_R},
};

static void
with_fd(struct lab *l, size_t i, enum odd_fd kind)
{
	struct at at = point_go(l, wants[i].p);
	uint64_t id = wants[i].from == PROC_LISTENER ? at.lid : at.rid;
	int none_is_fine =
	    wants[i].right == ODD_COUNT || wants[i].type == MP_FACTS;
	int right =
	    kind == wants[i].right || (kind == ODD_COUNT && none_is_fine);
	struct wbuf w;
	char what[160];
	int fd = -1;

	/* a late answer's file may as well be a directory: it is dropped */
	if (kind == ODD_DIR && wants[i].type == MP_FACTS &&
	    wants[i].p == P_CANCELLED)
		right = 1;
	if (kind != ODD_COUNT)
		fd = odd_fd(l, kind, "hello", 5);
	sample_put(l, &w, wants[i].type, wants[i].p);
	lab_send(l, wants[i].from, wants[i].type,
	    sample_alone(wants[i].type) ? 0 : id, fd, &w);
	snprintf(what, sizeof(what), "%s with %s", msg_name(wants[i].type),
	    kind == ODD_COUNT ? "nothing" : odd_names[kind]);
	evil_verdict(l, wants[i].from, what, !right);
}

void
descriptors_odd(void **state)
{
	struct lab *l = *state;
	size_t i;
	int k;

	evil_failures = 0;
	for (i = 0; i < nitems(wants); i++)
		for (k = 0; k <= ODD_COUNT; k++)
			with_fd(l, i, (enum odd_fd)k);
	assert_int_equal(evil_failures, 0);
}

/* ---- what pathd opens is what was asked for ---- */

/* The first RESOLVE of a run asks for a directory, that of a single download
 * for a file; of a list for nothing. */
static void
opened(struct lab *l, uint16_t op, enum facts_kind kind, enum odd_fd fd,
    int broken, const char *what)
{
	if (op == OP_commands_run)
		(void)lab_ask(l, op, "*argv", "true", NULL);
	else
		(void)lab_ask(l, op, "path", ".", NULL);
	(void)lab_facts(
	    l, kind, fd == ODD_COUNT ? -1 : odd_fd(l, fd, "hello", 5));
	evil_verdict(l, PROC_PATHD, what, broken);
}

void
descriptors_facts(void **state)
{
	struct lab *l = *state;

	evil_failures = 0;
	opened(l, OP_commands_run, FK_DIR, ODD_FILE_R, 1,
	    "a file for a working directory");
	opened(l, OP_commands_run, FK_DIR, ODD_DIR, 0,
	    "a directory for a working directory");
	opened(l, OP_commands_run, FK_DIR, ODD_COUNT, 0, "nothing for it");
	opened(l, OP_files_list, FK_DIR, ODD_DIR, 1,
	    "a directory that nobody asked for");
	opened(l, OP_files_stat, FK_FILE, ODD_FILE_R, 1,
	    "a file that nobody asked for");
	opened(l, OP_files_upload, FK_MISSING, ODD_FILE_R, 1,
	    "a file for what is missing");
	assert_int_equal(evil_failures, 0);
}

/* ---- large arguments ---- */

/* ASK whose arguments are in a memfd. */
static void
ask_by_fd(struct lab *l, int fd)
{
	struct ask a = {0};
	struct wbuf w;

	strlcpy(a.reqid, "r-AAAAAAAAAAAAAAAAAAAAAA", sizeof(a.reqid));
	a.op = OP_files_list;
	strlcpy(a.opname, ops[a.op].id, sizeof(a.opname));
	a.has_cred = 1;
	strlcpy(a.token, TOKEN_A, sizeof(a.token));
	strlcpy(a.remote, "127.0.0.1", sizeof(a.remote));
	a.args_in_fd = 1;
	wbuf_init(&w, 4096);
	ask_put(&w, &a);
	lab_send(l, PROC_LISTENER, LM_ASK, ++l->lid, fd, &w);
}

static void
args_put_path(struct wbuf *w, size_t len)
{
	struct args as = {0};
	struct arg *a = args_add(&as, "path", A_STR);
	char *text = malloc(len + 1);

	if (a == NULL || text == NULL)
		die("malloc");
	memset(text, 'x', len);
	text[len] = '\0';
	if (arg_set_str(a, text, len) == -1)
		die("args");
	wbuf_init(w, len + 4096);
	args_put(w, &as);
	if (w->err)
		die("args");
	args_clear(&as);
	free(text);
}

void
descriptors_args(void **state)
{
	struct lab *l = *state;
	struct wbuf w;
	char what[128];
	size_t n;
	int k;

	evil_failures = 0;
	args_put_path(&w, 20);
	for (k = 0; k < ODD_COUNT; k++) {
		ask_by_fd(l, odd_fd(l, (enum odd_fd)k, w.p, w.len));
		snprintf(what, sizeof(what), "arguments in %s", odd_names[k]);
		evil_verdict(l, PROC_LISTENER, what, k != ODD_MEMFD);
	}
	ask_by_fd(l, -1);
	evil_verdict(l, PROC_LISTENER, "arguments in nothing", 1);
	for (n = 0; n < w.len; n++) {
		ask_by_fd(l, odd_fd(l, ODD_MEMFD, w.p, n));
		snprintf(what, sizeof(what), "%zu bytes of %zu", n, w.len);
		evil_verdict(l, PROC_LISTENER, what, 1);
	}
	wput_u8(&w, 0);
	ask_by_fd(l, odd_fd(l, ODD_MEMFD, w.p, w.len));
	evil_verdict(l, PROC_LISTENER, "a byte behind the arguments", 1);
	wbuf_free(&w);
	assert_int_equal(evil_failures, 0);
}

/* Bodies of all live requests together have a bound. */
void
descriptors_bulk(void **state)
{
	struct lab *l = *state;
	size_t before = proc_rss(l->pid), n;
	struct wbuf w;

	args_put_path(&w, 24 * 1024 * 1024);
	for (n = 0; n < 8 && !lab_broken(l, PROC_LISTENER, 500); n++)
		ask_by_fd(l, odd_fd(l, ODD_MEMFD, w.p, w.len));
	wbuf_free(&w);
	assert_true(lab_broken(l, PROC_LISTENER, 3000));
	assert_true(n <= 4);
	if (strstr(evil_build, "asan") == NULL)
		assert_true(proc_rss(l->pid) < before + 160 * 1024);
	lab_fresh(l);
	assert_int_equal(proc_fds(l->pid), l->fds);
}

/* ---- who is at the other end of a socket ---- */

static void
peer(struct lab *l, int fd, uint64_t no)
{
	struct wbuf w;

	wbuf_init(&w, 16);
	wput_u64(&w, no);
	lab_send(l, PROC_LISTENER, LM_PEER, 0, fd, &w);
}

/* A connection to a named socket, as the listener accepts it. */
static int
accepted(struct lab *l, int *client)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int door = odd_fd(l, ODD_LISTENING, "", 0), fd;

	strlcpy(sa.sun_path, stage_path(&l->st, "door"), sizeof(sa.sun_path));
	*client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*client == -1 ||
	    connect(*client, (struct sockaddr *)&sa, sizeof(sa)) == -1 ||
	    (fd = accept4(door, NULL, NULL, SOCK_CLOEXEC)) == -1)
		die("%s", sa.sun_path);
	close(door);
	return fd;
}

/* Only a connection that a client made says who the client is.  Channels,
 * doors and inherited sockets were made by root. */
void
descriptors_peer(void **state)
{
	static const enum odd_fd odd[] = {
	    ODD_SOCKET, ODD_STREAM, ODD_LISTENING, ODD_FILE_R, ODD_PIPE_R};
	struct lab *l = *state;
	char what[128];
	int client, fd;
	size_t i;

	evil_failures = 0;
	for (i = 0; i < nitems(odd); i++) {
		peer(l, odd_fd(l, odd[i], "", 0), 1);
		snprintf(what, sizeof(what), "PEER with %s", odd_names[odd[i]]);
		evil_verdict(l, PROC_LISTENER, what, 1);
	}
	peer(l, dup(imsg_fd(l->side[PROC_LISTENER].im)), 1);
	evil_verdict(l, PROC_LISTENER, "PEER with its own channel", 1);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	peer(l, fd, 1);
	evil_verdict(l, PROC_LISTENER, "PEER of the network", 1);
	fd = accepted(l, &client);
	peer(l, dup(fd), 1);
	(void)lab_next(l, PROC_LISTENER, LM_PEER_ANS);
	peer(l, dup(fd), 1);
	evil_verdict(l, PROC_LISTENER, "PEER twice", 1);
	peer(l, dup(fd), 0);
	evil_verdict(l, PROC_LISTENER, "PEER 0", 1);
	peer(l, dup(fd), 5);
	evil_verdict(l, PROC_LISTENER, "PEER of a client", 0);
	for (i = 0; i < 4000 && !lab_broken(l, PROC_LISTENER, 0); i++) {
		peer(l, dup(fd), i + 1);
		lab_drain(l, PROC_LISTENER);
	}
	evil_verdict(l, PROC_LISTENER, "PEER without end", 1);
	close(fd);
	close(client);
	assert_int_equal(evil_failures, 0);
}
