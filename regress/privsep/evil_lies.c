/*
 * SPDX-License-Identifier: ISC
 *
 * Well-formed lies of workers, and siblings that ask without end, or say
 * nothing at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/ops.h"
#include "regress/privsep/cells.h"
#include "regress/privsep/evil.h"

/* The sanitizers keep what was freed. */
static int
grew(const struct lab *l, size_t before, size_t kib)
{
	return strstr(evil_build, "asan") == NULL &&
	       proc_rss(l->pid) > before + kib;
}

/* ---- facts that cannot be ---- */

enum lie {
	LIE_LONG,
	LIE_DOTS,
	LIE_EMPTY_NAME,
	LIE_RELATIVE,
	LIE_TRAILING,
	LIE_REF,
	LIE_REL_LONG,
	LIE_REL_WITHIN,
	LIE_HUGE,
	LIE_MISSING,
	LIE_VIA,
	LIE_COUNT
};

static const struct {
	const char *what;
	int broken;
} lies[] = {
    [LIE_LONG] = {"a path longer than paths can be", 1},
    [LIE_DOTS] = {"a path with ..", 1},
    [LIE_EMPTY_NAME] = {"a path with an empty name", 1},
    [LIE_RELATIVE] = {"a path that is not absolute", 1},
    [LIE_TRAILING] = {"a path that ends with a slash", 1},
    [LIE_REF] = {"a root that was not asked for", 1},
    [LIE_REL_LONG] = {"a root longer than the path", 1},
    [LIE_REL_WITHIN] = {"a root that ends within a name", 1},
    [LIE_HUGE] = {"a file larger than files can be", 1},
    [LIE_MISSING] = {"more missing names than the path has", 1},
    [LIE_VIA] = {"a place on the way that is no path", 1},
};

static void
lie(struct facts *f, enum lie which)
{
	char *p = malloc(9000);

	if (p == NULL)
		die("malloc");
	switch (which) {
	case LIE_LONG:
		snprintf(p, 9000, "%s/%05000d", f->path, 1);
		break;
	case LIE_DOTS:
		snprintf(p, 9000, "%s/../../../usr/bin", f->path);
		break;
	case LIE_EMPTY_NAME:
		snprintf(p, 9000, "%s//x", f->path);
		break;
	case LIE_RELATIVE:
		snprintf(p, 9000, "%s", f->path + 1);
		break;
	case LIE_TRAILING:
		snprintf(p, 9000, "%s/", f->path);
		break;
	default:
		snprintf(p, 9000, "%s", f->path);
		break;
	}
	free(f->path);
	f->path = p;
	if (which == LIE_REF)
		f->ref = 31;
	if (which == LIE_REL_LONG)
		f->rel = (uint16_t)(strlen(p) + 1);
	if (which == LIE_REL_WITHIN)
		f->rel--;
	if (which == LIE_HUGE)
		f->size = 1ULL << 63;
	if (which == LIE_MISSING)
		f->missing = 300;
	if (which == LIE_VIA && strlist_add(&f->via, "/a/../b", 7) == -1)
		die("malloc");
}

static void
tell(struct lab *l, enum facts_kind kind, enum lie which, int fd)
{
	struct imsg *m = lab_next(l, PROC_PATHD, MP_RESOLVE);
	uint64_t id = m->id;
	struct resolve v;
	struct facts f;
	struct rbuf r;
	struct wbuf w;
	size_t i;

	rbuf_init(&r, m->payload, m->len);
	if (resolve_get(&r, &v) == -1)
		die("RESOLVE");
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	wput_u32(&w, (uint32_t)v.n);
	for (i = 0; i < v.n; i++) {
		lab_fact(l, &v.v[i], kind, &f);
		lie(&f, which);
		facts_put(&w, &f);
		facts_clear(&f);
	}
	resolve_clear(&v);
	lab_send(l, PROC_PATHD, MP_FACTS, id, fd, &w);
}

/* For a run, whose path goes on to execd; a list, back to pathd; a download,
 * whose size goes to the listener. */
void
lies_facts(void **state)
{
	struct lab *l = *state;
	int i;

	evil_failures = 0;
	for (i = 0; i < LIE_COUNT; i++) {
		(void)lab_ask(l, OP_commands_run, "*argv", "true", NULL);
		tell(l, FK_DIR, (enum lie)i, odd_fd(l, ODD_DIR, "", 0));
		evil_verdict(l, PROC_PATHD, lies[i].what, lies[i].broken);
		(void)lab_ask(l, OP_files_list, "path", "f", NULL);
		tell(l, FK_DIR, (enum lie)i, -1);
		evil_verdict(l, PROC_PATHD, lies[i].what, lies[i].broken);
		(void)lab_ask(l, OP_files_upload, "path", "f", NULL);
		tell(l, FK_MISSING, (enum lie)i, -1);
		evil_verdict(l, PROC_PATHD, lies[i].what, lies[i].broken);
		(void)lab_ask(l, OP_files_download, "path", "f", NULL);
		(void)lab_facts(l, FK_FILE, -1);
		tell(l, FK_FILE, (enum lie)i, odd_fd(l, ODD_FILE_R, "x", 1));
		evil_verdict(l, PROC_PATHD, lies[i].what, lies[i].broken);
	}
	assert_int_equal(evil_failures, 0);
}

/* A success that there cannot be. */
void
lies_success(void **state)
{
	struct put_fin fin = {.code = C_OK, .bytes = 5};
	struct done done = {.code = C_OK};
	struct lab *l = *state;
	struct wbuf w;
	struct at at;

	evil_failures = 0;
	at = point_go(l, P_BODY);
	wbuf_init(&w, 256);
	put_fin_put(&w, &fin);
	lab_send(l, PROC_PATHD, MP_PUT_FIN, at.rid, -1, &w);
	evil_verdict(l, PROC_PATHD, "committed before it was whole", 1);
	at = point_go(l, P_LIST);
	wbuf_init(&w, 256);
	done_put(&w, &done);
	lab_send(l, PROC_PATHD, MP_DONE, at.rid, -1, &w);
	evil_verdict(l, PROC_PATHD, "a list that is done", 1);
	at = point_go(l, P_PUT);
	wbuf_init(&w, 256);
	done_put(&w, &done);
	lab_send(l, PROC_PATHD, MP_DONE, at.rid, -1, &w);
	evil_verdict(l, PROC_PATHD, "an upload that is done", 1);
	assert_int_equal(evil_failures, 0);
}

/* Only one late answer is owed. */
void
lies_late(void **state)
{
	struct lab *l = *state;
	struct at at = point_go(l, P_LATE);
	struct wbuf w;
	int i;

	evil_failures = 0;
	for (i = 0; i < 2; i++) {
		sample_put(l, &w, MP_FACTS, P_RESOLVE);
		lab_send(l, PROC_PATHD, MP_FACTS, at.rid, -1, &w);
	}
	evil_verdict(l, PROC_PATHD, "a late answer twice", 1);
	at = point_go(l, P_LATE);
	sample_put(l, &w, ME_END, P_RUNNING);
	lab_send(l, PROC_EXECD, ME_END, at.rid, -1, &w);
	evil_verdict(l, PROC_EXECD, "the late answer of another", 1);
	/* and what one tried to take is still the other's */
	at = point_go(l, P_LATE);
	sample_put(l, &w, ME_DONE, P_FREE);
	lab_send(l, PROC_EXECD, ME_DONE, at.rid, -1, &w);
	assert_true(lab_broken(l, PROC_EXECD, 1000));
	sample_put(l, &w, MP_FACTS, P_RESOLVE);
	lab_send(l, PROC_PATHD, MP_FACTS, at.rid, -1, &w);
	assert_int_equal(lab_sync(l), 0);
	assert_false(lab_broken(l, PROC_PATHD, 0));
	lab_fresh(l);
	assert_int_equal(evil_failures, 0);
}

/* ---- without end ---- */

static void fin(struct lab *, uint64_t id);

/* A pathd that is slow has as many questions before it as its channel holds,
 * and who withdraws them all may not make its first answer a lie. */
void
lies_slow(void **state)
{
	struct lab *l = *state;
	struct at at = point_go(l, P_LATE);
	struct wbuf w;
	uint64_t id;
	int i;

	evil_failures = 0;
	for (i = 0; i < 8000; i++) {
		id = lab_ask(l, OP_files_stat, "path", "f", NULL);
		lab_bytes(l, PROC_LISTENER, LM_CANCEL, id, -1, NULL, 0);
		fin(l, id);
		if (i % 64 == 63) {
			lab_drain(l, PROC_PATHD);
			assert_int_equal(lab_sync(l), 0);
		}
	}
	sample_put(l, &w, MP_FACTS, P_RESOLVE);
	lab_send(l, PROC_PATHD, MP_FACTS, at.rid, -1, &w);
	evil_verdict(l, PROC_PATHD, "an answer that is very late", 0);
	assert_int_equal(evil_failures, 0);
}

static void
fin(struct lab *l, uint64_t id)
{
	struct fin f = {0};
	struct wbuf w;

	wbuf_init(&w, 64);
	fin_put(&w, &f);
	lab_send(l, PROC_LISTENER, LM_FIN, id, -1, &w);
}

/* 100 000 questions, answered all, with no more memory than before. */
void
flood_polite(void **state)
{
	struct lab *l = *state;
	size_t before, i;
	struct imsg *m;
	uint64_t id;

	(void)lab_sync(l);
	before = proc_rss(l->pid);
	for (i = 0; i < 100000; i++) {
		id = lab_ask(l, OP_core_health, NULL);
		m = lab_next(l, PROC_LISTENER, LM_ANS);
		assert_int_equal(m->id, id);
		fin(l, id);
	}
	assert_int_equal(lab_sync(l), 0);
	assert_int_equal(l->lines, 0);
	assert_false(grew(l, before, 2048));
	assert_int_equal(proc_fds(l->pid), l->fds);
	lab_fresh(l);
}

/* Questions until the monitor has had enough; then it must still be small. */
static void
flood(struct lab *l, enum proc_kind guilty, void (*one)(struct lab *),
    size_t most, size_t kib)
{
	size_t before = proc_rss(l->pid), i;

	for (i = 0; i < most && !lab_broken(l, guilty, 0); i++)
		one(l);
	if (!lab_broken(l, guilty, 1000))
		fail_msg("%zu of them are not too many", i);
	if (grew(l, before, kib))
		fail_msg("%zu KiB more", proc_rss(l->pid) - before);
	lab_fresh(l);
	assert_int_equal(proc_fds(l->pid), l->fds);
}

static void
ask_only(struct lab *l)
{
	(void)lab_ask(l, OP_files_download, "path", "f", NULL);
	lab_drain(l, PROC_PATHD);
}

static void
ask_and_forget(struct lab *l)
{
	fin(l, lab_ask(l, OP_core_health, NULL));
}

/* Nothing of the answers is read. */
void
flood_listener(void **state)
{
	struct lab *l = *state;

	flood(l, PROC_LISTENER, ask_only, 10000, 4096);
	(void)fcntl(imsg_fd(l->side[PROC_LISTENER].im), F_SETFL, O_NONBLOCK);
	flood(l, PROC_LISTENER, ask_and_forget, 1000000, 32768);
}

/* Withdrawn at once, so that nothing is live, while pathd reads nothing: the
 * monitor says no before it chokes, and blames nobody. */
void
flood_deaf_pathd(void **state)
{
	struct lab *l = *state;
	size_t before = proc_rss(l->pid), i;
	char path[3000];
	struct imsg *m;
	uint64_t id;

	memset(path, 'x', sizeof(path) - 1);
	for (i = 100; i < sizeof(path); i += 100)
		path[i] = '/';
	path[sizeof(path) - 1] = '\0';
	for (i = 0; i < 8000; i++) {
		id = lab_ask(l, OP_files_stat, "path", path, NULL);
		lab_bytes(l, PROC_LISTENER, LM_CANCEL, id, -1, NULL, 0);
		fin(l, id);
		if (i % 64 == 63)
			assert_int_equal(lab_sync(l), 0);
	}
	assert_int_equal(l->lines, 0);
	assert_false(grew(l, before, 16 * 1024));
	/* and once pathd hears again, all is well */
	for (i = 0; i < 100; i++) {
		lab_drain(l, PROC_PATHD);
		assert_int_equal(lab_sync(l), 0);
	}
	id = lab_ask(l, OP_files_stat, "path", "f", NULL);
	(void)lab_facts(l, FK_FILE, -1);
	m = lab_next(l, PROC_LISTENER, LM_ANS);
	assert_int_equal(m->id, id);
	lab_fresh(l);
	assert_int_equal(proc_fds(l->pid), l->fds);
}

/* An execd that never says END: the listener is not to blame for what waits
 * for it, and there is an end to it. */
void
silence_execd(void **state)
{
	struct lab *l = *state;
	size_t i;
	struct imsg *m;
	struct at at;

	for (i = 0; i < 1500; i++) {
		at.lid = lab_ask(l, OP_commands_run, "*argv", "true", NULL);
		at.rid = lab_facts(l, FK_DIR, odd_fd(l, ODD_DIR, "", 0));
		(void)lab_sync(l);
		lab_drain(l, PROC_EXECD);
		lab_bytes(l, PROC_LISTENER, LM_CANCEL, at.lid, -1, NULL, 0);
		fin(l, at.lid);
		if (lab_broken(l, PROC_LISTENER, 0))
			fail_msg("the listener is blamed after %zu", i);
	}
	/* the next one hears no */
	at.lid = lab_ask(l, OP_commands_run, "*argv", "true", NULL);
	(void)lab_facts(l, FK_DIR, odd_fd(l, ODD_DIR, "", 0));
	m = lab_next(l, PROC_LISTENER, LM_ANS);
	assert_int_equal(m->id, at.lid);
	assert_non_null(memmem(m->payload, m->len, "server.unavailable", 18));
	assert_int_equal(l->lines, 0);
	lab_fresh(l);
	assert_int_equal(proc_fds(l->pid), l->fds);
}

/* A listener that never says FIN, a pathd that never answers: others live. */
void
silence_others(void **state)
{
	struct lab *l = *state;
	struct at run = point_go(l, P_RUNNING);
	struct wbuf w;
	size_t i;

	for (i = 0; i < 60; i++)
		ask_only(l);
	assert_int_equal(lab_sync(l), 0);
	assert_int_equal(l->lines, 0);
	/* the run ends as if nothing were */
	sample_put(l, &w, ME_END, P_RUNNING);
	lab_send(l, PROC_EXECD, ME_END, run.rid, -1, &w);
	fin(l, run.lid);
	assert_int_equal(lab_sync(l), 0);
	assert_int_equal(l->lines, 0);
	lab_fresh(l);
	assert_int_equal(proc_fds(l->pid), l->fds);
}
