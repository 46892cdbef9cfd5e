/*
 * SPDX-License-Identifier: ISC
 *
 * The real abx-pathd, confined, and the workers that it starts: killed ones,
 * one that hangs, many at once, and its own death.  Skipped when the program
 * was not built.
 */
#include <dirent.h>

#include "pathd_drive.h"

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

/* ---- imports ---- */

#define PIDS 16

/* The children of a process, by number. */
static size_t
children(pid_t top, pid_t *v)
{
	char path[64], line[512], *p;
	const struct dirent *e;
	DIR *dir = opendir("/proc");
	size_t n = 0;
	FILE *f;

	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%.20s/stat", e->d_name);
		if ((f = fopen(path, "r")) == NULL)
			continue;
		if (fgets(line, sizeof(line), f) != NULL &&
		    (p = strrchr(line, ')')) != NULL && p[2] != 'Z' &&
		    (pid_t)strtol(p + 4, NULL, 10) == top && n < PIDS)
			v[n++] = (pid_t)strtol(e->d_name, NULL, 10);
		fclose(f);
	}
	closedir(dir);
	return n;
}

static int
import_begin(struct drive *d, const char *rel)
{
	struct rootref ref = {0};
	struct bulk b = {.has_dst = 1,
	    .max_bytes = UINT64_MAX,
	    .max_entries = UINT64_MAX,
	    .refs = &ref,
	    .nrefs = 1};
	struct wbuf w;

	b.dst = target_of(&d->t, rel);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	bulk_put(&w, &b);
	target_clear(&b.dst);
	return ask(d, MP_IMPORT, &w, MP_PUT_ANS).fd;
}

/* The worker that has one: it has the reader, too, or will. */
static pid_t
importing(const struct drive *d)
{
	pid_t v[PIDS], below[PIDS];
	size_t i, n;
	int tries;

	for (tries = 0; tries < 1000; tries++) {
		n = children(d->pid, v);
		for (i = 0; i < n; i++)
			if (children(v[i], below) > 0)
				return v[i];
		usleep(10000);
	}
	fail_msg("nobody reads it");
	return 0;
}

static size_t
names(const char *dir)
{
	const struct dirent *e;
	DIR *p = opendir(dir);
	size_t n = 0;

	assert_non_null(p);
	while ((e = readdir(p)) != NULL)
		n++;
	closedir(p);
	return n - 2;
}

/* What a lost worker left goes as soon as nobody is at work any more. */
static void
test_sweep_that_was_held_off(void **state)
{
	static const uint8_t end[1024];
	struct drive *d = driven(state);
	int i, one, two;
	pid_t lost;

	make_dir(&d->t, "w/d");
	own(d, "w/d");
	make_dir(&d->t, "w/e");
	own(d, "w/e");
	one = import_begin(d, "d");
	lost = importing(d);
	two = import_begin(d, "e");
	assert_int_equal(kill(lost, SIGKILL), 0);
	d->id--;
	assert_int_equal(put_fin(d).code, C_SRV_UNAVAILABLE);
	d->id++;
	close(one);
	usleep(300000);
	assert_int_equal(names(at(&d->t, "w/d")), 1);
	assert_int_equal(write(two, end, sizeof(end)), sizeof(end));
	close(two);
	put_end(d, sizeof(end), 1);
	assert_int_equal(put_fin(d).code, C_OK);
	for (i = 0; i < 300 && names(at(&d->t, "w/d")) > 0; i++)
		usleep(100000);
	assert_int_equal(names(at(&d->t, "w/d")), 0);
}

static void
put_over(struct drive *d, uint64_t id, int fd)
{
	close(fd);
	d->id = id;
	put_end(d, 0, 1);
	assert_int_equal(put_fin(d).code, C_OK);
}

/* What reads an archive does not have the memory of anything before. */
static void
test_import_is_the_first(void **state)
{
	static const uint8_t end[1024];
	struct drive *d = driven(state);
	int round, one, two, fd;
	pid_t used[PIDS], now;
	size_t i, n;
	uint64_t last;

	make_dir(&d->t, "w/d");
	own(d, "w/d");
	for (round = 0; round < 5; round++) {
		/* each worker has something to remember */
		one = put_begin(d, "f", 0, 10);
		two = put_begin(d, "g", 0, 10);
		/* one may not have said yet that it is free; but they do not
		 * become more and more */
		n = children(d->pid, used);
		assert_in_range(n, 2, 4);
		last = d->id;
		put_over(d, last - 1, one);
		put_over(d, last, two);
		fd = import_begin(d, "d");
		now = importing(d);
		for (i = 0; i < n; i++)
			assert_int_not_equal(now, used[i]);
		assert_int_equal(write(fd, end, sizeof(end)), sizeof(end));
		close(fd);
		put_end(d, sizeof(end), 1);
		assert_int_equal(put_fin(d).code, C_OK);
		assert_int_equal(unlink(at(&d->t, "w/f")), 0);
		assert_int_equal(unlink(at(&d->t, "w/g")), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    DRIVEN(test_killed_worker),
	    DRIVEN(test_hung_worker),
	    DRIVEN(test_killed_main),
	    DRIVEN(test_many),
	    DRIVEN(test_swapped),
	    DRIVEN(test_import_is_the_first),
	    DRIVEN(test_sweep_that_was_held_off),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
