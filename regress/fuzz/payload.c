/*
 * SPDX-License-Identifier: ISC
 *
 * Every decoder of a message: what it takes is encoded to the very same
 * bytes, so that no message has two spellings; what it refuses leaves nothing
 * behind.  Input: 1 byte (which decoder), then the payload.
 */
#include <stdlib.h>
#include <string.h>

#include "common/msg.h"
#include "common/payload.h"
#include "execd/launch/xl.h"
#include "regress/fuzz/fuzz.h"

/* Wrappers of one signature for structs that own memory and that do not. */
#define OWNING(name)                                              \
	static int any_get_##name(struct rbuf *r, void *x)        \
	{                                                         \
		return name##_get(r, x);                          \
	}                                                         \
	static void any_put_##name(struct wbuf *w, const void *x) \
	{                                                         \
		name##_put(w, x);                                 \
	}                                                         \
	static void any_clear_##name(void *x)                     \
	{                                                         \
		name##_clear(x);                                  \
	}
#define PLAIN(name)                                               \
	static int any_get_##name(struct rbuf *r, void *x)        \
	{                                                         \
		return name##_get(r, x);                          \
	}                                                         \
	static void any_put_##name(struct wbuf *w, const void *x) \
	{                                                         \
		name##_put(w, x);                                 \
	}

OWNING(ask)
OWNING(ans)
PLAIN(fin)
PLAIN(reject)
OWNING(lconf)
OWNING(args)
OWNING(root_ok)
OWNING(facts)
OWNING(target)
OWNING(resolve)
OWNING(put)
PLAIN(put_fin)
OWNING(list)
OWNING(mutate)
OWNING(covers)
OWNING(denied)
OWNING(bulk)
OWNING(edit)
OWNING(edit_fin)
OWNING(pack_fin)
OWNING(space)
OWNING(space_ans)
PLAIN(done)
PLAIN(exec_hello)
OWNING(spawn_bind)
OWNING(spawn)
PLAIN(spawn_failed)
PLAIN(run_end)
PLAIN(proc_conf)
OWNING(boot)
OWNING(xl_setup)
PLAIN(xl_ready)
PLAIN(xl_ended)

static int
any_get_names(struct rbuf *r, void *x)
{
	return strlist_get(r, x, 16, 300);
}

static void
any_put_names(struct wbuf *w, const void *x)
{
	strlist_put(w, x);
}

static void
any_clear_names(void *x)
{
	strlist_clear(x);
}

static int
any_get_boot_path(struct rbuf *r, void *x)
{
	return boot_path_get(r, x);
}

static void
any_put_boot_path(struct wbuf *w, const void *x)
{
	boot_path_put(w, x);
}

static void
any_clear_boot_path(void *x)
{
	free(((struct boot_path *)x)->path);
	memset(x, 0, sizeof(struct boot_path));
}

static int
any_get_xl_failed(struct rbuf *r, void *x)
{
	return xl_failed_get(r, x);
}

static void
any_put_xl_failed(struct wbuf *w, const void *x)
{
	xl_failed_put(w, x);
}

/* The launcher's run is written from a struct spawn. */
static int
any_get_xl_run(struct rbuf *r, void *x)
{
	return xl_run_get(r, x);
}

static void
any_put_xl_run(struct wbuf *w, const void *x)
{
	const struct xl_run *run = x;
	struct spawn s = {0};

	s.flags = ((run->flags & XL_NO_FORK) != 0 ? SPAWN_NO_FORK : 0) |
		  ((run->flags & XL_CHECK) != 0 ? SPAWN_HOLD : 0);
	s.session[0] = (run->flags & XL_APART) != 0 ? 's' : '\0';
	s.progs = (struct strlist){run->progs.v, run->progs.n};
	s.argv = (struct strlist){run->argv.v, run->argv.n};
	s.env = (struct strlist){run->env.v, run->env.n};
	s.cwd = run->cwd;
	s.cpu_s = run->cpu_s;
	s.memory = run->memory;
	s.procs = run->procs;
	xl_run_put(w, &s, run->nofile, 0);
}

static void
any_clear_xl_run(void *x)
{
	xl_run_clear(x);
}

#define O(name, type)                                             \
	{                                                         \
#name, sizeof(struct name), type, any_get_##name, \
		    any_put_##name, any_clear_##name              \
	}
#define P(name, type)                                             \
	{                                                         \
#name, sizeof(struct name), type, any_get_##name, \
		    any_put_##name, NULL                          \
	}
/* The order is the first byte of the corpus: add at the end. */
static const struct kind {
	const char *name;
	size_t size;
	uint16_t msg; /* whose whole payload it is, or MSG_NONE */
	int (*get)(struct rbuf *, void *);
	void (*put)(struct wbuf *, const void *);
	void (*clear)(void *);
} kinds[] = {
    O(ask, LM_ASK),
    O(ans, LM_ANS),
    P(fin, LM_FIN),
    O(lconf, LM_CONF),
    O(args, MSG_NONE),
    O(root_ok, MSG_NONE),
    O(facts, MSG_NONE),
    O(target, MSG_NONE),
    O(resolve, MP_RESOLVE),
    O(put, MP_PUT),
    P(put_fin, MP_PUT_FIN),
    O(list, MP_LIST),
    O(mutate, MP_RENAME),
    P(done, MP_DONE),
    P(exec_hello, ME_HELLO),
    O(spawn_bind, ME_SPAWN_BIND),
    O(spawn, ME_SPAWN),
    P(spawn_failed, ME_FAILED),
    P(run_end, ME_END),
    P(proc_conf, MSG_NONE),
    O(boot, PC_BOOT),
    O(xl_setup, XL_SETUP),
    O(xl_run, XL_RUN),
    P(xl_ready, XL_READY),
    {"xl_failed", sizeof(struct spawn_failed), XL_FAILED, any_get_xl_failed,
	any_put_xl_failed, NULL},
    P(xl_ended, XL_ENDED),
    {"strlist", sizeof(struct strlist), MSG_NONE, any_get_names, any_put_names,
	any_clear_names},
    O(boot_path, MSG_NONE),
    O(covers, MP_DENIED_ANS),
    O(denied, MP_DENIED),
    O(bulk, MP_COPY),
    O(edit, MP_EDIT),
    O(edit_fin, MP_EDIT_ANS),
    O(pack_fin, MP_ARCHIVE_ANS),
    O(space, MP_SPACE),
    O(space_ans, MP_SPACE_ANS),
    P(reject, MSG_NONE),
};
#undef O
#undef P

static void
check_empty(const struct kind *k, const uint8_t *x)
{
	size_t i;

	for (i = 0; i < k->size; i++)
		CHECK(x[i] == 0);
}

static void
check_taken(const struct kind *k, const void *x, const uint8_t *p, size_t n)
{
	const struct msg_row *row = msg_row(k->msg);
	struct wbuf w, tight;

	wbuf_init(&w, SIZE_MAX);
	k->put(&w, x);
	CHECK(!w.err);
	CHECK(w.len == n && memcmp(w.p, p, n) == 0);
	if (row != NULL && n <= IMSG_MAX_PAYLOAD)
		CHECK(n >= row->min);
	/* and not one byte more than that is needed, nor one less enough */
	wbuf_init(&tight, n);
	k->put(&tight, x);
	CHECK(!tight.err && tight.len == n);
	wbuf_free(&tight);
	if (n > 0) {
		wbuf_init(&tight, n - 1);
		k->put(&tight, x);
		CHECK(tight.err);
		wbuf_free(&tight);
	}
	wbuf_free(&w);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	const struct kind *k = &kinds[feed_u8(&f) % nitems(kinds)];
	uint8_t *p = fuzz_copy(f.p, f.n);
	void *x = malloc(k->size);
	struct rbuf r;
	int rc;

	CHECK(x != NULL);
	memset(x, 0xa5, k->size);
	rbuf_init(&r, p, f.n);
	rc = k->get(&r, x);
	CHECK(rc == 0 || rc == -1);
	if (rc == -1)
		check_empty(k, x);
	else {
		check_taken(k, x, p, f.n - r.len);
		if (k->clear != NULL) {
			k->clear(x);
			check_empty(k, x);
		}
	}
	free(x);
	free(p);
	return 0;
}
