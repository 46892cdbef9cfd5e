/*
 * SPDX-License-Identifier: ISC
 *
 * The receivers' side of every message that the monitor sends.  See well.h.
 */
#include "regress/privsep/well.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/payload.h"

static const char *
ans(struct rbuf *r, const struct imsg *m)
{
	static const enum fd_kind wants[] = {[ANS_JSON] = FDK_NONE,
	    [ANS_FILE] = FDK_FILE_R,
	    [ANS_PUT] = FDK_PIPE_W,
	    [ANS_LIST] = FDK_PIPE_R,
	    [ANS_RUN] = FDK_PIPE_R};
	const char *why = NULL;
	struct ans a;

	if (ans_get(r, &a) == -1)
		return "malformed answer";
	if ((m->fd != -1) != (wants[a.kind] != FDK_NONE))
		why = "a descriptor too many or too few";
	else if (m->fd != -1 && msg_fd_kind(m->fd) != wants[a.kind])
		why = "another descriptor than the answer says";
	else if (a.kind == ANS_FILE && a.size > INT64_MAX)
		why = "a file that is larger than files can be";
	ans_clear(&a);
	return why;
}

static const char *
spawn(struct rbuf *r, const struct imsg *m)
{
	const char *why = "malformed spawn";
	struct spawn s;
	struct rbuf big;
	struct stat st;
	void *p;

	if (m->fd == -1) {
		if (spawn_get(r, &s) == -1)
			return why;
		spawn_clear(&s);
		return NULL;
	}
	if (fstat(m->fd, &st) == -1 ||
	    (p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, m->fd,
		 0)) == MAP_FAILED)
		return "memfd";
	rbuf_init(&big, p, (size_t)st.st_size);
	if (spawn_get(&big, &s) == 0) {
		why = rget_end(&big) == 0 ? NULL : "trailing bytes";
		spawn_clear(&s);
	}
	munmap(p, (size_t)st.st_size);
	r->len = 0; /* only a place to hang the descriptor on */
	return why;
}

#define DECODE(kind)                               \
	do {                                       \
		struct kind x;                     \
		if (kind##_get(&r, &x) == -1)      \
			return "malformed " #kind; \
		kind##_clear(&x);                  \
	} while (0)

static const char *
to_listener(const struct imsg *m)
{
	const char *why;
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	switch (m->type) {
	case LM_ANS:
	case LM_PUT_FIN:
		if ((why = ans(&r, m)) != NULL)
			return why;
		break;
	case LM_CONF:
		DECODE(lconf);
		break;
	case LM_PEER_ANS:
		(void)rget_raw(&r, 24);
		break;
	case LM_RUN_IN:
	case LM_DROP:
		break;
	default:
		return "not for the listener";
	}
	return rget_end(&r) == 0 ? NULL : "trailing bytes";
}

static const char *
to_pathd(const struct imsg *m)
{
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	switch (m->type) {
	case MP_RESOLVE:
		DECODE(resolve);
		break;
	case MP_PUT:
		DECODE(put);
		break;
	case MP_LIST:
		DECODE(list);
		break;
	case MP_COPY:
	case MP_SEARCH:
	case MP_EXPORT:
	case MP_ARCHIVE:
	case MP_IMPORT:
		DECODE(bulk);
		break;
	case MP_EDIT:
		DECODE(edit);
		break;
	case MP_DENIED:
		DECODE(denied);
		break;
	case MP_SPACE:
		DECODE(space);
		break;
	case MP_MKDIR:
	case MP_RENAME:
	case MP_UNLINK:
		DECODE(mutate);
		break;
	case MP_PUT_END:
		(void)rget_u64(&r);
		(void)rget_bool(&r);
		break;
	case MP_ROOTS:
	case MP_CANCEL:
		break;
	default:
		return "not for pathd";
	}
	return rget_end(&r) == 0 ? NULL : "trailing bytes";
}

/* execd takes binds for one spawn at a time. */
static uint64_t bound; /* the run whose binds wait, 0: none */

void
well_reset(void)
{
	bound = 0;
}

static const char *
to_execd(const struct imsg *m)
{
	char name[ABX_WORKSPACE_LEN + 1] = "";
	const char *why;
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	switch (m->type) {
	case ME_SPAWN_BIND:
		if (bound != 0 && bound != m->id)
			return "binds of two runs";
		bound = m->id;
		DECODE(spawn_bind);
		break;
	case ME_SPAWN_COVER:
		if (bound != m->id)
			return "covers without a bind";
		DECODE(covers);
		break;
	case ME_SPAWN:
		if (bound != 0 && bound != m->id)
			return "binds of another run";
		bound = 0;
		if ((why = spawn(&r, m)) != NULL)
			return why;
		break;
	case ME_CANCEL:
		if (bound == m->id)
			bound = 0;
		break;
	case ME_SIGNAL:
		(void)rget_u8(&r);
		break;
	case ME_FOLLOW:
		(void)rget_raw(&r, 24);
		(void)rget_bool(&r);
		break;
	case ME_FEED:
		(void)rget_u64(&r);
		(void)rget_bool(&r);
		break;
	case ME_SESSION_END:
		memcpy(
		    name, rget_raw(&r, ABX_WORKSPACE_LEN), ABX_WORKSPACE_LEN);
		if (!workspace_name_ok(name))
			return "no name of a session";
		break;
	case ME_GO:
	case ME_FORGET:
		break;
	default:
		return "not for execd";
	}
	return rget_end(&r) == 0 ? NULL : "trailing bytes";
}

const char *
well_formed(enum proc_kind to, struct imsg *m)
{
	const char *why;

	if (msg_check(m, &why) == -1)
		return why;
	switch (to) {
	case PROC_LISTENER:
		return to_listener(m);
	case PROC_PATHD:
		return to_pathd(m);
	default:
		return to_execd(m);
	}
}
