/*
 * SPDX-License-Identifier: ISC
 *
 * Archives in a worker: EXPORT into a pipe, ARCHIVE into a file, IMPORT from
 * a pipe by way of a process that parses it.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/frame.h"
#include "common/msg.h"
#include "pathd/beneath.h"
#include "pathd/drain.h"
#include "pathd/framer.h"
#include "pathd/import.h"
#include "pathd/pack.h"
#include "pathd/put.h"
#include "pathd/worker.h"

/* ---- EXPORT ---- */

static int
export_cb(void *arg, const void *p, size_t n)
{
	const uint8_t *q = p;
	size_t k;

	for (; n > 0; n -= k, q += k) {
		k = n < FRAME_MAX ? n : FRAME_MAX;
		if (framer_raw(arg, FR_OUT, q, k) == -1)
			return -1;
	}
	return framer_stopped(arg) ? -1 : 0;
}

void
do_export(struct job *j, struct rbuf *r)
{
	struct stopper stop = {job_stop, j};
	struct pack p = {.pd = j->pd, .stop = &stop, .out = export_cb};
	struct framer f;
	struct drain d;
	struct bulk b;
	enum code code;

	if (bulk_get(r, &b) == -1 || rget_end(r) == -1)
		job_quit();
	p.b = &b;
	if ((code = pack_measure(&p)) != C_OK)
		job_done(j, (uint16_t)code, 0);
	else if (drain_open(&d, j) == 0) {
		framer_init(&f, drain_cb, &d);
		p.arg = &f;
		code = pack_run(&p);
		(void)framer_end(&f, code, 0);
		framer_free(&f);
		close(d.pipe);
	}
	pack_fin_clear(&p.fin);
	bulk_clear(&b);
}

/* ---- ARCHIVE ---- */

struct sink {
	int fd;
	enum code code;
};

static int
archive_cb(void *arg, const void *data, size_t n)
{
	const uint8_t *p = data;
	struct sink *s = arg;
	ssize_t k;

	while (n > 0) {
		k = write(s->fd, p, n);
		if (k == -1 && errno == EINTR)
			continue;
		if (k == -1) {
			s->code = beneath_act_code(errno);
			return -1;
		}
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

/* The answer, before anything is changed: as much of it as fits. */
static enum code
archive_answer(const struct job *j, struct pack_fin *fin)
{
	struct wbuf *w;

	for (;;) {
		w = job_answer();
		pack_fin_put(w, fin);
		if (!w->err || fin->nskip == 0)
			break;
		free(fin->skip[--fin->nskip].path);
	}
	return job_reserve(j) == 0 ? C_OK : C_SRV_UNAVAILABLE;
}

static enum code
archive_run(struct job *j, const struct bulk *b, struct pack *p)
{
	struct put q = {.flags = b->flags & (PF_CREATE_DIRS | PF_HARDLINKS),
	    .max_bytes = UINT64_MAX,
	    .mode = UINT32_MAX};
	struct put_fin fin = {0};
	struct sink s = {-1, C_OK};
	struct upload u;
	struct stat st;
	enum code code;

	q.target = b->dst; /* borrowed */
	if ((code = pack_measure(p)) == C_OK &&
	    (code = upload_open(&u, j->pd, &q)) == C_OK) {
		s.fd = u.fd;
		/* cppcheck-suppress autoVariables; taken back below */
		p->arg = &s;
		/* a temporary that has a name must not be in it */
		if (u.temp[0] != '\0' && fstat(u.fd, &st) == 0) {
			p->not_dev = st.st_dev;
			p->not_ino = st.st_ino;
		}
		code = pack_run(p);
		if (s.code != C_OK)
			code = s.code;
		if (code == C_OK)
			code = archive_answer(j, &p->fin);
		if (code == C_OK)
			code = upload_commit(&u, &fin);
		p->arg = NULL;
		upload_close(&u);
	}
	return code;
}

void
do_archive(struct job *j, struct rbuf *r)
{
	struct stopper stop = {job_stop, j};
	struct pack p = {.pd = j->pd, .stop = &stop, .out = archive_cb};
	struct bulk b;
	enum code code;

	if (bulk_get(r, &b) == -1 || rget_end(r) == -1)
		job_quit();
	if (b.max_bytes > PACK_BYTES)
		b.max_bytes = PACK_BYTES;
	p.b = &b;
	p.not_dev = b.dst.dev;
	p.not_ino = b.dst.ino;
	code = b.has_dst ? archive_run(j, &b, &p) : C_SRV_INTERNAL;
	if (code != C_OK)
		job_done(j, (uint16_t)code, 0);
	else /* it was filled in before the archive got its name */
		job_said(j, MP_ARCHIVE_ANS);
	pack_fin_clear(&p.fin);
	bulk_clear(&b);
}

/* ---- IMPORT ---- */

struct reading {
	struct job *job;
	struct import *im;
	struct frame_dec dec;
	int frames;
	int over; /* the end frame was seen */
	int gone; /* it ended without one */
	struct unpack_end end;
};

static enum code
on_frame(struct reading *d, uint8_t kind, const uint8_t *p, size_t n)
{
	struct member m;
	enum code code;
	struct rbuf r;
	uint64_t off;

	rbuf_init(&r, p, n);
	switch (kind) {
	case UNPACK_MEMBER:
		if (member_get(&r, &m) == -1)
			return C_SRV_INTERNAL;
		code = import_member(d->im, &m);
		member_clear(&m);
		return code;
	case UNPACK_DATA:
		off = rget_u64(&r);
		return r.err ? C_SRV_INTERNAL
			     : import_data(d->im, off, r.p, r.len);
	case UNPACK_END:
		d->over = 1;
		if (unpack_end_get(&r, &d->end) == -1)
			return C_SRV_INTERNAL;
		return (enum code)d->end.code;
	default:
		return C_SRV_INTERNAL;
	}
}

/* The frames that are there. */
static enum code
read_frames(struct reading *d)
{
	static uint8_t buf[64 * 1024];
	const uint8_t *p = buf, *payload;
	enum code code;
	uint8_t kind;
	size_t len, left;
	ssize_t n;
	int rc;

	n = read(d->frames, buf, sizeof(buf));
	if (n == -1)
		return errno == EAGAIN || errno == EINTR ? C_OK : C_FS_IO;
	if (n == 0) {
		d->gone = 1;
		return C_SRV_UNAVAILABLE;
	}
	left = (size_t)n;
	while (
	    (rc = frame_feed(&d->dec, &p, &left, &kind, &payload, &len)) == 1) {
		++*d->job->beat;
		if (d->over)
			return C_SRV_INTERNAL;
		if ((code = on_frame(d, kind, payload, len)) != C_OK)
			return code;
	}
	return rc == 0 ? C_OK : C_SRV_INTERNAL;
}

/* Until all is here: C_OK, or why it will never be. */
static enum code
read_all(struct reading *d)
{
	struct job *j = d->job;
	enum code code;
	int rc;

	for (;;) {
		if (j->ended && !j->whole)
			return C_REQ_BAD_FRAMING; /* the client broke off */
		if (j->ended && d->over)
			return d->end.bytes == j->total ? C_OK : C_SRV_INTERNAL;
		rc = job_wait(j, d->over ? -1 : d->frames, POLLIN);
		if (rc == -1)
			return C_SRV_UNAVAILABLE;
		if (j->silent_ms >= JOB_SILENCE_MS)
			return C_FS_TIMEOUT;
		if (rc == 1 && (code = read_frames(d)) != C_OK)
			return code;
	}
}

static enum code
import_run(struct job *j, struct import *im, int pipe, struct put_fin *fin)
{
	struct reading *d;
	enum code code, end;
	pid_t pid;

	if ((d = calloc(1, sizeof(*d))) == NULL) {
		close(pipe);
		return C_SRV_UNAVAILABLE;
	}
	d->job = j;
	d->im = im;
	pid = unpack_start(
	    pipe, (im->b->flags & PF_GZIP) != 0, im->b->max_bytes, &d->frames);
	close(pipe); /* the listener learns by EPIPE when that process ends */
	if (pid == -1) {
		free(d);
		return C_SRV_UNAVAILABLE;
	}
	code = read_all(d);
	/* it has said all that counts, and need not end by itself */
	(void)kill(pid, SIGKILL);
	close(d->frames);
	end = unpack_reap(pid);
	/* a client's pipe breaks too when the reader dies */
	if (end != C_OK && (d->gone || code == C_REQ_BAD_FRAMING))
		code = end;
	if (code == C_OK && im->b->has_digest &&
	    memcmp(d->end.digest, im->b->digest, SHA256_LEN) != 0)
		code = C_FS_DIGEST_MISMATCH;
	if (code == C_OK)
		code = import_commit(im);
	fin->bytes = d->end.bytes;
	fin->entries = im->entries;
	free(d);
	return code;
}

void
do_import(struct job *j, struct rbuf *r)
{
	struct put_fin fin = {0};
	struct import im;
	struct bulk b;
	enum code code;
	int pipe;

	if (bulk_get(r, &b) == -1 || rget_end(r) == -1)
		job_quit();
	if ((code = import_open(&im, j->pd, &b)) != C_OK)
		job_done(j, (uint16_t)code, 0);
	else if ((pipe = put_answer(j)) == -1)
		job_done(j, (uint16_t)beneath_act_code(errno), 0);
	else {
		fin.code = (uint16_t)import_run(j, &im, pipe, &fin);
		/* nothing of it is left when the answer is there */
		import_close(&im);
		put_finish(j, &fin);
		bulk_clear(&b);
		return;
	}
	import_close(&im);
	bulk_clear(&b);
}
