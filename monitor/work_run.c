/*
 * SPDX-License-Identifier: ISC
 *
 * The work of an admitted command: the order to execd, made from the decision
 * alone.  The working directory travels as a descriptor.
 */
#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "monitor/mon.h"
#include "monitor/work.h"

#define KILL_GRACE_MS 2000
#define SPAWN_BYTES_MAX (8U * 1024 * 1024) /* execd takes no more */

/* A sealed memfd with these bytes, or -1. */
static int
sealed(const void *p, size_t n)
{
	const uint8_t *q = p;
	size_t done = 0;
	ssize_t m;
	int fd;

	fd = memfd_create("abx-spawn", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd == -1)
		return -1;
	while (done < n) {
		if ((m = write(fd, q + done, n - done)) <= 0)
			goto fail;
		done += (size_t)m;
	}
	if (fcntl(fd, F_ADD_SEALS,
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == -1)
		goto fail;
	return fd;
fail:
	close(fd);
	return -1;
}

/* 0 when every layer that the policy requires was seen to work. */
static int
layers_missing(const struct req *r, char *details, size_t size)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} names[] = {{LAYER_NAMESPACES, "namespaces"},
	    {LAYER_SECCOMP, "seccomp"}, {LAYER_LANDLOCK, "landlock"},
	    {LAYER_CGROUP, "cgroup"}};
	const struct peer *p = r->snap->execd;
	uint32_t have = p == NULL ? 0 : p->layers;
	const char *layer = NULL;
	size_t i;

	if (p == NULL || !p->ready)
		return 0; /* 503 server.unavailable says more */
	if (mon.panic)
		layer = "panic";

	if (!r->snap->conf->sandbox_enabled)
		layer = "disabled";
	for (i = 0; layer == NULL && i < nitems(names); i++)
		if ((r->snap->conf->require & names[i].bit) != 0 &&
		    (have & names[i].bit) == 0)
			layer = names[i].name;
	if (layer == NULL)
		return 0;
	snprintf(details, size, "{\"layer\":\"%s\"}", layer);
	return 1;
}

static void
refuse_layer(struct req *r, const char *details)
{
	struct ans a = {0};

	a.kind = ANS_JSON;
	a.code = C_SBX_UNAVAILABLE;
	a.status = codes[a.code].status;
	a.body = code_body(C_SBX_UNAVAILABLE, r->ask.reqid, ops[r->call.op].id,
	    NULL, NULL, details);
	answer_send(r, &a, -1);
	ans_clear(&a);
}

static int
send_bind(struct req *r, int *dirfd)
{
	struct spawn_bind b = {0};
	struct wbuf w;
	int rc;

	b.rw = r->dec.cwd_readonly ? 0 : 1;
	b.inner = r->dec.spawn.cwd; /* borrowed */
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	spawn_bind_put(&w, &b);
	rc = peer_send(r->snap->execd, ME_SPAWN_BIND, r->rid, *dirfd, &w);
	*dirfd = -1;
	wbuf_free(&w);
	return rc;
}

/* The order as execd takes it: what it would not is refused here, since there
 * it would be taken for a broken monitor. */
static int
order_put(struct wbuf *w, const struct spawn *s)
{
	struct spawn back;
	struct rbuf r;

	wbuf_init(w, SPAWN_BYTES_MAX);
	spawn_put(w, s);
	if (w->err)
		return -1;
	rbuf_init(&r, w->p, w->len);
	if (spawn_get(&r, &back) == -1)
		return -1;
	spawn_clear(&back);
	return 0;
}

/* *dirfd is taken; -1 when there is no working directory of the policy. */
static void
send_order(struct req *r, struct wbuf *w, int *dirfd)
{
	int fd = -1;

	if (w->len > ABX_INLINE_BODY) {
		if ((fd = sealed(w->p, w->len)) == -1) {
			answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
			return;
		}
		wbuf_reset(w);
		wput_raw(w, (const uint8_t[16]){0}, 16);
	}
	if (*dirfd != -1 && send_bind(r, dirfd) == -1) {
		if (fd != -1)
			close(fd);
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		return;
	}
	r->is_run = 1;
	work_send(r, r->snap->execd, ME_SPAWN, fd, w);
	if (r->peer != NULL)
		return;
	r->is_run = 0;
	/* binds without their spawn would be taken for another's */
	(void)peer_send(r->snap->execd, ME_CANCEL, r->rid, -1, NULL);
}

static void
spawn(struct req *r, int *dirfd)
{
	struct spawn *s = &r->dec.spawn;
	struct wbuf w;

	if (!peer_can_take(r->snap->execd) || !req_room_to_end(r)) {
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		return;
	}
	s->grace_ms = KILL_GRACE_MS;
	if (ask_has(r, "stdin"))
		s->flags |= SPAWN_STDIN;
	if (ask_bool(r, "stream") || (r->ask.flags & ASK_SSE) != 0)
		s->flags |= SPAWN_STREAM;
	if (order_put(&w, s) == -1)
		answer_error(r, C_ARGS_TOO_LARGE, NULL, NULL, 0);
	else
		send_order(r, &w, dirfd);
	wbuf_free(&w);
}

void
work_run_start(struct req *r, int *fd)
{
	char details[64];

	if (layers_missing(r, details, sizeof(details)))
		refuse_layer(r, details);
	else if (r->dec.cwd_item < 0)
		spawn(r, fd);
	else if (*fd != -1 && r->plan.nitems == 1)
		spawn(r, fd);
	else
		work_reopen(r, (size_t)r->dec.cwd_item, RESOLVE_OPENDIR);
}

void
work_run_reopened(struct req *r, int *fd)
{
	spawn(r, fd);
}
