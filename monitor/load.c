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
#include "monitor/confdirs.h"
#include "monitor/confset.h"

#define FINDING_MAX 4000 /* bytes of one finding's text on the wire */
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
send_boot(struct imsgbuf *ib, const struct confset *cs)
{
	struct wbuf w;

	if (cs->boot.control_path[0] == '\0')
		log_warnx("the path of the control socket is too long; abxctl "
			  "cannot reach the service: set control.path");
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	boot_put(&w, &cs->boot);
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
