/*
 * SPDX-License-Identifier: ISC
 *
 * Generated calls and the answers to them, from facts of a file system that
 * exists only by its names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/hash.h"
#include "regress/unit/policy_ask.h"
#include "regress/unit/policy_gen.h"

/* ---- a call ---- */

static void
add_str(struct args *args, const char *name, const char *value)
{
	struct arg *a = args_add(args, name, A_STR);

	assert_non_null(a);
	assert_int_equal(arg_set_str(a, value, strlen(value)), 0);
}

static void
add_params(struct args *args, const struct op *op)
{
	static const char *const paths[] = {"x", "a", "a/b", "a/b/x", "/r",
	    "/r/a", "/r/a/x", "/r/a/z", "/r/a/z/x", "z", "z/x", "/s/t/z",
	    "/r/b.c", "/s/t/x", "/s/l/x", "/r/l", "../x", "/h/a/x", "/h/b/x",
	    "/w/s1/x", "/etc/passwd", "/proc/1", "/r/../s/x", ".",
	    "/var/lib/abx/x", "/r/m", "c"};
	static const char *const lines[] = {"true", "ls x", "ls -l x", "seq 5",
	    "cat a/b x", "echo w", "id", "ls /etc/passwd", "x", "head -n 3 q x",
	    "sh -c x", "ls ../x"};
	const struct op_param *p;

	for (p = op->params; p->name != NULL; p++) {
		if (p->type == T_PATH &&
		    ((p->flags & PF_REQ) != 0 || gen_rnd(2)))
			add_str(args, p->name, GEN_PICK(paths));
		else if (strcmp(p->name, "command") == 0)
			add_str(args, p->name, GEN_PICK(lines));
		else if (strcmp(p->name, "shell") == 0 && gen_rnd(6) == 0)
			args_add(args, p->name, A_BOOL)->i = 1;
		else if (p->type == T_STR && (p->flags & PF_REQ) != 0)
			add_str(args, p->name, "x");
	}
	if (gen_rnd(30) == 0)
		add_str(args, "unheard_of", "x");
}

void
ask_new(struct asked *a, const struct policy *p)
{
	static const struct {
		const char *id, *role;
		int known;
	} people[] = {{"a", "x", 1}, {"b", "y", 1}, {"c", NULL, 1},
	    {"anonymous", NULL, 0}};
	uint32_t i = gen_rnd(nitems(people));

	memset(a, 0, sizeof(*a));
	a->who.id = people[i].id;
	a->who.authenticated = people[i].known;
	a->roles[0] = people[i].role;
	a->who.roles = a->roles;
	a->who.nroles = people[i].role != NULL;
	a->call.op = gen_op();
	for (i = gen_rnd(8) ? 40 : 0; i > 0; i--)
		if (!policy_mounted(p, a->call.op, &a->who))
			a->call.op = gen_op();
	a->call.session = gen_rnd(4) ? "s1" : NULL;
	add_params(&a->args, &ops[a->call.op]);
	a->call.args = &a->args;
	a->call.who = &a->who;
}

/* ---- a file system ---- */

/* Links: /X/l leads to /r/a, /X/m out of everything.  What exists depends on
 * the name alone. */
static void
resolve(char path[ABX_PATH_MAX + 1], int *link)
{
	char tail[ABX_PATH_MAX + 1];
	char *at;

	*link = 0;
	if ((at = strstr(path, "/l/")) != NULL)
		strlcpy(tail, at + 2, sizeof(tail));
	else if (strlen(path) > 2 && strcmp(path + strlen(path) - 2, "/l") == 0)
		tail[0] = '\0';
	else if (strstr(path, "/m") != NULL) {
		strlcpy(path, "/etc/m", ABX_PATH_MAX + 1);
		return;
	} else
		return;
	*link = 1;
	strlcpy(path, "/r/a", ABX_PATH_MAX + 1);
	strlcat(path, tail, ABX_PATH_MAX + 1);
}

static void
look(const struct policy *p, const struct plan_item *it, struct facts *f)
{
	char path[ABX_PATH_MAX + 1], dir[ABX_PATH_MAX + 1];
	size_t i, len = 0;
	int link, found = 0;

	memset(f, 0, sizeof(*f));
	strlcpy(path, it->path, sizeof(path));
	resolve(path, &link);
	for (i = 0; i < it->nrefs; i++) {
		assert_int_equal(
		    path_join_into(
			p->roots[it->refs[i].root].canon, it->refs[i].sub, dir),
		    0);
		if (path_below(dir, path) == NULL || strlen(dir) < len)
			continue;
		found = 1;
		len = strlen(dir);
		f->ref = (uint8_t)i;
	}
	if (!found) {
		f->status = FS_OUTSIDE;
		return;
	}
	f->path = strdup(path);
	f->rel = (uint16_t)len;
	f->symlink = (uint8_t)link;
	f->nlink = 1 + (strlen(path) % 3 == 0);
	f->size = strlen(path) * 100;
	f->dev = f->ino = 1;
	f->kind = path[strlen(path) - 1] == 'x' ? FK_FILE : FK_DIR;
	if (strstr(path, "/q") != NULL) {
		f->kind = FK_MISSING;
		f->missing = 1;
	}
}

static void
take(const struct decision *d, struct answer *out)
{
	struct wbuf w;
	size_t i;

	memset(out, 0, sizeof(*out));
	out->allowed = d->allowed;
	out->mounted = d->mounted;
	out->code = d->code;
	out->rule = d->rule;
	out->max_bytes = d->max_bytes;
	out->max_entries = d->max_entries;
	out->timeout_ms = d->spawn.timeout_ms;
	out->concurrency = d->concurrency;
	out->rate_count = d->rate_count;
	out->rate_period_ms = d->rate_period_ms;
	for (i = 0; i < d->npaths && i < 3; i++)
		strlcpy(out->canonical[i], d->paths[i].canonical,
		    sizeof(out->canonical[i]));
	wbuf_init(&w, 1024 * 1024);
	for (i = 0; i < d->spawn.argv.n; i++)
		wput_str(&w, d->spawn.argv.v[i]);
	for (i = 0; i < d->spawn.env.n; i++)
		wput_str(&w, d->spawn.env.v[i]);
	for (i = 0; i < d->deny.n; i++)
		wput_str(&w, d->deny.v[i]);
	sha256(w.p, w.len, out->spawn);
	wbuf_free(&w);
}

unsigned long ask_count, ask_allowed;

void
ask_policy(const struct policy *p, const struct call *call, struct answer *out)
{
	struct facts facts[ABX_MAX_RESOLVE];
	struct decision d;
	struct plan plan;
	size_t i;

	assert_int_equal(policy_plan(p, call, &plan), 0);
	for (i = 0; i < plan.nitems; i++)
		look(p, &plan.items[i], &facts[i]);
	assert_int_equal(policy_decide(p, call, &plan, facts, &d), 0);
	assert_true(d.allowed || d.code != C_OK);
	assert_true(!d.allowed || d.mounted);
	take(&d, out);
	ask_count++;
	ask_allowed += d.allowed;
	decision_clear(&d);
	for (i = 0; i < plan.nitems; i++)
		facts_clear(&facts[i]);
	plan_clear(&plan);
}

void
ask_broken(const char *what, const struct asked *a, const char *one,
    const char *two, const struct answer *x, const struct answer *y)
{
	size_t i;

	print_message("seed %llu: %s\n%s\n%s\nop %s, id %s\n",
	    (unsigned long long)gen_seed, what, one, two != NULL ? two : "",
	    ops[a->call.op].id, a->who.id);
	for (i = 0; i < a->args.n; i++)
		print_message("  %s=%s\n", a->args.v[i].name,
		    a->args.v[i].s != NULL ? a->args.v[i].s : "");
	print_message("%s by %ld, then %s by %ld\n", codes[x->code].code,
	    x->rule, codes[y->code].code, y->rule);
	fail();
}
