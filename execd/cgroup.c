/*
 * SPDX-License-Identifier: ISC
 *
 * Groups of runs: made, limited, read, killed, removed.  It owns nothing
 * outside of the directory that it was given and takes no name from a client.
 */
#include "execd/cgroup.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "common/cg.h"
#include "common/log.h"

#define NAME_SIZE 96
#define CPU_PERIOD_US 100000

struct cgroup {
	struct cgroup *up;
	int dir;
	int split; /* there are groups in it */
	unsigned holds;
	char name[NAME_SIZE]; /* in up */
};

/* One that its processes did not leave yet. */
struct dying {
	struct dying *next;
	int up; /* the directory that it lies in, owned */
	int kill;
	char name[NAME_SIZE];
};

static struct {
	int exec;     /* -1: none */
	unsigned can; /* enum cgroup_holds of the controllers there */
	uint32_t generation, cpu_percent;
	struct dying *dying;
} all = {.exec = -1};

static const struct {
	const char *name, *enable;
	unsigned bit;
} controllers[] = {{"memory", "+memory", CGROUP_MEMORY},
    {"pids", "+pids", CGROUP_PIDS}, {"cpu", "+cpu", CGROUP_CPU}};

void
cgroup_init(int exec, uint32_t generation, uint32_t cpu_percent)
{
	char text[CG_TEXT_MAX];
	size_t i;

	all.exec = exec;
	all.generation = generation;
	all.cpu_percent = cpu_percent;
	all.can = 0;
	if (exec == -1)
		return;
	if (cg_read(exec, "cgroup.subtree_control", text) == -1) {
		log_warn("the control group");
		cgroup_off();
		return;
	}
	for (i = 0; i < nitems(controllers); i++)
		if (cg_has(text, controllers[i].name))
			all.can |= controllers[i].bit;
}

void
cgroup_off(void)
{
	if (all.exec != -1)
		close(all.exec);
	all.exec = -1;
	all.can = 0;
}

unsigned
cgroup_can(void)
{
	return all.can;
}

int
cgroup_on(void)
{
	return all.exec != -1;
}

/* ---- life ---- */

/* Let the controllers count in groups of its own. */
static int
split(struct cgroup *g)
{
	size_t i;

	for (i = 0; i < nitems(controllers) && !g->split; i++)
		if ((all.can & controllers[i].bit) != 0 &&
		    cg_write(g->dir, "cgroup.subtree_control",
			controllers[i].enable) == -1)
			return -1;
	g->split = 1;
	return 0;
}

/* 0 when it is gone. */
static int
away(int up, const char *name, int kill)
{
	int rc = kill ? cg_remove(up, name) : unlinkat(up, name, AT_REMOVEDIR);

	return rc == 0 || errno == ENOENT ? 0 : -1;
}

static void
remember(int up, const char *name, int kill)
{
	struct dying *d = calloc(1, sizeof(*d));

	/* the parent removes what is left when this process is gone */
	if (d == NULL || (d->up = cg_open(up, ".", 0)) == -1) {
		free(d);
		return;
	}
	d->kill = kill;
	strlcpy(d->name, name, sizeof(d->name));
	d->next = all.dying;
	all.dying = d;
}

int
cgroup_sweep(void)
{
	struct dying **p = &all.dying, *d;
	int left = 0;

	while ((d = *p) != NULL) {
		if (away(d->up, d->name, d->kill) == -1 && errno == EBUSY) {
			p = &d->next;
			left++;
			continue;
		}
		*p = d->next;
		close(d->up);
		free(d);
	}
	return left;
}

static int
name_ok(const char *name)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

	return name[0] != '\0' && name[strspn(name, good)] == '\0';
}

int
cgroup_new(struct cgroup **out, struct cgroup *up, const char *name)
{
	struct cgroup *g;
	int n, save;

	*out = NULL;
	if (all.exec == -1)
		return 0;
	(void)cgroup_sweep();
	if (!name_ok(name)) {
		errno = EINVAL;
		return -1;
	}
	if ((up != NULL && split(up) == -1) ||
	    (g = calloc(1, sizeof(*g))) == NULL)
		return -1;
	g->up = up;
	if (up == NULL)
		n = snprintf(g->name, sizeof(g->name), "%" PRIu32 "-%s",
		    all.generation, name);
	else
		n = snprintf(g->name, sizeof(g->name), "%s", name);
	errno = ENAMETOOLONG;
	g->dir = n < 0 || (size_t)n >= sizeof(g->name)
		     ? -1
		     : cg_open(up == NULL ? all.exec : up->dir, g->name, 1);
	if (g->dir == -1) {
		save = errno;
		free(g);
		errno = save;
		return -1;
	}
	*out = g;
	return 0;
}

void
cgroup_free(struct cgroup *g, int kill)
{
	int up;

	if (g == NULL)
		return;
	up = g->up == NULL ? all.exec : g->up->dir;
	close(g->dir);
	if (up != -1 && away(up, g->name, kill) == -1)
		remember(up, g->name, kill);
	free(g);
}

/* ---- limits ---- */

/* As cg_set; a file that this kernel does not have is fine. */
static int
set_if(int dir, const char *name, const char *text)
{
	return cg_set(dir, name, text) == 0 || errno == ENOENT ? 0 : -1;
}

static int
limit_memory(int dir, uint64_t bytes, int whole)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char text[32];

	/* the kernel counts pages */
	if (bytes > INT64_MAX)
		bytes = INT64_MAX;
	bytes = bytes < page ? page : bytes / page * page;
	snprintf(text, sizeof(text), "%" PRIu64, bytes);
	/* a kernel without swap has no file for it */
	if (cg_set(dir, "memory.max", text) == -1 ||
	    set_if(dir, "memory.swap.max", "0") == -1)
		return -1;
	return cg_set(dir, "memory.oom.group", whole ? "1" : "0");
}

int
cgroup_limits(struct cgroup *g, const struct cgroup_limits *l)
{
	char text[64];

	if (g == NULL)
		return 0;
	if ((all.can & CGROUP_MEMORY) != 0 && l->memory != 0) {
		if (limit_memory(g->dir, l->memory, l->whole) == -1)
			return -1;
		g->holds |= CGROUP_MEMORY;
	}
	if ((all.can & CGROUP_PIDS) != 0 && l->procs != 0) {
		snprintf(text, sizeof(text), "%" PRIu64, l->procs);
		if (cg_set(g->dir, "pids.max", text) == -1)
			return -1;
		g->holds |= CGROUP_PIDS;
	}
	if ((all.can & CGROUP_CPU) != 0 && all.cpu_percent != 0) {
		snprintf(text, sizeof(text), "%" PRIu64 " %u",
		    (uint64_t)all.cpu_percent * (CPU_PERIOD_US / 100),
		    CPU_PERIOD_US);
		if (cg_set(g->dir, "cpu.max", text) == -1)
			return -1;
		g->holds |= CGROUP_CPU;
	}
	return 0;
}

unsigned
cgroup_holds(const struct cgroup *g)
{
	return g == NULL ? 0 : g->holds;
}

int
cgroup_layer(const struct cgroup *g)
{
	unsigned want = CGROUP_MEMORY | CGROUP_PIDS;

	if (all.cpu_percent != 0)
		want |= CGROUP_CPU;
	return g != NULL && (g->holds & want) == want;
}

/* ---- what is in it ---- */

int
cgroup_fd(const struct cgroup *g)
{
	return g == NULL ? -1 : g->dir;
}

int
cgroup_procs(const struct cgroup *g)
{
	return openat(
	    g->dir, "cgroup.procs", O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
}

int
cgroup_put_pid(struct cgroup *g, pid_t pid)
{
	char text[16];

	if (g == NULL)
		return 0;
	snprintf(text, sizeof(text), "%d", (int)pid);
	return cg_write(g->dir, "cgroup.procs", text);
}

void
cgroup_kill(struct cgroup *g)
{
	/* before Linux 5.14 there is no such file; the caller has pidfds */
	if (g != NULL && cg_kill(g->dir) == -1 && errno != ENOENT)
		log_warn("cannot kill the control group %s", g->name);
}

uint64_t
cgroup_oom(const struct cgroup *g)
{
	char text[CG_TEXT_MAX];
	uint64_t n = 0;

	if (g == NULL || cg_read(g->dir, "memory.events", text) == -1 ||
	    cg_number(text, "oom_kill", &n) == -1)
		return 0;
	return n;
}

uint64_t
cgroup_shmem(const struct cgroup *g)
{
	char text[CG_TEXT_MAX];
	uint64_t n = 0;

	if (g == NULL || cg_read(g->dir, "memory.stat", text) == -1 ||
	    cg_number(text, "shmem", &n) == -1)
		return 0;
	return n;
}

uint64_t
cgroup_peak(const struct cgroup *g)
{
	char text[CG_TEXT_MAX];
	char *end;
	uint64_t n;

	if (g == NULL || cg_read(g->dir, "memory.peak", text) == -1)
		return 0;
	n = strtoull(text, &end, 10);
	return *end == '\0' ? n : 0;
}
