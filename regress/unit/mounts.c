/*
 * SPDX-License-Identifier: ISC
 *
 * Lines of the kernel's list of mounts, and which file systems are local.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/abx.h"
#include "pathd/mounts.h"

static const struct {
	const char *line, *point, *type; /* point NULL: no line of the list */
} lines[] = {
    {"36 35 98:0 /a /b rw,noatime master:1 - ext3 /dev/root rw,errors=x", "/b",
	"ext3"},
    {"36 35 98:0 / /b rw - nfs4 host:/x rw", "/b", "nfs4"},
    {"36 35 98:0 / / rw shared:1 master:2 propagate_from:3 - xfs d rw", "/",
	"xfs"},
    {"36 35 98:0 / /a\\040b\\011c\\012d\\134e rw - fuse.sshfs h rw",
	"/a b\tc\nd\\e", "fuse.sshfs"},
    {"36 35 98:0 / /a\\04 rw - ext4 d rw", "/a\\04", "ext4"},
    {"36 35 98:0 / /a\\777 rw - ext4 d rw", "/a\\777", "ext4"},
    {"36 35 98:0 / /a\\ rw - ext4 d rw", "/a\\", "ext4"},
    /* a mount point called like the mark */
    {"36 35 98:0 - /- rw - - - rw", "/-", "-"},
    {"36 35 98:0 / /b rw - ext4", "/b", "ext4"},
    {"36 35 98:0 / /b rw -", NULL, NULL},
    {"36 35 98:0 / /b rw", NULL, NULL},
    {"36 35 98:0 / b rw - ext4 d rw", NULL, NULL},
    {"36 35 98:0 /", NULL, NULL},
    {"", NULL, NULL},
};

static void
test_lines(void **state)
{
	const char *point, *type;
	char text[256];
	size_t i;

	for (i = 0; i < nitems(lines); i++) {
		strlcpy(text, lines[i].line, sizeof(text));
		if (mounts_line(text, &point, &type) !=
		    (lines[i].point != NULL))
			fail_msg("\"%s\"", lines[i].line);
		if (lines[i].point == NULL)
			continue;
		assert_string_equal(point, lines[i].point);
		assert_string_equal(type, lines[i].type);
	}
}

static void
test_types(void **state)
{
	static const char *const far[] = {"nfs", "nfs4", "cifs", "smb3", "9p",
	    "fuse", "fuse.sshfs", "fuseblk", "autofs", "ceph", "afs", "", "ext",
	    "ext44"};
	static const char *const local[] = {
	    "ext4", "xfs", "btrfs", "tmpfs", "overlay", "proc"};
	size_t i;

	for (i = 0; i < nitems(far); i++)
		if (mounts_is_local(far[i]))
			fail_msg("%s is not local", far[i]);
	for (i = 0; i < nitems(local); i++)
		if (!mounts_is_local(local[i]))
			fail_msg("%s is local", local[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
