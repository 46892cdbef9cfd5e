/*
 * SPDX-License-Identifier: ISC
 *
 * The worker's side of the pool: one job at a time, its answers and its log
 * lines go to main.  Forked from main, so it has main's confinement and needs
 * none of its own; it decides nothing and talks to nobody else.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "pathd/copy.h"
#include "pathd/denied.h"
#include "pathd/dir.h"
#include "pathd/edit.h"
#include "pathd/get.h"
#include "pathd/journal.h"
#include "pathd/space.h"
#include "pathd/worker.h"

#define SLICE_MS 5000	/* longest wait without a beat */
#define CHECK_EVERY 256 /* ticks between two looks at the channel */
#define ROOM 1024	/* of an answer, without what lists something */

static struct imsgbuf *log_im;

/* The answer to what changes something: there is room for it before anything
 * is done, so that what was done cannot be told otherwise. */
static struct wbuf answer;

/* ---- descriptors ---- */

/* qsort(3) would ask the kernel for the size of memory. */
static void
fd_insert(int *v, size_t n, int fd)
{
	while (n > 0 && v[n - 1] > fd) {
		v[n] = v[n - 1];
		n--;
	}
	v[n] = fd;
}

/* Main's channels must not live on in here. */
static void
close_others(const struct pathd *pd, int sock)
{
	int keep[ABX_MAX_ROOTS + 2], last = STDERR_FILENO;
	size_t i, n = 0;

	fd_insert(keep, n++, sock);
	if (pd->journal != -1)
		fd_insert(keep, n++, pd->journal);
	for (i = 0; i < pd->roots.n && i < ABX_MAX_ROOTS; i++)
		if (pd->roots.v[i].fd != -1)
			fd_insert(keep, n++, pd->roots.v[i].fd);
	for (i = 0; i < n; i++) {
		if (keep[i] <= last)
			continue;
		if (keep[i] > last + 1 && close_range((unsigned)last + 1,
					      (unsigned)keep[i] - 1, 0) == -1)
			_exit(1);
		last = keep[i];
	}
	if (close_range((unsigned)last + 1, ~0U, 0) == -1)
		_exit(1);
}

/* ---- messages ---- */

static void
flush(struct imsgbuf *im)
{
	struct pollfd p = {imsg_fd(im), POLLOUT, 0};
	int rc;

	while ((rc = imsg_flush(im)) == 1)
		if (poll(&p, 1, -1) == -1 && errno != EINTR)
			_exit(1);
	if (rc == -1)
		_exit(0); /* main is gone */
}

static void
worker_log(enum log_level level, const char *line)
{
	uint8_t buf[1024];
	size_t n = strnlen(line, sizeof(buf) - 1);

	buf[0] = (uint8_t)level;
	memcpy(buf + 1, line, n);
	if (imsg_compose(log_im, PC_LOG, 0, -1, buf, n + 1) == 0)
		flush(log_im);
}

void
job_quit(void)
{
	if (errno == ENOMEM)
		log_warnx("out of memory");
	else
		log_warn("a message is broken");
	_exit(1);
}

/* A message during a job: about that job, or one that ended before main
 * knew. */
static void
job_message(struct job *j, struct imsg *m)
{
	struct rbuf r;
	const char *why;

	if (msg_check(m, &why) == -1 ||
	    (m->type != MP_CANCEL && m->type != MP_PUT_END))
		_exit(1);
	if (m->id != j->id)
		return;
	if (m->type == MP_CANCEL) {
		j->over = 1;
		return;
	}
	rbuf_init(&r, m->payload, m->len);
	j->total = rget_u64(&r);
	j->whole = rget_bool(&r);
	if (rget_end(&r) == -1)
		job_quit();
	j->ended = 1;
}

/* Take what is there: first what came in one packet with the job itself. */
static void
job_read(struct job *j)
{
	struct imsg m;
	int rc;

	do
		while (imsg_get(j->im, &m))
			job_message(j, &m);
	while ((rc = imsg_read(j->im)) == 1);
	if (rc == -1)
		_exit(0);
}

int
job_stop(void *arg)
{
	struct job *j = arg;

	++*j->beat;
	if (j->ticks++ % CHECK_EVERY == 0)
		job_read(j);
	return j->over;
}

int
job_wait(struct job *j, int fd, short events)
{
	struct pollfd p[2] = {{imsg_fd(j->im), POLLIN, 0}, {fd, events, 0}};
	int n;

	if (job_stop(j))
		return -1;
	n = poll(p, 2, SLICE_MS);
	if (n == -1 && errno != EINTR)
		job_quit();
	if (n == 0)
		j->silent_ms += SLICE_MS;
	if (n > 0 && p[0].revents != 0)
		job_read(j);
	if (j->over)
		return -1;
	if (n > 0 && p[1].revents != 0) {
		j->silent_ms = 0;
		return 1;
	}
	return 0;
}

void
job_send(struct job *j, uint16_t type, int fd, const struct wbuf *w)
{
	if (j->over) {
		if (fd != -1)
			close(fd);
		return;
	}
	if (w->err || imsg_compose(j->im, type, j->id, fd, w->p, w->len) == -1)
		job_quit();
	flush(j->im);
}

static int
answer_room(const struct job *j)
{
	static const uint8_t none[ROOM];

	answer.max = IMSG_MAX_PAYLOAD;
	wbuf_reset(&answer);
	wput_raw(&answer, none, sizeof(none));
	return answer.err || imsg_reserve(j->im, ROOM) == -1 ? -1 : 0;
}

struct wbuf *
job_answer(void)
{
	wbuf_reset(&answer);
	return &answer;
}

int
job_reserve(const struct job *j)
{
	return answer.err ? -1 : imsg_reserve(j->im, answer.len);
}

void
job_said(struct job *j, uint16_t type)
{
	job_send(j, type, -1, &answer);
}

void
job_done(struct job *j, uint16_t code, uint64_t count)
{
	struct done d = {.code = code, .count = count};

	done_put(job_answer(), &d);
	job_said(j, MP_DONE);
}

/* ---- jobs ---- */

static void
do_mutate(struct job *j, struct rbuf *r,
    void (*act)(const struct pathd *, const struct mutate *,
	const struct stopper *, struct done *))
{
	struct stopper stop = {job_stop, j};
	struct mutate m;
	struct done done;

	if (mutate_get(r, &m) == -1 || rget_end(r) == -1)
		job_quit();
	act(j->pd, &m, &stop, &done);
	job_done(j, done.code, done.count);
	mutate_clear(&m);
}

static void
do_unlink(struct job *j, struct rbuf *r)
{
	do_mutate(j, r, dir_unlink);
}

static void
do_rename(struct job *j, struct rbuf *r)
{
	do_mutate(j, r, dir_rename);
}

static void
do_copy(struct job *j, struct rbuf *r)
{
	struct stopper stop = {job_stop, j};
	struct bulk b;
	struct done done;

	if (bulk_get(r, &b) == -1 || rget_end(r) == -1)
		job_quit();
	copy_run(j->pd, &b, &stop, &done);
	job_done(j, done.code, done.count);
	bulk_clear(&b);
}

static void
do_edit(struct job *j, struct rbuf *r)
{
	struct edit_fin fin;
	struct edit e;
	enum code code;

	if (edit_get(r, &e) == -1 || rget_end(r) == -1)
		job_quit();
	if ((code = edit_run(j->pd, &e, &fin)) == C_OK) {
		edit_fin_put(job_answer(), &fin);
		job_said(j, MP_EDIT_ANS);
	} else
		job_done(j, (uint16_t)code, 0);
	edit_fin_clear(&fin);
	edit_clear(&e);
}

static void
do_resolve(struct job *j, struct rbuf *r)
{
	struct resolve rs;
	struct wbuf w;
	int fd;

	if (resolve_get(r, &rs) == -1 || rget_end(r) == -1)
		job_quit();
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	if (get_facts(j->pd, &rs, &w, &fd) == -1)
		job_quit();
	job_send(j, MP_FACTS, fd, &w);
	wbuf_free(&w);
	resolve_clear(&rs);
}

static void
do_mkdir(struct job *j, struct rbuf *r)
{
	struct mutate m;
	struct done done = {0};

	if (mutate_get(r, &m) == -1 || rget_end(r) == -1)
		job_quit();
	dir_mkdir(j->pd, &m, &done);
	job_done(j, done.code, done.count);
	mutate_clear(&m);
}

static void
do_sweep(struct job *j, struct rbuf *r)
{
	if (journal_sweep(j->pd) > 0)
		log_info("what a lost worker left was removed");
}

static void
do_denied(struct job *j, struct rbuf *r)
{
	struct stopper stop = {job_stop, j};
	struct denied q;
	struct covers c;
	struct wbuf w;
	enum code code;

	if (denied_get(r, &q) == -1 || rget_end(r) == -1)
		job_quit();
	if ((code = denied_find(j->pd, &q, &stop, &c)) == C_OK) {
		wbuf_init(&w, IMSG_MAX_PAYLOAD);
		covers_put(&w, &c);
		job_send(j, MP_DENIED_ANS, -1, &w);
		wbuf_free(&w);
	} else
		job_done(j, (uint16_t)code, 0);
	covers_clear(&c);
	denied_clear(&q);
}

static void
do_space(struct job *j, struct rbuf *r)
{
	struct stopper stop = {job_stop, j};
	struct space_ans ans;
	struct space q;
	struct wbuf w;

	if (space_get(r, &q) == -1 || rget_end(r) == -1)
		job_quit();
	space_run(j->pd, &q, &stop, &ans);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	space_ans_put(&w, &ans);
	job_send(j, MP_SPACE_ANS, -1, &w);
	wbuf_free(&w);
	space_ans_clear(&ans);
	space_clear(&q);
}

typedef void (*job_run)(struct job *, struct rbuf *);

static const struct {
	uint16_t type;
	job_run run;
} jobs[] = {
    {MP_RESOLVE, do_resolve},
    {MP_MKDIR, do_mkdir},
    {MP_PUT, do_put},
    {MP_LIST, do_list},
    {MP_UNLINK, do_unlink},
    {MP_RENAME, do_rename},
    {MP_COPY, do_copy},
    {MP_EDIT, do_edit},
    {MP_SEARCH, do_search},
    {MP_EXPORT, do_export},
    {MP_WATCH, do_watch},
    {MP_ARCHIVE, do_archive},
    {MP_IMPORT, do_import},
    {PW_SWEEP, do_sweep},
    {MP_DENIED, do_denied},
    {MP_SPACE, do_space},
};

static job_run
job_find(uint16_t type)
{
	size_t i;

	for (i = 0; i < nitems(jobs); i++)
		if (jobs[i].type == type)
			return jobs[i].run;
	job_quit(); /* main sends nothing else */
}

/* Run what main sent; what comes behind it in the same packet is for this
 * job and waits in the buffer. */
static void
worker_run(struct job *proto, struct imsg *m)
{
	struct job j = *proto;
	struct rbuf r;
	const char *why;

	if (msg_check(m, &why) == -1)
		job_quit();
	if (m->type == MP_CANCEL || m->type == MP_PUT_END)
		return; /* of a job that is done */
	j.id = m->id;
	errno = 0;
	if (answer_room(&j) == -1)
		job_quit();
	rbuf_init(&r, m->payload, m->len);
	job_find(m->type)(&j, &r);
	if (imsg_compose(j.im, PW_FREE, j.id, -1, NULL, 0) == -1)
		_exit(1);
	flush(j.im);
}

void
worker_main(const struct pathd *pd, int sock, volatile uint64_t *beat)
{
	struct pathd mine = *pd; /* the roots are borrowed */
	struct job proto = {.pd = &mine, .beat = beat};
	struct pollfd p = {sock, POLLIN, 0};
	struct imsg m;
	int rc;

	mine.beat = beat;
	close_others(pd, sock);
	if ((proto.im = imsg_new(sock)) == NULL)
		_exit(1);
	log_im = proto.im;
	log_set_sink(worker_log);
	for (;;) {
		if (poll(&p, 1, -1) == -1 && errno != EINTR)
			_exit(1);
		if ((rc = imsg_read(proto.im)) == -1)
			_exit(0);
		if (rc == 1)
			while (imsg_get(proto.im, &m))
				worker_run(&proto, &m);
	}
}
