/*
 * SPDX-License-Identifier: ISC
 *
 * Limits: the least of what the operation, the statement and the caller say,
 * never more.  Counting against them is the monitor's business.  Pure.
 */
#include <string.h>

#include "policy/engine.h"

#define LIST_ENTRIES 10000   /* of a listing, where nothing says less */
#define STREAM_CONCURRENCY 8 /* of a principal, where no statement says */
#define OUTPUT_MAX (64ULL * 1024 * 1024) /* kept of each stream at most */

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A number of the caller's in units of factor; LIMIT_NONE when not given. */
static uint64_t
asked(const struct args *args, const char *name, uint64_t factor)
{
	int64_t v;
	uint64_t r;

	if (args == NULL || !policy_arg_int(args, name, &v) || v < 1 ||
	    __builtin_mul_overflow((uint64_t)v, factor, &r))
		return LIMIT_NONE;
	return r;
}

/* In a command scope and on the wire to execd 0 means that there is none. */
static uint64_t
from_zero(uint64_t v)
{
	return v == 0 ? LIMIT_NONE : v;
}

static uint64_t
to_zero(uint64_t v)
{
	return v == LIMIT_NONE ? 0 : v;
}

static uint64_t
least3(uint64_t scope, uint64_t limit, uint64_t caller)
{
	return to_zero(least(
	    least(from_zero(scope), from_zero(limit)), from_zero(caller)));
}

void
bound_spawn(const struct args *args, const struct prule *r, struct spawn *s)
{
	const struct cscope *c = &r->commands;
	const struct limit_set *l = &r->limits;

	s->timeout_ms =
	    least3(c->timeout_ms, l->timeout_ms, asked(args, "timeout", 1000));
	s->idle_ms = least3(c->idle_ms, 0, asked(args, "idle_timeout", 1000));
	s->max_output = least3(
	    c->max_output, l->max_output, asked(args, "max_output_bytes", 1));
	if (s->max_output == 0 || s->max_output > OUTPUT_MAX)
		s->max_output = OUTPUT_MAX;
	s->cpu_s = least3(c->cpu_s, l->cpu_s, 0);
	s->memory = least3(c->memory, l->memory, 0);
	s->procs = least3(c->procs, l->processes, 0);
}

static uint64_t
bound_bytes(const struct prule *r, const struct op *op)
{
	const struct op_param *param;
	const struct pscope *s;
	uint64_t max = r->limits.max_bytes;

	if ((op->limits & L_BYTES) == 0)
		return LIMIT_NONE;
	for (param = op->params; param->name != NULL; param++) {
		s = rule_scope(r, param);
		if (s != NULL && (param->roles & R_CWD) == 0)
			max = least(max, s->max_bytes);
	}
	return max;
}

static uint64_t
bound_entries(const struct prule *r, const struct op *op)
{
	if ((op->limits & L_ENTRIES) == 0)
		return LIMIT_NONE;
	/* what is answered entry by entry has a limit in any case */
	if (op->stream != S_LIST)
		return r->limits.max_entries;
	return least(LIST_ENTRIES, r->limits.max_entries);
}

static int
is_stream(const struct op *op, const struct args *args)
{
	switch (op->stream) {
	case S_FILE:
	case S_PUT:
	case S_BYTES:
	case S_SSE:
		return 1;
	case S_RUN:
		return policy_arg_bool(args, "stream");
	case S_NONE:
	case S_LIST:
		break;
	}
	return 0;
}

void
bound_call(const struct call *c, const struct stmt *st, struct decision *d)
{
	const struct op *op = &ops[c->op];
	const struct limit_set *l = &st->rule->limits;

	d->max_bytes =
	    least(bound_bytes(st->rule, op), asked(c->args, "max_bytes", 1));
	d->max_entries = least(
	    bound_entries(st->rule, op), asked(c->args, "max_entries", 1));
	d->wait_ms = LIMIT_NONE;
	if ((op->limits & L_TIMEOUT) != 0 && (op->needs & N_COMMANDS) == 0)
		d->wait_ms =
		    least(l->timeout_ms, asked(c->args, "timeout", 1000));
	d->rate_count = l->rate_count;
	d->rate_period_ms = l->rate_period_ms;
	d->concurrency = l->concurrency;
	if (d->concurrency == 0 && is_stream(op, c->args))
		d->concurrency = STREAM_CONCURRENCY;
	if (l->concurrency_ceiling != 0 &&
	    (d->concurrency == 0 || d->concurrency > l->concurrency_ceiling))
		d->concurrency = l->concurrency_ceiling;
	d->limit_key = st->sel;
}

int
policy_op_limits(const struct policy *p, uint16_t op,
    const struct principal *who, struct op_limits *out)
{
	uint64_t bits = principal_bits(who);
	const struct stmt *st = NULL;
	struct spawn s = {0};
	size_t i;

	*out = (struct op_limits){
	    LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE};
	if (!op_mounted(p, op, who, bits))
		return -1;
	for (i = 0; i < p->ops[op].nallow && st == NULL; i++)
		if (stmt_matches(&p->ops[op].allow[i], who, bits))
			st = &p->ops[op].allow[i];
	if (st == NULL)
		return 0;
	out->max_bytes = bound_bytes(st->rule, &ops[op]);
	out->max_entries = bound_entries(st->rule, &ops[op]);
	if ((ops[op].needs & N_COMMANDS) != 0 && st->rule->has_commands) {
		bound_spawn(NULL, st->rule, &s);
		out->timeout_ms = from_zero(s.timeout_ms);
		out->max_output = s.max_output;
		out->memory = from_zero(s.memory);
	}
	return 0;
}
