/*
 * SPDX-License-Identifier: ISC
 *
 * abx-pathd: opens its roots as the run user, confines itself to them, and
 * then answers the monitor's questions about paths and does what it is told
 * beneath one root.  Quick things are done here, long ones by the pool.  Sees
 * no policy and no client.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/log.h"
#include "common/proc.h"
#include "pathd/beneath.h"
#include "pathd/dir.h"
#include "pathd/filter.h"
#include "pathd/get.h"
#include "pathd/journal.h"
#include "pathd/mounts.h"
#include "pathd/pool.h"
#include "pathd/roots.h"
#include "pathd/unpack.h"

static struct pathd pd = {.journal = -1};
static struct chan *mon;
static struct wbuf out; /* one answer at a time */

/* ---- start-up ---- */

static int
pathd_conf(const struct proc_conf *pc, struct rbuf *r)
{
	struct boot_path bp;
	uint32_t n, mask;
	int rc = 0;

	n = rget_u32(r);
	if (n > ABX_MAX_ROOTS)
		return -1;
	while (n-- > 0 && rc == 0) {
		if (boot_path_get(r, &bp) == -1)
			return -1;
		rc = roots_add(&pd.roots, bp.id, bp.path);
		free(bp.path);
	}
	mask = rget_u32(r);
	if (mask > 0777)
		return -1;
	pd.umask = (mode_t)mask;
	return rc;
}

static int
pathd_fd(enum proc_fd kind, uint32_t index, int fd)
{
	if (kind != PFD_JOURNAL || index != 0 || pd.journal != -1)
		return -1;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) == -1)
		return -1;
	pd.journal = fd;
	return 0;
}

static void
pathd_jail(const struct proc_conf *pc, struct jail *j)
{
	j->landlock = 1;
	j->calls = pathd_calls;
	j->nofile = ABX_NOFILE;
}

/* Workers of a pathd that was killed die with it, but not at once. */
static void
sweep_wait(void)
{
	const struct timespec ts = {0, 10 * 1000 * 1000};
	int i;

	for (i = 0; i < 100 && journal_busy(&pd); i++)
		(void)nanosleep(&ts, NULL);
}

/* Roots are what the run user can reach, so they are opened as that user. */
static void
pathd_opened(const struct proc_conf *pc, struct jail *j)
{
	size_t i, n;

	umask(pd.umask);
	roots_open(&pd.roots);
	for (i = 0; i < pd.roots.n; i++) {
		if (pd.roots.v[i].fd == -1) {
			errno = pd.roots.v[i].err;
			log_warn("root %s", pd.roots.v[i].conf);
			continue;
		}
		if (j->npaths == nitems(j->paths))
			fatalx("too many roots");
		j->paths[j->npaths].fd = pd.roots.v[i].fd;
		j->paths[j->npaths++].rights = JR_READ | JR_WRITE;
	}
	mounts_open(&pd.roots);
	unpack_init();
	sweep_wait();
	if ((n = journal_sweep(&pd)) > 0)
		log_info("removed %zu temporaries of a crash", n);
	log_info("%zu roots, walking with %s", pd.roots.n,
	    beneath_probe(pd.roots.n > 0 ? pd.roots.v[0].fd : -1));
}

/* ---- answers ---- */

static int
answer(uint16_t type, uint64_t id, int fd)
{
	if (out.err)
		fatalx("%s does not fit its message", msg_name(type));
	if (chan_send(mon, type, id, fd, out.p, out.len) == -1 &&
	    errno != EPIPE)
		fatal("cannot answer the monitor");
	return 0;
}

static int
answer_done(uint64_t id, const struct done *d)
{
	wbuf_reset(&out);
	done_put(&out, d);
	return answer(MP_DONE, id, -1);
}

/* ---- questions; each returns 0, or -1 for a broken monitor ---- */

static int
do_roots(struct imsg *m)
{
	wbuf_reset(&out);
	roots_put(&out, &pd.roots);
	return answer(MP_ROOTS_OK, m->id, -1);
}

static int
known_ref(const struct rootref *ref)
{
	return walk_root(&pd.roots, ref->root) != NULL;
}

static int
known_refs(const struct resolve *rs)
{
	size_t i, k;

	for (i = 0; i < rs->n; i++)
		for (k = 0; k < rs->v[i].nrefs; k++)
			if (!known_ref(&rs->v[i].refs[k]))
				return 0;
	return 1;
}

/* May a file system of the root not answer? */
static int
is_slow(const struct rootref *ref)
{
	const struct walk_root *root = walk_root(&pd.roots, ref->root);

	return root->slow || root->slow_below;
}

/* A root of what is asked that may be slow, or NULL. */
static const struct walk_root *
slow_ref(const struct resolve *rs)
{
	size_t i, k;

	for (i = 0; i < rs->n; i++)
		for (k = 0; k < rs->v[i].nrefs; k++)
			if (is_slow(&rs->v[i].refs[k]))
				return walk_root(
				    &pd.roots, rs->v[i].refs[k].root);
	return NULL;
}

static int
do_resolve(struct imsg *m)
{
	const struct walk_root *slow;
	struct resolve rs;
	struct rbuf r;
	int fd, rc = -1;

	rbuf_init(&r, m->payload, m->len);
	if (resolve_get(&r, &rs) == -1)
		return -1;
	if (rget_end(&r) == -1 || !known_refs(&rs))
		rc = -1;
	else if ((slow = slow_ref(&rs)) != NULL)
		rc = pool_resolve(m->id, slow->id, rs.n, m->payload, m->len);
	else {
		wbuf_reset(&out);
		if ((rc = get_facts(&pd, &rs, &out, &fd)) == 0)
			rc = answer(MP_FACTS, m->id, fd);
		else
			errno = ENOMEM;
	}
	resolve_clear(&rs);
	return rc;
}

static int
do_put_long(struct imsg *m)
{
	struct put p;
	struct rbuf r;
	int rc = -1;

	rbuf_init(&r, m->payload, m->len);
	if (put_get(&r, &p) == -1)
		return -1;
	if (rget_end(&r) == 0 && known_ref(&p.target.ref))
		rc = pool_add(
		    m->type, m->id, p.target.ref.root, m->payload, m->len);
	put_clear(&p);
	return rc;
}

static int
do_list_long(struct imsg *m)
{
	struct list l;
	struct rbuf r;
	int rc = -1;

	rbuf_init(&r, m->payload, m->len);
	if (list_get(&r, &l) == -1)
		return -1;
	if (rget_end(&r) == 0 && known_ref(&l.target.ref))
		rc = pool_add(
		    m->type, m->id, l.target.ref.root, m->payload, m->len);
	list_clear(&l);
	return rc;
}

static int
do_edit_long(struct imsg *m)
{
	struct edit e;
	struct rbuf r;
	int rc = -1;

	rbuf_init(&r, m->payload, m->len);
	if (edit_get(&r, &e) == -1)
		return -1;
	if (rget_end(&r) == 0 && known_ref(&e.target.ref))
		rc = pool_add(
		    m->type, m->id, e.target.ref.root, m->payload, m->len);
	edit_clear(&e);
	return rc;
}

static int
do_bulk_long(struct imsg *m)
{
	struct bulk b;
	struct rbuf r;
	size_t i;
	int rc = -1;

	rbuf_init(&r, m->payload, m->len);
	if (bulk_get(&r, &b) == -1)
		return -1;
	if (rget_end(&r) == 0 && (!b.has_dst || known_ref(&b.dst.ref))) {
		for (i = 0; i < b.nsrc && known_ref(&b.src[i].ref); i++)
			continue;
		if (i == b.nsrc)
			rc = pool_add(m->type, m->id,
			    b.nsrc > 0 ? b.src[0].ref.root : b.dst.ref.root,
			    m->payload, m->len);
	}
	bulk_clear(&b);
	return rc;
}

static int
do_denied_long(struct imsg *m)
{
	struct denied q;
	struct rbuf r;
	int rc = -1;

	rbuf_init(&r, m->payload, m->len);
	if (denied_get(&r, &q) == -1)
		return -1;
	if (rget_end(&r) == 0 && known_ref(&q.target.ref))
		rc = pool_add(
		    m->type, m->id, q.target.ref.root, m->payload, m->len);
	denied_clear(&q);
	return rc;
}

static int
do_space_long(struct imsg *m)
{
	struct space q;
	struct rbuf r;
	int rc = -1;

	rbuf_init(&r, m->payload, m->len);
	if (space_get(&r, &q) == -1)
		return -1;
	if (rget_end(&r) == 0 && walk_root(&pd.roots, q.root) != NULL)
		rc = pool_add(m->type, m->id, q.root, m->payload, m->len);
	space_clear(&q);
	return rc;
}

static int
do_mutate(struct imsg *m)
{
	struct mutate mu;
	struct done done = {0};
	struct rbuf r;
	int rc = -1;

	rbuf_init(&r, m->payload, m->len);
	if (mutate_get(&r, &mu) == -1)
		return -1;
	if (rget_end(&r) == -1 || !known_ref(&mu.src.ref) ||
	    (m->type == MP_RENAME && !known_ref(&mu.dst.ref))) {
		mutate_clear(&mu);
		return -1;
	}
	if (is_slow(&mu.src.ref) ||
	    (m->type == MP_RENAME && is_slow(&mu.dst.ref)) ||
	    (m->type == MP_UNLINK && dir_unlink_long(&pd, &mu)) ||
	    (m->type == MP_RENAME && dir_rename_long(&mu)))
		rc = pool_add(
		    m->type, m->id, mu.src.ref.root, m->payload, m->len);
	else {
		if (m->type == MP_MKDIR)
			dir_mkdir(&pd, &mu, &done);
		else if (m->type == MP_UNLINK)
			dir_unlink(&pd, &mu, NULL, &done);
		else
			dir_rename(&pd, &mu, NULL, &done);
		rc = answer_done(m->id, &done);
	}
	mutate_clear(&mu);
	return rc;
}

static int
do_put_end(struct imsg *m)
{
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	(void)rget_u64(&r);
	(void)rget_bool(&r);
	if (rget_end(&r) == -1)
		return -1;
	return pool_put_end(m->id, m->payload, m->len);
}

static int
do_cancel(struct imsg *m)
{
	pool_cancel(m->id);
	return 0;
}

static const struct {
	uint16_t type;
	int (*run)(struct imsg *);
} questions[] = {
    {MP_RESOLVE, do_resolve},
    {MP_PUT, do_put_long},
    {MP_PUT_END, do_put_end},
    {MP_LIST, do_list_long},
    {MP_DENIED, do_denied_long},
    {MP_SPACE, do_space_long},
    {MP_MKDIR, do_mutate},
    {MP_RENAME, do_mutate},
    {MP_UNLINK, do_mutate},
    {MP_COPY, do_bulk_long},
    {MP_EDIT, do_edit_long},
    {MP_SEARCH, do_bulk_long},
    {MP_EXPORT, do_bulk_long},
    {MP_WATCH, do_bulk_long},
    {MP_ARCHIVE, do_bulk_long},
    {MP_IMPORT, do_bulk_long},
    {MP_CANCEL, do_cancel},
    {MP_ROOTS, do_roots},
};

/* There was no memory to read the question: others go on. */
static int
refuse(const struct imsg *m)
{
	uint32_t items = 0;
	struct rbuf r;

	if (m->type == MP_RESOLVE) {
		rbuf_init(&r, m->payload, m->len);
		(void)rget_u8(&r);
		items = rget_u32(&r);
		if (r.err || items == 0 || items > ABX_MAX_RESOLVE)
			return -1;
	}
	log_warnx("out of memory for %s", msg_name(m->type));
	pool_refuse(m->type, m->id, items);
	return 0;
}

static int
mon_msg_cb(struct chan *c, struct imsg *m, void *arg)
{
	const char *why = "not for pathd";
	size_t i;

	errno = 0;
	if (msg_check(m, &why) == 0)
		for (i = 0; i < nitems(questions); i++)
			if (questions[i].type == m->type) {
				if (questions[i].run(m) == 0)
					return 0;
				if (errno == ENOMEM && refuse(m) == 0)
					return 0;
				why = "malformed";
				break;
			}
	log_warnx("%s from the monitor: %s", msg_name(m->type), why);
	return -1;
}

static void
mon_gone_cb(struct chan *c, int error, void *arg)
{
	if (error != 0 && error != EPIPE)
		log_warnx("the monitor's channel broke");
	proc_exit(error == 0 || error == EPIPE ? 0 : 1);
}

static void
pathd_start(struct event_base *base, int fd)
{
	wbuf_init(&out, IMSG_MAX_PAYLOAD);
	mon = chan_new(base, fd, mon_msg_cb, mon_gone_cb, NULL);
	if (mon == NULL)
		fatal("the monitor's channel");
	mounts_start(base);
	pool_start(&pd, base, mon);
}

static void
drained(void)
{
	chan_flush(mon, 100);
	proc_exit(0);
}

static void
pathd_shutdown(void)
{
	pool_drain(drained);
}

static const struct proc_ops ops = {
    .name = "abx-pathd",
    .conf = pathd_conf,
    .fd = pathd_fd,
    .jail = pathd_jail,
    .opened = pathd_opened,
    .start = pathd_start,
    .shutdown = pathd_shutdown,
    .use_poll = 1,
};

int
main(int argc, char **argv)
{
	return proc_main(&ops, argc, argv);
}
