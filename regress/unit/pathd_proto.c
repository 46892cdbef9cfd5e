/*
 * SPDX-License-Identifier: ISC
 *
 * The real abx-pathd, confined, driven as parent and monitor would: every
 * question, a cancelled and a broken upload, a killed worker, a malformed
 * message.  Skipped when the program was not built.
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "pathd_tree.h"

#include "common/frame.h"
#include "common/imsg.h"
#include "common/msg.h"

struct drive {
	struct tmp t;
	pid_t pid;
	struct imsgbuf *parent, *mon;
	uint64_t id;
};

static const char *
program(void)
{
	const char *p = getenv("ABX_PATHD");

	return p != NULL ? p : "build/abx-pathd";
}

static void
wait_for(struct imsgbuf *im)
{
	struct pollfd p = {imsg_fd(im), POLLIN, 0};

	assert_int_equal(poll(&p, 1, 80000), 1);
}

/* The next message that is no log line. */
static struct imsg
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

static void
send_buf(struct imsgbuf *im, uint16_t type, uint64_t id, struct wbuf *w)
{
	assert_int_equal(w->err, 0);
	assert_int_equal(imsg_compose(im, type, id, -1, w->p, w->len), 0);
	assert_int_equal(imsg_flush(im), 0);
	wbuf_free(w);
}

static struct imsg
answer(struct drive *d, uint16_t type)
{
	struct imsg m = next_msg(d->mon);

	if (m.type != type)
		fail_msg("%s instead of %s", msg_name(m.type), msg_name(type));
	assert_int_equal(m.id, d->id);
	return m;
}

static struct imsg
ask(struct drive *d, uint16_t type, struct wbuf *w, uint16_t want)
{
	send_buf(d->mon, type, ++d->id, w);
	return answer(d, want);
}

static void
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

static void
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

static int
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

static int
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

static struct drive *
driven(void **state)
{
	struct drive *d = *state;

	if (d->pid == 0)
		skip();
	return d;
}

/* As the run user would own it. */
static void
own(const struct drive *d, const char *rel)
{
	if (geteuid() == 0)
		assert_int_equal(lchown(at(&d->t, rel), 65534, 65534), 0);
}

/* ---- questions ---- */

static struct facts
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

static void
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

static int
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

static void
put_end(struct drive *d, uint64_t bytes, int whole)
{
	struct wbuf w;

	wbuf_init(&w, 16);
	wput_u64(&w, bytes);
	wput_u8(&w, whole != 0);
	send_buf(d->mon, MP_PUT_END, d->id, &w);
}

static struct put_fin
put_fin(struct drive *d)
{
	struct put_fin fin;
	struct imsg m = answer(d, MP_PUT_FIN);
	struct rbuf r;

	rbuf_init(&r, m.payload, m.len);
	assert_int_equal(put_fin_get(&r, &fin), 0);
	return fin;
}

static struct done
done_of(const struct imsg *m)
{
	struct done done;
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	assert_int_equal(done_get(&r, &done), 0);
	return done;
}

static struct done
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

/* ---- tests ---- */

static void
test_roots(void **state)
{
	struct drive *d = driven(state);
	struct root_ok ok;
	struct imsg m;
	struct rbuf r;
	struct wbuf w;

	wbuf_init(&w, 16);
	m = ask(d, MP_ROOTS, &w, MP_ROOTS_OK);
	rbuf_init(&r, m.payload, m.len);
	assert_int_equal(rget_u32(&r), 2);
	assert_int_equal(root_ok_get(&r, &ok), 0);
	assert_int_equal(ok.err, 0);
	assert_string_equal(ok.path, d->t.root);
	root_ok_clear(&ok);
	assert_int_equal(root_ok_get(&r, &ok), 0);
	assert_int_equal(ok.err, ENOENT);
	root_ok_clear(&ok);
	assert_int_equal(rget_end(&r), 0);
}

static void
test_resolve(void **state)
{
	struct drive *d = driven(state);
	struct facts f;
	char buf[8];
	int fd;

	make_file(&d->t, "w/a", "AAA");
	assert_int_equal(chmod(at(&d->t, "w/a"), 0), 0);
	f = resolve(d, "w/a", RESOLVE_OPEN, &fd);
	assert_int_equal(f.status, FS_OK);
	assert_int_equal(f.err, EACCES);
	assert_int_equal(fd, -1);
	facts_clear(&f);
	assert_int_equal(chmod(at(&d->t, "w/a"), 0600), 0);
	own(d, "w/a");
	make_dir(&d->t, "w/d");
	make_link(&d->t, "w/l", "a");
	make_link(&d->t, "w/out", at(&d->t, "out"));
	f = resolve(d, "w/l", RESOLVE_OPEN, &fd);
	assert_int_equal(f.status, FS_OK);
	assert_int_equal(f.ref, 1);
	assert_int_not_equal(fd, -1);
	assert_int_equal(msg_fd_kind(fd), FDK_FILE_R);
	assert_int_equal(read(fd, buf, sizeof(buf)), 3);
	close(fd);
	facts_clear(&f);
	f = resolve(d, "w/d", RESOLVE_OPENDIR, &fd);
	assert_int_equal(msg_fd_kind(fd), FDK_DIR);
	close(fd);
	facts_clear(&f);
	f = resolve(d, "w/out/secret", RESOLVE_OPEN, &fd);
	assert_int_equal(f.status, FS_OUTSIDE);
	assert_int_equal(fd, -1);
	facts_clear(&f);
}

static void
test_put(void **state)
{
	struct drive *d = driven(state);
	char *big = malloc(3000000);
	struct put_fin fin;
	struct stat st;
	int fd, i;

	assert_non_null(big);
	memset(big, 'x', 3000000);
	for (i = 0; i < 2; i++) {
		fd = put_begin(d, "n/m/f", PF_CREATE_DIRS, UINT64_MAX);
		assert_int_equal(write(fd, big, 3000000), 3000000);
		close(fd);
		put_end(d, 3000000, 1);
		fin = put_fin(d);
		assert_int_equal(fin.code, C_OK);
		assert_int_equal(fin.bytes, 3000000);
		assert_int_equal(fin.created, i == 0);
		assert_int_equal(stat(at(&d->t, "w/n/m/f"), &st), 0);
		assert_int_equal(st.st_size, 3000000);
		assert_int_equal(st.st_mode & 07777, 0640);
		assert_int_equal(st.st_ino, fin.ino);
	}
	free(big);
	/* PUT_END overtakes the bytes, and the writer never closes */
	fd = put_begin(d, "g", 0, 5);
	put_end(d, 5, 1);
	assert_int_equal(write(fd, "12345", 5), 5);
	fin = put_fin(d);
	assert_int_equal(fin.code, C_OK);
	assert_true(write(fd, "6", 1) <= 1);
	close(fd);
	assert_string_equal(text_of(&d->t, "w/g"), "12345");
}

static void
check_fails(struct drive *d, const char *bytes, uint64_t said, int whole,
    uint64_t max, enum code code)
{
	struct put_fin fin;
	int fd;

	fd = put_begin(d, "f", 0, max);
	if (*bytes != '\0')
		assert_int_equal(
		    write(fd, bytes, strlen(bytes)), (ssize_t)strlen(bytes));
	close(fd);
	put_end(d, said, whole);
	fin = put_fin(d);
	assert_int_equal(fin.code, code);
	assert_string_equal(text_of(&d->t, "w/f"), "old");
}

static void
test_put_fails(void **state)
{
	struct drive *d = driven(state);
	struct imsg m;
	int fd;

	make_file(&d->t, "w/f", "old");
	own(d, "w/f");
	check_fails(d, "123", 4, 1, 10, C_SRV_INTERNAL);
	check_fails(d, "12345", 4, 1, 10, C_SRV_INTERNAL);
	check_fails(d, "123", 3, 0, 10, C_REQ_BAD_FRAMING);
	check_fails(d, "1234", 4, 1, 3, C_LIM_MAX_BYTES);
	/* over the limit: told at once, while the writer still writes */
	fd = put_begin(d, "f", 0, 3);
	assert_int_equal(write(fd, "1234", 4), 4);
	assert_int_equal(put_fin(d).code, C_LIM_MAX_BYTES);
	assert_int_equal(write(fd, "5", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(fd);
	put_end(d, 5, 1); /* late, and of no meaning */
	/* cancelled: nobody is told */
	fd = put_begin(d, "f", 0, 10);
	send_buf(d->mon, MP_CANCEL, d->id, &(struct wbuf){.max = 1});
	while (write(fd, "x", 1) == 1)
		usleep(1000);
	close(fd);
	/* failures before the pipe exists */
	put_flags(d, "no/f", 0, 10);
	m = answer(d, MP_DONE);
	assert_int_equal(done_of(&m).code, C_FS_NOT_FOUND);
	assert_string_equal(text_of(&d->t, "w/f"), "old");
	assert_int_equal(mutate(d, MP_UNLINK, "f", "", 0).code, C_OK);
	assert_int_equal(rmdir(d->t.root), 0); /* nothing is left in it */
	make_dir(&d->t, "w");
}

static void
test_list(void **state)
{
	static struct frame_dec dec;
	struct drive *d = driven(state);
	struct rootref ref = {0, ""};
	struct list l = {
	    .max_entries = 5000, .depth = 1, .refs = &ref, .nrefs = 1};
	const uint8_t *p, *payload;
	uint8_t buf[4096], kind = 0;
	char rel[64];
	struct imsg m;
	struct wbuf w;
	size_t len, n, count = 0;
	ssize_t k;
	int i;

	for (i = 0; i < 4000; i++) {
		snprintf(rel, sizeof(rel), "w/%050d", i);
		make_file(&d->t, rel, "");
	}
	l.target = target_of(&d->t, "");
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	list_put(&w, &l);
	target_clear(&l.target);
	m = ask(d, MP_LIST, &w, MP_LIST_ANS);
	usleep(100000); /* a slow reader */
	assert_int_equal(fcntl(m.fd, F_SETFL, 0), 0);
	while ((k = read(m.fd, buf, sizeof(buf))) > 0) {
		p = buf;
		n = (size_t)k;
		while (frame_feed(&dec, &p, &n, &kind, &payload, &len) == 1)
			count += kind == FR_ENTRY;
	}
	assert_int_equal(kind, FR_END);
	assert_int_equal(count, 4000);
	close(m.fd);
}

static void
test_mutate(void **state)
{
	struct drive *d = driven(state);
	struct done done;

	assert_int_equal(mutate(d, MP_MKDIR, "a", "", 0).code, C_OK);
	assert_int_equal(
	    mutate(d, MP_MKDIR, "a/b/c", "", PF_CREATE_DIRS).code, C_OK);
	make_file(&d->t, "w/f", "f");
	own(d, "w/f");
	assert_int_equal(
	    mutate(d, MP_RENAME, "f", "a/g", PF_NOREPLACE).code, C_OK);
	assert_int_equal(
	    mutate(d, MP_RENAME, "a/b", "z/b", PF_CREATE_DIRS).code, C_OK);
	assert_int_equal(mutate(d, MP_UNLINK, "a", "", 0).code, C_FS_NOT_EMPTY);
	make_link(&d->t, "w/a/out", at(&d->t, "out"));
	done = mutate(d, MP_UNLINK, "a", "", PF_RECURSIVE);
	assert_int_equal(done.code, C_OK);
	assert_int_equal(done.count, 3);
	assert_true(there(&d->t, "out/secret"));
	assert_true(there(&d->t, "w/z/b/c"));
}

/* The workers of pathd, from /proc. */
static size_t
workers(const struct drive *d, pid_t *first)
{
	char path[64], line[512], *p;
	const struct dirent *e;
	DIR *dir = opendir("/proc");
	size_t n = 0;
	int pid;
	FILE *f;

	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		if ((pid = (int)strtol(e->d_name, NULL, 10)) <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		if ((f = fopen(path, "r")) == NULL)
			continue;
		if (fgets(line, sizeof(line), f) != NULL &&
		    (p = strrchr(line, ')')) != NULL && p[2] != 'Z' &&
		    (pid_t)strtol(p + 4, NULL, 10) == d->pid) {
			if (n++ == 0)
				*first = pid;
		}
		fclose(f);
	}
	closedir(dir);
	return n;
}

static void
test_killed_worker(void **state)
{
	struct drive *d = driven(state);
	struct put_fin fin;
	pid_t pid = 0;
	size_t n;
	int fd;

	/* of all workers, whoever has the upload dies too */
	fd = put_begin(d, "f", 0, 10);
	while ((n = workers(d, &pid)) > 0) {
		kill(pid, SIGKILL);
		usleep(20000);
		if (n == 1)
			break;
	}
	fin = put_fin(d);
	assert_int_equal(fin.code, C_SRV_UNAVAILABLE);
	close(fd);
	fd = put_begin(d, "f", 0, 10);
	close(fd);
	put_end(d, 0, 1);
	assert_int_equal(put_fin(d).code, C_OK);
	assert_string_equal(text_of(&d->t, "w/f"), "");
}

/* A worker that makes no progress is given up after a minute. */
static void
test_hung_worker(void **state)
{
	struct drive *d = driven(state);
	pid_t pid = 0;
	int fd;

	if (getenv("ABX_SLOW") == NULL)
		skip();
	fd = put_begin(d, "f", 0, 10);
	/* the first of the two has it */
	assert_int_equal(workers(d, &pid), 2);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(put_fin(d).code, C_FS_TIMEOUT);
	close(fd);
	assert_false(there(&d->t, "w/f"));
	fd = put_begin(d, "f", 0, 10);
	close(fd);
	put_end(d, 0, 1);
	assert_int_equal(put_fin(d).code, C_OK);
}

/* No worker outlives main, whatever it is doing. */
static void
test_killed_main(void **state)
{
	struct drive *d = driven(state);
	pid_t pid = 0;
	int fd, i;

	fd = put_begin(d, "f", 0, 10);
	assert_int_equal(workers(d, &pid), 2);
	kill(d->pid, SIGKILL);
	waitpid(d->pid, NULL, 0);
	d->pid = -1;
	for (i = 0; i < 200 && write(fd, "", 0) == 0 && write(fd, "x", 1) != -1;
	     i++)
		usleep(10000);
	assert_int_equal(errno, EPIPE); /* the last reader is gone */
	close(fd);
	assert_false(there(&d->t, "w/f"));
	tmp_free(&d->t);
}

/* More uploads than workers: the rest waits its turn. */
static void
test_many(void **state)
{
	struct drive *d = driven(state);
	uint64_t first, got[64] = {0};
	int i, ready = 0;
	char rel[16];
	struct imsg m;

	first = d->id + 1;
	for (i = 0; i < 40; i++) {
		snprintf(rel, sizeof(rel), "f%d", i);
		put_flags(d, rel, 0, 100);
	}
	for (i = 0; i < 80; i++) {
		m = next_msg(d->mon);
		assert_in_range(m.id, first, first + 39);
		if (m.type == MP_PUT_FIN) {
			got[m.id - first]++;
			continue;
		}
		assert_int_equal(m.type, MP_PUT_ANS);
		ready++;
		assert_int_equal(write(m.fd, "x", 1), 1);
		close(m.fd);
		d->id = m.id;
		put_end(d, 1, 1);
	}
	assert_int_equal(ready, 40);
	for (i = 0; i < 40; i++)
		assert_int_equal(got[i], 1);
	d->id = first + 40;
}

/* Somebody inside swaps a file for a link to outside as fast as it can. */
static void
test_swapped(void **state)
{
	struct drive *d = driven(state);
	char a[4200], b[4200], buf[16];
	unsigned i, read_it = 0, refused = 0;
	struct facts f;
	pid_t pid;
	int fd;

	make_file(&d->t, "w/f", "inside");
	own(d, "w/f");
	make_link(&d->t, "w/l", at(&d->t, "out/secret"));
	assert_int_equal(chmod(at(&d->t, "out/secret"), 0644), 0);
	strlcpy(a, at(&d->t, "w/f"), sizeof(a));
	strlcpy(b, at(&d->t, "w/l"), sizeof(b));
	if ((pid = fork()) == 0)
		for (;;)
			if (renameat2(AT_FDCWD, a, AT_FDCWD, b,
				RENAME_EXCHANGE) == -1)
				_exit(1);
	for (i = 0; i < 20000; i++) {
		f = resolve(d, "w/f", RESOLVE_OPEN, &fd);
		if (fd != -1) {
			assert_int_equal(read(fd, buf, sizeof(buf)), 6);
			assert_memory_equal(buf, "inside", 6);
			read_it++;
			close(fd);
		} else {
			assert_true(f.status == FS_OUTSIDE || f.err != 0);
			refused++;
		}
		facts_clear(&f);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(read_it > 100 && refused > 100);
}

static void
test_malformed(void **state)
{
	struct drive *d = driven(state);
	int status;
	struct wbuf w;

	wbuf_init(&w, 64);
	wput_u64(&w, 0xffffffffffffffff);
	send_buf(d->mon, MP_LIST, ++d->id, &w);
	assert_int_equal(waitpid(d->pid, &status, 0), d->pid);
	d->pid = -1;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	tmp_free(&d->t);
}

#define DRIVEN(f) cmocka_unit_test_setup_teardown(f, drive_new, drive_free)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    DRIVEN(test_roots),
	    DRIVEN(test_resolve),
	    DRIVEN(test_put),
	    DRIVEN(test_put_fails),
	    DRIVEN(test_list),
	    DRIVEN(test_mutate),
	    DRIVEN(test_killed_worker),
	    DRIVEN(test_hung_worker),
	    DRIVEN(test_killed_main),
	    DRIVEN(test_many),
	    DRIVEN(test_swapped),
	    DRIVEN(test_malformed),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
