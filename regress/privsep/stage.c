/*
 * SPDX-License-Identifier: ISC
 *
 * Directories, configuration, start and end of a service under test.  See
 * stage.h.
 */
#include "regress/privsep/stage.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define START_MS 30000

static const char *const programs[] = {"abx-listener", "abx-monitor",
    "abx-pathd", "abx-execd", "abx-launch", NULL};

void
die(const char *fmt, ...)
{
	int save = errno;
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (%s)\n", strerror(save));
	exit(1);
}

double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void
nap_ms(int ms)
{
	struct timespec ts = {ms / 1000, (long)(ms % 1000) * 1000000};

	while (nanosleep(&ts, &ts) == -1 && errno == EINTR)
		continue;
}

/* ---- files ---- */

const char *
stage_path(const struct stage *s, const char *rel)
{
	static char buf[8][512];
	static unsigned turn;
	char *p = buf[turn++ % 8];

	snprintf(p, sizeof(buf[0]), "%s/%s", s->dir, rel);
	return p;
}

static void
give(const struct stage *s, const char *path)
{
	if (geteuid() == 0 && lchown(path, s->uid, s->gid) == -1)
		die("chown %s", path);
}

void
stage_mkdir(const struct stage *s, const char *rel)
{
	const char *path = stage_path(s, rel);

	if (mkdir(path, 0755) == -1)
		die("mkdir %s", path);
	give(s, path);
}

static void
put_file(const char *path, const char *text, mode_t mode)
{
	size_t n = strlen(text);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd == -1 || write(fd, text, n) != (ssize_t)n || close(fd) == -1)
		die("%s", path);
}

void
stage_put(const struct stage *s, const char *rel, const char *text)
{
	const char *path = stage_path(s, rel);

	put_file(path, text, 0644);
	give(s, path);
}

static void
link_to(const char *target, const char *path)
{
	char real[4096];

	if (realpath(target, real) == NULL)
		die("%s", target);
	if (unlink(path) == -1 && errno != ENOENT)
		die("%s", path);
	if (symlink(real, path) == -1)
		die("symlink %s", path);
}

static void
copy_file(const char *from, const char *to)
{
	char buf[65536];
	ssize_t n = 0;
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	if (in == -1 || out == -1)
		die("cannot copy %s", from);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, (size_t)n) != n)
			die("%s", to);
	if (n == -1)
		die("%s", from);
	close(in);
	close(out);
}

/* abxd finds its siblings beside the file that it is, so it is a copy; all
 * are, since who starts it may not be able to go where they were built. */
static void
make_bin(const struct stage *s)
{
	char from[512], rel[64], real[64];
	size_t i;

	if (mkdir(stage_path(s, "bin"), 0755) == -1 ||
	    mkdir(stage_path(s, "bin/real"), 0755) == -1)
		die("bin");
	snprintf(from, sizeof(from), "%s/abxd", s->build);
	copy_file(from, stage_path(s, "bin/abxd"));
	for (i = 0; programs[i] != NULL; i++) {
		snprintf(from, sizeof(from), "%s/%s", s->build, programs[i]);
		snprintf(real, sizeof(real), "bin/real/%s", programs[i]);
		copy_file(from, stage_path(s, real));
		snprintf(rel, sizeof(rel), "bin/%s", programs[i]);
		link_to(stage_path(s, real), stage_path(s, rel));
	}
}

void
stage_replace(const struct stage *s, const char *name, const char *by)
{
	char rel[64];

	copy_file(by, stage_path(s, "bin/stand-in"));
	snprintf(rel, sizeof(rel), "bin/%s", name);
	link_to(stage_path(s, "bin/stand-in"), stage_path(s, rel));
}

static struct stage *current;
static pid_t owner;

/* Whatever a test dies of, its directory goes; not with its children. */
static void
last_act(void)
{
	if (current != NULL && owner == getpid())
		stage_free(current);
}

static const struct passwd *
user_of(const char *name)
{
	const struct passwd *pw = getpwnam(name);

	if (pw == NULL)
		die("there is no user %s (make users)", name);
	return pw;
}

/* Who files belong to, and where the stage may lie: the state directory may
 * not be below one that others can write. */
static const char *
people(struct stage *s, const char *user)
{
	const struct passwd *pw;

	s->root = geteuid() == 0 && user == NULL;
	if (geteuid() != 0) {
		s->uid = getuid();
		s->gid = getgid();
		return getenv("HOME");
	}
	pw = user_of(user != NULL ? user : "abx");
	s->uid = pw->pw_uid;
	s->gid = pw->pw_gid;
	return user != NULL ? pw->pw_dir : "/var/lib";
}

void
stage_new(struct stage *s, const char *build, const char *user)
{
	static const char *const plain[] = {"conf", "log"};
	const char *base;
	size_t i;

	memset(s, 0, sizeof(*s));
	if (owner == 0 && atexit(last_act) != 0)
		die("atexit");
	current = s;
	owner = getpid();
	s->build = build;
	s->abxd = -1;
	if ((base = people(s, user)) == NULL)
		die("HOME");
	snprintf(s->dir, sizeof(s->dir), "%s/abx-stage-XXXXXX", base);
	if (mkdtemp(s->dir) == NULL || chmod(s->dir, 0755) == -1)
		die("%s", s->dir);
	if (!s->root)
		give(s, s->dir);
	for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		if (mkdir(stage_path(s, plain[i]), 0755) == -1)
			die("%s", plain[i]);
		if (!s->root)
			give(s, stage_path(s, plain[i]));
	}
	stage_mkdir(s, "w");
	stage_mkdir(s, "r");
	make_bin(s);
}

static int
remove_cb(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return flag == FTW_DP ? rmdir(path) : unlink(path);
}

void
stage_free(struct stage *s)
{
	if (s->abxd > 0)
		(void)stage_stop(s, SIGKILL);
	if (s->dir[0] != '\0' &&
	    nftw(s->dir, remove_cb, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0)
		fprintf(stderr, "cannot remove %s\n", s->dir);
	s->dir[0] = '\0';
	if (current == s)
		current = NULL;
}

/* ---- configuration ---- */

/* One below those that outgoing connections use. */
static unsigned
free_port(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET};
	int fd, tries, rc = -1;

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (tries = 0; rc == -1 && tries < 100; tries++) {
		sa.sin_port = htons((uint16_t)(10000 + arc4random() % 22000));
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd == -1)
			die("socket");
		rc = bind(fd, (struct sockaddr *)&sa, sizeof(sa));
		close(fd);
	}
	if (rc == -1)
		die("there is no free port");
	return ntohs(sa.sin_port);
}

void
stage_conf(struct stage *s, const char *members)
{
	static const char head[] =
	    "{\"version\":1,\"allow_lint_errors\":true,"
	    "\"listen\":[{\"address\":\"127.0.0.1\",\"port\":%u}],"
	    "\"state_dir\":\"%s/state\","
	    "\"sandbox\":{\"workspace_root\":\"%s/work\"},"
	    "\"audit\":{\"sink\":\"file:%s/log/audit\"},"
	    "\"auth\":{\"tokens\":["
	    "{\"id\":\"alice\",\"roles\":[],\"token_env\":\"ABX_T_A\"},"
	    "{\"id\":\"bob\",\"roles\":[],\"token_env\":\"ABX_T_B\"}]},";
	char text[16384];
	size_t n;

	s->port = free_port();
	snprintf(text, sizeof(text), head, s->port, s->dir, s->dir, s->dir);
	for (n = strlen(text); *members != '\0'; members++) {
		if (n + sizeof(s->dir) + 2 > sizeof(text))
			die("the configuration is too long");
		if (*members == '@')
			n += (size_t)snprintf(
			    text + n, sizeof(text) - n, "%s", s->dir);
		else
			text[n++] = *members;
	}
	text[n++] = '}';
	text[n] = '\0';
	put_file(stage_path(s, "conf/server.json"), text, 0644);
	if (!s->root)
		give(s, stage_path(s, "conf/server.json"));
}

/* ---- life ---- */

static void
become_abxd(const struct stage *s, pid_t parent)
{
	static char vars[][64] = {"PATH=/usr/bin:/bin", "ABX_T_A=" TOKEN_A,
	    "ABX_T_B=" TOKEN_B, "ASAN_OPTIONS=detect_leaks=0:abort_on_error=1"};
	static char words[][8] = {"abxd", "-d", "-f"};
	char *const env[] = {vars[0], vars[1], vars[2], vars[3], NULL};
	char path[512], conf[512];
	char *argv[] = {words[0], words[1], words[2], conf, NULL};
	int log, null;

	if (geteuid() == 0 && !s->root &&
	    (setgroups(0, NULL) == -1 ||
		setresgid(s->gid, s->gid, s->gid) == -1 ||
		setresuid(s->uid, s->uid, s->uid) == -1))
		_exit(1);
	/* nothing of a test outlives it */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 || getppid() != parent)
		_exit(1);
	snprintf(path, sizeof(path), "%s/bin/abxd", s->dir);
	snprintf(conf, sizeof(conf), "%s/conf/server.json", s->dir);
	log = open(stage_path(s, "log/abxd"),
	    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (log == -1 || null == -1 || dup2(null, 0) == -1 ||
	    dup2(log, 1) == -1 || dup2(log, 2) == -1)
		_exit(1);
	closefrom(3);
	execve(path, argv, env);
	_exit(1);
}

void
stage_start(struct stage *s, int wait)
{
	pid_t self = getpid();
	int status;

	fflush(stdout);
	if ((s->abxd = fork()) == -1)
		die("fork");
	if (s->abxd == 0)
		become_abxd(s, self);
	if (!wait)
		return;
	if (stage_wait_log(s, "ready on", 1, START_MS) == 0) {
		stage_show_log(s);
		if (stage_ended(s, 0, &status))
			die("abxd ended with %#x", status);
		die("abxd does not become ready");
	}
}

int
stage_ended(struct stage *s, int ms, int *status)
{
	double end = now() + ms / 1e3;

	do {
		if (s->abxd == -1 || waitpid(s->abxd, status, WNOHANG) > 0) {
			s->abxd = -1;
			return 1;
		}
		nap_ms(5);
	} while (now() < end);
	return 0;
}

int
stage_stop(struct stage *s, int sig)
{
	int status = 0;

	if (s->abxd == -1)
		return 0;
	(void)kill(s->abxd, sig);
	if (!stage_ended(s, 10000, &status)) {
		(void)kill(s->abxd, SIGKILL);
		if (waitpid(s->abxd, &status, 0) == -1)
			die("waitpid");
		s->abxd = -1;
	}
	return status;
}

/* ---- the log ---- */

static char *
read_log(const struct stage *s, size_t *len)
{
	int fd = open(stage_path(s, "log/abxd"), O_RDONLY | O_CLOEXEC);
	char *text = NULL, *p;
	size_t n = 0, cap = 0;
	ssize_t got = 0;

	for (;;) {
		if (cap - n < 65536) {
			cap = cap == 0 ? 262144 : cap * 2;
			if ((p = realloc(text, cap)) == NULL)
				die("realloc");
			text = p;
		}
		if (fd == -1 || (got = read(fd, text + n, cap - n - 1)) <= 0)
			break;
		n += (size_t)got;
	}
	if (fd != -1)
		close(fd);
	text[n] = '\0';
	*len = n;
	return text;
}

size_t
stage_logged(const struct stage *s, const char *want)
{
	size_t len, n = 0;
	char *text = read_log(s, &len);
	const char *p = text + (s->log_pos < len ? s->log_pos : len);

	while ((p = strstr(p, want)) != NULL) {
		n++;
		if ((p = strchr(p, '\n')) == NULL)
			break;
	}
	free(text);
	return n;
}

size_t
stage_wait_log(const struct stage *s, const char *text, size_t n, int ms)
{
	double end = now() + ms / 1e3;
	size_t got;

	while ((got = stage_logged(s, text)) < n && now() < end &&
	       (s->abxd == -1 || kill(s->abxd, 0) == 0))
		nap_ms(5);
	return got;
}

void
stage_mark(struct stage *s)
{
	free(read_log(s, &s->log_pos));
}

void
stage_show_log(const struct stage *s)
{
	size_t len;
	char *text = read_log(s, &len);

	fflush(stdout);
	if (s->log_pos < len)
		fputs(text + s->log_pos, stderr);
	free(text);
}
