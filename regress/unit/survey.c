/*
 * SPDX-License-Identifier: ISC
 *
 * A survey that remembers sees what one sees that reads everything, whatever
 * was done to the tree in between.  The other one is written here anew, as
 * simple as can be.
 */
#include "regress/unit/anything.h"

#include <sys/resource.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "common/abx.h"
#include "common/stamp.h"
#include "pathd/survey.h"

static char base[64] = "/tmp/abx-survey-XXXXXX", top[80];
static int remembers; /* on this file system */
static unsigned recalled, keyed;

/* What was seen: sorted lines, and how many entries there were. */
struct seen {
	char *v[512];
	size_t n;
	unsigned entries;
};

static void
note(struct seen *s, const char *how, const char *path)
{
	assert_true(s->n < 512);
	assert_true(asprintf(&s->v[s->n++], "%s %s", path, how) != -1);
}

/* Denied by its name, or by where it lies. */
static int
is_hit(const char *path)
{
	const char *name = strrchr(path, '/') + 1, *in = path + strlen(top);

	return strcmp(name, ".env") == 0 ||
	       (strncmp(in, "/a/", 3) == 0 && strcmp(name, "e") == 0) ||
	       strcmp(in, "/b/c") == 0;
}

/* ---- the simple one ---- */

static void
plain(struct seen *s, const char *path)
{
	const struct dirent *de;
	char below[512];
	struct stat st;
	DIR *d;

	if ((d = opendir(path)) == NULL) {
		assert_int_equal(errno, EACCES);
		note(s, "barred", path);
		return;
	}
	while ((de = readdir(d)) != NULL) {
		if (strcmp(de->d_name, ".") == 0 ||
		    strcmp(de->d_name, "..") == 0)
			continue;
		s->entries++;
		snprintf(below, sizeof(below), "%s/%s", path, de->d_name);
		if (is_hit(below))
			note(s, "hit", below);
		else if (de->d_type == DT_DIR) {
			/* r without x: nothing below it can be asked for */
			if (lstat(below, &st) == -1) {
				assert_int_equal(errno, EACCES);
				note(s, "stuck", top);
				break;
			}
			plain(s, below);
		}
	}
	closedir(d);
}

/* ---- the survey ---- */

static enum code
entry(void *arg, int dir, const char *name, const char *path,
    unsigned char type, int *is_plain)
{
	struct seen *s = arg;

	s->entries++;
	assert_string_equal(strrchr(path, '/') + 1, name);
	if (!is_hit(path))
		return C_OK;
	*is_plain = 0;
	note(s, "hit", path);
	return SURVEY_SKIP;
}

static enum code
known(void *arg, uint32_t n)
{
	struct seen *s = arg;

	s->entries += n;
	recalled++;
	return C_OK;
}

static enum code
barred(void *arg, const char *path, uint64_t dev, uint64_t ino, enum code code)
{
	struct stat st;

	assert_int_equal(code, C_FS_PERMISSION);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_dev, dev);
	assert_int_equal(st.st_ino, ino);
	note(arg, "barred", path);
	return C_OK;
}

static const struct survey_ops ops = {
    .entry = entry, .known = known, .barred = barred};

static enum code
look(struct seen *s)
{
	enum code code;
	int fd;

	memset(s, 0, sizeof(*s));
	if ((fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1) {
		assert_int_equal(errno, EACCES);
		note(s, "barred", top);
		return C_OK;
	}
	code = survey(fd, top, &keyed, sizeof(keyed), &ops, s);
	close(fd);
	return code;
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
forget(struct seen *s)
{
	while (s->n > 0)
		free(s->v[--s->n]);
}

/* How many directories a survey reads now. */
static unsigned
reads(void)
{
	unsigned was = survey_nread;
	struct seen s;

	(void)look(&s);
	forget(&s);
	return survey_nread - was;
}

/* Both see the same. */
static void
same(void)
{
	struct seen a = {0}, b;
	enum code code = look(&b);
	size_t i;

	plain(&a, top);
	for (i = 0; i < a.n && strstr(a.v[i], " stuck") == NULL; i++)
		continue;
	if (i < a.n)
		assert_int_equal(code, C_FS_PERMISSION);
	else {
		assert_int_equal(code, C_OK);
		assert_int_equal(a.n, b.n);
		assert_int_equal(a.entries, b.entries);
		qsort(a.v, a.n, sizeof(a.v[0]), by_text);
		qsort(b.v, b.n, sizeof(b.v[0]), by_text);
		for (i = 0; i < a.n; i++)
			assert_string_equal(a.v[i], b.v[i]);
	}
	forget(&a);
	forget(&b);
}

static void
fresh(void)
{
	run("chmod -R u+rwx . ; rm -rf in out; mkdir in out");
}

/* ---- chosen cases ---- */

static const char *const steps[] = {
    "mkdir -p in/a/x/y in/b/x in/d/e/f; touch in/t in/a/x/t",
    "touch in/a/x/y/.env",
    "rm in/a/x/y/.env; touch -d 2001-01-01 in/a/x/y in/a/x in",
    "mkdir in/d/e/f/.env; touch -d 2001-01-01 in/d/e/f",
    "rmdir in/d/e/f/.env",
    /* the place of what lies in it makes it denied, and no longer */
    "mkdir -p in/d/x/e in/d/x/y/e",
    "mv in/d in/dd; mv in/a in/d",
    "mv in/dd in/a",
    "mv in/a in/k; mv in/b in/a; mv in/k in/b",
    "mkdir in/b/c; touch in/b/c/.env",
    "mv in/b/c in/c",
    "mv in/c in/b/c",
    "mv in/b in/z",
    /* old ones from elsewhere, with the times of what was there */
    "mkdir -p out/n/m; touch out/n/m/.env; touch -d 2001-01-01 out/n/m out/n",
    "mv out/n in/n",
    "rm in/n/m/.env; touch -d 2001-01-01 in/n/m",
    "mv in/n/m out/m; ln -s ../../out/m in/n/m",
    "rm in/n/m; touch in/n/m",
    "rm in/n/m; ln -s /etc in/n/.env",
    /* rights */
    "chmod 0 in/a; chmod 0300 in/z; chmod 0500 in/n",
    "chmod 0400 in/a",
    "chmod 0755 in/a in/z; chmod 0 in/a/x",
    "chmod 0755 in/a/x; chmod 0 in",
    "chmod 0755 in; rm -r in/a",
};

static void
test_steps(void **state)
{
	size_t i, k;

	fresh();
	same();
	for (i = 0; i < nitems(steps); i++) {
		run(steps[i]);
		same();
		settle();
		for (k = 0; k < 2; k++)
			same();
	}
}

/* What is old is not read again; what is new, holds what must be seen again,
 * or lies elsewhere is. */
static void
test_what_is_read(void **state)
{
	fresh();
	run("mkdir -p in/a/b in/c");
	if (!remembers)
		skip();
	settle();
	assert_int_equal(reads(), 4);
	assert_int_equal(reads(), 0);
	run("touch in/a/b/x");
	assert_int_equal(reads(), 1);
	assert_int_equal(reads(), 1);
	settle();
	assert_int_equal(reads(), 1);
	assert_int_equal(reads(), 0);
	run("touch in/c/.env");
	settle();
	assert_int_equal(reads(), 1);
	assert_int_equal(reads(), 1);
	/* b itself was not touched */
	run("rm in/c/.env; mv in/a in/k");
	settle();
	assert_int_equal(reads(), 4);
	assert_int_equal(reads(), 0);
	/* nor were these, whose old places are forgotten */
	run("mkdir -p in/k/b/1 in/k/b/2 in/k/b/3 in/k/b/4 in/k/b/5 in/k/b/6");
	settle();
	(void)reads();
	run("mv in/k/b in/b");
	settle();
	(void)reads();
	assert_int_equal(reads(), 0);
	run("rm -r in/b; mkdir in/k/b");
	settle();
	(void)reads();
	/* other questions are others */
	keyed++;
	assert_int_equal(reads(), 4);
	assert_int_equal(reads(), 0);
	keyed--;
	assert_int_equal(reads(), 0);
	/* as when the clock is set */
	recall_clear();
	assert_int_equal(reads(), 4);
}

/* More than is remembered, and more than there is room for at once. */
static void
test_many(void **state)
{
	unsigned n;

	fresh();
	run("n=$(printf '%0200d' 0); cd in; for a in 1 2 3 4 5 6 7 8 9; do "
	    "mkdir $a$n; (cd $a$n; for i in $(seq 600); do echo $i$n; done | "
	    "xargs mkdir); touch $a$n/7$n/.env; done");
	settle();
	same();
	same();
	n = reads();
	if (remembers)
		assert_in_range(n, 9, 5000);
}

/* All trees together are bounded: the last ones are known. */
static void
test_total(void **state)
{
	unsigned i;

	fresh();
	run("n=$(printf '%0200d' 0); cd in; for i in $(seq 1000); do "
	    "echo $i$n; done | xargs mkdir");
	if (!remembers)
		skip();
	settle();
	for (i = 0; i < 10; i++) {
		keyed = 100 + i;
		assert_in_range(reads(), 1, 1001);
		assert_int_equal(reads(), 0);
	}
	for (i = 0; i < 10; i++) {
		keyed = 109 - i;
		if (reads() > 0)
			break;
	}
	/* some hundred kilobytes each */
	assert_in_range(i, 2, 8);
	keyed = 0;
}

static void
test_deep(void **state)
{
	struct rlimit rl;
	struct seen s;
	char *line;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
	rl.rlim_cur = rl.rlim_max;
	if (rl.rlim_max < SURVEY_DEPTH + 100 ||
	    setrlimit(RLIMIT_NOFILE, &rl) == -1)
		skip(); /* each level has a descriptor */
	fresh();
	assert_true(asprintf(&line,
			"cd in; for i in $(seq %d); do mkdir d && cd -P d; "
			"done",
			SURVEY_DEPTH - 1) != -1);
	run(line);
	free(line);
	settle();
	assert_int_equal(look(&s), C_OK);
	assert_int_equal(look(&s), C_OK);
	run("mkdir $(printf 'in/'; printf 'd/%.0s' $(seq 1023))d");
	assert_int_equal(look(&s), C_FS_NAME_TOO_LONG);
	settle();
	assert_int_equal(look(&s), C_FS_NAME_TOO_LONG);
}

static enum code
refuse(void *arg, uint32_t n)
{
	return C_SBX_TOO_MANY_DENIED;
}

static int
stop(void *arg)
{
	return 1;
}

/* What callbacks say is what comes of it. */
static void
test_answers(void **state)
{
	const struct survey_ops no = {
	    .entry = entry, .known = refuse, .barred = barred};
	const struct survey_ops halt = {
	    .entry = entry, .known = known, .barred = barred, .stop = stop};
	struct seen s = {0};
	int fd;

	fresh();
	run("mkdir -p in/a/b");
	settle();
	(void)reads();
	assert_true((fd = open(top, O_RDONLY | O_DIRECTORY)) != -1);
	if (remembers)
		assert_int_equal(
		    survey(fd, top, &keyed, sizeof(keyed), &no, &s),
		    C_SBX_TOO_MANY_DENIED);
	assert_int_equal(survey(fd, top, &keyed, sizeof(keyed), &halt, &s),
	    C_SRV_UNAVAILABLE);
	close(fd);
	same();
}

/* ---- anything ---- */

static void
any_step(void)
{
	static const char *const part[] = {"a", "b", "c", "d", "e", "x"};

	anything(part, nitems(part), ".env");
}

static uint32_t until_stop; /* 0: never */

static int
stop_later(void *arg)
{
	return until_stop > 0 && --until_stop == 0;
}

static enum code
entry_or_stop(void *arg, int dir, const char *name, const char *path,
    unsigned char type, int *is_plain)
{
	return stop_later(arg) ? C_SRV_UNAVAILABLE
			       : entry(arg, dir, name, path, type, is_plain);
}

static enum code
met(void *arg, const char *path, uint64_t dev, uint64_t ino, enum code code)
{
	return code == C_FS_PERMISSION ? C_OK : code;
}

/* A survey of what changes meanwhile. */
static void
meet(void)
{
	const struct survey_ops any = {.entry = entry_or_stop,
	    .known = known,
	    .barred = met,
	    .stop = stop_later};
	int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct seen s = {0};

	if (fd == -1)
		return;
	(void)survey(fd, top, &keyed, sizeof(keyed), &any, &s);
	close(fd);
	forget(&s);
}

/* A survey that is stopped somewhere, or is none of this question. */
static void
meet_stopped(void)
{
	until_stop = rnd(15);
	keyed = rnd(2);
	meet();
	until_stop = 0;
	keyed = 0;
}

static void
same_behind(void)
{
	if (rnd(3) == 0)
		meet_stopped();
	same();
}

static void
test_anything(void **state)
{
	fresh();
	recalled = 0;
	any_steps(3000, any_step, same_behind);
	if (remembers)
		assert_in_range(recalled, 1000, UINT32_MAX);
}

static void
test_race(void **state)
{
	any_race(fresh, any_step, meet, same);
}

static void
test_mounts(void **state)
{
	any_mounts(fresh, same);
}

/* In any_mounts's namespace: what is mounted anew may be another image with
 * the same device, inodes and times. */
static void
test_mounted_anew(void **state)
{
	struct statx sx;

	if (getuid() != 0 || !remembers)
		skip();
	assert_int_equal(
	    statx(AT_FDCWD, ".", 0, 0x4000U /* MNT_ID_UNIQUE */, &sx), 0);
	if ((sx.stx_mask & 0x4000U) == 0)
		skip(); /* before Linux 6.8 */
	fresh();
	run("mkdir -p in/a/b in/c");
	settle();
	(void)reads();
	assert_int_equal(reads(), 0);
	be(0);
	run("mount --bind in/a in/a");
	be(NOBODY);
	assert_int_equal(reads(), 2);
	assert_int_equal(reads(), 0);
	be(0);
	run("umount in/a; mount --bind in/a in/a");
	be(NOBODY);
	assert_int_equal(reads(), 2);
	be(0);
	run("umount in/a");
	be(NOBODY);
}

static int
set_up(void **state)
{
	survey_settle = SETTLE_NS;
	if (any_begin(base) == -1)
		return -1;
	snprintf(top, sizeof(top), "%s/in", base);
	fresh();
	run("mkdir in/a");
	settle();
	(void)reads();
	remembers = reads() == 0;
	return 0;
}

static int
tear_down(void **state)
{
	return any_end(base);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_steps),
	    cmocka_unit_test(test_what_is_read),
	    cmocka_unit_test(test_many),
	    cmocka_unit_test(test_total),
	    cmocka_unit_test(test_deep),
	    cmocka_unit_test(test_answers),
	    cmocka_unit_test(test_anything),
	    cmocka_unit_test(test_race),
	    cmocka_unit_test(test_mounts),
	    cmocka_unit_test(test_mounted_anew),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
