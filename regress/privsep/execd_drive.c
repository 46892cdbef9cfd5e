/*
 * SPDX-License-Identifier: ISC
 *
 * Tests one abx-execd with real sandboxes, without the other processes.
 *
 *	execd_drive [-b build] [-u user] [-t N | -c script] [test ...]
 *
 * Started by root, execd runs as the user (-u); started by anybody else, in a
 * user namespace.  -t N prints the median time of N runs of true, and of a
 * bare bubblewrap, and tests nothing; -c runs one script and shows what it
 * said.
 */
#include "regress/privsep/execd_peer.h"

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

static struct peer peer;
static struct peer_conf conf;
static struct boot_path binds[2];
static char work[64], other[64], secret[96]; /* directories */
static const char *test_name;
static int failures;

#define CHECK(cond, ...)                                                       \
	do {                                                                   \
		if (!(cond)) {                                                 \
			failures++;                                            \
			printf("FAIL %s:%d %s: ", test_name, __LINE__, #cond); \
			printf(__VA_ARGS__);                                   \
			printf("\n");                                          \
		}                                                              \
	} while (0)

static struct run *
sh(const char *script)
{
	static const char *argv[4] = {"sh", "-c", NULL, NULL};
	static struct run r;

	argv[2] = script;
	run_clear(&r);
	memset(&r, 0, sizeof(r));
	r.dir = work;
	r.argv = argv;
	r.s.timeout_ms = 10000;
	r.s.grace_ms = 1000;
	r.s.max_output = 1024 * 1024;
	peer_run(&peer, &r);
	CHECK(!r.failed, "%s: code %u errno %d layer %s", script, r.fail.code,
	    r.fail.err, r.fail.layer);
	return &r;
}

/* What a script prints. */
static const char *
out(const char *script)
{
	struct run *r = sh(script);

	return r->out == NULL ? "" : r->out;
}

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* How many processes of the machine have this word in their arguments. */
static int
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

/* ---- how programs end ---- */

static void
test_ends(void)
{
	struct run *r;

	r = sh("exit 0");
	CHECK(r->end.status == 0, "status %x", r->end.status);
	CHECK((r->end.flags & END_EMPTY) != 0, "flags %x", r->end.flags);
	CHECK(memcmp(&r->end, &r->told, sizeof(r->end)) == 0,
	    "frame and END differ");
	r = sh("exit 137");
	CHECK(WIFEXITED(r->end.status) && WEXITSTATUS(r->end.status) == 137,
	    "status %x", r->end.status);
	r = sh("kill -9 $$");
	CHECK(WIFSIGNALED(r->end.status) && WTERMSIG(r->end.status) == 9,
	    "status %x", r->end.status);
	r = sh("kill -SEGV $$");
	CHECK(WIFSIGNALED(r->end.status) && WTERMSIG(r->end.status) == 11,
	    "status %x", r->end.status);
	r = sh("echo out; echo err >&2; exit 3");
	CHECK(strcmp(r->out, "out\n") == 0 && strcmp(r->err, "err\n") == 0 &&
		  WEXITSTATUS(r->end.status) == 3,
	    "%s %s", r->out, r->err);
	/* the program cannot end or stop its init */
	r = sh("kill -9 1; kill -STOP 1; kill -TERM 1; echo on");
	CHECK(strcmp(r->out, "on\n") == 0, "%s", r->out);
	r = sh("kill -9 -1; echo no");
	CHECK(WIFSIGNALED(r->end.status) || r->end.status == 0, "%x",
	    r->end.status);
}

static void
test_failures(void)
{
	static const char *const none[] = {"x", NULL};
	struct run r = {0};
	char path[256];
	FILE *f;

	r.argv = none;
	r.dir = work;
	r.s.timeout_ms = 5000;
	r.prog = "/usr/bin/no-such-program";
	peer_run(&peer, &r);
	CHECK(r.failed && r.fail.code == C_POL_EXEC_NOT_FOUND &&
		  r.fail.err == ENOENT,
	    "code %u errno %d", r.fail.code, r.fail.err);
	snprintf(path, sizeof(path), "%s/plain", work);
	if ((f = fopen(path, "w")) == NULL)
		die("%s", path);
	fputs("echo no\n", f);
	fclose(f);
	r.prog = path;
	peer_run(&peer, &r);
	CHECK(r.failed && r.fail.code == C_POL_EXEC_NOT_FOUND &&
		  r.fail.err == EACCES,
	    "code %u errno %d", r.fail.code, r.fail.err);
	chmod(path, 0755);
	peer_run(&peer, &r);
	CHECK(r.failed && r.fail.code == C_POL_EXEC_NOT_FOUND &&
		  r.fail.err == ENOEXEC,
	    "code %u errno %d", r.fail.code, r.fail.err);
	if ((f = fopen(path, "w")) == NULL)
		die("%s", path);
	fputs("#!/no/such/interpreter\n", f);
	fclose(f);
	peer_run(&peer, &r);
	CHECK(r.failed && r.fail.code == C_POL_EXEC_NOT_FOUND,
	    "code %u errno %d", r.fail.code, r.fail.err);
	unlink(path);
}

static void
test_timeout(void)
{
	const char *argv[] = {"sh", "-c", NULL, NULL};
	struct run r = {0};
	double t = now();

	r.argv = argv;
	r.dir = work;
	r.s.timeout_ms = 300;
	r.s.grace_ms = 1000;
	r.s.max_output = 1000;
	argv[2] = "trap 'echo handled; exit 5' TERM; echo first; "
		  "while :; do sleep 0.05; done";
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "first\nhandled\n") == 0, "%s", r.out);
	CHECK(WEXITSTATUS(r.end.status) == 5, "%x", r.end.status);
	CHECK((r.end.flags & END_TIMED_OUT) != 0, "%x", r.end.flags);
	argv[2] = "trap '' TERM; sh -c 'trap \"\" TERM; sleep 77 & sleep 77; "
		  ": drivemark1' & sleep 77; sleep 77";
	t = now();
	peer_run(&peer, &r);
	CHECK(now() - t < 3, "%.1f s", now() - t);
	CHECK((r.end.flags & (END_TIMED_OUT | END_EMPTY)) ==
		  (END_TIMED_OUT | END_EMPTY),
	    "%x", r.end.flags);
	CHECK(WIFSIGNALED(r.end.status), "%x", r.end.status);
	CHECK(marked("drivemark1") == 0, "processes are left");
	r.s.timeout_ms = 0;
	r.s.idle_ms = 300;
	argv[2] = "echo a; sleep 20";
	t = now();
	peer_run(&peer, &r);
	CHECK(
	    now() - t < 2 && (r.end.flags & END_IDLE) != 0, "%x", r.end.flags);
	argv[2] = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done";
	peer_run(&peer, &r);
	CHECK(r.end.status == 0 && (r.end.flags & END_IDLE) == 0, "%x",
	    r.end.flags);
	run_clear(&r);
}

static void
test_grandchildren(void)
{
	double t = now();
	struct run *r;

	r = sh("sh -c 'sleep 30; : drivemark2' & echo hi");
	CHECK(now() - t < 2, "%.1f s", now() - t);
	CHECK(strcmp(r->out, "hi\n") == 0 && r->end.status == 0, "%s", r->out);
	CHECK(marked("drivemark2") == 0, "the grandchild lives");
	t = now();
	r = sh("(setsid sh -c 'sleep 30; : drivemark3' >/dev/null 2>&1 "
	       "</dev/null &); echo hi");
	CHECK(now() - t < 1.5, "%.1f s", now() - t);
	CHECK(marked("drivemark3") == 0, "the daemon lives");
}

static void
test_cancel(void)
{
	const char *argv[] = {"sh", "-c", "sleep 60; : drivemark4", NULL};
	struct run r = {0};
	uint8_t sig = SIGUSR1;
	double t = now();

	r.argv = argv;
	r.dir = work;
	if (peer_spawn(&peer, &r) == 0) {
		peer_send(&peer, ME_CANCEL, r.id, -1, NULL, 0);
		peer_finish(&peer, &r);
	}
	CHECK((r.end.flags & END_CANCELLED) != 0 && now() - t < 2, "%x",
	    r.end.flags);
	CHECK(marked("drivemark4") == 0, "it lives");
	argv[2] = "trap 'echo usr1; exit 0' USR1; echo up; "
		  "while :; do sleep 0.05; done";
	run_clear(&r);
	if (peer_spawn(&peer, &r) == 0) {
		usleep(200000);
		peer_send(&peer, ME_SIGNAL, r.id, -1, &sig, 1);
		r.s.max_output = 0;
		peer_finish(&peer, &r);
	}
	CHECK(r.end.status == 0, "%x", r.end.status);
	/* unknown ids are crossed messages */
	peer_send(&peer, ME_SIGNAL, 999999, -1, &sig, 1);
	peer_send(&peer, ME_CANCEL, 999999, -1, NULL, 0);
	CHECK(strcmp(out("echo on"), "on\n") == 0, "execd lives");
	run_clear(&r);
}

/* ---- output and input ---- */

static void
test_output(void)
{
	const char *argv[] = {"sh", "-c", NULL, NULL};
	struct run r = {0};

	r.argv = argv;
	r.s.timeout_ms = 10000;
	r.s.max_output = 1000;
	argv[2] = "head -c 1000000 /dev/zero | tr '\\0' x; echo done >&2";
	peer_run(&peer, &r);
	CHECK(r.nout == 1000 && r.end.dropped_out == 999000 &&
		  (r.end.flags & END_TRUNC_OUT) != 0 && r.end.status == 0,
	    "%zu %llu %x", r.nout, (unsigned long long)r.end.dropped_out,
	    r.end.flags);
	CHECK(strcmp(r.err, "done\n") == 0, "%s", r.err);
	r.s.flags = SPAWN_HEAD_TAIL;
	r.s.max_output = 10;
	argv[2] = "seq -s '' 1 100000";
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "123400000\n") == 0 || r.nout == 10, "%s", r.out);
	CHECK(
	    memcmp(r.out, "1234", 4) == 0 && strcmp(r.out + 4, "00000\n") == 0,
	    "%s", r.out);
	r.s.flags = SPAWN_STREAM;
	argv[2] = "echo one; sleep 0.2; echo two";
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "one\ntwo\n") == 0, "%s", r.out);
	/* a reader that is slow loses bytes and hears how many */
	argv[2] = "head -c 3000000 /dev/zero";
	run_clear(&r);
	if (peer_spawn(&peer, &r) == 0) {
		usleep(500000);
		peer_finish(&peer, &r);
	}
	CHECK(r.nout + r.gap == 3000000 && r.gap > 0 &&
		  r.end.dropped_out == r.gap,
	    "%zu %llu", r.nout, (unsigned long long)r.gap);
	r.s.flags = 0;
	r.s.max_output = 4 * 1024 * 1024;
	argv[2] = "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2";
	run_clear(&r);
	if (peer_spawn(&peer, &r) == 0) {
		usleep(300000);
		peer_finish(&peer, &r);
	}
	CHECK(r.nout == 3000000 && r.nerr == 3000000 && r.end.dropped_out == 0,
	    "%zu %zu", r.nout, r.nerr);
	argv[2] = "cat";
	peer_run(&peer, &r);
	CHECK(r.nout == 0 && r.end.status == 0, "stdin is not empty");
	r.input = "given\n";
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "given\n") == 0, "%s", r.out);
	/* a listener that is gone does not stop the program */
	r.input = NULL;
	argv[2] = "head -c 3000000 /dev/zero; echo done > ended";
	r.dir = work;
	run_clear(&r);
	if (peer_spawn(&peer, &r) == 0) {
		struct imsg m;

		close(r.frames_fd);
		if (!peer_next(&peer, &m, 10000) || m.type != ME_END)
			die("no END");
	}
	CHECK(strcmp(out("cat ended; rm ended"), "done\n") == 0, "stopped");
	run_clear(&r);
}

static void
test_environment(void)
{
	static const char *const env[] = {"A=b c", "EMPTY=", NULL};
	static const char *const argv[] = {"env", NULL};
	struct run r = {0};
	char *big;
	const char *bigargv[50] = {"sh", "-c", "echo ${#1}", "sh"};
	int i;

	r.argv = argv;
	r.env = env;
	r.s.max_output = 4096;
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "A=b c\nEMPTY=\n") == 0, "%s", r.out);
	/* large words go by memfd, up to what the kernel takes */
	if ((big = malloc(200001)) == NULL)
		die("malloc");
	memset(big, 'a', 200000);
	big[200000] = '\0';
	bigargv[4] = big;
	r.argv = bigargv;
	r.env = NULL;
	peer_run(&peer, &r);
	CHECK(r.failed && r.fail.code == C_ARGS_TOO_LARGE, "code %u",
	    r.fail.code);
	big[120000] = '\0';
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "120000\n") == 0, "%s", r.out);
	for (i = 4; i < 44; i++)
		bigargv[i] = big;
	peer_run(&peer, &r);
	CHECK(r.failed && r.fail.code == C_ARGS_TOO_LARGE, "code %u",
	    r.fail.code);
	free(big);
	run_clear(&r);
}

/* ---- what can be seen and done ---- */

static void
test_status(void)
{
	const char *s = out("cat /proc/self/status");

	CHECK(strstr(s, "NoNewPrivs:\t1") != NULL, "%s", s);
	CHECK(strstr(s, "Seccomp:\t2") != NULL, "%s", s);
	CHECK(strstr(s, "CapEff:\t0000000000000000") != NULL, "%s", s);
	CHECK(strstr(s, "CapPrm:\t0000000000000000") != NULL, "%s", s);
	CHECK(strstr(s, "CapBnd:\t0000000000000000") != NULL, "%s", s);
	CHECK(strstr(s, "CapAmb:\t0000000000000000") != NULL, "%s", s);
	s = out("ls /proc/self/fd | tr '\\n' ' '");
	CHECK(strcmp(s, "0 1 2 3 ") == 0, "descriptors %s", s);
	s = out("ulimit -n; ulimit -c; cat /proc/sys/user/max_inotify_"
		"instances /proc/sys/user/max_inotify_watches; hostname");
	CHECK(strcmp(s, "1024\n0\n16\n8192\nabx\n") == 0, "%s", s);
	s = out("echo 99 2>&1 > /proc/sys/user/max_inotify_instances; "
		"cat /proc/sys/user/max_inotify_instances");
	CHECK(strstr(s, "16\n") != NULL, "%s", s);
	s = out("id -un; id -u; id -g; getent passwd nobody | cut -d: -f1");
	CHECK(strncmp(s, "abx\n", 4) == 0, "%s", s);
}

static void
test_processes(void)
{
	const char *s = out("cat /proc/[0-9]*/comm; :");

	CHECK(strcmp(s, "abx-launch\nsh\n") == 0, "%s", s);
	s = out("cat /proc/1/environ; ls /proc/1/fd; readlink /proc/1/exe; "
		"cat /proc/1/maps; echo end");
	CHECK(strcmp(s, "end\n") == 0, "%s", s);
}

static void
test_files(void)
{
	char script[1024];
	const char *s;
	struct stat st;

	CHECK(strcmp(out("echo kept > made && cat made"), "kept\n") == 0,
	    "cwd is not writable");
	snprintf(script, sizeof(script), "%s/made", work);
	CHECK(
	    stat(script, &st) == 0 && st.st_size == 5 && st.st_uid == conf.uid,
	    "not outside");
	snprintf(script, sizeof(script),
	    "cat %s/f; ls %s; ls %s; cat /etc/shadow; ls /root /home /var; "
	    "ls /sys; echo end",
	    other, other, secret);
	s = out(script);
	CHECK(strcmp(s, "end\n") == 0, "%s", s);
	s = out("touch /usr/x && echo wrote; touch /etc/x && echo wrote; "
		"touch /x && echo wrote; touch /dev/x && echo wrote; "
		"touch /bin/x && echo wrote; echo end");
	CHECK(strcmp(s, "end\n") == 0, "%s", s);
	s = out("echo x > /dev/null && head -c 4 /dev/urandom | wc -c; "
		"echo a > /tmp/a && cat /tmp/a; echo b > /dev/shm/b && "
		"cat /dev/shm/b; echo c > /run/c && cat /run/c; cd /tmp && "
		"cp /usr/bin/true t && ./t && echo ran");
	CHECK(strcmp(s, "4\na\nb\nc\nran\n") == 0, "%s", s);
	s = out("mkdir d1 d2; echo f > d1/f; mv d1/f d2/f && ln d2/f d1/g && "
		"cat d1/g; rm -r d1 d2");
	CHECK(strcmp(s, "f\n") == 0, "%s", s);
	/* the limit of /tmp holds */
	s = out("head -c 90000000 /dev/zero > /tmp/big; stat -c %s /tmp/big");
	CHECK(atol(s) <= 64 * 1024 * 1024, "%s", s);
	s = out("touch s; chmod u+s s || chmod g+s s || echo refused; "
		"ls -l s | cut -c1-10; rm s");
	CHECK(strcmp(s, "refused\n-rw-r--r--\n") == 0, "%s", s);
}

static void
test_readonly(void)
{
	const char *argv[] = {"sh", "-c", NULL, NULL};
	struct run r = {0};

	r.argv = argv;
	r.dir = work;
	r.ro = 1;
	r.s.max_output = 4096;
	r.s.timeout_ms = 5000;
	argv[2] = "echo x > no; mkdir no; pwd; ls made";
	sh("touch made");
	peer_run(&peer, &r);
	CHECK(strstr(r.out, "made\n") != NULL, "%s", r.out);
	CHECK(strcmp(out("ls no 2>/dev/null; echo end"), "end\n") == 0,
	    "written");
	run_clear(&r);
}

static void
test_namespaces(void)
{
	static const char *const kinds[] = {
	    "net", "pid", "mnt", "ipc", "uts", "user", "cgroup"};
	char script[128], path[64], mine[64];
	const char *s;
	ssize_t n;
	size_t i;

	for (i = 0; i < nitems(kinds); i++) {
		snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
		n = readlink(path, mine, sizeof(mine) - 1);
		mine[n > 0 ? n : 0] = '\0';
		snprintf(
		    script, sizeof(script), "readlink %s | tr -d '\\n'", path);
		s = out(script);
		CHECK(strncmp(s, kinds[i], strlen(kinds[i])) == 0 &&
			  strcmp(s, mine) != 0,
		    "%s", s);
	}
	s = out("unshare -U true 2>/dev/null && echo nested; "
		"unshare -m true 2>/dev/null && echo nested; "
		"unshare -Ur true 2>/dev/null && echo nested; echo end");
	CHECK(strcmp(s, "end\n") == 0, "%s", s);
	s = out("cat /proc/net/dev | grep -c :");
	CHECK(strcmp(s, "1\n") == 0, "interfaces %s", s);
}

/* No socket is reachable: neither one in the directory nor an abstract one,
 * since none can be made; pairs work. */
static void
test_sockets(void)
{
	static const char script[] =
	    "import socket as s\n"
	    "for f, a in ((s.AF_UNIX, './door'), (s.AF_UNIX, '\\0execd-drive'"
	    "), (s.AF_INET, ('127.0.0.1', 1))):\n"
	    " try:\n"
	    "  s.socket(f).connect(a); print('connected')\n"
	    " except OSError as e: print(e.errno)\n"
	    "a, b = s.socketpair(); a.send(b'x'); print(b.recv(1).decode())\n";
	const char *argv[] = {"python3", "-c", script, NULL};
	struct sockaddr_un sun = {0};
	struct run r = {0};
	int fd, ab;

	sun.sun_family = AF_UNIX;
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/door", work);
	unlink(sun.sun_path);
	if ((fd = socket(AF_UNIX, SOCK_STREAM, 0)) == -1 ||
	    bind(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1 ||
	    chmod(sun.sun_path, 0777) == -1 || listen(fd, 1) == -1)
		die("%s", sun.sun_path);
	memset(sun.sun_path, 0, sizeof(sun.sun_path));
	memcpy(sun.sun_path + 1, "execd-drive", 11);
	if ((ab = socket(AF_UNIX, SOCK_STREAM, 0)) == -1 ||
	    bind(ab, (struct sockaddr *)&sun,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 12)) ==
		-1 ||
	    listen(ab, 1) == -1)
		die("abstract socket");
	r.argv = argv;
	r.dir = work;
	r.prog = access("/usr/bin/python3.11", X_OK) == 0
		     ? "/usr/bin/python3.11"
		     : "/usr/bin/python3";
	r.s.max_output = 4096;
	r.s.timeout_ms = 10000;
	peer_run(&peer, &r);
	CHECK(!r.failed && strcmp(r.out, "1\n1\n1\nx\n") == 0, "%s%s", r.out,
	    r.err);
	close(fd);
	close(ab);
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/door", work);
	unlink(sun.sun_path);
	run_clear(&r);
}

static void
test_strict(void)
{
	const char *argv[] = {
	    "sh", "-c", "echo alone; /usr/bin/true; echo $?; (echo sub)", NULL};
	struct run r = {0};

	r.argv = argv;
	r.s.flags = SPAWN_NO_FORK;
	r.s.max_output = 4096;
	r.s.timeout_ms = 5000;
	peer_run(&peer, &r);
	CHECK(!r.failed && strncmp(r.out, "alone\n", 6) == 0 &&
		  strstr(r.out, "sub") == NULL,
	    "%s%s", r.out, r.err);
	run_clear(&r);
}

static void
test_limits(void)
{
	const char *argv[] = {"sh", "-c", NULL, NULL};
	struct run r = {0};

	r.argv = argv;
	r.s.max_output = 4096;
	r.s.timeout_ms = 10000;
	r.s.procs = 20;
	argv[2] = "i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done; "
		  "ls -d /proc/[0-9]* | wc -l";
	peer_run(&peer, &r);
	CHECK(!r.failed && r.end.us < 9e6, "%s", r.out);
	r.s.procs = 0;
	r.s.cpu_s = 1;
	argv[2] = "while :; do :; done";
	peer_run(&peer, &r);
	CHECK(WIFSIGNALED(r.end.status) && r.end.us < 5e6 &&
		  (r.end.flags & END_TIMED_OUT) == 0,
	    "%x", r.end.status);
	r.s.cpu_s = 0;
	r.s.memory = 64 * 1024 * 1024;
	argv[2] = "head -c 200000000 /dev/zero | tail -c 150000000 | wc -c";
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "150000000\n") != 0, "%s", r.out);
	run_clear(&r);
}

/* ---- protected names ---- */

static void
test_protected(void)
{
	const char *s;

	sh("mkdir -p .git/hooks .git/objects .git/modules/sub/hooks .claude; "
	   "echo old > .git/config; echo k > .claude/settings");
	s = out("echo x > .git/hooks/post-commit; echo x >> .git/config; "
		"mv .git .git.x; mv .git/hooks .git/h2; rm -r .git/hooks; "
		"mv .git/config .git/c2; rm .git/config; "
		"mv .git/modules .git/m2; mv .git/modules/sub .git/modules/t; "
		"echo x > .git/modules/sub/hooks/h; mkdir -p .git.x/hooks && "
		"echo x > .git.x/hooks/h; echo x > .claude/new; "
		"echo x > .claude/settings; mv .claude .c2; rm -r .claude; "
		"ls -d .git.x .git/h2 .git/c2 .git/m2 .c2 .git/modules/t; "
		"ls .git/hooks .git/modules/sub/hooks; cat .git/config "
		".claude/settings; ls .claude");
	CHECK(strcmp(s, ".git.x\n.git/hooks:\n\n.git/modules/sub/hooks:\n"
			"old\nk\nsettings\n") == 0,
	    "%s", s);
	s = out("echo o > .git/objects/o && echo wrote");
	CHECK(strcmp(s, "wrote\n") == 0, "the rest stays writable: %s", s);
	sh("rm -rf .git.x .git/objects");
	/* from inside the repository's own directory */
	{
		const char *argv[] = {"sh", "-c",
		    "echo x > h; echo x > hooks/h; echo x >> config; "
		    "cat config",
		    NULL};
		struct run r = {0};
		char dir[160];

		r.argv = argv;
		r.s.max_output = 4096;
		snprintf(dir, sizeof(dir), "%s/.git", work);
		r.dir = dir;
		peer_run(&peer, &r);
		CHECK(!r.failed && strcmp(r.out, "old\n") == 0, "%s", r.out);
		snprintf(dir, sizeof(dir), "%s/.git/hooks", work);
		peer_run(&peer, &r);
		CHECK(!r.failed, "hooks as cwd");
		run_clear(&r);
		s = out("ls .git/hooks; cat .git/config");
		CHECK(strcmp(s, "old\n") == 0, "%s", s);
	}
	/* a link is left alone, and the program runs */
	s = out("ln -s elsewhere .codex; echo ran");
	CHECK(strcmp(s, "ran\n") == 0, "%s", s);
	s = out("readlink .codex");
	CHECK(strcmp(s, "elsewhere\n") == 0, "%s", s);
}

/* A directory that was swapped between the decision and the mount. */
static void
test_swapped(void)
{
	char a[160];
	struct spawn_bind sb = {0};
	struct wbuf w;
	struct imsg m;
	struct rbuf rb;
	struct spawn_failed f = {0};
	struct spawn s = {0};
	int fd;

	snprintf(a, sizeof(a), "%s/swap", work);
	if (mkdir(a, 0777) == -1 ||
	    (fd = open(a, O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		die("%s", a);
	/* what the descriptor names is gone, and a link has its name */
	if (rmdir(a) == -1 || symlink(other, a) == -1)
		die("%s", a);
	sb.rw = 1;
	sb.inner = strdup(a);
	wbuf_init(&w, 8192);
	spawn_bind_put(&w, &sb);
	spawn_bind_clear(&sb);
	peer_send(&peer, ME_SPAWN_BIND, 5000, fd, w.p, w.len);
	wbuf_reset(&w);
	if (strlist_add(&s.progs, "/usr/bin/pwd", 12) == -1 ||
	    strlist_add(&s.argv, "pwd", 3) == -1)
		die("strlist_add");
	s.cwd = strdup(a);
	spawn_put(&w, &s);
	spawn_clear(&s);
	peer_send(&peer, ME_SPAWN, 5000, -1, w.p, w.len);
	wbuf_free(&w);
	if (!peer_next(&peer, &m, 5000) || m.type != ME_FAILED)
		die("no FAILED");
	rbuf_init(&rb, m.payload, m.len);
	CHECK(spawn_failed_get(&rb, &f) == 0 && f.code == C_POL_PATH_CHANGED,
	    "code %u", f.code);
	unlink(a);
}

/* ---- system calls ---- */

static void
test_calls(void)
{
	static const char *const argv[] = {"cmd_calls", NULL};
	char prog[192], from[4096], cmd[4600];
	struct run r = {0};
	ssize_t n;

	/* it lies beside us */
	if ((n = readlink("/proc/self/exe", from, sizeof(from) - 16)) == -1)
		die("/proc/self/exe");
	from[n] = '\0';
	memcpy(strrchr(from, '/') + 1, "cmd_calls", 10);
	snprintf(prog, sizeof(prog), "%s/cmd_calls", work);
	snprintf(
	    cmd, sizeof(cmd), "cp %s %s && chmod 755 %s", from, prog, prog);
	if (system(cmd) != 0)
		die("%s", cmd);
	r.argv = argv;
	r.prog = prog;
	r.dir = work;
	r.s.max_output = 65536;
	r.s.timeout_ms = 10000;
	peer_run(&peer, &r);
	CHECK(!r.failed && r.end.status == 0, "status %x\n%s%s", r.end.status,
	    r.out, r.err);
	unlink(prog);
	run_clear(&r);
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
	usleep(300000);
	CHECK(marked(mark) >= 3, "only %d run", marked(mark));
}

static void
test_death(void)
{
	int status;

	leave_commands("drivemark5");
	status = peer_stop(&peer, SIGKILL);
	CHECK(WIFSIGNALED(status), "%x", status);
	CHECK(
	    gone_within("drivemark5", 2), "%d are left", marked("drivemark5"));
	/* the monitor dies: its channel ends */
	peer_start(&peer, &conf);
	leave_commands("drivemark6");
	imsg_free(peer.mon);
	peer.mon = NULL;
	CHECK(
	    gone_within("drivemark6", 2), "%d are left", marked("drivemark6"));
	status = peer_stop(&peer, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%x", status);
	/* the parent dies: fd 3 ends */
	peer_start(&peer, &conf);
	leave_commands("drivemark7");
	shutdown(imsg_fd(peer.parent), SHUT_RDWR);
	CHECK(
	    gone_within("drivemark7", 2), "%d are left", marked("drivemark7"));
	peer_stop(&peer, 0);
	peer_start(&peer, &conf);
}

static void
test_shutdown(void)
{
	const char *argv[] = {"sh", "-c",
	    "trap 'echo bye > bye; exit 0' TERM; while :; do sleep 0.05; done",
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
	usleep(200000);
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

/* Descriptors of execd; only root sees them. */
static int
descriptors(void)
{
	char path[64];
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", peer.pid);
	if ((d = opendir(path)) == NULL)
		return 0;
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void
no_children(void)
{
	char path[64], text[256] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", peer.pid,
	    peer.pid);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return;
	if (read(fd, text, sizeof(text) - 1) == -1)
		die("%s", path);
	close(fd);
	CHECK(text[0] == '\0', "children are left: %s", text);
}

static void
test_many(void)
{
	static struct run r[25];
	const char *argv[] = {"sh", "-c", "sleep 0.5; echo $$", NULL};
	int before, after, k;
	struct run_end e;
	size_t i;

	usleep(300000);
	before = descriptors();
	for (k = 0; k < 4; k++) {
		for (i = 0; i < nitems(r); i++) {
			memset(&r[i], 0, sizeof(r[i]));
			r[i].argv = argv;
			r[i].dir = work;
			r[i].s.max_output = 1000;
			if (peer_spawn(&peer, &r[i]) != 0)
				die("spawn");
		}
		for (i = 0; i < nitems(r); i++)
			run_frames(&r[i]);
		for (i = 0; i < nitems(r); i++) {
			(void)peer_end(&peer, &e);
			CHECK(e.status == 0 && r[i].end.status == 0 &&
				  strcmp(r[i].out, "2\n") == 0,
			    "%x %s", e.status, r[i].out);
			run_clear(&r[i]);
		}
	}
	usleep(300000);
	after = descriptors();
	CHECK(
	    before == after, "descriptors: %d before, %d after", before, after);
	no_children();
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
    {"calls", test_calls}, {"death", test_death}, {"shutdown", test_shutdown},
    {"many", test_many}};

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

static void
timing(int n)
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
	for (i = 0; i < n; i++) {
		peer_run(&peer, &r);
		if (r.failed || r.end.status != 0)
			die("true failed");
		a[i] = r.us;
		usleep(3000); /* the teardown of the one before */
		b[i] = bare_bwrap(conf.uid);
		usleep(3000);
	}
	qsort(a, (size_t)n, sizeof(*a), double_cmp);
	qsort(b, (size_t)n, sizeof(*b), double_cmp);
	printf("true in a sandbox %.0f us, bare bubblewrap %.0f us, ratio "
	       "%.2f; of the fastest tenth %.2f\n",
	    a[n / 2], b[n / 2], a[n / 2] / b[n / 2], a[n / 10] / b[n / 10]);
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
	while ((ch = getopt(argc, argv, "b:c:t:u:")) != -1)
		switch (ch) {
		case 'b':
			conf.build = optarg;
			break;
		case 'c':
			script = optarg;
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
	conf.nbinds = 1;
	protect[0] = secret;
	conf.protect = protect;
	conf.require = LAYER_NAMESPACES | LAYER_SECCOMP;
	conf.tmp_size = 64 * 1024 * 1024;
	peer_start(&peer, &conf);
	printf("execd: %s; layers %x abi %u %s\n", peer.ready,
	    peer.hello.layers, peer.hello.landlock_abi, peer.hello.text);
	if (n > 0)
		timing(n);
	if (script != NULL) {
		test_name = "script";
		r = sh(script);
		printf("%s%sstatus %x flags %x %llu us\n", r->out, r->err,
		    r->end.status, r->end.flags, (unsigned long long)r->end.us);
	}
	for (i = 0; n == 0 && script == NULL && i < nitems(tests); i++)
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
