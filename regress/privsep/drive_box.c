/*
 * SPDX-License-Identifier: ISC
 *
 * Tests of execd: what a command sees, and what it can do.
 */
#include "regress/privsep/execd_drive.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/msg.h"

void
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

void
test_processes(void)
{
	const char *s = out("cat /proc/[0-9]*/comm; :");

	CHECK(strcmp(s, "abx-launch\nsh\n") == 0, "%s", s);
	s = out("cat /proc/1/environ; ls /proc/1/fd; readlink /proc/1/exe; "
		"cat /proc/1/maps; echo end");
	CHECK(strcmp(s, "end\n") == 0, "%s", s);
}

void
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
	    "cat %s/f; ls %s; cat /etc/shadow; ls /root /home /var; "
	    "ls /sys; echo end",
	    other, other);
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

void
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

void
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
void
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

void
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

void
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
	/* of modules with slashes in their names, and of worktrees, too */
	sh("mkdir -p .git/modules/lib/a/hooks .git/worktrees/t; "
	   "for f in modules/sub modules/lib/a worktrees/t; do "
	   "echo h > .git/$f/HEAD; echo old > .git/$f/config; done; "
	   "echo ../.. > .git/worktrees/t/commondir");
	s = out("cd .git; for f in modules/sub modules/lib/a worktrees/t; do "
		"echo x > $f/config; mv $f $f.x; rm -f $f/config; done; "
		"mv modules/lib l2; echo x > modules/lib/a/hooks/h; "
		"echo x > worktrees/t/commondir; echo n > worktrees/t/HEAD; "
		"cat modules/sub/config modules/lib/a/config "
		"worktrees/t/config worktrees/t/commondir worktrees/t/HEAD; "
		"ls modules/lib/a/hooks");
	CHECK(strcmp(s, "old\nold\nold\n../..\nn\n") == 0, "%s", s);
	sh("rm -rf .git/modules/lib .git/worktrees");
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
	/* a link that leads nowhere is left alone, and the program runs */
	s = out("ln -s elsewhere .codex; echo ran");
	CHECK(strcmp(s, "ran\n") == 0, "%s", s);
	s = out("readlink .codex");
	CHECK(strcmp(s, "elsewhere\n") == 0, "%s", s);
}

/* Did the run say that this name of work appeared, and no other? */
static int
appeared(const struct run *r, const char *rel)
{
	char want[192] = "";

	if (rel != NULL)
		snprintf(want, sizeof(want), "%s/%s", work, rel);
	return r->told.nappeared == (rel == NULL ? 0 : strlen(want) + 1) &&
	       strcmp(r->told.appeared, want) == 0;
}

/* From outside: a shell command in work. */
static void
outside(const char *script)
{
	char cmd[1024];

	snprintf(cmd, sizeof(cmd), "cd %s && %s", work, script);
	if (system(cmd) != 0)
		die("%s", cmd);
}

/* The code with which a run in rel of work is refused; 0 when it is not. */
static int
refused(const char *rel, const char *script, const char *want)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	struct run r = {0};
	char dir[160];
	int code;

	snprintf(dir, sizeof(dir), "%s/%s", work, rel);
	r.argv = argv;
	r.dir = dir;
	r.s.max_output = 4096;
	peer_run(&peer, &r);
	code = r.failed ? r.fail.code : 0;
	CHECK(r.failed || strcmp(r.out, want) == 0, "%s", r.out);
	run_clear(&r);
	return code;
}

/* Protected names that cannot be mounted on are watched; what a link leads to
 * is protected. */
void
test_appeared(void)
{
	struct run *r;

	outside("rm -rf .git .claude .codex");
	sh("mkdir -p store/g/hooks store/c; "
	   "echo old > store/g/config; echo old > store/c/s");
	r = sh("mkdir .codex && echo x > .codex/f");
	CHECK(appeared(r, ".codex"), "%s", r->told.appeared);
	r = sh("rm -rf .codex; echo x > .codex/f");
	CHECK(appeared(r, NULL), "%s", r->told.appeared);
	outside("rm -rf .codex && ln -s store/g .git && "
		"ln -s $PWD/store/c .claude");
	r = sh("echo x > .git/config; echo x > .git/hooks/h; echo x > "
	       "store/g/config; echo x > .claude/s; echo x > store/c/n; "
	       "mv store s2; mv store/g store/h; rm -r store; cat .git/config "
	       "store/g/config .claude/s; ls store/g/hooks store/c");
	CHECK(strcmp(r->out,
		  "old\nold\nold\nstore/c:\ns\n\nstore/g/hooks:\n") == 0 &&
		  appeared(r, NULL),
	    "%d %u %s %s %s", r->failed, r->fail.code, r->out, r->err,
	    r->told.appeared);
	/* a link is replaced */
	r = sh("rm .claude; ln -s store/g .claude");
	CHECK(appeared(r, ".claude"), "%s", r->told.appeared);
	r = sh("rm .claude");
	CHECK(appeared(r, ".claude"), "%s", r->told.appeared);
	r = sh("rm .git; mkdir .git; mkdir .git/hooks");
	CHECK(appeared(r, ".git"), "%s", r->told.appeared);
	r = sh("echo x > .git/config");
	CHECK(appeared(r, ".git/config"), "%s", r->told.appeared);
	/* a file is read-only whole */
	sh("mkdir sub; echo gitdir > sub/.git");
	CHECK(
	    refused("sub", "echo evil > .git; rm -f .git; mv .git x; cat .git",
		"gitdir\n") == 0,
	    "refused");
	/* a link above what is protected */
	sh("mkdir .git/real; ln -s real .git/modules");
	CHECK(refused("", "echo ran", "") == C_SBX_PROTECT_SYMLINK,
	    "not refused");
	outside("rm -rf .git store sub");
}

/* A directory that was swapped between the decision and the mount. */
void
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

/* ---- denied entries ---- */

/* The list of one entry of work, as pathd would make it. */
void
cover_add(struct covers *c, const char *rel, int wrong)
{
	char path[192];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", work, rel);
	if (lstat(path, &st) == -1 ||
	    covers_add(c, rel, S_ISDIR(st.st_mode) ? FK_DIR : FK_FILE,
		st.st_dev, st.st_ino + (wrong ? 1 : 0)) == -1)
		die("%s", path);
}

/* Run a script with covers, and do what comes between set-up and program. */
struct run *
covered(const struct covers *c, const char *session, const char *script,
    int (*between)(uint64_t))
{
	static const char *argv[] = {"sh", "-c", NULL, NULL};
	static struct run r;

	argv[2] = script;
	memset(&r.s, 0, sizeof(r.s));
	r.argv = argv;
	r.dir = work;
	r.covers = c;
	r.held = between;
	strlcpy(r.s.session, session, sizeof(r.s.session));
	r.s.flags = SPAWN_HOLD;
	r.s.max_output = 65536;
	r.s.timeout_ms = 5000;
	peer_run(&peer, &r);
	return &r;
}

int
covered_yes(uint64_t id)
{
	char path[192];

	/* nothing runs before the word */
	snprintf(path, sizeof(path), "%s/ran", work);
	usleep(100 * 1000);
	CHECK(access(path, F_OK) == -1, "it ran before GO");
	return 1;
}

static int
no(uint64_t id)
{
	return 0;
}

void
test_denied(void)
{
	struct covers c = {0}, bad = {0};
	struct run *r;

	sh("mkdir -p d/e/vault d/x; echo SECRET > d/e/key; echo SECRET > "
	   "d/e/vault/k; echo plain > d/e/plain");
	cover_add(&c, "d/e/key", 0);
	cover_add(&c, "d/e/vault", 0);
	r = covered(&c, "",
	    "echo > ran; cat d/e/key d/e/vault/k d/e/plain; ls -A d/e/vault; "
	    "echo x > d/e/key; echo x > d/e/vault/new; rm -rf d/e/vault "
	    "d/e/key; mv d/e d/f; mv d d2; mv d/e/key d/key; mv d/e/vault "
	    "d/v; ln d/e/key d/hard; umount d/e/key; echo w > d/e/new && "
	    "cat d/e/new; mv d/x d/y && rmdir d/y; rm d/e/new",
	    covered_yes);
	CHECK(!r->failed && strcmp(r->out, "plain\nw\n") == 0, "%d %u %s%s",
	    r->failed, r->fail.code, r->out, r->err);
	CHECK(strcmp(out("cat d/e/key d/e/vault/k"), "SECRET\nSECRET\n") == 0,
	    "changed");
	/* the monitor says no */
	sh("rm -f ran");
	r = covered(&c, "", "echo > ran", no);
	CHECK(r->failed, "it ran");
	CHECK(strcmp(out("ls ran 2>/dev/null; echo end"), "end\n") == 0, "ran");
	/* another object, or none, or a link on the way */
	cover_add(&bad, "d/e/key", 1);
	r = covered(&bad, "", "cat d/e/key", covered_yes);
	CHECK(r->failed && r->fail.code == C_POL_PATH_CHANGED, "%u",
	    r->fail.code);
	sh("mv d/e d/f; ln -s f d/e");
	r = covered(&c, "", "cat d/e/key", covered_yes);
	CHECK(r->failed && r->fail.code == C_POL_PATH_CHANGED, "%u",
	    r->fail.code);
	sh("rm d/e");
	r = covered(&c, "", "cat d/f/key", covered_yes);
	CHECK(r->failed && r->fail.code == C_POL_PATH_CHANGED, "%u",
	    r->fail.code);
	sh("rm -rf d");
	covers_clear(&c);
	covers_clear(&bad);
}

/* What is protected is not to be seen, what is bound inside it is. */
void
test_covers(void)
{
	const char *s = out("ls secret; cat secret/key; cat secret/in/f; "
			    "echo x > secret/new; echo y > secret/in/g && "
			    "cat secret/in/g; rm secret/in/g; "
			    "mv secret/in secret/out; mv secret moved; ls");

	CHECK(strncmp(s, "in\nin f\ny\n", 10) == 0 &&
		  strstr(s, "secret\n") != NULL && strstr(s, "moved") == NULL,
	    "%s", s);
}
