/*
 * SPDX-License-Identifier: ISC
 *
 * From the command line to a service that can be started: runs the loader,
 * takes BOOT and the policy from it, looks users up, makes directories and
 * opens the audit sinks.  Parses no configuration itself.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "monitor/parent.h"

static int
loader_msg(struct load *l, struct imsg *m)
{
	struct rbuf r;
	const uint8_t *text;
	const char *why;
	size_t n;

	if (msg_check(m, &why) == -1) {
		log_warnx("%s from the loader: %s", msg_name(m->type), why);
		return -1;
	}
	rbuf_init(&r, m->payload, m->len);
	switch (m->type) {
	case PC_FINDING:
		rget_u8(&r);
		n = r.len;
		if ((text = rget_raw(&r, n)) == NULL)
			return -1;
		fprintf(stderr, "%.*s\n", (int)n, (const char *)text);
		if (l->text[0] == '\0')
			snprintf(l->text, sizeof(l->text), "%.*s", (int)n,
			    (const char *)text);
		return 0;
	case PC_BOOT:
		boot_clear(&l->boot);
		return boot_get(&r, &l->boot) == -1 ? -1 : rget_end(&r);
	case PC_POLICY:
		if (l->policy != -1)
			return -1;
		l->policy = m->fd;
		m->fd = -1;
		return 0;
	default:
		return -1;
	}
}

/* Read what the loader says until it closes.  0 or -1. */
static int
loader_read(struct load *l, int fd)
{
	struct imsgbuf *b = imsg_new(fd);
	struct imsg m;
	int n, rc = 0;

	if (b == NULL) {
		close(fd);
		return -1;
	}
	while (rc == 0 && (n = imsg_read(b)) == 1)
		while (imsg_get(b, &m)) {
			if (rc == 0)
				rc = loader_msg(l, &m);
			if (m.fd != -1)
				close(m.fd);
		}
	imsg_free(b);
	return rc;
}

int
boot_load(struct parent *p, struct load *l, char *const *envp)
{
	const char *argv[16];
	size_t n = 0;
	int sv[2], status, rc;
	pid_t pid;

	argv[n++] = "abx-monitor";
	argv[n++] = "-L";
	if (envp != NULL)
		argv[n++] = "-D";
	if (p->opt.file != NULL) {
		argv[n++] = "-f";
		argv[n++] = p->opt.file;
	}
	if (p->opt.preset != NULL) {
		argv[n++] = "-p";
		argv[n++] = p->opt.preset;
		argv[n++] = "-r";
		argv[n++] = p->opt.root;
	}
	if (p->opt.listen != NULL) {
		argv[n++] = "-l";
		argv[n++] = p->opt.listen;
	}
	if (p->opt.require_auth)
		argv[n++] = "-A";
	argv[n] = NULL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1) {
		log_warn("socketpair");
		return -1;
	}
	pid = spawn_child(p, PROC_LOADER, sv[1], (char *const *)(uintptr_t)argv,
	    envp == NULL ? environ : envp);
	close(sv[1]);
	if (pid == -1) {
		log_warn("cannot start the loader");
		close(sv[0]);
		return -1;
	}
	rc = loader_read(l, sv[0]);
	if (waitpid(pid, &status, 0) != pid)
		status = -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		log_warnx("cannot execute %s/abx-monitor", p->libdir);
	else if (status != 0 && !WIFEXITED(status))
		log_warnx("the loader died");
	if (rc == 0 && status == 0 && l->policy != -1 &&
	    l->boot.revision[0] != '\0')
		return 0;
	if (l->text[0] == '\0')
		strlcpy(l->text, "the loader failed", sizeof(l->text));
	if (envp == NULL)
		log_warnx("the configuration cannot be started");
	return -1;
}

/* ---- users ---- */

static int
look_up(struct parent *p, enum proc_kind kind, const char *name)
{
	struct passwd *pw;

	if (!p->root) {
		p->ids[kind].uid = getuid();
		p->ids[kind].gid = getgid();
		return 0;
	}
	errno = 0;
	if ((pw = getpwnam(name)) == NULL) {
		log_warnx("config.user_missing: there is no user %s "
			  "(make users creates them)",
		    name);
		return -1;
	}
	if (pw->pw_uid == 0 || pw->pw_gid == 0) {
		log_warnx("config.user_missing: user %s is root", name);
		return -1;
	}
	p->ids[kind].uid = pw->pw_uid;
	p->ids[kind].gid = pw->pw_gid;
	return 0;
}

/* ---- directories ---- */

/* Make every missing component of a path but the last (0755). */
static int
make_parents(const char *path)
{
	char buf[ABX_PATH_MAX + 1];
	char *p;

	if (strlcpy(buf, path, sizeof(buf)) >= sizeof(buf)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (p = buf + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		if (mkdir(buf, 0755) == -1 && errno != EEXIST &&
		    errno != EROFS && errno != EACCES)
			return -1;
		*p = '/';
	}
	return 0;
}

/* 1 when nobody but root and the starter can change what lies above. */
static int
parents_safe(const char *path)
{
	char real[ABX_PATH_MAX + 1], *slash;
	struct stat st;

	if (realpath(path, real) == NULL)
		return 0;
	while ((slash = strrchr(real, '/')) != NULL) {
		slash[slash == real] = '\0';
		if (stat(real, &st) == -1 || (st.st_mode & 022) != 0 ||
		    (st.st_uid != 0 && st.st_uid != getuid()))
			return 0;
		if (slash == real)
			return 1;
	}
	return 0;
}

static int
state_dir(const struct parent *p)
{
	const char *dir = p->boot.state_dir;
	const struct ids *id = &p->ids[PROC_MONITOR];
	struct stat st;

	if (make_parents(dir) == -1 ||
	    (mkdir(dir, 0700) == -1 && errno != EEXIST)) {
		log_warn("state directory %s", dir);
		return -1;
	}
	if (lstat(dir, &st) == -1) {
		log_warn("state directory %s", dir);
		return -1;
	}
	if (p->root && S_ISDIR(st.st_mode) && st.st_uid == 0 &&
	    (st.st_mode & 07777) == 0700) {
		/* just made, or by a package: it is the monitor's */
		if (lchown(dir, id->uid, id->gid) == -1) {
			log_warn("state directory %s", dir);
			return -1;
		}
		st.st_uid = id->uid;
	}
	if (!S_ISDIR(st.st_mode) || (st.st_mode & 07777) != 0700 ||
	    st.st_uid != id->uid || !parents_safe(dir)) {
		log_warnx("config.state_dir_unsafe: %s must be a directory of "
			  "mode 0700 that belongs to uid %u, below "
			  "directories that others cannot write",
		    dir, id->uid);
		return -1;
	}
	return 0;
}

int
boot_workspaces(const struct parent *p, const struct boot *b)
{
	const char *dir = b->workspace_root;
	const struct ids *id = &p->ids[PROC_EXECD];
	struct stat st;

	if (dir[0] == '\0')
		return 0;
	if (make_parents(dir) == -1)
		log_warn("workspace root %s", dir);
	if (mkdir(dir, 0700) == 0) {
		if (p->root && lchown(dir, id->uid, id->gid) == -1) {
			log_warn("workspace root %s", dir);
			return -1;
		}
	} else if (errno != EEXIST) {
		log_warn("workspace root %s", dir);
		return -1;
	}
	if (stat(dir, &st) == -1) {
		log_warn("workspace root %s", dir);
		return -1;
	}
	if (!S_ISDIR(st.st_mode) || st.st_uid != id->uid ||
	    (st.st_mode & 022) != 0) {
		log_warnx("config.root_invalid: the workspace root %s must be "
			  "a directory of uid %u that others cannot write",
		    dir, id->uid);
		return -1;
	}
	return 0;
}

/* ---- audit ---- */

int
boot_open_audit(const struct parent *p, size_t i)
{
	const char *s = p->boot.audit.v[i];
	const struct ids *id = &p->ids[PROC_MONITOR];
	struct stat st;
	int fd;

	if (strcmp(s, "stderr") == 0)
		return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (strncmp(s, "file:", 5) != 0) {
		errno = EINVAL;
		return -1;
	}
	fd = open(s + 5,
	    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY |
		O_NONBLOCK,
	    0640);
	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	if (p->root && st.st_uid == 0 && st.st_size == 0 &&
	    fchown(fd, id->uid, id->gid) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

static int
open_audits(struct parent *p)
{
	size_t i;

	if (p->boot.audit.n == 0)
		return 0;
	if ((p->audit = calloc(p->boot.audit.n, sizeof(*p->audit))) == NULL)
		return -1;
	for (i = 0; i < p->boot.audit.n; i++)
		if ((p->audit[i] = boot_open_audit(p, i)) == -1) {
			log_warn("audit sink %s%s", p->boot.audit.v[i],
			    errno == ENOENT ? ": its directory must exist"
					    : "");
			return -1;
		}
	return 0;
}

int
boot_prepare(struct parent *p)
{
	static const enum proc_kind kinds[] = {
	    PROC_LISTENER, PROC_MONITOR, PROC_PATHD};
	size_t i;

	for (i = 0; i < nitems(kinds); i++)
		if (look_up(p, kinds[i], p->boot.users[i]) == -1)
			return -1;
	p->ids[PROC_EXECD] = p->ids[PROC_PATHD];
	if (state_dir(p) == -1 || boot_workspaces(p, &p->boot) == -1 ||
	    open_audits(p) == -1)
		return -1;
	return 0;
}
