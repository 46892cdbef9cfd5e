/*
 * SPDX-License-Identifier: ISC
 *
 * The parent of the monitor under test: it hands over a configuration, starts
 * siblings and ends those that break the protocol.
 */
#include <sys/mman.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/proc.h"
#include "monitor/load.h"
#include "regress/fuzz/monitor.h"

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

static uint32_t generation;

static struct {
	uint8_t kind;
	uint32_t gen;
} drained[16];
size_t fm_ndrained;

int
proc_tell(uint16_t type, int fd, const void *p, size_t len)
{
	struct imsg m = {type, 0, fd, p, len, -1};
	const char *why;
	struct rbuf r;

	CHECK(fd == -1 && msg_check(&m, &why) == 0);
	if (type == PC_DRAINED && fm_ndrained < nitems(drained)) {
		rbuf_init(&r, p, len);
		drained[fm_ndrained].kind = rget_u8(&r);
		drained[fm_ndrained++].gen = rget_u32(&r);
	}
	return 0;
}

uint64_t
proc_now_us(void)
{
	return fm_now_us;
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
	CHECK(fm_hears_parent(&m) == 0);
	if (m.fd != -1)
		close(m.fd);
}

void
fm_child_lost(uint8_t kind, uint32_t gen)
{
	struct wbuf w;

	wbuf_init(&w, 16);
	wput_u8(&w, kind);
	wput_u32(&w, gen);
	parent_says(PC_CHILD_GONE, -1, &w);
	wbuf_free(&w);
}

void
fm_reap(void)
{
	size_t i;

	for (i = 0; i < fm_ndrained; i++)
		fm_child_lost(drained[i].kind, drained[i].gen);
	fm_ndrained = 0;
}

struct chan *
fm_chan_of(enum proc_kind kind)
{
	struct chan *c;

	for (c = fm_chans; c != NULL && c->peer->kind != kind; c = c->next)
		continue;
	return c;
}

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
			fm_ended(c->peer, id, type == ME_END ? 1 : 2);
		if (c->msg(c, &m, c->peer) != 0) {
			CHECK(c->peer->broken);
			newest = c == fm_chan_of(was.kind);
			fm_child_lost((uint8_t)was.kind, was.generation);
			if (newest)
				fm_child_start(was.kind, was.epoch);
		}
	}
	if (m.fd != -1)
		close(m.fd);
	free(copy);
	fm_reap();
}

void
fm_says(enum proc_kind kind, uint16_t type, uint64_t id, int fd, struct wbuf *w)
{
	tells(fm_chan_of(kind), type, id, fd, w);
}

void
fm_answers(const struct order *o, uint16_t type, int fd, struct wbuf *w)
{
	struct chan *c = fm_chans;

	while (c != NULL && c->peer->generation != o->generation)
		c = c->next;
	/* it is gone: another one knows the number */
	tells(c != NULL ? c : fm_chan_of(o->to), type, o->rid, fd, w);
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
		fm_says(kind, ME_HELLO, 0, -1, &w);
	} else if (kind == PROC_PATHD) {
		wput_u32(&w, (uint32_t)policy_nroots(mon.cur->policy));
		for (i = 0; i < policy_nroots(mon.cur->policy); i++) {
			policy_root(mon.cur->policy, i, &pr);
			o.id = (uint32_t)i;
			o.path = (char *)(uintptr_t)pr.path;
			root_ok_put(&w, &o);
		}
		fm_says(kind, MP_ROOTS_OK, 0, -1, &w);
	}
}

void
fm_child_start(enum proc_kind kind, uint32_t epoch)
{
	struct wbuf w;
	size_t i;

	if (kind == PROC_LISTENER)
		for (i = 0; i < fm_nasks; i++) /* it knows of none */
			fm_asks[i].lid = UINT64_MAX;
	wbuf_init(&w, 16);
	wput_u8(&w, (uint8_t)kind);
	wput_u32(&w, ++generation);
	wput_u32(&w, epoch);
	parent_says(PC_CHILD_UP, dup(fm_sock[0]), &w);
	wbuf_free(&w);
	greet(kind);
}

int
fm_sealed(const void *p, size_t n)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd != -1 && write(fd, p, n) == (ssize_t)n);
	CHECK(fcntl(fd, F_ADD_SEALS, 0xf) == 0);
	return fd;
}

void
fm_policy_says(uint32_t epoch, uint8_t need)
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
	parent_says(PC_SNAPSHOT, fm_sealed(buf, (size_t)n), &w);
	wbuf_free(&w);
	CHECK(mon.cur != NULL);
}

void
fm_reload(uint8_t choice)
{
	uint32_t epoch = mon.cur->epoch + 1;

	if (mon.next != NULL)
		epoch = mon.next->epoch;
	else
		fm_policy_says(epoch, choice & 3);
	if ((choice & 1) != 0)
		fm_child_start(PROC_PATHD, epoch);
	if ((choice & 2) != 0)
		fm_child_start(PROC_EXECD, epoch);
	fm_reap();
}
