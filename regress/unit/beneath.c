/*
 * SPDX-License-Identifier: ISC
 *
 * Opening beneath a root, by both walks: nothing is followed, nothing is left.
 */
#include <errno.h>

#include "pathd_tree.h"

#include "common/abx.h"
#include "pathd/beneath.h"

static const struct {
	const char *rel;
	int flags;
	int err; /* 0, or the errno; -1: ELOOP or ENOTDIR */
} rows[] = {
    {"", O_PATH, 0},
    {"", O_RDONLY | O_DIRECTORY, 0},
    {"a", O_RDONLY, 0},
    {"d/b", O_RDONLY, 0},
    {"d", O_PATH | O_DIRECTORY, 0},
    {"no", O_RDONLY, ENOENT},
    {"d/no/x", O_RDONLY, ENOENT},
    {"a/x", O_RDONLY, ENOTDIR},
    {"l", O_RDONLY, ELOOP},
    {"l", O_PATH, 0}, /* the link itself */
    {"l", O_PATH | O_DIRECTORY, ENOTDIR},
    {"ld/b", O_RDONLY, -1},
    {"ld", O_RDONLY, ELOOP},
    {"out/secret", O_RDONLY, -1},
    {"..", O_PATH, EINVAL},
    {"../out/secret", O_RDONLY, EINVAL},
    {"d/../a", O_RDONLY, EINVAL},
    {"d//b", O_RDONLY, EINVAL},
    {"./a", O_RDONLY, EINVAL},
    {"/etc/passwd", O_RDONLY, EINVAL},
    {"a/", O_RDONLY, EINVAL},
};

static void
check_rows(int components)
{
	struct tmp t;
	size_t i;
	int fd, root;

	tmp_new(&t);
	make_file(&t, "w/a", "A");
	make_dir(&t, "w/d");
	make_file(&t, "w/d/b", "B");
	make_link(&t, "w/l", "a");
	make_link(&t, "w/ld", "d");
	make_link(&t, "w/out", at(&t, "out"));
	roots_open(&t.pd.roots);
	root = t.pd.roots.v[0].fd;
	beneath_components(components);
	for (i = 0; i < nitems(rows); i++) {
		errno = 0;
		fd = beneath_open(root, rows[i].rel, rows[i].flags);
		if (rows[i].err == -1
			? fd != -1 || (errno != ELOOP && errno != ENOTDIR)
			: (fd == -1 ? errno : 0) != rows[i].err)
			fail_msg("%s: fd %d errno %d", rows[i].rel, fd, errno);
		if (fd != -1) {
			assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
			close(fd);
		}
	}
	beneath_components(0);
	tmp_free(&t);
}

static void
test_openat2(void **state)
{
	check_rows(0);
}

static void
test_components(void **state)
{
	check_rows(1);
}

static void
test_parent(void **state)
{
	const char *name;
	struct stat a, b;
	struct tmp t;
	int fd;

	tmp_new(&t);
	make_dir(&t, "w/d");
	roots_open(&t.pd.roots);
	fd = beneath_parent(t.pd.roots.v[0].fd, "d/new", &name);
	assert_int_not_equal(fd, -1);
	assert_string_equal(name, "new");
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(stat(at(&t, "w/d"), &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	close(fd);
	fd = beneath_parent(t.pd.roots.v[0].fd, "new", &name);
	assert_int_not_equal(fd, -1);
	assert_string_equal(name, "new");
	close(fd);
	tmp_free(&t);
}

static void
test_codes(void **state)
{
	assert_int_equal(beneath_walk_code(ELOOP), C_POL_PATH_CHANGED);
	assert_int_equal(beneath_walk_code(ENOTDIR), C_POL_PATH_CHANGED);
	assert_int_equal(beneath_walk_code(EXDEV), C_POL_PATH_CHANGED);
	assert_int_equal(beneath_act_code(ENOTDIR), C_FS_NOT_DIRECTORY);
	assert_int_equal(beneath_act_code(EDQUOT), C_FS_NO_SPACE);
	assert_int_equal(beneath_act_code(EACCES), C_FS_PERMISSION);
	assert_int_equal(beneath_act_code(EIO), C_FS_IO);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_openat2),
	    cmocka_unit_test(test_components),
	    cmocka_unit_test(test_parent),
	    cmocka_unit_test(test_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
