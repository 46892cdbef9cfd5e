/*
 * SPDX-License-Identifier: ISC
 *
 * An upload in a worker: the pipe between the listener and the file.  Bytes
 * are counted; only when the pipe gave exactly what PUT_END announced does
 * the file get its name.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/hash.h"
#include "common/msg.h"
#include "pathd/beneath.h"
#include "pathd/put.h"
#include "pathd/worker.h"

#define PIPE_SIZE (256 * 1024)
#define CHUNK (1024 * 1024)
#define ROUNDS 64 /* chunks between two looks at the channel */

struct feed {
	struct job *job;
	int pipe, file;
	uint64_t bytes, max;
	int eof;
	int copy; /* the file system cannot splice, or the digest is wanted */
	struct sha256_ctx *sha; /* or NULL */
};

static ssize_t
feed_copy(const struct feed *f, size_t room)
{
	char buf[64 * 1024];
	ssize_t n, k;
	size_t done;

	if (room > sizeof(buf))
		room = sizeof(buf);
	if ((n = read(f->pipe, buf, room)) <= 0)
		return n;
	if (f->sha != NULL)
		sha256_add(f->sha, buf, (size_t)n);
	for (done = 0; done < (size_t)n; done += (size_t)k)
		if ((k = write(f->file, buf + done, (size_t)n - done)) == -1)
			return -1;
	return n;
}

/* Move at most room bytes: how many, 0 at the end, -1 with errno. */
static ssize_t
feed_move(struct feed *f, size_t room)
{
	ssize_t n;

	if (!f->copy) {
		n = splice(f->pipe, NULL, f->file, NULL, room,
		    SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n != -1 || errno != EINVAL)
			return n;
		f->copy = 1;
	}
	return feed_copy(f, room);
}

/* Drain the pipe for a while. */
static enum code
feed_some(struct feed *f)
{
	uint64_t room;
	ssize_t n;
	char extra;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		++*f->job->beat;
		room = f->max - f->bytes;
		if (room == 0)
			n = read(f->pipe, &extra, 1);
		else
			n = feed_move(f, room < CHUNK ? (size_t)room : CHUNK);
		if (n == -1 && errno == EAGAIN)
			return C_OK;
		if (n == -1 && errno != EINTR)
			return beneath_act_code(errno);
		if (n == 0) {
			f->eof = 1;
			return C_OK;
		}
		if (room == 0 && n > 0)
			return C_LIM_MAX_BYTES;
		if (n > 0)
			f->bytes += (uint64_t)n;
	}
	return C_OK;
}

/* Until all is here: C_OK, or why it will never be. */
static enum code
feed_all(struct feed *f)
{
	struct job *j = f->job;
	enum code code;
	int rc;

	for (;;) {
		if (j->ended && !j->whole)
			return C_REQ_BAD_FRAMING; /* the client broke off */
		if (j->ended && f->bytes == j->total)
			return C_OK;
		if (j->ended && (f->eof || f->bytes > j->total))
			return C_SRV_INTERNAL;
		rc = job_wait(j, f->eof ? -1 : f->pipe, POLLIN);
		if (rc == -1)
			return C_SRV_UNAVAILABLE;
		if (j->silent_ms >= JOB_SILENCE_MS)
			return C_FS_TIMEOUT;
		if (rc == 1 && (code = feed_some(f)) != C_OK)
			return code;
	}
}

int
put_answer(struct job *j)
{
	struct wbuf w;
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) == -1)
		return -1;
	/* A large pipe is faster, and not always allowed. */
	(void)fcntl(p[0], F_SETPIPE_SZ, PIPE_SIZE);
	wbuf_init(&w, 64);
	wput_u32(&w, 0);
	job_send(j, MP_PUT_ANS, p[1], &w);
	wbuf_free(&w);
	return p[0];
}

void
put_finish(struct job *j, const struct put_fin *fin)
{
	put_fin_put(job_answer(), fin);
	job_said(j, MP_PUT_FIN);
}

/* What came is what the client meant to send: C_OK, and the digest. */
static enum code
put_digest(struct feed *f, const struct put *p, struct put_fin *fin)
{
	sha256_end(f->sha, fin->digest);
	fin->has_digest = f->sha != NULL;
	f->sha = NULL;
	return (p->flags & PF_DIGEST) == 0 ||
		       memcmp(fin->digest, p->digest, SHA256_LEN) == 0
		   ? C_OK
		   : C_FS_DIGEST_MISMATCH;
}

static void
put_run(struct job *j, struct upload *u)
{
	struct feed f = {.job = j, .file = u->fd, .max = u->put->max_bytes};
	struct put_fin fin;
	enum code code;

	f.copy = (u->put->flags & (PF_CHECKSUM | PF_DIGEST)) != 0;
	if (f.copy && (f.sha = sha256_new()) == NULL) {
		job_done(j, C_SRV_UNAVAILABLE, 0);
		return;
	}
	if ((f.pipe = put_answer(j)) == -1) {
		job_done(j, beneath_act_code(errno), 0);
		sha256_end(f.sha, NULL);
		return;
	}
	memset(&fin, 0, sizeof(fin));
	code = feed_all(&f);
	if (code == C_OK)
		code = put_digest(&f, u->put, &fin);
	sha256_end(f.sha, NULL);
	/* A listener that still writes learns by EPIPE. */
	close(f.pipe);
	if (code == C_OK && !j->over)
		code = upload_commit(u, &fin);
	fin.code = (uint16_t)code;
	fin.bytes = f.bytes;
	put_finish(j, &fin);
}

void
do_put(struct job *j, struct rbuf *r)
{
	struct upload u;
	struct put p;
	enum code code;

	if (put_get(r, &p) == -1 || rget_end(r) == -1)
		job_quit();
	if ((code = upload_open(&u, j->pd, &p)) == C_OK)
		put_run(j, &u);
	else
		job_done(j, (uint16_t)code, 0);
	upload_close(&u);
	put_clear(&p);
}
