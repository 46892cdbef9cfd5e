/*
 * SPDX-License-Identifier: ISC
 *
 * The real abx-pathd, confined, with the test as its parent and its monitor:
 * its start and end, and the questions of the monitor.
 */
#ifndef PATHD_DRIVE_H
#define PATHD_DRIVE_H

#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "pathd_tree.h"

#include "common/imsg.h"
#include "common/msg.h"

/* One run of the program; all is 0 when it was not built. */
struct drive {
	struct tmp t;
	pid_t pid;
	struct imsgbuf *parent, *mon;
	uint64_t id;
};

static inline const char *
program(void)
{
	const char *p = getenv("ABX_PATHD");

	return p != NULL ? p : "build/abx-pathd";
}

static inline void
wait_for(struct imsgbuf *im)
{
	struct pollfd p = {imsg_fd(im), POLLIN, 0};

	assert_int_equal(poll(&p, 1, 80000), 1);
}

/* The next message that is no log line. */
static inline struct imsg
next_msg(struct imsgbuf *im)
{
	const char *why;
	struct imsg m;

	for (;;) {
		while (imsg_get(im, &m)) {
			if (m.type == PC_LOG) {
				if (getenv("ABX_VERBOSE") != NULL)
					print_message("%.*s\n", (int)m.len - 1,
					    (const char *)m.payload + 1);
				continue;
			}
			if (m.type == PC_FATAL)
				fail_msg("%.*s", (int)m.len, m.payload);
			assert_int_equal(msg_check(&m, &why), 0);
			return m;
		}
		wait_for(im);
		assert_int_equal(imsg_read(im), 1);
	}
}

static inline void
send_buf(struct imsgbuf *im, uint16_t type, uint64_t id, struct wbuf *w)
{
	assert_int_equal(w->err, 0);
	assert_int_equal(imsg_compose(im, type, id, -1, w->p, w->len), 0);
	assert_int_equal(imsg_flush(im), 0);
	wbuf_free(w);
}

static inline struct imsg
answer(struct drive *d, uint16_t type)
{
	struct imsg m = next_msg(d->mon);

	if (m.type != type)
		fail_msg("%s instead of %s", msg_name(m.type), msg_name(type));
	assert_int_equal(m.id, d->id);
	return m;
}

static inline struct imsg
ask(struct drive *d, uint16_t type, struct wbuf *w, uint16_t want)
{
	send_buf(d->mon, type, ++d->id, w);
	return answer(d, want);
}

static inline void
send_conf(struct drive *d)
{
	struct proc_conf pc = {.generation = 1, .ppid = getpid()};
	struct boot_path bp = {.id = 0, .path = d->t.root, .rw = 1};
	struct boot_path gone = {.id = 1, .path = at(&d->t, "gone")};
	struct wbuf w;

	pc.root = geteuid() == 0;
	pc.uid = pc.root ? 65534 : getuid();
	pc.gid = pc.root ? 65534 : getgid();
	if (pc.root)
		assert_int_equal(chown(d->t.root, pc.uid, pc.gid), 0);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	proc_conf_put(&w, &pc);
	wput_u32(&w, 2);
	boot_path_put(&w, &bp);
	boot_path_put(&w, &gone);
	wput_u32(&w, 027);
	send_buf(d->parent, PC_CONF, 0, &w);
}

static inline void
drive_start(struct drive *d)
{
	uint8_t journal[5] = {PFD_JOURNAL, 0, 0, 0, 0};
	struct imsg m;
	int sv[2], mon[2], fd;

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, mon), 0);
	if ((d->pid = fork()) == 0) {
		if (dup2(sv[1], 10) == -1 || dup2(10, 3) == -1)
			_exit(1);
		closefrom(4);
		execl(program(), "abx-pathd", (char *)NULL);
		_exit(1);
	}
	close(sv[1]);
	assert_non_null(d->parent = imsg_new(sv[0]));
	assert_non_null(d->mon = imsg_new(mon[0]));
	fd = open(at(&d->t, "journal"), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC,
	    0600);
	assert_int_equal(imsg_compose(d->parent, PC_FD, 0, fd, journal, 5), 0);
	send_conf(d);
	m = next_msg(d->parent);
	assert_int_equal(m.type, PC_READY);
	if (getenv("ABX_VERBOSE") != NULL)
		print_message("%.*s\n", (int)m.len, m.payload);
	assert_int_equal(
	    imsg_compose(d->parent, PC_START, 0, mon[1], NULL, 0), 0);
	assert_int_equal(imsg_flush(d->parent), 0);
}

static inline int
drive_new(void **state)
{
	struct drive *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	*state = d;
	if (access(program(), X_OK) == -1)
		return 0;
	tmp_new(&d->t);
	drive_start(d);
	return 0;
}

static inline int
drive_free(void **state)
{
	struct drive *d = *state;
	int status;

	if (d->pid > 0) {
		kill(d->pid, SIGKILL);
		waitpid(d->pid, &status, 0);
	}
	imsg_free(d->parent);
	imsg_free(d->mon);
	if (d->pid > 0)
		tmp_free(&d->t);
	free(d);
	return 0;
}

static inline struct drive *
driven(void **state)
{
	struct drive *d = *state;

	if (d->pid == 0)
		skip();
	return d;
}

/* As the run user would own it. */
static inline void
own(const struct drive *d, const char *rel)
{
	if (geteuid() == 0)
		assert_int_equal(lchown(at(&d->t, rel), 65534, 65534), 0);
}

/* ---- questions ---- */

/* Each has the next number, d->id. */

static inline struct facts
resolve(struct drive *d, const char *rel, uint8_t flags, int *fd)
{
	struct rootref refs[2] = {{1, ""}, {0, ""}};
	struct resolve_item it = {.refs = refs, .nrefs = 2};
	struct resolve rs = {.flags = flags, .v = &it, .n = 1};
	struct facts f;
	struct imsg m;
	struct rbuf r;
	struct wbuf w;

	it.path = at(&d->t, rel);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	resolve_put(&w, &rs);
	m = ask(d, MP_RESOLVE, &w, MP_FACTS);
	rbuf_init(&r, m.payload, m.len);
	assert_int_equal(rget_u32(&r), 1);
	assert_int_equal(facts_get(&r, &f), 0);
	assert_int_equal(rget_end(&r), 0);
	*fd = m.fd;
	return f;
}

static inline void
put_flags(struct drive *d, const char *rel, uint16_t flags, uint64_t max)
{
	struct put p = {.flags = flags, .max_bytes = max, .mode = UINT32_MAX};
	struct wbuf w;

	p.target = target_of(&d->t, rel);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	put_put(&w, &p);
	put_clear(&p);
	send_buf(d->mon, MP_PUT, ++d->id, &w);
}

static inline int
put_begin(struct drive *d, const char *rel, uint16_t flags, uint64_t max)
{
	struct imsg m;

	put_flags(d, rel, flags, max);
	m = answer(d, MP_PUT_ANS);
	assert_int_not_equal(m.fd, -1);
	assert_int_equal(
	    fcntl(m.fd, F_SETFL, fcntl(m.fd, F_GETFL) & ~O_NONBLOCK), 0);
	return m.fd;
}

static inline void
put_end(struct drive *d, uint64_t bytes, int whole)
{
	struct wbuf w;

	wbuf_init(&w, 16);
	wput_u64(&w, bytes);
	wput_u8(&w, whole != 0);
	send_buf(d->mon, MP_PUT_END, d->id, &w);
}

static inline struct put_fin
put_fin(struct drive *d)
{
	struct put_fin fin;
	struct imsg m = answer(d, MP_PUT_FIN);
	struct rbuf r;

	rbuf_init(&r, m.payload, m.len);
	assert_int_equal(put_fin_get(&r, &fin), 0);
	return fin;
}

static inline struct done
done_of(const struct imsg *m)
{
	struct done done;
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	assert_int_equal(done_get(&r, &done), 0);
	return done;
}

static inline struct done
mutate(struct drive *d, uint16_t type, const char *src, const char *dst,
    uint16_t flags)
{
	struct mutate mu = {.flags = flags, .mode = UINT32_MAX};
	struct imsg m;
	struct wbuf w;

	mu.src = target_of(&d->t, src);
	mu.dst = target_of(&d->t, dst);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	mutate_put(&w, &mu);
	mutate_clear(&mu);
	m = ask(d, type, &w, MP_DONE);
	return done_of(&m);
}

#define DRIVEN(f) cmocka_unit_test_setup_teardown(f, drive_new, drive_free)

#endif
