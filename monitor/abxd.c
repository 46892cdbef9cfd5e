/*
 * SPDX-License-Identifier: ISC
 *
 * abxd: the command line and the way into the background.  The work of the
 * parent is in parent.c.
 */
#include <sys/resource.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include <cap-ng.h>

#include "common/abx.h"
#include "common/jail.h"
#include "common/log.h"
#include "monitor/conffile.h"
#include "monitor/parent.h"

static const struct option longopts[] = {
    {"listen", required_argument, NULL, 'l'},
    {"require-auth", no_argument, NULL, 'A'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static void
usage(void)
{
	fprintf(stderr, "usage: abxd [-dn] [-f file] [-p preset -r root] "
			"[--listen addr:port] [--require-auth]\n");
	exit(2);
}

static void
parse(struct options *o, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "dnf:p:r:", longopts, NULL)) != -1)
		switch (c) {
		case 'd':
			o->foreground = 1;
			break;
		case 'n':
			o->check_only = 1;
			break;
		case 'f':
			o->file = optarg;
			break;
		case 'p':
			o->preset = optarg;
			break;
		case 'r':
			o->root = optarg;
			break;
		case 'l':
			o->listen = optarg;
			break;
		case 'A':
			o->require_auth = 1;
			break;
		case 'V':
			puts("abxd " ABX_VERSION);
			exit(0);
		default:
			usage();
		}
	if ((o->preset == NULL) != (o->root == NULL)) {
		log_warnx("-p and -r need each other");
		usage();
	}
	if (optind != argc)
		usage();
}

/* The directory of the sibling programs, from where this one lies. */
static char *
own_dir(void)
{
	char buf[ABX_PATH_MAX], *slash, *dir;
	ssize_t n;

	if ((n = readlink("/proc/self/exe", buf, sizeof(buf) - 1)) == -1)
		fatal("/proc/self/exe");
	buf[n] = '\0';
	if ((slash = strrchr(buf, '/')) == NULL)
		fatalx("/proc/self/exe names no file");
	*slash = '\0';
	/* installed as PREFIX/sbin/abxd, the others are in libexec; in the
	 * tree they are neighbours */
	if ((slash = strrchr(buf, '/')) != NULL &&
	    strcmp(slash, "/sbin") == 0) {
		*slash = '\0';
		if (asprintf(&dir, "%s/libexec/agent-sandbox", buf) == -1)
			fatal("asprintf");
		return dir;
	}
	return strdup(buf);
}

/* The loader reads the file from "/", at a reload much later. */
static const char *
from_here(const char *path)
{
	char *cwd, *s;

	if (path == NULL || *path == '/')
		return path;
	if ((cwd = getcwd(NULL, 0)) == NULL)
		fatal("getcwd");
	if (asprintf(&s, "%s/%s", cwd, path) == -1)
		fatal("asprintf");
	free(cwd);
	return s;
}

static void
syslog_sink(enum log_level level, const char *line)
{
	static const int prio[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};

	syslog(prio[level], "%s", line);
}

/* Go into the background; the starter waits until the service is ready and
 * exits with how it went. */
static int
daemonize(void)
{
	int p[2], null;
	char how;

	if (pipe2(p, O_CLOEXEC) == -1)
		fatal("pipe");
	switch (fork()) {
	case -1:
		fatal("fork");
	case 0:
		break;
	default:
		close(p[1]);
		_exit(read(p[0], &how, 1) == 1 && how == '0' ? 0 : 1);
	}
	close(p[0]);
	if (setsid() == -1 || (null = open("/dev/null", O_RDWR)) == -1 ||
	    dup2(null, STDIN_FILENO) == -1 || dup2(null, STDOUT_FILENO) == -1)
		fatal("cannot go into the background");
	if (null > STDERR_FILENO)
		close(null);
	return p[1];
}

/* The secrets that tokens were made of lie in it, for /proc to show. */
static void
forget_environment(void)
{
	char **e;

	for (e = environ; *e != NULL; e++)
		explicit_bzero(*e, strlen(*e));
	if (clearenv() != 0)
		fatalx("cannot clear the environment");
}

/* Whoever waits for the end of our output need not wait for ours. */
static void
leave_stderr(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null == -1 || dup2(null, STDERR_FILENO) == -1)
		fatal("/dev/null");
	close(null);
}

/* What the parent and the things it starts need, nothing else. */
static void
cut_capabilities(void)
{
	static const unsigned keep[] = {CAP_SETUID, CAP_SETGID, CAP_SETPCAP,
	    CAP_SYS_ADMIN, CAP_KILL, CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER,
	    CAP_NET_BIND_SERVICE, CAP_SYS_RESOURCE, CAP_MKNOD};
	unsigned cap;
	size_t i;

	/* from what is there: a container may hold less than all */
	if (capng_get_caps_process() != 0)
		fatalx("cannot read our capabilities");
	for (cap = 0; cap <= CAP_LAST_CAP; cap++) {
		for (i = 0; i < nitems(keep) && keep[i] != cap; i++)
			continue;
		if (i == nitems(keep))
			(void)capng_update(CAPNG_DROP,
			    CAPNG_EFFECTIVE | CAPNG_PERMITTED |
				CAPNG_INHERITABLE | CAPNG_BOUNDING_SET,
			    cap);
	}
	if (capng_apply(CAPNG_SELECT_BOTH) != 0)
		log_warnx("cannot cut the capability bounding set");
}

static void
raise_nofile(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("RLIMIT_NOFILE");
	rl.rlim_cur = rl.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("RLIMIT_NOFILE");
}

/* What of it the log could not tell otherwise. */
static void
say_start(const struct parent *p)
{
	const struct options *o = &p->opt;
	const char *file = o->file;

	if (file == NULL &&
	    (o->preset == NULL || access(CONFFILE_DEFAULT, F_OK) == 0))
		file = CONFFILE_DEFAULT;
	if (o->preset != NULL)
		log_info("preset %s for %s", o->preset, o->root);
	log_info("version " ABX_VERSION ", configuration %s, %zu audit sink%s",
	    file == NULL ? "of the preset alone" : file, p->boot.audit.n,
	    p->boot.audit.n == 1 ? "" : "s");
}

int
main(int argc, char **argv)
{
	static struct parent p;
	static struct load first;

	log_init("abxd", 0);
	p.policy = p.control = -1;
	p.control_gid = (gid_t)-1;
	p.daemon_pipe = -1;
	parse(&p.opt, argc, argv);
	p.opt.file = from_here(p.opt.file);
	p.root = geteuid() == 0;
	umask(022);
	if ((p.libdir = own_dir()) == NULL)
		fatal("strdup");
	jail_no_core();
	raise_nofile();
	sock_environ();
	first.policy = -1;
	if (boot_load(&p, &first, NULL) == -1)
		return 2;
	if (p.opt.check_only)
		return 0;
	p.boot = first.boot;
	p.policy = first.policy;
	forget_environment();
	if (!p.opt.foreground)
		p.daemon_pipe = daemonize();
	if (p.root)
		cut_capabilities();
	if (boot_prepare(&p) == -1 || sock_open(&p) == -1 ||
	    sock_control(&p) == -1) {
		sock_remove(&p);
		return 1;
	}
	if (!p.opt.foreground) {
		openlog("abxd", LOG_PID, LOG_DAEMON);
		log_set_sink(syslog_sink);
		leave_stderr();
	}
	say_start(&p);
	return parent_run(&p);
}
