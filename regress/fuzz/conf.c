/*
 * SPDX-License-Identifier: ISC
 *
 * Configurations: any text ends in findings; one that may start can be
 * printed, read again as what the monitor gets, and printed again the same;
 * and it can be compiled.  The text is also read as if it were the monitor's
 * own.  Input: the text; a line "---" divides file and drop-in.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy.h"
#include "regress/fuzz/decide.h"
#include "regress/fuzz/fuzz.h"

static const char *const env[] = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8",
    "EDITOR=ed", "T_ADMIN=admin-token-0123456789abcdef",
    "T_VIEWER=viewer-token-0123456789abcdef", "T_SHORT=fifteen-letters",
    "T_SPACE=white space-0123456789", "T_EMPTY=", "BAD_UTF8=\xff\xfe", NULL};
static const char *const env_single[] = {
    "ABX_SERVER_TOKEN=0123456789abcdef", NULL};

static int
dir_check(const char *path, void *arg)
{
	return strncmp(path, "/absent", 7) == 0 ? ENOENT : 0;
}

static char *
token_file(const char *path, void *arg)
{
	if (strcmp(path, "/run/good") == 0)
		return strdup("a-secret-from-a-file-0123\n");
	return strcmp(path, "/run/short") == 0 ? strdup("short\n") : NULL;
}

/* Every finding can be shown. */
static void
check_findings(struct findings *f)
{
	size_t i;
	char *s;

	CHECK(!f->nomem);
	for (i = 0; i < f->n; i++) {
		s = finding_text(&f->v[i]);
		CHECK(s != NULL && f->v[i].code != NULL);
		free(s);
	}
	findings_clear(f);
}

static void
there(const struct policy *p, const struct plan_item *it, struct facts *f,
    void *arg)
{
	facts_plain(p, it, f, *(const uint8_t *)arg);
}

/* A few calls of everybody's, on a file system where all is of one kind. */
static void
ask_calls(const struct policy *p, const struct principal *who)
{
	static const struct {
		uint16_t op;
		const char *names[2], *values[2];
	} t[] = {
	    {OP_files_stat, {"path"}, {"/srv/data/a"}},
	    {OP_files_stat, {"path"}, {"/data/real/x"}},
	    {OP_files_list, {"path"}, {"."}},
	    {OP_files_download, {"path"}, {"/srv/link/b/../c"}},
	    {OP_files_upload, {"path"}, {"sub/f.key"}},
	    {OP_files_move, {"src", "dst"}, {"a", "/srv/b"}},
	    {OP_files_delete, {"path"}, {"/srv/data"}},
	    {OP_commands_run, {"command"}, {"ls -l /srv/data/a"}},
	    {OP_commands_run, {"command", "cwd"}, {"git status", "."}},
	    {OP_commands_run, {"command", "shell"}, {"echo *", "true"}},
	    {OP_core_check, {"op"}, {"x"}},
	};
	struct args args = {0};
	struct call call = {.args = &args, .who = who, .session = "s-1"};
	struct arg *a;
	uint8_t kind;
	size_t i, k;

	for (i = 0; i < nitems(t); i++) {
		for (k = 0; k < 2 && t[i].names[k] != NULL; k++) {
			a = args_add(&args, t[i].names[k], A_QUERY);
			CHECK(a != NULL);
			CHECK(arg_set_str(a, t[i].values[k],
				  strlen(t[i].values[k])) == 0);
		}
		call.op = t[i].op;
		for (kind = FK_MISSING; kind <= FK_DIR; kind++)
			decide_call(p, &call, there, NULL, &kind);
		args_clear(&args);
	}
}

static void
ask_policy(struct policy *p)
{
	static const char *const roles[] = {"admin", "x"};
	struct principal who = {"agent-1", roles, 2, 1};
	struct principal nobody = {"anonymous", NULL, 0, 0};
	struct policy_root root;
	struct op_limits l;
	uint16_t op;
	size_t i;

	for (op = 0; op < OP_COUNT; op++) {
		if (policy_mounted(p, op, &who))
			policy_op_limits(p, op, &who, &l);
		policy_mounted(p, op, &nobody);
	}
	for (i = 0; i < policy_nroots(p); i++) {
		policy_root(p, i, &root);
		CHECK(root.path[0] == '/');
		if (strcmp(root.path, "/srv/link") == 0)
			CHECK(policy_set_root(p, i, "/data/real") == 0);
	}
	ask_calls(p, &who);
	ask_calls(p, &nobody);
}

static void
compile(const struct conf *c)
{
	struct findings f = {0};
	struct policy *p = policy_new(c, &f);

	if (p == NULL)
		CHECK(f.n > 0 && !f.nomem);
	else
		ask_policy(p);
	policy_free(p);
	findings_clear(&f);
}

static void
round_trip(const struct conf *c)
{
	struct conf_source src = {"policy", LAYER_CANON, NULL, 0};
	struct findings f = {0};
	char rev[65], rev2[65], *one, *two;
	struct conf *again;

	CHECK((one = conf_print(c)) != NULL);
	src.data = one;
	src.len = strlen(one);
	again = conf_load(&src, 1, NULL, &f);
	CHECK(again != NULL && f.n == 0);
	CHECK((two = conf_print(again)) != NULL);
	CHECK(strcmp(one, two) == 0);
	CHECK(conf_revision(c, rev) == 0 && conf_revision(again, rev2) == 0);
	CHECK(strcmp(rev, rev2) == 0);
	compile(again);
	conf_free(again);
	free(one);
	free(two);
}

static void
read_one(const struct conf_source *src, size_t n, const struct conf_world *w)
{
	struct findings f = {0};
	struct conf *c = conf_load(src, n, w, &f);
	int block;
	char *s;

	if (c == NULL)
		CHECK(f.n > 0 && findings_block(&f, 1));
	else {
		conf_lint(c, w, &f);
		block = findings_block(&f, 1);
		CHECK((s = conf_print(c)) != NULL);
		free(s);
		if (!block && src[0].layer != LAYER_CANON)
			round_trip(c);
		else if (!block)
			compile(c);
	}
	conf_free(c);
	check_findings(&f);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf_world w = {.env = env,
	    .dir_check = dir_check,
	    .token_file = token_file,
	    .default_state_dir = "/var/lib/agent-sandbox",
	    .default_workspace_root = "/var/lib/agent-sandbox-workspaces"};
	char *p = (char *)fuzz_copy(data, size), *cut;
	struct conf_source src[2] = {{"server.json", LAYER_FILE, p, size},
	    {"d/1.json", LAYER_DROPIN, NULL, 0}};

	cut = size == 0 ? NULL : memmem(p, size, "\n---\n", 5);
	if (cut != NULL) {
		src[0].len = (size_t)(cut - p);
		src[1].data = cut + 5;
		src[1].len = size - src[0].len - 5;
	}
	read_one(src, cut != NULL ? 2 : 1, &w);
	w.env = env_single;
	w.root_start = w.require_auth = 1;
	w.listen = "127.0.0.1:99";
	w.preset = "read-only";
	w.root = "/srv/data";
	read_one(src, cut != NULL ? 2 : 1, &w);
	src[0].layer = LAYER_CANON;
	read_one(src, 1, NULL);
	free(p);
	return 0;
}
