/*
 * SPDX-License-Identifier: ISC
 *
 * abx-execd: runs commands in sandboxes for the monitor.  Init of its own pid
 * namespace, in a mount namespace that holds what exec rules name.  It does
 * what it is told: it decides nothing, accepts nothing, parses no client's
 * bytes.  This file is its life and its channel to the monitor.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/log.h"
#include "common/proc.h"
#include "execd/absent.h"
#include "execd/cgroup.h"
#include "execd/driver.h"
#include "execd/filter.h"
#include "execd/job.h"
#include "execd/mover.h"
#include "execd/mounts.h"
#include "execd/nested.h"
#include "execd/protect.h"
#include "execd/session.h"

#define MEMFD_MAX ABX_BODY_MAX
#define BUFFER_MMAP (128 * 1024)

/* The program's part of CONF. */
static struct {
	struct boot_path *binds;
	size_t nbinds;
	uint64_t tmp_size; /* bytes */
	uint32_t require;  /* enum exec_layer */
	char *launcher;	   /* host path */
	struct strlist protect;
	struct strlist names; /* that are protected in writable binds */
	uint32_t nofile;
	int no_proc;	  /* errno of mounting /proc: no sandbox is possible */
	uint64_t idle_ms; /* of sessions' sandboxes */
	uint32_t cpu_percent;
	int group;   /* directory for those of runs, -1: none */
	int journal; /* of placeholders, -1: none */
	int absent;  /* make placeholders */
	int alone;   /* no other execd lives */
} conf = {.group = -1, .journal = -1};

static struct chan *mon;

/* The binds that came for the next SPAWN, and an error that waits for it. */
static struct {
	int any;
	uint64_t id;
	struct profile_binds binds;
	struct covers covers; /* below the first bind */
	int covered;
	int err;
	uint16_t code;
} pending;

/* ---- start-up ---- */

static int
execd_conf(const struct proc_conf *pc, struct rbuf *r)
{
	uint32_t n = rget_u32(r);

	if (n > ABX_MAX_ROOTS)
		return -1;
	if (n > 0 && (conf.binds = calloc(n, sizeof(*conf.binds))) == NULL)
		return -1;
	while (conf.nbinds < n) {
		if (boot_path_get(r, &conf.binds[conf.nbinds]) == -1)
			return -1;
		conf.nbinds++;
	}
	conf.tmp_size = rget_u64(r);
	conf.require = rget_u32(r);
	conf.launcher = rget_str(r, ABX_PATH_MAX);
	strlist_get(r, &conf.protect, 256, ABX_PATH_MAX);
	strlist_get(r, &conf.names, BOOT_NAMES_MAX, 255);
	conf.nofile = rget_u32(r);
	conf.idle_ms = rget_u64(r);
	conf.cpu_percent = rget_u32(r);
	conf.absent = rget_bool(r);
	conf.alone = rget_bool(r);
	return rget_end(r);
}

static int
execd_fd(enum proc_fd kind, uint32_t index, int fd)
{
	int *to = kind == PFD_CGROUP	? &conf.group
		  : kind == PFD_JOURNAL ? &conf.journal
					: NULL;

	if (to == NULL || index != 0 || *to != -1)
		return -1;
	*to = fd;
	return 0;
}

static void
execd_open(const struct proc_conf *pc)
{
	struct mounts_conf mc;

	mc.binds = conf.binds;
	mc.nbinds = conf.nbinds;
	mc.protect = &conf.protect;
	mc.launcher = conf.launcher;
	mc.uid = pc->uid;
	mc.gid = pc->gid;
	if ((conf.no_proc = mounts_enter(&mc)) != 0)
		return;
	spawn_init(conf.tmp_size, conf.require);
	absent_init(conf.journal, conf.absent);
	cgroup_init(conf.group, pc->generation, conf.cpu_percent);
	protect_init();
}

/* Placeholders were made as that user. */
static void
execd_opened(const struct proc_conf *pc, struct jail *j)
{
	if (conf.alone)
		absent_recover();
}

static void
execd_jail(const struct proc_conf *pc, struct jail *j)
{
	/* Landlock would stop bubblewrap from mounting, and an allow list
	 * would bind every command: namespaces and a deny list it is. */
	j->calls = filter_execd;
	j->deny_list = 1;
	j->nofile = conf.nofile;
}

/* ---- the monitor ---- */

static void
pending_clear(void)
{
	profile_clear(&pending.binds);
	covers_clear(&pending.covers);
	pending.covered = 0;
	pending.any = 0;
	pending.err = 0;
}

/* The directory of the configuration that the path lies in, or NULL. */
static const char *
root_of(const char *path)
{
	const char *best = NULL;
	size_t i, n, most = 0;

	for (i = 0; i < conf.nbinds; i++) {
		n = strlen(conf.binds[i].path);
		if (n > most && strncmp(path, conf.binds[i].path, n) == 0 &&
		    (path[n] == '/' || path[n] == '\0')) {
			best = conf.binds[i].path;
			most = n;
		}
	}
	return best;
}

static void
pending_fail(uint16_t code, int err)
{
	if (pending.err == 0) {
		pending.err = err;
		pending.code = code;
	}
}

static uint16_t
bind_code(int err)
{
	switch (err) {
	case ESTALE:
		return C_POL_PATH_CHANGED;
	case ELOOP:
		return C_SBX_PROTECT_SYMLINK;
	case ENFILE:
		return pending.covers.n > 0 ? C_SBX_TOO_MANY_DENIED
					    : C_SBX_UNAVAILABLE;
	default:
		return C_SBX_UNAVAILABLE;
	}
}

/* What a decoder says has failed: -1, or 0 when it was for want of memory,
 * which is not the monitor's fault and makes the run fail. */
static int
no_memory(void)
{
	if (errno != ENOMEM)
		return -1;
	pending_fail(C_SRV_UNAVAILABLE, ENOMEM);
	return 0;
}

static int
on_bind(struct imsg *m)
{
	struct spawn_bind sb;
	struct rbuf r;

	if (pending.any && pending.id != m->id)
		return -1;
	pending.any = 1;
	pending.id = m->id;
	rbuf_init(&r, m->payload, m->len);
	if (spawn_bind_get(&r, &sb) == -1)
		return no_memory();
	if (rget_end(&r) == -1) {
		spawn_bind_clear(&sb);
		return -1;
	}
	/* answered at SPAWN: one question, one answer */
	if (protect_bind(&pending.binds, &conf.names, root_of(sb.inner),
		sb.inner, m->fd, sb.rw) == -1)
		pending_fail(bind_code(errno), errno);
	spawn_bind_clear(&sb);
	return 0;
}

static int
on_cover(struct imsg *m)
{
	struct rbuf r;

	if (!pending.any || pending.id != m->id || pending.covered)
		return -1;
	rbuf_init(&r, m->payload, m->len);
	if (covers_get(&r, &pending.covers) == -1)
		return no_memory();
	pending.covered = 1;
	return rget_end(&r);
}

/* The spawn, from the memfd when there is one: the payload is only a place
 * holder then.  0 or -1. */
static int
get_spawn(const struct imsg *m, struct spawn *s)
{
	struct rbuf r;
	struct stat st;
	void *p;
	int rc;

	rbuf_init(&r, m->payload, m->len);
	if (m->fd == -1) {
		if (spawn_get(&r, s) == -1)
			return -1;
		return rget_end(&r);
	}
	if (fstat(m->fd, &st) == -1 || st.st_size <= 0 ||
	    st.st_size > (off_t)MEMFD_MAX)
		return -1;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, m->fd, 0);
	if (p == MAP_FAILED)
		return -1;
	rbuf_init(&r, p, (size_t)st.st_size);
	if ((rc = spawn_get(&r, s)) == 0)
		rc = rget_end(&r);
	munmap(p, (size_t)st.st_size);
	return rc;
}

/* Everything that the spawn adds to the binds: 0, or -1 with errno. */
static int
complete(struct profile_binds *b, const struct spawn *s)
{
	size_t i, n = b->n;

	for (i = 0; i < n; i++)
		if (b->v[i].rw && (protect_names(b, &conf.names, i) == -1 ||
				      nested_names(b, &conf.names, i) == -1))
			return -1;
	if (n > 0 && protect_covers(b, 0, &pending.covers) == -1)
		return -1;
	for (i = 0; i < s->progs.n; i++)
		if (protect_program(b, s->progs.v[i]) == -1)
			return -1;
	profile_sort(b);
	return 0;
}

static int
on_spawn(struct imsg *m)
{
	struct spawn s;
	int rc = 0;

	memset(&s, 0, sizeof(s));
	if ((pending.any && pending.id != m->id) ||
	    (get_spawn(m, &s) == -1 && no_memory() == -1))
		rc = -1;
	else if (pending.err != 0)
		job_refuse(m->id, pending.code, pending.err, "bind");
	else if (complete(&pending.binds, &s) == -1)
		job_refuse(m->id, bind_code(errno), errno, "bind");
	else
		rc = job_spawn(m->id, &s, &pending.binds);
	pending_clear();
	absent_tidy();
	spawn_clear(&s);
	return rc;
}

static int
on_follow(const struct imsg *m)
{
	uint64_t run, at[2];
	struct rbuf r;
	int follow;

	rbuf_init(&r, m->payload, m->len);
	run = rget_u64(&r);
	at[0] = rget_u64(&r);
	at[1] = rget_u64(&r);
	follow = rget_bool(&r);
	if (rget_end(&r) == -1)
		return -1;
	job_follow(m->id, run, at, follow);
	return 0;
}

static int
on_feed(struct imsg *m)
{
	struct rbuf r;
	uint64_t run;
	int eof;

	rbuf_init(&r, m->payload, m->len);
	run = rget_u64(&r);
	eof = rget_bool(&r);
	if (rget_end(&r) == -1)
		return -1;
	job_feed(m->id, run, m->fd, eof);
	m->fd = -1;
	return 0;
}

static int
on_session_end(const struct imsg *m)
{
	char name[ABX_WORKSPACE_LEN + 1];

	memcpy(name, m->payload, ABX_WORKSPACE_LEN);
	name[ABX_WORKSPACE_LEN] = '\0';
	if (!workspace_name_ok(name))
		return -1;
	session_end(m->id, name);
	return 0;
}

static int
mon_msg_cb(struct chan *c, struct imsg *m, void *arg)
{
	const char *why;

	if (msg_check(m, &why) == -1) {
		log_warnx("%s: %s", msg_name(m->type), why);
		return -1;
	}
	errno = 0; /* see no_memory */
	switch (m->type) {
	case ME_SPAWN_BIND:
		return on_bind(m);
	case ME_SPAWN_COVER:
		return on_cover(m);
	case ME_SPAWN:
		return on_spawn(m);
	case ME_GO:
		job_go(m->id);
		return 0;
	case ME_SIGNAL:
		if (m->payload[0] == 0 || m->payload[0] > 64)
			return -1;
		job_signal(m->id, m->payload[0]);
		return 0;
	case ME_FOLLOW:
		return on_follow(m);
	case ME_FEED:
		return on_feed(m);
	case ME_FORGET:
		job_forget(m->id);
		return 0;
	case ME_SESSION_END:
		return on_session_end(m);
	case ME_CANCEL:
		if (pending.any && pending.id == m->id)
			pending_clear();
		job_cancel(m->id);
		return 0;
	default:
		log_warnx("unexpected %s from the monitor", msg_name(m->type));
		return -1;
	}
}

static void
mon_gone_cb(struct chan *c, int error, void *arg)
{
	/* commands without a monitor have no limits: the namespace ends */
	if (error == EBADMSG)
		fatalx("the monitor broke the protocol");
	proc_exit(1);
}

static void
probed(const struct exec_hello *h)
{
	if (h->layers == 0)
		log_warnx("no sandbox: %s", h->text);
	else
		log_info("sandboxes have%s%s%s%s, landlock abi %u%s%s",
		    (h->layers & LAYER_NAMESPACES) != 0 ? " namespaces" : "",
		    (h->layers & LAYER_SECCOMP) != 0 ? " seccomp" : "",
		    (h->layers & LAYER_LANDLOCK) != 0 ? " landlock" : "",
		    (h->layers & LAYER_CGROUP) != 0 ? " cgroup" : "",
		    h->landlock_abi, h->text[0] != '\0' ? ": " : "", h->text);
}

static void
empty(void)
{
	proc_exit(0);
}

static void
execd_start(struct event_base *base, int fd)
{
	struct job_conf jc;
	char text[256] = "";

	if ((mon = chan_new(base, fd, mon_msg_cb, mon_gone_cb, NULL)) == NULL)
		fatal("channel to the monitor");
	/* the end of a run is said, whatever there is no memory for */
	if (chan_set_aside(mon, CHAN_OWED) == -1)
		fatal("memory for the monitor");
	/* large buffers come and go with slow readers: give them back */
	(void)mallopt(M_MMAP_THRESHOLD, BUFFER_MMAP);
	jc.base = base;
	jc.driver = &driver_bubblewrap;
	jc.mon = mon;
	jc.require = conf.require;
	jc.idle_ms = conf.idle_ms;
	/* it may be less than was wanted */
	jc.nofile = jail_nofile_now().rlim_cur;
	jc.probed = probed;
	jc.empty = empty;
	job_init(&jc);
	if (cgroup_on())
		mover_begin(base);
	if (conf.no_proc != 0)
		snprintf(text, sizeof(text),
		    "namespaces: cannot mount proc: %s",
		    strerror(conf.no_proc));
	else
		jc.driver->check_begin(); /* its end is seen in job_hello */
	job_probe(text);
}

#ifdef ABX_SANITIZE
/* The leak check at exit needs ptrace, which a process that is not dumpable
 * does not get. */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

int
main(int argc, char **argv)
{
	static const struct proc_ops ops = {.name = "abx-execd",
	    .conf = execd_conf,
	    .fd = execd_fd,
	    .open = execd_open,
	    .jail = execd_jail,
	    .opened = execd_opened,
	    .start = execd_start,
	    .shutdown = job_shutdown,
	    .use_poll = 1};

	return proc_main(&ops, argc, argv);
}
