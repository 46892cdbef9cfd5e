/*
 * SPDX-License-Identifier: ISC
 *
 * The gate over the life of requests.  The model knows no states and no
 * table: it knows what each side was told and what it still owes, and from
 * that says whether a message can be honest.  Both must agree on every
 * message of every sequence.  Input: 3 bytes a message (sender and request,
 * type, what comes of it).
 */
#include <string.h>

#include "common/abx.h"
#include "monitor/gate.h"
#include "regress/fuzz/fuzz.h"

#define REQUESTS 4

/* One request as its history. */
struct life {
	enum gate_state state; /* what the monitor would have written */
	int asked;	       /* and not over */
	int answered;	       /* the listener has its whole answer */
	int pipe;	       /* the listener fills an upload's pipe */
	int withdrawn;
	int fin; /* the listener is done with it */
	enum {
		OWES_NOTHING,
		OWES_FACTS,
		OWES_FIRST,
		OWES_PUT_FIN,
		OWES_COVER
	} pathd;
	int execd;   /* owes the end of a run, or that there is none */
	int keep;    /* that run becomes a process when it starts */
	int process; /* runs under this number, whoever asked for it */
	int word;    /* execd owes a word of a process */
	int held;    /* execd waits for a word before it starts that run */
	int started; /* execd's frames are with the listener */
};

static const struct sender {
	enum proc_kind kind;
	uint16_t types[16];
} senders[] = {
    {PROC_LISTENER, {LM_ASK, LM_CANCEL, LM_FIN, LM_PUT_END, LM_REJECTS, LM_ANS,
			LM_PUT_FIN, LM_CONF, MP_FACTS, ME_END, MP_DENIED_ANS,
			LM_PEER, LM_PEER_GONE, LM_RESULT}},
    {PROC_PATHD, {MP_ROOTS_OK, MP_FACTS, MP_PUT_ANS, MP_PUT_FIN, MP_LIST_ANS,
		     MP_DONE, MP_RESOLVE, MP_CANCEL, LM_FIN, ME_END,
		     MP_DENIED_ANS, MP_EDIT_ANS, MP_ARCHIVE_ANS, PW_FREE}},
    {PROC_EXECD, {ME_HELLO, ME_STARTED, ME_RUN, ME_IN, ME_FAILED, ME_END,
		     ME_SPAWN, ME_CANCEL, LM_ASK, MP_DONE, ME_HELD, LM_RESULT,
		     XL_HELLO, MP_EDIT_ANS, ME_DONE, ME_FEED}},
    {PROC_PARENT, {LM_ASK, MP_FACTS, ME_END, PC_SNAPSHOT, PC_CHILD_UP, LM_FIN,
		      MP_DONE, ME_FAILED, LM_CANCEL, MP_ROOTS_OK, ME_HELD,
		      LM_PEER, LM_RESULT, MP_EDIT_ANS, ME_DONE}},
};

enum verdict { REFUSED, TAKEN, DROPPED };

static enum verdict
listener_may(const struct life *l, uint16_t type)
{
	switch (type) {
	case LM_ASK:
		return !l->asked ? TAKEN : REFUSED;
	case LM_REJECTS:
	case LM_PEER:
	case LM_PEER_GONE:
		return !l->asked ? TAKEN : REFUSED; /* names no request */
	case LM_RESULT:
		return l->asked && l->answered && !l->withdrawn && !l->fin
			   ? TAKEN
			   : REFUSED;
	case LM_CANCEL:
		return l->asked && !l->withdrawn && !l->fin ? TAKEN : REFUSED;
	case LM_FIN:
		return l->asked && !l->fin && (l->answered || l->withdrawn)
			   ? TAKEN
			   : REFUSED;
	case LM_PUT_END:
		/* behind an early answer it may have crossed on the way */
		return l->asked && !l->withdrawn && !l->fin &&
			       (l->pipe || l->answered)
			   ? TAKEN
			   : REFUSED;
	default:
		return REFUSED;
	}
}

static enum verdict
pathd_may(const struct life *l, uint16_t type)
{
	int fits =
	    (type == MP_FACTS && l->pathd == OWES_FACTS) ||
	    (type == MP_PUT_FIN && l->pathd == OWES_PUT_FIN) ||
	    ((type == MP_DENIED_ANS || type == MP_DONE) &&
		l->pathd == OWES_COVER) ||
	    ((type == MP_PUT_ANS || type == MP_LIST_ANS || type == MP_DONE ||
		 type == MP_EDIT_ANS || type == MP_ARCHIVE_ANS) &&
		l->pathd == OWES_FIRST);

	if (type == MP_ROOTS_OK)
		return !l->asked ? TAKEN : REFUSED;
	if (type != MP_FACTS && type != MP_PUT_FIN && type != MP_PUT_ANS &&
	    type != MP_LIST_ANS && type != MP_DONE && type != MP_DENIED_ANS &&
	    type != MP_EDIT_ANS && type != MP_ARCHIVE_ANS)
		return REFUSED;
	/* the answer may have been on its way, whichever it was */
	if (l->withdrawn && !l->fin)
		return DROPPED;
	return fits ? TAKEN : REFUSED;
}

static enum verdict
execd_may(const struct life *l, uint16_t type)
{
	int gone = l->withdrawn || l->fin;

	switch (type) {
	case ME_HELLO:
		return !l->asked ? TAKEN : REFUSED;
	case ME_STARTED:
	case ME_RUN:
	case ME_IN:
	case ME_HELD:
		if (gone)
			return DROPPED;
		if (l->word && type == ME_RUN)
			return TAKEN;
		/* what a process writes is kept by execd */
		if (l->keep && (type == ME_RUN || type == ME_IN))
			return REFUSED;
		/* one that was given up while it was held never starts */
		return l->execd && !l->answered && !l->held ? TAKEN : REFUSED;
	case ME_FAILED:
		return l->execd && (gone || !l->started) ? TAKEN : REFUSED;
	case ME_DONE:
		if (l->withdrawn && !l->fin)
			return DROPPED;
		return l->word ? TAKEN : REFUSED;
	case ME_END:
		if (l->process)
			return TAKEN;
		return l->execd && (gone || !l->held) ? TAKEN : REFUSED;
	default:
		return REFUSED;
	}
}

static enum verdict
may(const struct life *l, enum proc_kind from, uint16_t type)
{
	switch (from) {
	case PROC_LISTENER:
		return listener_may(l, type);
	case PROC_PATHD:
		return pathd_may(l, type);
	case PROC_EXECD:
		return execd_may(l, type);
	default:
		return REFUSED;
	}
}

/* ---- what the monitor does, in both languages ---- */

/* Over; a process lives on. */
static void
end(struct life *l)
{
	*l = (struct life){.process = l->process};
}

static void
answer(struct life *l)
{
	l->state = RS_ANSWERED;
	l->answered = 1;
}

/* Work begins; what kind says the input. */
static void
work(struct life *l, unsigned choice)
{
	switch (choice % 7) {
	case 4:
		l->state = RS_COVER; /* of a run, before it is spawned */
		l->pathd = OWES_COVER;
		break;
	case 0:
		answer(l); /* stat, or refused */
		break;
	case 1:
		l->state = RS_WORK;
		l->pathd = OWES_FIRST;
		break;
	case 2:
		l->state = RS_WORK;
		l->execd = 1;
		break;
	case 5:
		l->state = RS_WORK;
		l->execd = 1;
		l->keep = !l->process;
		break;
	case 6:
		l->state = RS_WORK;
		l->word = 1;
		break;
	case 3:
		l->state = RS_REOPEN;
		l->pathd = OWES_FACTS;
		break;
	}
}

static void
listener_did(struct life *l, enum gate_handler h, unsigned choice)
{
	switch (h) {
	case GH_ASK:
		end(l);
		l->asked = 1;
		l->state = RS_RESOLVE;
		l->pathd = OWES_FACTS;
		if ((choice & 0x40) != 0) {
			l->pathd = OWES_NOTHING;
			answer(l);
		}
		break;
	case GH_CANCEL:
		l->state = RS_CANCELLED;
		l->withdrawn = 1;
		l->pathd = OWES_NOTHING; /* but may have answered */
		l->word = 0;
		l->held = 0;
		l->pipe = 0;
		break;
	case GH_PUT_END:
		if (l->state == RS_BODY)
			l->state = RS_COMMIT;
		l->pipe = 0;
		break;
	case GH_FIN:
		l->fin = 1;
		if (l->execd)
			l->state = RS_ENDING;
		else
			end(l);
		break;
	default:
		break;
	}
}

static void
worker_did(struct life *l, enum gate_handler h, unsigned choice)
{
	switch (h) {
	case GH_FACTS:
		l->pathd = OWES_NOTHING;
		work(l, l->state == RS_REOPEN && choice % 7 == 3 ? 0 : choice);
		break;
	case GH_PUT_ANS:
		l->state = RS_BODY;
		l->pathd = OWES_PUT_FIN;
		l->pipe = 1;
		break;
	case GH_DENIED:
		l->pathd = OWES_NOTHING;
		if ((choice & 1) != 0) {
			answer(l); /* changed, or pathd could not say */
		} else {
			l->state = RS_WORK;
			l->execd = 1;
		}
		l->held = 0;
		break;
	case GH_HELD:
		l->held = 1;
		l->state = RS_COVER;
		l->pathd = OWES_COVER;
		break;
	case GH_LIST_ANS:
	case GH_EDIT_ANS:
	case GH_ARCHIVE_ANS:
	case GH_DONE:
	case GH_PUT_FIN:
		l->pathd = OWES_NOTHING;
		l->pipe = 0;
		answer(l);
		break;
	case GH_EXEC_DONE:
		l->word = 0;
		answer(l);
		break;
	case GH_STARTED:
		if (!l->keep)
			break;
		l->keep = l->execd = 0;
		l->process = 1;
		answer(l);
		break;
	case GH_PROCESS_END:
		l->process = 0;
		break;
	case GH_RUN:
		if (!l->word && (choice & 1) != 0)
			break; /* the pipe of stdin is to come */
			       /* FALLTHROUGH */
	case GH_IN:
		l->started = !l->word;
		l->word = 0;
		answer(l);
		break;
	case GH_FAILED:
	case GH_END:
		if (l->held)
			l->pathd = OWES_NOTHING;
		l->execd = l->held = l->keep = 0;
		if (l->fin)
			end(l);
		else if (!l->withdrawn)
			answer(l);
		break;
	default:
		break;
	}
}

/* The gate, and the check beside it: a worker speaks of what it holds. */
static enum verdict
monitor_says(const struct life *l, enum proc_kind from, uint16_t type,
    enum gate_handler *h)
{
	int holds =
	    from == PROC_PATHD ? l->pathd != OWES_NOTHING : l->execd || l->word;

	*h = gate_check(from, type,
	    from == PROC_EXECD && type == ME_END && l->process ? RS_PROCESS
							       : l->state);
	if (*h == GH_PROCESS_END)
		return TAKEN;
	if (*h == GH_NONE)
		return REFUSED;
	if (*h == GH_DROP)
		return DROPPED;
	/* the handler knows whether that run ever started */
	if (type == ME_FAILED && l->started && l->state == RS_ANSWERED)
		return REFUSED;
	/* and what the request is about */
	if (from == PROC_EXECD && !gate_unbound(type) &&
	    (l->word ? type != ME_RUN && type != ME_DONE
		     : type == ME_DONE ||
			   (l->keep && type != ME_STARTED &&
			       (type == ME_RUN || type == ME_IN))))
		return REFUSED;
	return from == PROC_LISTENER || gate_unbound(type) || holds ? TAKEN
								    : REFUSED;
}

static void
message(struct life *l, const struct sender *s, uint16_t type, unsigned choice)
{
	enum gate_handler h;
	enum verdict said = monitor_says(l, s->kind, type, &h);

	CHECK(said == may(l, s->kind, type));
	if (said != TAKEN || gate_unbound(type))
		return;
	if (s->kind == PROC_LISTENER)
		listener_did(l, h, choice);
	else
		worker_did(l, h, choice);
	CHECK(l->asked == (l->state != RS_FREE));
	CHECK(l->state < RS_COUNT);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	struct life lives[REQUESTS] = {0};
	const struct sender *s;
	unsigned who, which, choice;

	while (f.n > 0) {
		who = feed_u8(&f);
		which = feed_u8(&f);
		choice = feed_u8(&f);
		s = &senders[who % nitems(senders)];
		message(&lives[who / 16 % REQUESTS], s,
		    s->types[which % nitems(s->types)], choice);
	}
	return 0;
}
