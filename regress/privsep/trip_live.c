/*
 * SPDX-License-Identifier: ISC
 *
 * The confinement of a running service, read from /proc and tried out.  What
 * each process is to have is written here by hand, down to its descriptors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/jail.h"
#include "regress/privsep/stage.h"
#include "regress/privsep/trip.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct stage st;

static void
start(const char *user)
{
	stage_new(&st, trip_build, user);
	stage_put(&st, "w/a", "hello");
	stage_put(&st, "r/secret", MARKER);
	stage_conf(&st,
	    "\"rules\":[{\"allow\":[\"files.list\",\"files.download\"],"
	    "\"principals\":\"id:alice\",\"paths\":{\"roots\":[\"@/w\"]}},"
	    "{\"allow\":[\"files.download\"],"
	    "\"principals\":\"id:bob\",\"paths\":{\"roots\":[\"@/r\"]}},"
	    "{\"allow\":[\"commands.run\"],\"commands\":"
	    "{\"allow\":[\"true\"],\"cwd\":{\"roots\":[\"@/w\"]}}}]");
	stage_start(&st, 1);
	/* every process has done its work once */
	assert_int_equal(http_call(&st, TOKEN_A, "GET",
			     "/files/download-stream?path=a", NULL, NULL),
	    200);
	assert_int_equal(
	    http_call(&st, TOKEN_A, "GET", "/files/list?path=.", NULL, NULL),
	    200);
	assert_int_equal(http_call(&st, TOKEN_A, "POST", "/commands/run",
			     "{\"argv\":[\"true\"]}", NULL),
	    200);
}

int
live_start(void **state)
{
	start(NULL);
	return 0;
}

/* The same by an ordinary user, looked at by root. */
int
live_start_user(void **state)
{
	start(trip_user);
	return 0;
}

int
live_end(void **state)
{
	stage_free(&st);
	return 0;
}

/* ---- who they are ---- */

static const char *const kids[] = {
    "abx-listener", "abx-monitor", "abx-pathd", "abx-execd"};

static pid_t
kid(const char *name)
{
	pid_t pid = stage_kid(&st, name);

	if (pid == -1)
		fail_msg("there is no %s", name);
	return pid;
}

/* A worker of pathd. */
static pid_t
worker(void)
{
	char path[64];
	int pid = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children",
	    kid("abx-pathd"), kid("abx-pathd"));
	if ((f = fopen(path, "re")) != NULL) {
		if (fscanf(f, "%d", &pid) != 1)
			pid = -1;
		fclose(f);
	}
	if (pid == -1)
		fail_msg("pathd has no worker");
	return pid;
}

static void
check_field(pid_t pid, const char *field, const char *want)
{
	const char *got = proc_field(pid, field);

	if (strcmp(got, want) != 0)
		fail_msg("%s[%d]: %s is \"%s\", expected \"%s\"",
		    proc_field(pid, "Name"), pid, field, got, want);
}

static void
check_ids(pid_t pid, uid_t uid, gid_t gid)
{
	static const char *const none[] = {
	    "CapInh", "CapPrm", "CapEff", "CapAmb"};
	char want[128];
	struct stat sb;
	char path[64];
	size_t i;

	snprintf(want, sizeof(want), "%u\t%u\t%u\t%u", uid, uid, uid, uid);
	check_field(pid, "Uid", want);
	snprintf(want, sizeof(want), "%u\t%u\t%u\t%u", gid, gid, gid, gid);
	check_field(pid, "Gid", want);
	if (st.root) {
		check_field(pid, "Groups", "");
		check_field(pid, "CapBnd", "0000000000000000");
	}
	for (i = 0; i < COUNT(none); i++)
		check_field(pid, none[i], "0000000000000000");
	check_field(pid, "NoNewPrivs", "1");
	check_field(pid, "Seccomp", "2");
	/* what lies there belongs to root when it is not dumpable */
	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	assert_int_equal(stat(path, &sb), 0);
	assert_int_equal(sb.st_uid, 0);
}

void
live_ids(void **state)
{
	static const char *const users[] = {"_abxl", "_abxm", "abx", "abx"};
	uid_t uid = st.uid;
	gid_t gid = st.gid;
	struct passwd *pw;
	size_t i;

	for (i = 0; i < COUNT(kids); i++) {
		if (st.root) {
			assert_non_null(pw = getpwnam(users[i]));
			uid = pw->pw_uid;
			gid = pw->pw_gid;
		}
		check_ids(kid(kids[i]), uid, gid);
	}
	check_ids(worker(), uid, gid);
	/* the parent of a root start keeps what it needs, and no more */
	if (st.root)
		check_field(st.abxd, "CapEff", proc_field(st.abxd, "CapBnd"));
}

/* ---- namespaces ---- */

static void
ns_of(pid_t pid, const char *kind, char *out, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kind);
	n = readlink(path, out, size - 1);
	if (n == -1)
		fail_msg("%s: %s", path, strerror(errno));
	out[n] = '\0';
}

/* own: the kinds, blank-separated, that differ from abxd's. */
static void
check_ns(const char *name, pid_t pid, const char *own)
{
	static const char *const all[] = {
	    "mnt", "pid", "ipc", "user", "net", "uts", "cgroup"};
	char mine[64], its[64];
	int differs;
	size_t i;

	for (i = 0; i < COUNT(all); i++) {
		ns_of(st.abxd, all[i], mine, sizeof(mine));
		ns_of(pid, all[i], its, sizeof(its));
		differs = strcmp(mine, its) != 0;
		if (differs != (strstr(own, all[i]) != NULL))
			fail_msg("%s: %s is %s than that of abxd", name, all[i],
			    differs ? "another" : "not another");
	}
}

void
live_namespaces(void **state)
{
	char path[64], root[64] = "";
	DIR *d;
	size_t n = 0;

	if (geteuid() != 0)
		skip(); /* nothing of them is shown to us */
	check_ns(
	    "abx-listener", kid("abx-listener"), st.root ? "mnt" : "mnt user");
	check_ns("abx-monitor", kid("abx-monitor"), "");
	check_ns("abx-pathd", kid("abx-pathd"), "");
	check_ns("a worker", worker(), "");
	check_ns("abx-execd", kid("abx-execd"),
	    st.root ? "mnt pid ipc" : "mnt pid ipc user");
	/* the listener's root is empty, and cannot be filled */
	snprintf(path, sizeof(path), "/proc/%d/root/", kid("abx-listener"));
	assert_non_null(d = opendir(path));
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	assert_int_equal(n, 2);
	snprintf(root, sizeof(root), "/proc/%d/root/x", kid("abx-listener"));
	assert_int_equal(mkdir(root, 0755), -1);
	assert_int_equal(errno, EROFS);
}

/* ---- descriptors ---- */

/* What they lead to, sorted, one a line; numbers of sockets and processes do
 * not matter. */
static int
by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void
table_of(pid_t pid, char *out, size_t size)
{
	static char line[128][256];
	char path[64], to[256], *p;
	const struct dirent *e;
	size_t n = 0, i;
	ssize_t len;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	if ((d = opendir(path)) == NULL)
		fail_msg("%s: %s", path, strerror(errno));
	while ((e = readdir(d)) != NULL && n < COUNT(line)) {
		len = readlinkat(dirfd(d), e->d_name, to, sizeof(to) - 1);
		if (len == -1)
			continue;
		to[len] = '\0';
		if ((p = strstr(to, ":[")) != NULL && to[0] != 'a')
			*p = '\0';
		if (strncmp(to, "/proc/", 6) == 0) {
			p = to + 6 + strspn(to + 6, "0123456789");
			memmove(to + 6, p, strlen(p) + 1);
		}
		p = strncmp(to, st.dir, strlen(st.dir)) == 0
			? to + strlen(st.dir) + 1
			: to;
		snprintf(line[n++], sizeof(line[0]), "%s", p);
	}
	closedir(d);
	qsort(line, n, sizeof(line[0]), by_text);
	out[0] = '\0';
	for (i = 0; i < n; i++) {
		strlcat(out, line[i], size);
		strlcat(out, "\n", size);
	}
}

static void
check_table(const char *name, pid_t pid, const char *want)
{
	double end = now() + 15;
	char got[4096];

	do { /* the last command may not be swept up yet */
		table_of(pid, got, sizeof(got));
		if (strcmp(got, want) == 0)
			return;
		nap_ms(20);
	} while (now() < end);
	if (strcmp(got, want) != 0)
		fail_msg(
		    "descriptors of %s:\n%sexpected:\n%s", name, got, want);
}

#define STDIO "/dev/null\n"
#define LOOP "anon_inode:[eventpoll]\n"
#define LOG "log/abxd\nlog/abxd\n"
/* libevent's own, for signals and wake-ups */
#define WAKE "pipe\npipe\n"

void
live_descriptors(void **state)
{
	if (geteuid() != 0)
		skip();
	/* parent, monitor, the listening socket */
	check_table("abx-listener", kid("abx-listener"),
	    STDIO LOOP LOG WAKE "socket\nsocket\nsocket\n");
	/* parent, listener, pathd, execd, abxctl's door */
	check_table("abx-monitor", kid("abx-monitor"),
	    STDIO LOOP LOG "log/audit\n" WAKE
			   "socket\nsocket\nsocket\nsocket\nsocket\n"
			   "state/sessions\n");
	/* the list of mounts, two roots and that of the workspaces; parent,
	 * monitor, two workers */
	check_table("abx-pathd", kid("abx-pathd"),
	    STDIO "/proc//mountinfo\n" LOG WAKE
		  "r\nsocket\nsocket\nsocket\nsocket\n"
		  "state/pathd.journal\nw\nwork\n");
	check_table("a worker", worker(),
	    STDIO LOG "r\nsocket\nstate/pathd.journal\nw\nwork\n");
	/* parent, monitor; what bubblewrap is given; whether the clock was set,
	 * since the first command */
	check_table("abx-execd", kid("abx-execd"),
	    STDIO STDIO "/run/abx-empty\n/run/abx-empty.file\n"
			"/run/abx-launch\nanon_inode:[timerfd]\n" LOG WAKE
			"socket\nsocket\nstate/execd.journal\n");
}

/* ---- trying ---- */

/* Nobody of the same user can look into them. */
void
live_untraceable(void **state)
{
	pid_t pid, target = kid("abx-pathd");
	char path[64];
	int status, fd;

	if ((pid = fork()) == 0) {
		if (geteuid() == 0 &&
		    (setgroups(0, NULL) == -1 ||
			setresgid(st.gid, st.gid, st.gid) == -1 ||
			setresuid(st.uid, st.uid, st.uid) == -1))
			_exit(2);
		snprintf(path, sizeof(path), "/proc/%d/mem", target);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		_exit(ptrace(PTRACE_ATTACH, target, NULL, NULL) == -1 &&
			      errno == EPERM && fd == -1
			  ? 0
			  : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int
forced(pid_t pid, long nr, const char *path, int where, long *rc)
{
	long args[6] = {0, 0, 0, 0, 0, 0};
	int n;

	if (where == 1)
		args[0] = AT_FDCWD;
	n = force_call(pid, nr, args, path, where, rc);
	if (n == -1)
		fail_msg("process %d cannot be made to call %ld", pid, nr);
	return n;
}

/* The filter of the living process, by each of the calls that matter most. */
static void
check_killed(const char *name, long nr, const char *path, int where)
{
	pid_t pid = kid(name);
	char ready[64];
	long rc = 0;
	int n;

	stage_mark(&st);
	n = forced(pid, nr, path, where, &rc);
	if (n != -2)
		fail_msg("%s survives call %ld with %ld (%d)", name, nr, rc, n);
	assert_int_equal(stage_wait_log(&st,
			     "was killed by its system call filter", 1, 20000),
	    1);
	assert_int_not_equal(pid = stage_new_kid(&st, name, pid), -1);
	/* confined again, and not on its way there */
	snprintf(ready, sizeof(ready), "%s[%d]: uid", name, pid);
	assert_int_equal(stage_wait_log(&st, ready, 1, 20000), 1);
}

void
live_refused(void **state)
{
	double end = now() + 10;
	int status = 0;
	long rc;

#ifndef __x86_64__
	skip();
#endif
	if (geteuid() != 0)
		skip(); /* nobody can trace them: live_untraceable */
	check_killed("abx-listener", SYS_openat, "/", 1);
	check_killed("abx-listener", SYS_socket, NULL, 0);
	check_killed("abx-listener", SYS_execve, "/usr/bin/true", 0);
	check_killed("abx-pathd", SYS_execve, "/usr/bin/true", 0);
	check_killed("abx-pathd", SYS_socket, NULL, 0);
	while (http_call(&st, TOKEN_A, "GET", "/files/download-stream?path=a",
		   NULL, NULL) != 200 &&
	       now() < end)
		nap_ms(20);
	assert_true(now() < end);
	/* without the monitor nothing can be decided: the service ends */
	assert_int_equal(
	    forced(kid("abx-monitor"), SYS_openat, "/", 1, &rc), -2);
	assert_int_equal(stage_ended(&st, 5000, &status), 1);
	assert_int_equal(WEXITSTATUS(status), 1);
	stage_start(&st, 1);
}

static void
check_open(const char *name, pid_t pid, const char *path, long want)
{
	long rc = 0, none;
	long args[6] = {0, 0, 0, 0, 0, 0};

	if (forced(pid, SYS_openat, path, 1, &rc) != 0)
		fail_msg("%s died of openat", name);
	if (rc >= 0) {
		args[0] = rc;
		assert_int_equal(
		    force_call(pid, SYS_close, args, NULL, 0, &none), 0);
		rc = 0;
	}
	if (rc != want)
		fail_msg("%s opening %s: %s, expected %s", name, path,
		    strerror((int)-rc), strerror((int)-want));
}

/* Processes of the same user are out of reach too. */
static void
check_kill(pid_t pid, pid_t victim)
{
	long args[6] = {victim, SIGKILL, 0, 0, 0, 0}, rc = 0;

	if (jail_landlock_abi() < 6)
		return; /* known limit: an older kernel has no such scope */
	assert_int_equal(force_call(pid, SYS_kill, args, NULL, 0, &rc), 0);
	assert_int_equal(rc, -EPERM);
	assert_int_equal(kill(victim, 0), 0);
}

/* Landlock, and execd's view of the world. */
void
live_landlock(void **state)
{
	pid_t pathd = kid("abx-pathd"), execd = kid("abx-execd"), w = worker();
	const char *conf = stage_path(&st, "conf/server.json");
	long rc = 0;

#ifndef __x86_64__
	skip();
#endif
	if (geteuid() != 0)
		skip();
	check_open("pathd", pathd, stage_path(&st, "w/a"), 0);
	check_open("a worker", w, stage_path(&st, "r/secret"), 0);
	check_open("pathd", pathd, "/etc/passwd", -EACCES);
	check_open("pathd", pathd, "/", -EACCES);
	check_open("pathd", pathd, "/proc/self/status", -EACCES);
	check_open("pathd", pathd, conf, -EACCES);
	check_open("pathd", pathd, st.dir, -EACCES);
	check_open("a worker", w, "/usr/bin/true", -EACCES);
	check_open("a worker", w, conf, -EACCES);
	assert_int_equal(
	    forced(pathd, SYS_mkdirat, stage_path(&st, "new"), 1, &rc), 0);
	assert_int_equal(rc, -EACCES);
	assert_int_equal(forced(w, SYS_unlinkat, conf, 1, &rc), 0);
	assert_int_equal(rc, -EACCES);
	check_kill(pathd, execd);
	check_kill(w, st.abxd);
	/* a root that no rule for commands names does not exist for execd */
	check_open("execd", execd, stage_path(&st, "w/a"), 0);
	check_open("execd", execd, stage_path(&st, "r/secret"), -ENOENT);
	check_open("execd", execd, conf, -ENOENT);
	check_open("execd", execd, stage_path(&st, "state"), -ENOENT);
	check_open("execd", execd, "/etc/shadow", -ENOENT);
	check_open("execd", execd, "/root", -ENOENT);
	assert_int_equal(forced(execd, SYS_ptrace, NULL, 0, &rc), 0);
	assert_int_equal(rc, -EPERM);
}
