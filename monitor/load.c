/*
 * SPDX-License-Identifier: ISC
 *
 * The loader reads the configuration for the parent, which parses none, and
 * ends.  It is the only process besides abxd that has abxd's environment; it
 * never sees a byte from a client, opens no socket and starts no program.
 * The parent gets what it must know as BOOT; the policy goes to the monitor
 * as a sealed file that the parent hands on unread.
 */
#include "monitor/load.h"

#include <sys/prctl.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/imsg.h"
#include "common/jail.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/msg.h"
#include "common/payload.h"
#include "monitor/confdirs.h"
#include "monitor/confset.h"

#define FINDING_MAX 4000 /* bytes of one finding's text on the wire */
#define CONTROL_MAX 107	 /* bytes of a socket's path */
#define DIGESTS_VAR "ABX_START_DIGESTS"

extern char **environ;

#ifdef ABX_SANITIZE
/* The leak checker traces the process, which the filter refuses; abxctl runs
 * the same code without a filter. */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

/* What a reader of files has no business with.  Refused, not killed for: a
 * look-up of a user name may try a cache daemon's socket first. */
static const struct jail_call load_refused[] = {
    {.name = "socket"},
    {.name = "socketpair"},
    {.name = "connect"},
    {.name = "bind"},
    {.name = "listen"},
    {.name = "accept"},
    {.name = "accept4"},
    {.name = "execve"},
    {.name = "execveat"},
    {.name = "ptrace"},
    {.name = "process_vm_readv"},
    {.name = "process_vm_writev"},
    {.name = "pidfd_getfd"},
    {.name = "kill"},
    {.name = "tkill"},
    {.name = "tgkill"},
    {.name = "bpf"},
    {.name = "io_uring_setup"},
    {.name = "perf_event_open"},
    {.name = "mount"},
    {.name = "umount2"},
    {.name = "move_mount"},
    {.name = "pivot_root"},
    {.name = "chroot"},
    {.name = "unshare"},
    {.name = "setns"},
    {.name = "init_module"},
    {.name = "finit_module"},
    {.name = "kexec_load"},
    {.name = "rename"},
    {.name = "renameat"},
    {.name = "renameat2"},
    {.name = "unlink"},
    {.name = "unlinkat"},
    {.name = "link"},
    {.name = "linkat"},
    {.name = "symlink"},
    {.name = "symlinkat"},
    {.name = "mkdir"},
    {.name = "mkdirat"},
    {.name = "rmdir"},
    {.name = "chmod"},
    {.name = "fchmod"},
    {.name = "fchmodat"},
    {.name = "chown"},
    {.name = "fchown"},
    {.name = "fchownat"},
    {.name = "truncate"},
    {.name = NULL},
};

static int
load_options(struct confset_opts *o, int argc, char **argv)
{
	int ch;

	memset(o, 0, sizeof(*o));
	o->env = (const char *const *)environ;
	optind = 1;
	while ((ch = getopt(argc, argv, "ADf:Ll:p:r:")) != -1) {
		switch (ch) {
		case 'A':
			o->require_auth = 1;
			break;
		case 'D':
			o->digests = confdirs_env(o->env, DIGESTS_VAR);
			if (o->digests == NULL)
				o->digests = "";
			break;
		case 'f':
			o->file = optarg;
			break;
		case 'L':
			break;
		case 'l':
			o->listen = optarg;
			break;
		case 'p':
			o->preset = optarg;
			break;
		case 'r':
			o->root = optarg;
			break;
		default:
			return -1;
		}
	}
	return optind == argc ? 0 : -1;
}

/* The secrets that tokens were made of are not needed after the load. */
static void
wipe_environment(void)
{
	char **p, *value;

	for (p = environ; *p != NULL; p++)
		if ((value = strchr(*p, '=')) != NULL)
			explicit_bzero(value + 1, strlen(value + 1));
}

static int
send_wbuf(struct imsgbuf *ib, uint16_t type, int fd, struct wbuf *w)
{
	int r = -1;

	if (w->err) {
		log_warnx("%s: does not fit", msg_name(type));
		if (fd != -1)
			close(fd);
	} else if ((r = imsg_compose(ib, type, 0, fd, w->p, w->len)) == -1) {
		log_warn("%s", msg_name(type));
	}
	wbuf_free(w);
	return r;
}

static int
send_text(struct imsgbuf *ib, enum find_sev sev, const char *text)
{
	struct wbuf w;
	size_t n = strlen(text);

	wbuf_init(&w, FINDING_MAX + 1);
	wput_u8(&w, (uint8_t)sev);
	wput_raw(&w, text, n > FINDING_MAX ? FINDING_MAX : n);
	return send_wbuf(ib, PC_FINDING, -1, &w);
}

static int
send_findings(struct imsgbuf *ib, const struct confset *cs)
{
	const struct findings *f = &cs->found;
	size_t i;
	int r;
	char *text;

	for (i = 0; i < f->n; i++) {
		if ((text = finding_text(&f->v[i])) == NULL)
			return -1;
		r = send_text(ib, f->v[i].sev, text);
		free(text);
		if (r == -1)
			return -1;
	}
	return 0;
}

/* ---- BOOT ---- */

static int
add_path(struct boot_path **v, size_t *n, uint32_t id, const char *path, int rw)
{
	struct boot_path *p;
	char *copy;

	if ((copy = strdup(path)) == NULL)
		return -1;
	if ((p = recallocarray(*v, *n, *n + 1, sizeof(*p))) == NULL) {
		free(copy);
		return -1;
	}
	*v = p;
	p += (*n)++;
	p->id = id;
	p->path = copy;
	p->rw = (uint8_t)(rw != 0);
	return 0;
}

/* Add what execd must see, once, by its canonical name.  What lies in /usr is
 * there anyway; what does not exist was said by a finding. */
static int
add_bind(struct boot *b, const char *path, int rw)
{
	char *real;
	size_t i;
	int r = 0;

	if ((real = confdirs_canonical(path)) == NULL)
		return errno == ENOMEM ? -1 : 0;
	for (i = 0; i < b->nbinds; i++)
		if (strcmp(b->binds[i].path, real) == 0)
			break;
	if (i < b->nbinds)
		b->binds[i].rw |= (uint8_t)(rw != 0);
	else if (!confdirs_within(real, "/usr"))
		r = add_path(&b->binds, &b->nbinds, 0, real, rw);
	free(real);
	return r;
}

static int
by_path(const void *va, const void *vb)
{
	const struct boot_path *a = va, *b = vb;

	return strcmp(a->path, b->path);
}

static int
boot_paths(struct boot *b, const struct confset *cs)
{
	const struct strlist *dirs = policy_exec_dirs(cs->policy);
	struct policy_root root;
	size_t i;

	for (i = 0; i < policy_nroots(cs->policy); i++) {
		policy_root(cs->policy, i, &root);
		if (add_path(&b->roots, &b->nroots, (uint32_t)i, root.path,
			root.writable) == -1)
			return -1;
		if (b->exec_used && root.exec &&
		    add_bind(b, root.path, root.exec_rw) == -1)
			return -1;
	}
	if (!b->exec_used)
		return 0;
	for (i = 0; i < dirs->n; i++)
		if (add_bind(b, dirs->v[i], 0) == -1)
			return -1;
	if (b->workspace_root[0] != '\0' &&
	    add_bind(b, b->workspace_root, 1) == -1)
		return -1;
	/* a directory before what lies in it */
	if (b->nbinds > 1)
		qsort(b->binds, b->nbinds, sizeof(*b->binds), by_path);
	return 0;
}

static int
copy_list(struct strlist *dst, const struct strlist *src)
{
	size_t i;

	for (i = 0; i < src->n; i++)
		if (strlist_add(dst, src->v[i], strlen(src->v[i])) == -1)
			return -1;
	return 0;
}

static int
boot_listen(struct boot *b, const struct conf *c)
{
	struct boot_listen *l;
	size_t i;

	if ((b->listen = calloc(c->nlisten + 1, sizeof(*b->listen))) == NULL)
		return -1;
	for (i = 0; i < c->nlisten; i++) {
		l = &b->listen[b->nlisten++];
		l->is_unix = (uint8_t)c->listen[i].is_unix;
		l->port = c->listen[i].port;
		l->mode = c->listen[i].mode;
		l->addr = strdup(c->listen[i].addr);
		l->group = strdup(
		    c->listen[i].group != NULL ? c->listen[i].group : "");
		if (l->addr == NULL || l->group == NULL)
			return -1;
	}
	return 0;
}

static int
boot_users(struct boot *b, const struct conf *c)
{
	size_t i;

	for (i = 0; i < nitems(b->users); i++)
		if ((b->users[i] = strdup(
			 c->users[i] != NULL ? c->users[i] : "")) == NULL)
			return -1;
	return 0;
}

/* ---- what a reload will know of this environment ---- */

static int
keep(struct strlist *l, char kind, const char *text)
{
	char *s;
	size_t i;
	int r;

	if (asprintf(&s, "%c:%s", kind, text) == -1)
		return -1;
	for (i = 0; i < l->n && strcmp(l->v[i], s) != 0; i++)
		;
	r = i < l->n ? 0 : strlist_add(l, s, strlen(s));
	free(s);
	return r;
}

/* 1 when the text starts with "NAME=" of one of the digests. */
static int
is_secret(const struct strlist *digests, const char *text)
{
	size_t i, n = strcspn(text, "=");

	if (strncmp(text, "ABX_SERVER_TOKEN=", 17) == 0)
		return 1;
	for (i = 0; i < digests->n; i++)
		if (strncmp(digests->v[i], text, n + 1) == 0)
			return 1;
	return 0;
}

/* A variable that a load reads by its own name. */
static int
is_read(const char *text)
{
	static const char *const names[] = {"HOME=", "XDG_STATE_HOME=",
	    "XDG_RUNTIME_DIR=", "RUNTIME_DIRECTORY=", "ABX_SERVER_"};
	size_t i;

	for (i = 0; i < nitems(names); i++)
		if (strncmp(text, names[i], strlen(names[i])) == 0)
			return 1;
	return 0;
}

static int
boot_start_env(struct boot *b, const struct confset *cs)
{
	const struct strlist *pass = conf_env_pass(cs->conf),
			     *digests = &cs->conf->env_digests;
	const char *const *p;
	size_t i;

	for (i = 0; i < pass->n; i++)
		if (keep(&b->start_env, 'E', pass->v[i]) == -1)
			return -1;
	for (p = cs->world.env; p != NULL && *p != NULL; p++)
		if (is_read(*p) && !is_secret(digests, *p) &&
		    keep(&b->start_env, 'E', *p) == -1)
			return -1;
	for (i = 0; i < digests->n; i++)
		if (keep(&b->start_env, 'D', digests->v[i]) == -1)
			return -1;
	return 0;
}

/* Where abxctl finds the service. */
static int
boot_control(struct boot *b, const struct confset *cs)
{
	const struct conf *c = cs->conf;
	char *run;
	int r;

	b->reload = c->reload != RELOAD_OFF;
	b->control_group =
	    strdup(c->control_group != NULL ? c->control_group : "");
	if (c->control_path != NULL) {
		b->control_path = strdup(c->control_path);
	} else {
		run = confdirs_run(cs->world.root_start, cs->world.env,
		    cs->files.file, c->state_dir);
		if (run == NULL)
			return -1;
		r = asprintf(&b->control_path, "%s/control", run);
		free(run);
		if (r == -1) {
			b->control_path = NULL;
			return -1;
		}
	}
	if (b->control_path == NULL || b->control_group == NULL)
		return -1;
	if (strlen(b->control_path) > CONTROL_MAX) {
		log_warnx("%s: too long for a socket; abxctl cannot reach the "
			  "service: set control.path",
		    b->control_path);
		b->control_path[0] = '\0';
	}
	return 0;
}

/* 0, or -1 out of memory; the caller clears it in both cases. */
static int
boot_fill(struct boot *b, const struct confset *cs)
{
	const struct conf *c = cs->conf;

	memset(b, 0, sizeof(*b));
	b->umask = c->umask;
	b->tmp_size = c->tmp_size;
	b->require = c->require;
	b->cpu_percent = c->cpu_percent;
	b->total_memory = c->total_memory;
	b->total_pids = c->total_pids;
	b->total_cpu = c->total_cpu;
	b->protect_absent = (uint8_t)c->protect_absent;
	b->exec_used =
	    c->sandbox_enabled && policy_has_effect(cs->policy, E_EXEC);
	b->shutdown_grace_ms = c->shutdown_grace_ms;
	b->restart_limit = c->restart_limit;
	b->state_dir = strdup(c->state_dir);
	b->workspace_root =
	    strdup(policy_workspaces(cs->policy) >= 0 ? c->workspace_root : "");
	if (b->state_dir == NULL || b->workspace_root == NULL ||
	    conf_revision(c, b->revision) == -1)
		return -1;
	if (boot_users(b, c) == -1 || boot_listen(b, c) == -1 ||
	    copy_list(&b->audit, &c->audit) == -1 ||
	    copy_list(&b->protect, &cs->protect) == -1 ||
	    copy_list(&b->protect_names, &c->protect_names) == -1 ||
	    boot_control(b, cs) == -1 || boot_start_env(b, cs) == -1)
		return -1;
	return boot_paths(b, cs);
}

static int
send_boot(struct imsgbuf *ib, const struct confset *cs)
{
	struct boot b;
	struct wbuf w;

	if (boot_fill(&b, cs) == -1) {
		log_warnx("out of memory");
		boot_clear(&b);
		return -1;
	}
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	boot_put(&w, &b);
	boot_clear(&b);
	return send_wbuf(ib, PC_BOOT, -1, &w);
}

/* ---- POLICY ---- */

static int
send_policy(struct imsgbuf *ib, const struct conf *conf)
{
	char *text;
	int fd;

	if ((text = conf_print(conf)) == NULL) {
		log_warnx("out of memory");
		return -1;
	}
	fd = memfd_sealed("abx-policy", text, strlen(text));
	if (fd == -1)
		log_warn("policy memfd");
	freezero(text, strlen(text));
	if (fd == -1)
		return -1;
	if (imsg_compose(ib, PC_POLICY, 0, fd, NULL, 0) == -1) {
		log_warn("%s", msg_name(PC_POLICY));
		return -1;
	}
	return 0;
}

/* Wait until everything is sent, whatever the mode of the socket. */
static int
flush_all(struct imsgbuf *ib)
{
	struct pollfd pfd = {.fd = imsg_fd(ib), .events = POLLOUT};
	int r;

	while ((r = imsg_flush(ib)) == 1)
		if (poll(&pfd, 1, -1) == -1 && errno != EINTR)
			return -1;
	return r;
}

static int
load_and_send(struct imsgbuf *ib, const struct confset_opts *o)
{
	struct confset cs;
	int status = 2;

	if (confset_load(&cs, o) == -1) {
		log_warnx("out of memory");
		confset_clear(&cs);
		return status;
	}
	confset_say_why(&cs);
	if (send_findings(ib, &cs) == -1)
		log_warnx("the findings could not be sent");
	else if (confset_blocked(&cs))
		status = 1;
	else if (cs.policy == NULL)
		log_warnx("the policy could not be compiled");
	else if (send_boot(ib, &cs) == 0 && send_policy(ib, cs.conf) == 0)
		status = 0;
	if (flush_all(ib) == -1) {
		log_warn("channel to the parent");
		status = 2;
	}
	confset_clear(&cs);
	return status;
}

int
load_main(int argc, char **argv)
{
	struct confset_opts o;
	struct imsgbuf *ib;
	int status;

	log_init("abx-loader", 0);
	if (load_options(&o, argc, argv) == -1) {
		log_warnx("usage: abx-monitor -L [-AD] [-f file] "
			  "[-l addr:port] [-p preset] [-r root]");
		return 2;
	}
	if ((ib = imsg_new(ABX_FD_PARENT)) == NULL) {
		log_warn("channel to the parent");
		return 2;
	}
	jail_parent(0);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		fatal("PR_SET_DUMPABLE");
	jail_seccomp(load_refused, 1);
	status = load_and_send(ib, &o);
	wipe_environment();
	imsg_free(ib);
	return status;
}
