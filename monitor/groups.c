/*
 * SPDX-License-Identifier: ISC
 *
 * The control groups of the service (design: cgroup v2), when it was given
 * some: "service" for this process and its children, "exec" for commands,
 * whose directory belongs to the run user and whose limits stay ours.  Made
 * once, before any child is started; nothing outside of the service's own
 * group is touched.
 */
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include <linux/magic.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cg.h"
#include "common/log.h"
#include "monitor/parent.h"

#define CPU_PERIOD_US 100000
#define REMOVE_TRIES 200 /* for the processes of old groups to die */
#define REMOVE_WAIT_NS 10000000

static int exec_dir = -1; /* "exec", or none */
static int self_dir = -1; /* "exec/self" */

static const char *const controllers[] = {"memory", "pids", "cpu"};

/* ---- finding our own ---- */

/* The directory of this process's group, -1 when version 2 is not there. */
static int
own_group(char *path, size_t size)
{
	static const char *const mounts[] = {
	    "/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char text[4096], full[4096 + 32];
	struct statfs fs;
	ssize_t n = -1;
	size_t i;
	int fd;

	if ((fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC)) != -1) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n <= 0)
		return -1;
	text[n] = '\0';
	if (cg_own(text, path, size) == -1)
		return -1;
	for (i = 0; i < nitems(mounts); i++) {
		if (statfs(mounts[i], &fs) == -1 ||
		    fs.f_type != CGROUP2_SUPER_MAGIC)
			continue;
		snprintf(full, sizeof(full), "%s%s", mounts[i], path);
		return open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return -1;
}

/* Did the manager of all groups say that what lies below is ours?  systemd
 * marks what has Delegate=; a group without the mark is somebody else's, even
 * where root could write to it. */
static int
delegated(int dir)
{
	static const char *const marks[] = {
	    "trusted.delegate", "user.delegate"};
	char v[4];
	size_t i;

	for (i = 0; i < nitems(marks); i++)
		if (fgetxattr(dir, marks[i], v, sizeof(v)) == 1 && v[0] == '1')
			return 1;
	return 0;
}

/* ---- the layout ---- */

static void
enable(int dir)
{
	char line[16];
	size_t i;

	for (i = 0; i < nitems(controllers); i++) {
		snprintf(line, sizeof(line), "+%s", controllers[i]);
		if (cg_write(dir, "cgroup.subtree_control", line) == -1 &&
		    errno != ENOENT)
			log_warn("control group: %s", controllers[i]);
	}
}

/* Remove what an earlier life left; waits a little for its last processes. */
static void
clean(int dir, const char *name)
{
	const struct timespec ts = {0, REMOVE_WAIT_NS};
	int i;

	for (i = 0; i < REMOVE_TRIES; i++) {
		if (cg_remove(dir, name) == 0 || errno == ENOENT)
			return;
		if (errno != EBUSY)
			break;
		(void)nanosleep(&ts, NULL);
	}
	log_warn("cannot remove the control group %s", name);
}

/* The run user makes groups in it and moves its own processes between them;
 * the limits of the sum are not its to change. */
static int
give(int dir, const struct ids *id)
{
	static const char *const names[] = {
	    "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"};
	size_t i;

	if (fchown(dir, id->uid, id->gid) == -1)
		return -1;
	for (i = 0; i < nitems(names); i++)
		if (fchownat(dir, names[i], id->uid, id->gid,
			AT_SYMLINK_NOFOLLOW) == -1)
			return -1;
	return 0;
}

/* "service" with us in it, then what only an empty group may have. */
static int
lay_out(int top, const struct ids *run, int root)
{
	char pid[16];
	int service;

	if ((service = cg_open(top, "service", 1)) == -1)
		return -1;
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (cg_write(service, "cgroup.procs", pid) == -1) {
		close(service);
		return -1;
	}
	close(service);
	enable(top);
	clean(top, "exec");
	if ((exec_dir = cg_open(top, "exec", 1)) == -1)
		return -1;
	enable(exec_dir);
	if ((self_dir = cg_open(exec_dir, "self", 1)) == -1)
		return -1;
	return root ? give(exec_dir, run) : 0;
}

/* A manager may have put us into "service" of what is ours (systemd's
 * DelegateSubgroup=): the directory above it then.  dir is taken. */
static int
top_of(int dir, const char *path)
{
	const char *slash = strrchr(path, '/');
	int up;

	if (delegated(dir) || slash == NULL || slash == path ||
	    strcmp(slash, "/service") != 0 ||
	    (up = openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1)
		return dir;
	close(dir);
	return up;
}

void
groups_open(const struct parent *p)
{
	char path[4096];
	int top;

	if ((top = own_group(path, sizeof(path))) == -1)
		return;
	top = top_of(top, path);
	if (delegated(top) &&
	    lay_out(top, &p->ids[PROC_EXECD], p->root) == -1) {
		log_warn("control group %s", path);
		groups_close();
	} else if (exec_dir != -1)
		log_info("control groups below that of %s", path);
	close(top);
}

void
groups_close(void)
{
	if (exec_dir != -1)
		close(exec_dir);
	if (self_dir != -1)
		close(self_dir);
	exec_dir = self_dir = -1;
}

/* ---- limits of all commands together ---- */

static void
bound(const char *file, uint64_t v, const char *text)
{
	char now[CG_TEXT_MAX];

	/* what has no bound and no controller needs none */
	if (v == 0 && cg_read(exec_dir, file, now) == -1 && errno == ENOENT)
		return;
	if (cg_set(exec_dir, file, text) == -1)
		log_warn("commands together are not bound by %s", file);
}

void
groups_bound(const struct boot *b)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char text[64];

	if (exec_dir == -1) {
		if (b->total_memory != 0 || b->total_pids != 0 ||
		    b->total_cpu != 0)
			log_warnx("sandbox.total_* bounds nothing: no control "
				  "group was delegated");
		return;
	}
	snprintf(text, sizeof(text), "%" PRIu64, b->total_memory / page * page);
	bound(
	    "memory.max", b->total_memory, b->total_memory == 0 ? "max" : text);
	snprintf(text, sizeof(text), "%" PRIu32, b->total_pids);
	bound("pids.max", b->total_pids, b->total_pids == 0 ? "max" : text);
	snprintf(text, sizeof(text), "%" PRIu64 " %d",
	    (uint64_t)b->total_cpu * (CPU_PERIOD_US / 100), CPU_PERIOD_US);
	if (b->total_cpu == 0)
		snprintf(text, sizeof(text), "max %d", CPU_PERIOD_US);
	bound("cpu.max", b->total_cpu, text);
}

/* ---- execd ---- */

int
groups_enter(pid_t pid)
{
	char text[16];

	if (exec_dir == -1)
		return -1;
	snprintf(text, sizeof(text), "%d", (int)pid);
	if (cg_write(self_dir, "cgroup.procs", text) == -1) {
		log_warn("abx-execd cannot enter its control group");
		return -1;
	}
	return fcntl(exec_dir, F_DUPFD_CLOEXEC, 4);
}

/* The generations of execd are the beginnings of the names. */
void
groups_bury(uint32_t generation)
{
	char **names = NULL, want[16];
	size_t i, n;

	if (exec_dir == -1)
		return;
	snprintf(want, sizeof(want), "%" PRIu32 "-", generation);
	if (cg_below(exec_dir, want, &names, &n) == -1)
		log_warn("control groups of commands");
	for (i = 0; i < n; i++) {
		clean(exec_dir, names[i]);
		free(names[i]);
	}
	free(names);
}
