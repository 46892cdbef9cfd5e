/*
 * SPDX-License-Identifier: ISC
 *
 * Calls against one fixed policy.  Whatever the arguments are and whatever
 * pathd claims, nothing is allowed outside the places written down here once
 * more by hand.  Input: 1 byte operation, 1 byte roles, 1 byte choices, then
 * for each parameter 1 byte (form) and a line; what is left are claims about
 * paths, 2 bytes and a line each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/engine.h"
#include "regress/fuzz/decide.h"
#include "regress/fuzz/fuzz.h"

static const char text[] =
    "{\"version\":1,\"auth\":{\"anonymous\":true},"
    "\"protect_dirs\":[\"/srv/task/state\"],\"rules\":["
    "{\"allow\":[\"files.list\",\"files.stat\",\"files.download\"],"
    "\"principals\":\"role:reader\",\"paths\":{\"roots\":[\"/srv/data\","
    "\"/srv/link\"],\"readonly\":true,\"deny\":[\"**/.env\","
    "\"hidden/deep\",\"/srv/link/shut\"]}},"
    "{\"allow\":\"files.*\",\"principals\":\"role:writer\",\"paths\":{"
    "\"roots\":[\"/srv/task\",\"/srv/users/{principal.id}\"],"
    "\"deny\":[\".git\"]}},"
    "{\"allow\":\"files.move\",\"principals\":\"role:mover\",\"paths\":{"
    "\"src\":\"/srv/in\",\"dst\":{\"roots\":[\"/srv/out\"],"
    "\"symlinks\":\"deny\"}}},"
    "{\"allow\":\"commands.run\",\"principals\":\"role:runner\","
    "\"commands\":{\"allow\":[\"cat {path}\",\"ls ... {path}\","
    "\"seq {int}\",\"echo *.c\"],\"deny\":[\"... -R ...\"],"
    "\"cwd\":{\"roots\":[\"/srv/task\"],\"deny\":[\"closed\"]},"
    "\"env_set\":[\"X_*\"]}},"
    "{\"allow\":\"core.check\"},"
    "{\"deny\":\"*\",\"principals\":\"role:banned\"},"
    "{\"deny\":[\"files.*\",\"commands.run\"],"
    "\"paths\":[\"*.key\",\"/srv/*/closed/**\",\"own/private\"]}]}";

/* The order is the first byte of the corpus: add at the end. */
static const char *const op_ids[] = {"core.health", "core.capabilities",
    "core.check", "files.list", "files.stat", "files.download", "files.upload",
    "files.mkdir", "files.move", "files.delete", "commands.run", "files.copy",
    "files.search", "files.edit", "files.archive", "files.export",
    "files.import", "files.watch", "process.start", "process.list",
    "terminal.create", "net.fetch", "core.reload", "no.such"};

enum { READER = 1, WRITER = 2, MOVER = 4, RUNNER = 8, BANNED = 16 };
static const char *const role_names[] = {
    "reader", "writer", "mover", "runner", "banned"};

static struct policy *
fixed_policy(void)
{
	struct conf_source src = {"fixed", LAYER_FILE, text, sizeof(text) - 1};
	static struct policy *p;
	struct findings f = {0};
	struct policy_root r;
	struct conf *c;
	size_t i;

	if (p != NULL)
		return p;
	c = conf_load(&src, 1, NULL, &f);
	CHECK(c != NULL && f.n == 0);
	CHECK((p = policy_new(c, &f)) != NULL);
	conf_free(c);
	for (i = 0; i < policy_nroots(p); i++) {
		policy_root(p, i, &r);
		if (strcmp(r.path, "/srv/link") == 0)
			CHECK(policy_set_root(p, i, "/data/real") == 0);
	}
	return p;
}

/* ---- claims ---- */

static void
claim(const struct policy *p, const struct plan_item *it, struct facts *f,
    void *arg)
{
	struct feed *in = arg;
	uint8_t how = feed_u8(in), kind = feed_u8(in);
	char *line;

	facts_plain(p, it, f, kind % (FK_OTHER + 1));
	f->symlink = kind >> 4 & 1;
	f->nlink = 1 + (kind >> 5 & 1);
	f->size = (uint64_t)kind << 20;
	if (how < 0x80)
		return; /* it is just there */
	line = feed_str(in, '\n', 8192);
	if (how >= 0xf0) {
		f->status = how % 4;
		f->err = how & 4 ? ENOENT : EACCES;
	} else if (line[0] == '/') {
		/* another place, perhaps a lie, spelled with care */
		free(f->path);
		f->path = line;
		line = NULL;
		f->ref = how % 4;
		f->rel = (uint16_t)(how & 8 ? how % 32 : f->rel);
		f->status = FS_OK;
	} else if (f->status == FS_OK) {
		/* deeper below the same root */
		size_t n = strlen(f->path) + strlen(line) + 2;
		char *deep = fuzz_alloc(n);

		snprintf(deep, n, "%s/%s", f->path, line);
		free(f->path);
		f->path = deep;
	}
	free(line);
}

/* ---- what may be ---- */

/* A component of the path is that name, or ends in that suffix. */
static int
has_component(const char *path, const char *name, const char *suffix)
{
	char *copy = strdup(path), *s = copy, *one;
	int hit = 0;

	CHECK(copy != NULL);
	while ((one = strsep(&s, "/")) != NULL) {
		size_t n = strlen(one), m = suffix ? strlen(suffix) : 0;

		hit |= name != NULL && strcmp(one, name) == 0;
		hit |= suffix != NULL && n >= m &&
		       strcmp(one + n - m, suffix) == 0;
	}
	free(copy);
	return hit;
}

/* Nobody touches these. */
static int
closed(const char *path)
{
	return lies_below("/proc", path) || lies_below("/sys", path) ||
	       lies_below("/dev", path) ||
	       lies_below("/srv/task/state", path) ||
	       has_component(path, NULL, ".key") ||
	       lies_below("/srv/data/closed", path) ||
	       lies_below("/srv/task/closed", path) ||
	       lies_below("/data/real/closed", path) ||
	       lies_below("/srv/task/own/private", path) ||
	       lies_below("/srv/data/own/private", path) ||
	       lies_below("/data/real/own/private", path) ||
	       lies_below("/srv/users/agent-1/own/private", path);
}

static int
reader_may(const char *path)
{
	return (lies_below("/srv/data", path) ||
		   lies_below("/data/real", path)) &&
	       !has_component(path, ".env", NULL) &&
	       !lies_below("/srv/data/hidden/deep", path) &&
	       !lies_below("/data/real/hidden/deep", path) &&
	       !lies_below("/data/real/shut", path);
}

static int
writer_may(const char *path)
{
	return (lies_below("/srv/task", path) ||
		   lies_below("/srv/users/agent-1", path)) &&
	       !has_component(path, ".git", NULL);
}

struct look {
	struct feed feed;
	unsigned roles;
};

static void
look_path(const struct look *l, const struct dpath *dp)
{
	int src = strcmp(dp->param, "src") == 0;
	const char *path = dp->canonical;
	unsigned by = l->roles;

	CHECK(!closed(path));
	if (strcmp(dp->param, "cwd") == 0) {
		CHECK((by & RUNNER) != 0 && lies_below("/srv/task", path));
		CHECK(!has_component(path, "closed", NULL));
		return;
	}
	CHECK(((by & READER) != 0 && reader_may(path)) ||
	      ((by & WRITER) != 0 && writer_may(path)) ||
	      ((by & MOVER) != 0 &&
		  lies_below(src ? "/srv/in" : "/srv/out", path)));
}

/* A program of the list, and a place for {path} that pathd saw inside. */
static void
look_run(const struct plan *plan, const struct facts *facts,
    const struct decision *d)
{
	const struct spawn *s = &d->spawn;
	const char *prog = strrchr(s->argv.v[0], '/');
	const char *last = s->argv.v[s->argv.n - 1];
	char path[ABX_PATH_MAX + 1];
	size_t i;
	int seen = 0;

	prog = prog == NULL ? s->argv.v[0] : prog + 1;
	for (i = 0; i < s->progs.n; i++)
		CHECK(strncmp(s->progs.v[i], "/usr/bin/", 9) == 0 ||
		      strncmp(s->progs.v[i], "/bin/", 5) == 0 ||
		      strncmp(s->progs.v[i], "/usr/local/bin/", 15) == 0);
	for (i = 0; i < s->env.n; i++)
		CHECK(strncmp(s->env.v[i], "X_", 2) == 0 ||
		      strncmp(s->env.v[i], "HOME=", 5) == 0 ||
		      strncmp(s->env.v[i], "USER=abx", 8) == 0 ||
		      strncmp(s->env.v[i], "LOGNAME=abx", 11) == 0 ||
		      strncmp(s->env.v[i], "LANG=", 5) == 0 ||
		      strcmp(s->env.v[i],
			  "PATH=/usr/bin:/bin:/usr/local/bin") == 0);
	if (strcmp(prog, "seq") == 0 || strcmp(prog, "echo") == 0) {
		CHECK(s->argv.n == 2 && d->cwd_item >= 0);
		return;
	}
	CHECK(strcmp(prog, "cat") == 0 || strcmp(prog, "ls") == 0);
	CHECK(strcmp(prog, "cat") != 0 || s->argv.n == 2);
	CHECK(last[0] != '-' && d->cwd_item >= 0);
	CHECK((last[0] == '/' ? path_normal_into(last, path)
			      : path_join_into(plan->items[d->cwd_item].path,
				    last, path)) == 0);
	for (i = 0; i < plan->nitems; i++)
		if (strcmp(plan->items[i].path, path) == 0) {
			seen = 1;
			CHECK(facts[i].status == FS_OK);
			CHECK(lies_below("/srv/task", facts[i].path));
			CHECK(!closed(facts[i].path));
			CHECK(!has_component(facts[i].path, "closed", NULL));
		}
	CHECK(seen);
}

static void
look(const struct call *call, const struct plan *plan,
    const struct facts *facts, const struct decision *d, void *arg)
{
	const struct look *l = arg;
	size_t i;

	if ((l->roles & BANNED) != 0 && call->op != OP_core_health)
		CHECK(!d->allowed);
	if (!d->allowed || call->op == OP_core_health ||
	    call->op == OP_core_check)
		return;
	CHECK(l->roles != 0);
	for (i = 0; i < d->npaths; i++)
		look_path(l, &d->paths[i]);
	if ((ops[call->op].effects & (E_WRITE | E_DELETE)) != 0)
		CHECK((l->roles & (WRITER | MOVER)) != 0);
	if ((ops[call->op].needs & N_COMMANDS) != 0) {
		CHECK((l->roles & RUNNER) != 0);
		if (d->code == C_OK)
			look_run(plan, facts, d);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct look l = {{data, size}, 0};
	const struct policy *p = fixed_policy();
	const char *roles[nitems(role_names)];
	struct principal who = {"agent-1", roles, 0, 1};
	struct args args = {0};
	struct call call = {.args = &args, .who = &who};
	const struct op_param *q;
	uint8_t choices;
	size_t i;

	call.op = op_find(op_ids[feed_u8(&l.feed) % nitems(op_ids)]);
	l.roles = feed_u8(&l.feed) & 31;
	choices = feed_u8(&l.feed);
	for (i = 0; i < nitems(role_names); i++)
		if ((l.roles & 1U << i) != 0)
			roles[who.nroles++] = role_names[i];
	if (call.op != OP_NONE) {
		for (q = ops[call.op].params; q->name != NULL; q++)
			feed_arg(&args, q, &l.feed);
		if ((choices & 0x81) == 0x81)
			args_add(&args, "unknown", A_NULL);
	}
	decide_call(p, &call, claim, look, &l);
	args_clear(&args);
	return 0;
}
