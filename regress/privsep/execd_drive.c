/*
 * SPDX-License-Identifier: ISC
 *
 * Tests one abx-execd with real sandboxes, without the other processes.
 *
 *	execd_drive [-b build] [-u user] [-t N | -c script] [test ...]
 *
 * Started by root, execd runs as the user (-u); started by anybody else, in a
 * user namespace.  -t N prints the median time of N runs of true, alone and in
 * a session, and of a bare bubblewrap and posix_spawn, and tests nothing; -c
 *runs one script and shows what it said.
 */
#include "regress/privsep/execd_drive.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/msg.h"

struct peer peer;
struct peer_conf conf;
char work[64], other[64], secret[96];
const char *test_name;
int failures;
static struct boot_path binds[2];
static char inside[128]; /* bound inside what is protected */

struct run *
sh(const char *script)
{
	static const char *argv[4] = {"sh", "-c", NULL, NULL};
	static struct run r;

	argv[2] = script;
	run_clear(&r);
	session_script(&r, argv, "");
	r.s.timeout_ms = 10000;
	r.s.max_output = 1024 * 1024;
	peer_run(&peer, &r);
	CHECK(!r.failed, "%s: code %u errno %d layer %s", script, r.fail.code,
	    r.fail.err, r.fail.layer);
	return &r;
}

/* What a script prints. */
const char *
out(const char *script)
{
	struct run *r = sh(script);

	return r->out == NULL ? "" : r->out;
}

double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* How many processes of the machine have this word in their arguments. */
int
marked(const char *mark)
{
	DIR *d = opendir("/proc");
	char path[300], text[4096];
	struct dirent *de;
	int n = 0, fd;
	ssize_t len;

	while (d != NULL && (de = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%s/cmdline", de->d_name);
		if (de->d_name[0] < '0' || de->d_name[0] > '9' ||
		    (fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
			continue;
		len = read(fd, text, sizeof(text));
		close(fd);
		if (len > 0 &&
		    memmem(text, (size_t)len, mark, strlen(mark)) != NULL)
			n++;
	}
	if (d != NULL)
		closedir(d);
	return n;
}

long
field(pid_t pid, const char *file, const char *word, char *text, size_t size)
{
	char path[64];
	ssize_t n = -1;
	char *p;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) != -1) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	p = strstr(text, word);
	return p == NULL ? -1 : atol(p + strlen(word));
}

/* Those of that name below top: their number, and the last one. */
static int
find_below(pid_t top, const char *name, pid_t *last)
{
	char text[4096], want[64];
	struct dirent *de;
	pid_t pid, up;
	int n = 0;
	DIR *d;

	snprintf(want, sizeof(want), "Name:\t%s\n", name);
	if ((d = opendir("/proc")) == NULL)
		return 0;
	while ((de = readdir(d)) != NULL) {
		if ((pid = atoi(de->d_name)) <= 0)
			continue;
		up = (pid_t)field(pid, "status", "PPid:\t", text, sizeof(text));
		if (strncmp(text, want, strlen(want)) != 0)
			continue;
		while (up > 1 && up != top)
			up = (pid_t)field(
			    up, "status", "PPid:\t", text, sizeof(text));
		if (up == top) {
			*last = pid;
			n++;
		}
	}
	closedir(d);
	return n;
}

pid_t
below(pid_t top, const char *name)
{
	pid_t pid = 0;

	(void)find_below(top, name, &pid);
	return pid;
}

int
sandboxes(void)
{
	pid_t pid;

	return find_below(peer.pid, "bwrap", &pid);
}

int
run_marked(const char *mark, int n)
{
	double end = now() + COMES_S;

	while (marked(mark) < n && now() < end)
		usleep(20000);
	return marked(mark) >= n;
}

int
appears(const char *name)
{
	double end = now() + COMES_S;
	char path[192];

	snprintf(path, sizeof(path), "%s/%s", work, name);
	while (access(path, F_OK) == -1 && now() < end)
		usleep(20000);
	return access(path, F_OK) == 0;
}

static int
gone_within(const char *mark, double seconds)
{
	double end = now() + seconds;

	while (marked(mark) > 0) {
		if (now() > end)
			return 0;
		usleep(20000);
	}
	return 1;
}

/* ---- deaths ---- */

static void
leave_commands(const char *mark)
{
	static struct run r;
	const char *argv[] = {"sh", "-c", NULL, NULL};
	char script[256];
	int i;

	snprintf(script, sizeof(script),
	    "trap '' TERM HUP; for i in 1 2 3; do (setsid sh -c 'sleep 99; : "
	    "%s' &) ; done; sleep 99; : %s",
	    mark, mark);
	argv[2] = script;
	for (i = 0; i < 3; i++) {
		memset(&r, 0, sizeof(r));
		r.argv = argv;
		r.dir = work;
		if (peer_spawn(&peer, &r) != 0)
			die("spawn");
	}
	CHECK(run_marked(mark, 12), "only %d run", marked(mark));
}

static void
test_death(void)
{
	int status;

	leave_commands("drivemark5");
	status = peer_stop(&peer, SIGKILL);
	CHECK(WIFSIGNALED(status), "%x", status);
	CHECK(gone_within("drivemark5", COMES_S), "%d are left",
	    marked("drivemark5"));
	/* the monitor dies: its channel ends */
	peer_start(&peer, &conf);
	leave_commands("drivemark6");
	imsg_free(peer.mon);
	peer.mon = NULL;
	CHECK(gone_within("drivemark6", COMES_S), "%d are left",
	    marked("drivemark6"));
	status = peer_stop(&peer, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%x", status);
	/* the parent dies: fd 3 ends */
	peer_start(&peer, &conf);
	leave_commands("drivemark7");
	shutdown(imsg_fd(peer.parent), SHUT_RDWR);
	CHECK(gone_within("drivemark7", COMES_S), "%d are left",
	    marked("drivemark7"));
	peer_stop(&peer, 0);
	peer_start(&peer, &conf);
}

static void
test_shutdown(void)
{
	const char *argv[] = {"sh", "-c",
	    "trap 'echo bye > bye; exit 0' TERM; echo > up; "
	    "while :; do sleep 0.05; done",
	    NULL};
	struct run r = {0};
	double t;
	int status;

	r.argv = argv;
	r.dir = work;
	r.s.grace_ms = 2000;
	r.s.max_output = 100;
	if (peer_spawn(&peer, &r) != 0)
		die("spawn");
	CHECK(appears("up"), "it does not run");
	t = now();
	if (imsg_compose(peer.parent, PC_SHUTDOWN, 0, -1, NULL, 0) == -1 ||
	    imsg_flush(peer.parent) != 0)
		die("SHUTDOWN");
	peer_finish(&peer, &r);
	CHECK(r.end.status == 0, "%x", r.end.status);
	status = peer_stop(&peer, 0);
	CHECK(
	    status == 0 && now() - t < 2, "%x after %.1f s", status, now() - t);
	peer_start(&peer, &conf);
	CHECK(strcmp(out("cat bye; rm bye"), "bye\n") == 0, "no handler ran");
	run_clear(&r);
}

/* Without its tools execd says so, and refuses. */
static void
test_no_bubblewrap(void)
{
	static const char *const hide[] = {"/usr/bin/bwrap", NULL};
	static const char *const argv[] = {"true", NULL};
	struct peer_conf c = conf;
	struct run r = {0};

	peer_stop(&peer, SIGKILL);
	c.protect = hide;
	peer_start(&peer, &c);
	CHECK(
	    peer.hello.layers == 0 &&
		strncmp(peer.hello.text, "namespaces: /usr/bin/bwrap", 26) == 0,
	    "%x %s", peer.hello.layers, peer.hello.text);
	r.argv = argv;
	peer_run(&peer, &r);
	CHECK(r.failed && r.fail.code == C_SBX_UNAVAILABLE &&
		  strcmp(r.fail.layer, "namespaces") == 0,
	    "code %u %s", r.fail.code, r.fail.layer);
	peer_stop(&peer, SIGKILL);
	peer_start(&peer, &conf);
}

/* ---- frame ---- */

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {{"ends", test_ends}, {"failures", test_failures},
    {"timeout", test_timeout}, {"grandchildren", test_grandchildren},
    {"cancel", test_cancel}, {"output", test_output},
    {"environment", test_environment}, {"status", test_status},
    {"processes", test_processes}, {"files", test_files},
    {"readonly", test_readonly}, {"namespaces", test_namespaces},
    {"sockets", test_sockets}, {"strict", test_strict}, {"limits", test_limits},
    {"protected", test_protected}, {"swapped", test_swapped},
    {"death", test_death}, {"shutdown", test_shutdown}, {"many", test_many},
    {"many-session", test_many_session}, {"no-bubblewrap", test_no_bubblewrap},
    {"covers", test_covers}, {"denied", test_denied},
    {"appeared", test_appeared}, {"launcher", test_launcher},
    {"rogue", test_rogue}, {"session", test_session},
    {"session-confined", test_session_confined},
    {"session-trees", test_session_trees}, {"session-ends", test_session_ends},
    {"session-lost", test_session_lost},
    {"session-profiles", test_session_profiles},
    {"session-covers", test_session_covers},
    {"session-remade", test_session_remade}, {"session-cwd", test_session_cwd},
    {"session-apart", test_session_apart}, {"session-idle", test_session_idle},
    {"session-end", test_session_end}};

static int
wanted(const char *name, int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return 1;
	return argc == 0;
}

static int
double_cmp(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double
bare_bwrap(uid_t uid)
{
	char *argv[] = {(char[]){"bwrap"}, (char[]){"--ro-bind"}, (char[]){"/"},
	    (char[]){"/"}, (char[]){"--unshare-all"}, (char[]){"/usr/bin/true"},
	    NULL};
	double t = now();
	pid_t pid;
	int status;

	/* as the user whom execd runs as, for a fair comparison */
	if ((pid = vfork()) == 0) {
		if (getuid() == 0 && setresuid(uid, uid, uid) == -1)
			_exit(1);
		execv("/usr/bin/bwrap", argv);
		_exit(1);
	}
	if (waitpid(pid, &status, 0) == -1 || status != 0)
		die("bwrap %x", status);
	return (now() - t) * 1e6;
}

/* One posix_spawn of true, in microseconds. */
static double
bare_spawn(uid_t uid)
{
	char *argv[] = {(char[]){"true"}, NULL}, *envp[] = {NULL};
	double t = now();
	pid_t pid;
	int status;

	if ((errno = posix_spawn(
		 &pid, "/usr/bin/true", NULL, NULL, argv, envp)) != 0 ||
	    waitpid(pid, &status, 0) == -1 || status != 0)
		die("true");
	return (now() - t) * 1e6;
}

/* The medians of n runs of true, of the session, and of what stands beside. */
static void
timing(const char *what, int n, const char *session, double (*bare)(uid_t))
{
	static const char *const argv[] = {"true", NULL};
	double *a = calloc((size_t)n, sizeof(*a));
	double *b = calloc((size_t)n, sizeof(*b));
	struct run r = {0};
	int i;

	if (a == NULL || b == NULL)
		die("calloc");
	r.argv = argv;
	r.dir = work;
	r.s.timeout_ms = 10000;
	strlcpy(r.s.session, session, sizeof(r.s.session));
	for (i = -1; i < n; i++) {
		peer_run(&peer, &r);
		if (r.failed || r.end.status != 0)
			die("true failed");
		a[i < 0 ? 0 : i] = r.us;
		usleep(3000); /* the teardown of the one before */
		b[i < 0 ? 0 : i] = bare(conf.uid);
		usleep(3000);
	}
	qsort(a, (size_t)n, sizeof(*a), double_cmp);
	qsort(b, (size_t)n, sizeof(*b), double_cmp);
	printf("true in a sandbox %.0f us, %s %.0f us, ratio %.2f; of the "
	       "fastest tenth %.2f\n",
	    a[n / 2], what, b[n / 2], a[n / 2] / b[n / 2],
	    a[n / 10] / b[n / 10]);
	free(a);
	free(b);
	run_clear(&r);
}

static void
make_dirs(void)
{
	char path[256];
	FILE *f;

	snprintf(work, sizeof(work), "/tmp/execd-drive.%d", getpid());
	snprintf(other, sizeof(other), "/tmp/execd-drive-other.%d", getpid());
	snprintf(secret, sizeof(secret), "%s/secret", work);
	if (mkdir(work, 0755) == -1 || mkdir(other, 0755) == -1 ||
	    mkdir(secret, 0755) == -1)
		die("%s", work);
	if (getuid() == 0 && chown(work, conf.uid, conf.gid) == -1)
		die("%s", work);
	snprintf(path, sizeof(path), "%s/f", other);
	if ((f = fopen(path, "w")) == NULL)
		die("%s", path);
	fputs("another's\n", f);
	fclose(f);
	snprintf(inside, sizeof(inside), "%s/in", secret);
	snprintf(path, sizeof(path), "%s/f", inside);
	if (mkdir(inside, 0755) == -1 ||
	    (getuid() == 0 && chown(inside, conf.uid, conf.gid) == -1) ||
	    (f = fopen(path, "w")) == NULL)
		die("%s", path);
	fputs("in f\n", f);
	fclose(f);
	snprintf(path, sizeof(path), "%s/key", secret);
	if ((f = fopen(path, "w")) == NULL)
		die("%s", path);
	fputs("secret\n", f);
	fclose(f);
}

static void
remove_dirs(void)
{
	char cmd[512];

	snprintf(cmd, sizeof(cmd), "rm -rf %s %s", work, other);
	if (system(cmd) != 0)
		fprintf(stderr, "%s is left\n", work);
}

int
main(int argc, char **argv)
{
	static const char *protect[2];
	const char *user = "nobody", *script = NULL;
	struct run *r;
	struct passwd *pw;
	int ch, n = 0;
	size_t i;

	conf.build = "build";
	while ((ch = getopt(argc, argv, "b:c:g:t:u:")) != -1)
		switch (ch) {
		case 'b':
			conf.build = optarg;
			break;
		case 'c':
			script = optarg;
			break;
		case 'g':
			conf.group = optarg;
			break;
		case 't':
			n = atoi(optarg);
			break;
		case 'u':
			user = optarg;
			break;
		default:
			return 2;
		}
	conf.uid = getuid();
	conf.gid = getgid();
	if (getuid() == 0) {
		if ((pw = getpwnam(user)) == NULL)
			die("%s", user);
		conf.uid = pw->pw_uid;
		conf.gid = pw->pw_gid;
	}
	if ((conf.build = realpath(conf.build, NULL)) == NULL)
		die("build");
	make_dirs();
	binds[0].path = work;
	binds[0].rw = 1;
	conf.binds = binds;
	binds[1].path = inside;
	binds[1].rw = 1;
	conf.nbinds = 2;
	protect[0] = secret;
	conf.protect = protect;
	conf.require = LAYER_NAMESPACES | LAYER_SECCOMP;
	conf.tmp_size = 64 * 1024 * 1024;
	peer_start(&peer, &conf);
	printf("execd: %s; layers %x abi %u %s\n", peer.ready,
	    peer.hello.layers, peer.hello.landlock_abi, peer.hello.text);
	if (n > 0) {
		timing("bare bubblewrap", n, "", bare_bwrap);
		timing("of a session, bare posix_spawn", n,
		    "0123456789abcdef0123456789abcdef", bare_spawn);
	}
	if (script != NULL) {
		test_name = "script";
		r = sh(script);
		printf("%s%sstatus %x flags %x %llu us\n", r->out, r->err,
		    r->end.status, r->end.flags, (unsigned long long)r->end.us);
	}
	if (conf.group != NULL) {
		test_name = "groups";
		test_groups();
	}
	for (i = 0; n == 0 && script == NULL && conf.group == NULL &&
		    i < nitems(tests);
	     i++)
		if (wanted(tests[i].name, argc - optind, argv + optind)) {
			test_name = tests[i].name;
			tests[i].run();
			fflush(stdout);
		}
	peer_stop(&peer, SIGKILL);
	remove_dirs();
	printf("%s\n", failures == 0 ? "ok" : "FAILED");
	return failures != 0;
}
