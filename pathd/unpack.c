/*
 * SPDX-License-Identifier: ISC
 *
 * The reading side of archives: a process behind a system call filter that
 * leaves it two pipes and memory.  It decides nothing; it turns a tar stream
 * into frames of our own.
 */
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "common/bpf.h"
#include "common/codes.h"
#include "common/frame.h"
#include "common/jail.h"
#include "common/log.h"
#include "pathd/gz.h"
#include "pathd/unpack.h"

#define BLOCK GZ_BLOCK
#define PIECE (32 * 1024)
/* What unpacks to more than that many times itself is no honest archive. */
#define BOMB_RATIO 200
#define BOMB_LEAST (256ULL * 1024 * 1024)
/* Of addresses: what it was forked from, and several times what the pieces of
 * a file with holes and the heads before a member may take. */
#define SPACE ((rlim_t)128 * 1024 * 1024)

/* ---- frames ---- */

void
member_put(struct wbuf *w, const struct member *m)
{
	wput_u8(w, m->type);
	wput_u32(w, m->mode);
	wput_u64(w, m->size);
	wput_str(w, m->path);
	wput_str(w, m->link);
}

int
member_get(struct rbuf *r, struct member *m)
{
	memset(m, 0, sizeof(*m));
	m->type = rget_u8(r);
	m->mode = rget_u32(r);
	m->size = rget_u64(r);
	m->path = rget_str(r, ABX_PATH_MAX);
	m->link = rget_str(r, ABX_PATH_MAX);
	if (rget_end(r) == 0 && m->type >= ME_FILE && m->type <= ME_OTHER &&
	    m->mode <= 0777)
		return 0;
	member_clear(m);
	return -1;
}

void
unpack_end_put(struct wbuf *w, const struct unpack_end *e)
{
	wput_u16(w, e->code);
	wput_u64(w, e->bytes);
	wput_raw(w, e->digest, sizeof(e->digest));
}

int
unpack_end_get(struct rbuf *r, struct unpack_end *e)
{
	const uint8_t *p;

	e->code = rget_u16(r);
	e->bytes = rget_u64(r);
	if ((p = rget_raw(r, sizeof(e->digest))) != NULL)
		memcpy(e->digest, p, sizeof(e->digest));
	switch (e->code) {
	case C_OK:
	case C_ARGS_INVALID:
	case C_FS_NAME_TOO_LONG:
	case C_LIM_MAX_BYTES:
	case C_SRV_UNAVAILABLE:
		return rget_end(r);
	default:
		return -1;
	}
}

/* ---- in the process ---- */

struct unpacker {
	int in, out;
	uint64_t bytes, max, made;
	struct sha256_ctx *sha;
	struct gz_in *gz;
	enum code code; /* why reading stopped */
	struct wbuf w;
	uint8_t buf[BLOCK];
};

static void
write_all(int fd, const void *data, size_t n)
{
	const uint8_t *p = data;
	ssize_t k;

	while (n > 0) {
		k = write(fd, p, n);
		if (k == -1 && errno == EINTR)
			continue;
		if (k == -1)
			_exit(0); /* nobody reads */
		p += k;
		n -= (size_t)k;
	}
}

static void
send_frame(struct unpacker *u, uint8_t kind)
{
	uint8_t head[FRAME_HDR];

	if (u->w.err)
		_exit(1);
	frame_head(head, kind, (uint32_t)u->w.len);
	write_all(u->out, head, sizeof(head));
	write_all(u->out, u->w.p, u->w.len);
	wbuf_reset(&u->w);
}

/* Some of the stream: how much, 0 at its end, -1 for too much of it. */
static ssize_t
take(struct unpacker *u)
{
	struct pollfd p = {u->in, POLLIN, 0};
	ssize_t n;

	while ((n = read(u->in, u->buf, sizeof(u->buf))) == -1)
		if (errno == EAGAIN)
			(void)poll(&p, 1, -1);
		else if (errno != EINTR)
			_exit(1);
	u->bytes += (uint64_t)n;
	sha256_add(u->sha, u->buf, (size_t)n);
	if (u->bytes <= u->max)
		return n;
	u->code = C_LIM_MAX_BYTES;
	return -1;
}

/* The stream as it comes. */
static int
plain_cb(void *arg, const uint8_t **p, size_t *n)
{
	struct unpacker *u = arg;
	ssize_t k = take(u);

	*p = u->buf;
	*n = k > 0 ? (size_t)k : 0;
	return k > 0 ? 1 : (int)k;
}

/* The stream without its gzip. */
static int
gzip_cb(void *arg, const uint8_t **p, size_t *n)
{
	struct unpacker *u = arg;
	int rc = gz_in_get(u->gz, p, n);

	if (rc == -1 && errno == ENOMEM)
		u->code = C_SRV_UNAVAILABLE;
	if (rc != 1)
		return rc;
	u->made += *n;
	if (u->made <= BOMB_LEAST || u->made / BOMB_RATIO <= u->bytes)
		return 1;
	u->code = C_LIM_MAX_BYTES;
	return -1;
}

/* The content of the member at hand. */
static int
send_data(struct unpacker *u, struct tar_in *t)
{
	const uint8_t *data;
	uint64_t off;
	size_t n, k;
	int rc;

	while ((rc = tar_data(t, &off, &data, &n)) == 1)
		for (; n > 0; n -= k) {
			k = n < PIECE ? n : PIECE;
			wput_u64(&u->w, off);
			wput_raw(&u->w, data, k);
			send_frame(u, UNPACK_DATA);
			data += k;
			off += k;
		}
	return rc;
}

static enum code
read_members(struct unpacker *u, struct tar_in *t)
{
	struct member m;
	int rc, is_file;

	while ((rc = tar_next(t, &m)) == 1) {
		is_file = m.type == ME_FILE;
		member_put(&u->w, &m);
		member_clear(&m);
		send_frame(u, UNPACK_MEMBER);
		/* a list of names in a directory, or once more the content of
		 * what has another name, is for others */
		if (is_file && send_data(u, t) == -1)
			return t->code;
	}
	return rc == -1 ? t->code : C_OK;
}

static enum code
read_archive(struct unpacker *u, int gzip)
{
	tar_more_cb more = gzip ? gzip_cb : plain_cb;
	const uint8_t *p;
	struct tar_in t;
	enum code code;
	size_t n;
	int rc;

	if (gzip && (u->gz = gz_in_new(plain_cb, u)) == NULL)
		return C_SRV_UNAVAILABLE;
	tar_in_init(&t, more, u);
	code = read_members(u, &t);
	/* what lies behind the end belongs to the stream too */
	while (code == C_OK && (rc = more(u, &p, &n)) != 0)
		if (rc == -1)
			code = C_ARGS_INVALID;
	tar_in_clear(&t);
	gz_in_free(u->gz);
	return u->code != C_OK ? u->code : code;
}

static uint8_t *filter;
static size_t filter_len;

void
unpack_init(void)
{
	static const struct jail_call none[] = {{NULL, 0, 0, 0, 0}};

	jail_compile(none, 0, &filter, &filter_len);
}

/* Nothing but the two pipes, not even the log, and so much memory; but the
 * runtime of the sanitizers reserves far more, and says what it saw. */
static int
bound(void)
{
#ifdef ABX_SANITIZE
	return close_range(3, ~0U, 0);
#else
	const struct rlimit rl = {SPACE, SPACE};

	if (close_range(2, ~0U, 0) == -1)
		return -1;
	/* EPERM: there is less already */
	return setrlimit(RLIMIT_AS, &rl) == 0 || errno == EPERM ? 0 : -1;
#endif
}

static void unpack_main(int in, int out, int gzip, uint64_t max)
    __attribute__((noreturn));
static void
unpack_main(int in, int out, int gzip, uint64_t max)
{
	struct unpack_end end = {0};
	struct unpacker *u;

	log_set_sink(NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ||
	    dup3(in, 0, 0) == -1 || dup3(out, 1, 0) == -1 || bound() == -1)
		_exit(1);
	if ((u = calloc(1, sizeof(*u))) == NULL ||
	    (u->sha = sha256_new()) == NULL ||
	    bpf_load(filter, filter_len) == -1)
		_exit(1);
	u->in = 0;
	u->out = 1;
	u->max = max;
	wbuf_init(&u->w, FRAME_MAX);
	end.code = (uint16_t)read_archive(u, gzip);
	end.bytes = u->bytes;
	sha256_end(u->sha, end.digest);
	unpack_end_put(&u->w, &end);
	send_frame(u, UNPACK_END);
	_exit(0);
}

/* ---- in the worker ---- */

pid_t
unpack_start(int pipe, int gzip, uint64_t max, int *frames)
{
	pid_t pid;
	int p[2], save;

	if (pipe2(p, O_CLOEXEC) == -1)
		return -1;
	(void)fcntl(p[0], F_SETFL, O_NONBLOCK);
	(void)fcntl(p[0], F_SETPIPE_SZ, 256 * 1024);
	if ((pid = fork()) == 0)
		unpack_main(pipe, p[1], gzip, max);
	save = errno;
	close(p[1]);
	if (pid == -1)
		close(p[0]);
	errno = save;
	*frames = pid == -1 ? -1 : p[0];
	return pid;
}

enum code
unpack_reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			return C_OK;
	if (WIFEXITED(status)) /* without memory, or a pipe that fails */
		return WEXITSTATUS(status) == 0 ? C_OK : C_SRV_UNAVAILABLE;
	if (WTERMSIG(status) == SIGKILL)
		return C_OK; /* that one is ours */
	if (WTERMSIG(status) == SIGSYS)
		log_warnx("what reads archives was killed by its system call "
			  "filter");
	else
		log_warnx(
		    "what reads archives died of signal %d", WTERMSIG(status));
	return C_SRV_INTERNAL;
}
