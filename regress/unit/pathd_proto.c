/*
 * SPDX-License-Identifier: ISC
 *
 * The real abx-pathd, confined, and its questions and answers, a cancelled and
 * a broken upload and a malformed message among them.  Skipped when the
 * program was not built.
 */
#include "pathd_drive.h"

#include "common/frame.h"

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
	    DRIVEN(test_malformed),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
