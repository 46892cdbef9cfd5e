/*
 * SPDX-License-Identifier: ISC
 *
 * Anything that a command may do to a small tree, "in" of the working
 * directory with "out" beside it, for the tests of what remembers directories.
 */
#ifndef ANYTHING_H
#define ANYTHING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"

#define SETTLE_NS 25000000 /* more than a tick; a second would take hours */
#define NOBODY 65534

static void
settle(void)
{
	usleep(2 * SETTLE_NS / 1000);
}

/* Root needs no rights: be somebody who does, or root again. */
static void
be(uid_t uid)
{
	if (getuid() != 0)
		return;
	assert_int_equal(seteuid(uid), 0);
	/* for the leak check at the end */
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
}

static void
run(const char *script)
{
	char *line;
	pid_t pid;
	int st;

	assert_true((pid = fork()) != -1);
	if (pid == 0) {
		if (setresuid(geteuid(), geteuid(), geteuid()) == -1 ||
		    asprintf(&line, "set -e; %s", script) == -1)
			_exit(126);
		execl("/bin/sh", "sh", "-c", line, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &st, 0), pid);
	if (st != 0)
		fail_msg("%s: %d", script, st);
}

static uint32_t seed = 1;

static uint32_t
rnd(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed % n;
}

/* A path of up to four of these names, so that it is often there, and
 * sometimes with last behind it. */
static void
somewhere(
    char path[128], const char *const part[], uint32_t n, const char *last)
{
	uint32_t k = rnd(4) + 1;

	strlcpy(path, rnd(6) == 0 ? "out" : "in", 128);
	while (k-- > 0) {
		strlcat(path, "/", 128);
		strlcat(path, part[rnd(n)], 128);
	}
	if (rnd(4) == 0) {
		strlcat(path, "/", 128);
		strlcat(path, last, 128);
	}
}

/* Anything that a command may do; most of it fails, as it would there. */
static void
anything(const char *const part[], uint32_t n, const char *last)
{
	const struct timespec old[2] = {{rnd(9), 5}, {rnd(9), 7}};
	char a[128], b[128];
	int fd = -1;

	somewhere(a, part, n, last);
	somewhere(b, part, n, last);
	switch (rnd(14)) {
	case 0:
		(void)rmdir(a);
		break;
	case 1:
		fd = open(a, O_CREAT | O_WRONLY | O_NOFOLLOW, 0600);
		break;
	case 2:
		(void)unlink(a);
		break;
	case 3:
		if (symlink(rnd(2) ? "a" : ".", a) == -1)
			return;
		break;
	case 4:
	case 5:
		(void)rename(a, b);
		break;
	case 6:
		(void)renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
		break;
	case 7:
		(void)chmod(a, (mode_t)(rnd(8) << 6));
		break;
	case 8:
		(void)chmod(a, 0700);
		break;
	default:
		(void)mkdir(a, 0700);
	}
	(void)utimensat(AT_FDCWD, rnd(2) ? a : b, old, AT_SYMLINK_NOFOLLOW);
	if (fd != -1)
		close(fd);
}

/* So many random steps, and what is seen behind each. */
static void
any_steps(uint32_t n, void (*step)(void), void (*see)(void))
{
	uint32_t i, k;

	for (i = 0; i < n; i++) {
		for (k = rnd(3); k > 0; k--)
			step();
		if (rnd(20) == 0)
			settle();
		if (rnd(100) == 0)
			run("chmod -R u+rwx in out");
		see();
	}
}

/* The same while others look: what was done before the last look began is seen
 * by it, whatever those saw that met it. */
static void
any_race(void (*fresh)(void), void (*step)(void), void (*meet)(void),
    void (*same)(void))
{
	pid_t pid;
	int i, k, st;

	fresh();
	for (i = 0; i < 12; i++) {
		assert_true((pid = fork()) != -1);
		if (pid == 0) {
			for (seed += (uint32_t)i, k = 0; k < 2000; k++) {
				step();
				if (k % 512 == 0 && rnd(2))
					settle();
			}
			_exit(0);
		}
		do {
			meet();
			assert_true((k = waitpid(pid, &st, WNOHANG)) != -1);
		} while (k == 0);
		assert_int_equal(st, 0);
		same();
		run("chmod -R u+rwx in out; for d in a b c; do "
		    "mkdir -p in/$d/d/x 2>&- || true; done");
	}
}

/* Other file systems and directories appear where some were. */
static void
any_mounts(void (*fresh)(void), void (*same)(void))
{
	static const char *const mounts[] = {"mount --bind in/other in/a",
	    "mkdir in/a/new; umount in/a",
	    "mount -t tmpfs none in/a; mkdir -p in/a/b/.git in/a/k; touch "
	    "in/a/b/.env",
	    "mkdir in/a/k/.git in/a/k/.env", "umount in/a",
	    "mount --bind in/a/b in/other/x", "umount in/other/x",
	    "mount --bind in in/other/x", "umount in/other/x"};
	size_t i, k;

	if (getuid() != 0)
		skip();
	be(0);
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(
	    mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL), 0);
	be(NOBODY);
	fresh();
	run("mkdir -p in/a/b/c in/other/x/.git in/other/y; touch "
	    "in/other/.env");
	settle();
	same();
	for (i = 0; i < nitems(mounts); i++) {
		be(0);
		run(mounts[i]);
		be(NOBODY);
		for (k = 0; k < 2; k++)
			same();
		settle();
		for (k = 0; k < 2; k++)
			same();
	}
	be(0);
	run("chown -R 65534 in");
	be(NOBODY);
}

/* A working directory of our own, as nobody.  0 or -1. */
static int
any_begin(char *base)
{
	assert_non_null(mkdtemp(base));
	if (geteuid() == 0 && chown(base, NOBODY, NOBODY) == -1)
		return -1;
	if (chdir(base) == -1)
		return -1;
	be(NOBODY);
	return 0;
}

static int
any_end(const char *base)
{
	run("chmod -R u+rwx .; rm -rf in out");
	be(0);
	return chdir("/") == -1 || rmdir(base) == -1 ? -1 : 0;
}

#endif
