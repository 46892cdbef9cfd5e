/*
 * SPDX-License-Identifier: ISC
 *
 * Every message from every sibling at every point of a request's life, and
 * every truncation and extension of every message that is permitted somewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "regress/privsep/cells.h"
#include "regress/privsep/evil.h"

static const char *const point_names[P_COUNT] = {"free", "old", "resolve",
    "reopen", "put", "list", "change", "body", "commit", "answered", "spawn",
    "started", "spawn_in", "started_in", "run_in", "running", "ending",
    "cancelled", "cancel_run", "late", "cover", "hold", "held", "process",
    "over", "follow", "size"};

/* ---- what must hold behind each case ---- */

int evil_failures;

/* 0, or -1 and why. */
static int
check(struct lab *l, enum proc_kind from, int broken, char *why, size_t size)
{
	size_t fds;

	/* a listener that is broken answers no more: ask with a new one */
	if (broken && !lab_broken(l, from, 10000)) {
		snprintf(why, size, "the sender is not declared broken");
		return -1;
	}
	if (from == PROC_LISTENER && broken)
		lab_renew(l, PROC_LISTENER);
	if (lab_sync(l) == -1 || (!broken && lab_broken(l, from, 0))) {
		snprintf(
		    why, size, "the sender is declared broken: %s", l->line);
		return -1;
	}
	if (l->lines != (broken ? 1 : 0)) {
		snprintf(why, size, "%zu log lines, expected %d: %s", l->lines,
		    broken, l->line);
		return -1;
	}
	/* what it said to the others is checked as it is taken */
	lab_drain(l, PROC_PATHD);
	lab_drain(l, PROC_EXECD);
	lab_fresh(l);
	if ((fds = proc_fds(l->pid)) != l->fds) {
		snprintf(why, size, "%zu descriptors left, expected %zu", fds,
		    l->fds);
		return -1;
	}
	return 0;
}

void
evil_verdict(struct lab *l, enum proc_kind from, const char *what, int broken)
{
	char why[700];

	if (check(l, from, broken, why, sizeof(why)) == 0)
		return;
	print_error("%s: %s: %s\n", proc_name(from), what, why);
	if (++evil_failures > 30)
		fail_msg("and so on");
	lab_fresh(l);
}

/* ---- the matrix ---- */

static void
send_at(struct lab *l, enum proc_kind from, uint16_t type, enum point p,
    const struct at *at, int alone)
{
	uint64_t id = alone ? 0 : from == PROC_LISTENER ? at->lid : at->rid;
	struct wbuf w;

	sample_put(l, &w, type, p);
	lab_send(l, from, type, id, sample_fd(l, type), &w);
}

static void
cell(struct lab *l, enum proc_kind from, uint16_t type, enum point p)
{
	int broken = cell_row(from, type)[p] == '.';
	struct at at = point_go(l, p);
	char what[128];

	snprintf(what, sizeof(what), "%s (%#x) at %s", msg_name(type), type,
	    point_names[p]);
	send_at(l, from, type, p, &at, sample_alone(type));
	evil_verdict(l, from, what, broken);
}

static int
of_wire(enum proc_kind from, uint16_t type)
{
	switch (from) {
	case PROC_LISTENER:
		return type >> 8 == 1;
	case PROC_PATHD:
		return type >> 8 == 2;
	default:
		return type >> 8 == 3;
	}
}

/* Types of its own wire at every point, those of others at a few. */
static void
matrix(struct lab *l, enum proc_kind from)
{
	static const enum point few[] = {P_FREE, P_RESOLVE, P_BODY, P_RUNNING,
	    P_CANCELLED, P_CANCEL_RUN, P_LATE};
	size_t t, i;

	evil_failures = 0;
	for (t = 0; t < n_types; t++)
		if (of_wire(from, all_types[t]))
			for (i = 0; i < P_COUNT; i++)
				cell(l, from, all_types[t], (enum point)i);
		else
			for (i = 0; i < nitems(few); i++)
				cell(l, from, all_types[t], few[i]);
	assert_int_equal(evil_failures, 0);
}

void
matrix_listener(void **state)
{
	matrix(*state, PROC_LISTENER);
}

void
matrix_pathd(void **state)
{
	matrix(*state, PROC_PATHD);
}

void
matrix_execd(void **state)
{
	matrix(*state, PROC_EXECD);
}

/* ---- numbers that are not one's own ---- */

void
matrix_numbers(void **state)
{
	static const uint64_t odd[] = {0, 1, UINT64_MAX, 1ULL << 63, 12345};
	struct lab *l = *state;
	struct at at;
	size_t i;

	evil_failures = 0;
	for (i = 0; i < nitems(odd); i++) {
		at.lid = at.rid = odd[i];
		send_at(l, PROC_LISTENER, LM_FIN, P_FREE, &at, 0);
		evil_verdict(
		    l, PROC_LISTENER, "FIN of a number out of the air", 1);
		send_at(l, PROC_PATHD, MP_FACTS, P_FREE, &at, 0);
		evil_verdict(
		    l, PROC_PATHD, "FACTS of a number out of the air", 1);
		send_at(l, PROC_EXECD, ME_END, P_FREE, &at, 0);
		evil_verdict(
		    l, PROC_EXECD, "END of a number out of the air", 1);
	}
	/* ASK: the same number again, one below, none */
	at = point_go(l, P_RESOLVE);
	send_at(l, PROC_LISTENER, LM_ASK, P_FREE, &at, 0);
	evil_verdict(l, PROC_LISTENER, "ASK twice", 1);
	at = point_go(l, P_RESOLVE);
	at.lid = 1;
	send_at(l, PROC_LISTENER, LM_ASK, P_FREE, &at, 0);
	evil_verdict(l, PROC_LISTENER, "ASK of a smaller number", 1);
	at.lid = 0;
	send_at(l, PROC_LISTENER, LM_ASK, P_FREE, &at, 0);
	evil_verdict(l, PROC_LISTENER, "ASK of number 0", 1);
	/* what belongs to no request has no number */
	at.lid = at.rid = 7;
	send_at(l, PROC_LISTENER, LM_REJECTS, P_FREE, &at, 0);
	evil_verdict(l, PROC_LISTENER, "REJECTS with a number", 1);
	/* a run's number from pathd, an upload's from execd */
	at = point_go(l, P_RUNNING);
	send_at(l, PROC_PATHD, MP_DONE, P_CHANGE, &at, 0);
	evil_verdict(l, PROC_PATHD, "DONE of a run", 1);
	at = point_go(l, P_BODY);
	send_at(l, PROC_EXECD, ME_END, P_RUNNING, &at, 0);
	evil_verdict(l, PROC_EXECD, "END of an upload", 1);
	/* the numbers of the other wire */
	at = point_go(l, P_BODY);
	at.lid = at.rid;
	if (at.lid != l->lid) {
		send_at(l, PROC_LISTENER, LM_PUT_END, P_BODY, &at, 0);
		evil_verdict(l, PROC_LISTENER, "PUT_END by pathd's number", 1);
	}
	assert_int_equal(evil_failures, 0);
}

/* A request that outlives its listener belongs to no other. */
void
matrix_orphan(void **state)
{
	static const uint16_t types[] = {LM_FIN, LM_CANCEL, LM_PUT_END, LM_ASK};
	struct lab *l = *state;
	struct at at;
	size_t i, k;

	evil_failures = 0;
	for (i = 0; i < nitems(types); i++)
		for (k = 0; k < 2; k++) {
			at = point_go(l, P_RUNNING);
			lab_renew(l, PROC_LISTENER);
			(void)lab_next(l, PROC_EXECD, ME_CANCEL);
			if (k == 0)
				at.lid = 0;
			if (types[i] == LM_ASK && k == 1)
				continue;
			send_at(l, PROC_LISTENER, types[i], P_FREE, &at, 0);
			evil_verdict(l, PROC_LISTENER, "another's request", 1);
		}
	assert_int_equal(evil_failures, 0);
}

/* ---- lengths ---- */

/* A point at which that message is taken. */
static const struct {
	enum proc_kind from;
	uint16_t type;
	enum point p;
} taken[] = {
    {PROC_LISTENER, LM_ASK, P_FREE},
    {PROC_LISTENER, LM_CANCEL, P_RESOLVE},
    {PROC_LISTENER, LM_PUT_END, P_BODY},
    {PROC_LISTENER, LM_FIN, P_ANSWERED},
    {PROC_LISTENER, LM_REJECTS, P_FREE},
    {PROC_PATHD, MP_FACTS, P_RESOLVE},
    {PROC_PATHD, MP_FACTS, P_REOPEN},
    {PROC_PATHD, MP_PUT_ANS, P_PUT},
    {PROC_PATHD, MP_PUT_FIN, P_BODY},
    {PROC_PATHD, MP_PUT_FIN, P_COMMIT},
    {PROC_PATHD, MP_LIST_ANS, P_LIST},
    {PROC_PATHD, MP_DONE, P_CHANGE},
    {PROC_PATHD, MP_DENIED_ANS, P_COVER},
    {PROC_PATHD, MP_DENIED_ANS, P_HELD},
    {PROC_PATHD, MP_SPACE_ANS, P_SIZE},
    {PROC_EXECD, ME_STARTED, P_SPAWN},
    {PROC_EXECD, ME_RUN, P_STARTED},
    {PROC_EXECD, ME_IN, P_RUN_IN},
    {PROC_EXECD, ME_FAILED, P_SPAWN},
    {PROC_EXECD, ME_END, P_RUNNING},
    {PROC_EXECD, ME_END, P_ENDING},
    {PROC_EXECD, ME_END, P_PROCESS},
    {PROC_EXECD, ME_HELD, P_HOLD},
    {PROC_EXECD, ME_DONE, P_FOLLOW},
    {PROC_EXECD, ME_RUN, P_FOLLOW},
};

/* n bytes of the sample, zeros behind its end. */
static void
cut(struct lab *l, size_t i, size_t n)
{
	uint8_t bytes[IMSG_MAX_PAYLOAD] = {0};
	struct at at = point_go(l, taken[i].p);
	uint64_t id = taken[i].from == PROC_LISTENER ? at.lid : at.rid;
	struct wbuf w;
	char what[128];

	sample_put(l, &w, taken[i].type, taken[i].p);
	if (w.len > 0)
		memcpy(bytes, w.p, w.len < n ? w.len : n);
	snprintf(what, sizeof(what), "%s at %s, %zu bytes of %zu",
	    msg_name(taken[i].type), point_names[taken[i].p], n, w.len);
	lab_bytes(l, taken[i].from, taken[i].type,
	    sample_alone(taken[i].type) ? 0 : id, sample_fd(l, taken[i].type),
	    bytes, n);
	evil_verdict(l, taken[i].from, what, n != w.len);
	wbuf_free(&w);
}

void
matrix_lengths(void **state)
{
	struct lab *l = *state;
	struct wbuf w;
	size_t i, n, len;

	evil_failures = 0;
	for (i = 0; i < nitems(taken); i++) {
		sample_put(l, &w, taken[i].type, taken[i].p);
		len = w.len;
		wbuf_free(&w);
		for (n = 0; n <= len + 2; n++)
			cut(l, i, n);
		cut(l, i, len + 64);
		cut(l, i, IMSG_MAX_PAYLOAD);
	}
	assert_int_equal(evil_failures, 0);
}

/* ---- one byte wrong: nobody may suffer but the sender ---- */

static void
flip(struct lab *l, size_t i, size_t at_byte, uint8_t value)
{
	struct at at = point_go(l, taken[i].p);
	uint64_t id = taken[i].from == PROC_LISTENER ? at.lid : at.rid;
	enum proc_kind from = taken[i].from;
	struct wbuf w;

	sample_put(l, &w, taken[i].type, taken[i].p);
	w.p[at_byte] ^= value;
	lab_bytes(l, from, taken[i].type, sample_alone(taken[i].type) ? 0 : id,
	    sample_fd(l, taken[i].type), w.p, w.len);
	wbuf_free(&w);
	/* a lie may be one that nobody can know for a lie */
	if (from == PROC_LISTENER)
		(void)lab_broken(l, from, 5);
	if (l->side[from].broken && from == PROC_LISTENER)
		lab_renew(l, PROC_LISTENER);
	if (lab_sync(l) == -1)
		evil_failures++;
	lab_drain(l, PROC_PATHD);
	lab_drain(l, PROC_EXECD);
	lab_fresh(l);
	if (proc_fds(l->pid) != l->fds) {
		print_error("%s byte %zu: %zu descriptors\n",
		    msg_name(taken[i].type), at_byte, proc_fds(l->pid));
		evil_failures++;
	}
}

void
matrix_bytes(void **state)
{
	static const uint8_t values[] = {0x01, 0x80, 0xff};
	struct lab *l = *state;
	struct wbuf w;
	size_t i, n, k, len;

	evil_failures = 0;
	for (i = 0; i < nitems(taken); i++) {
		if (taken[i].from == PROC_LISTENER)
			continue; /* strings of its own */
		sample_put(l, &w, taken[i].type, taken[i].p);
		len = w.len;
		wbuf_free(&w);
		for (n = 0; n < len; n++)
			for (k = 0; k < nitems(values); k++)
				flip(l, i, n, values[k]);
	}
	assert_int_equal(evil_failures, 0);
}
