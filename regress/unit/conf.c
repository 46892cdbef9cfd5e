/*
 * SPDX-License-Identifier: ISC
 *
 * The configuration: each regress/conf/NAME.in is a text in one small world,
 * NAME.drop, NAME.op and NAME.env, when they are there, a drop-in, the
 * operator's file and lines for the environment.  NAME.ok (it starts) or
 * NAME.err (it does not) holds the findings as "line:column code", with the
 * source before it when it is not NAME.in; NAME.rules, when it is there, the
 * rules that came out and the operations they select, NAME.out what
 * conf_print says (ABX_GOLDEN=write makes these files anew).  What depends on
 * the world is in tables here.  Run from the top of the tree.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/confkey.h"
#include "policy/lint.h"

#define DIR_CASES "regress/conf"
#define DIR_EXAMPLES "etc/examples"

/* ---- the world of the cases ---- */

static const char *const env[] = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8",
    "EDITOR=ed", "T_ADMIN=admin-token-0123456789abcdef",
    "T_VIEWER=viewer-token-0123456789abcdef", "T_SHORT=fifteen-letters",
    "T_SPACE=white space-0123456789", "T_EMPTY=", "BAD_UTF8=\xff\xfe", NULL};

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
	if (strcmp(path, "/run/short") == 0)
		return strdup("short\n");
	return NULL;
}

static struct conf_world
world(void)
{
	return (struct conf_world){.env = env,
	    .dir_check = dir_check,
	    .token_file = token_file,
	    .default_state_dir = "/var/lib/agent-sandbox",
	    .default_workspace_root = "/var/lib/agent-sandbox-workspaces"};
}

/* ---- helpers ---- */

static struct conf *
load_all(const struct conf_source *src, size_t n, const struct conf_world *w,
    struct findings *f)
{
	struct conf *c = conf_load(src, n, w, f);

	if (c != NULL)
		conf_lint(c, w, f);
	assert_false(f->nomem);
	return c;
}

static struct conf *
load(const char *name, const char *text, size_t len, const struct conf_world *w,
    struct findings *f)
{
	struct conf_source src = {name, LAYER_FILE, text, len};

	return load_all(&src, 1, w, f);
}

static char *
slurp(const char *dir, const char *name, size_t *len)
{
	char path[512], *s;
	FILE *fp;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if ((fp = fopen(path, "r")) == NULL)
		return NULL;
	s = calloc(1, 65536);
	assert_non_null(s);
	*len = fread(s, 1, 65535, fp);
	fclose(fp);
	return s;
}

/* The findings as a case file spells them. */
static char *
summary(const struct findings *f)
{
	char *s = calloc(1, 65536);
	size_t i, len = 0;

	assert_non_null(s);
	for (i = 0; i < f->n; i++)
		len += (size_t)snprintf(s + len, 65536 - len, "%s%s%u:%u %s\n",
		    strcmp(f->v[i].file, "conf") == 0 ? "" : f->v[i].file,
		    strcmp(f->v[i].file, "conf") == 0 ? "" : ":", f->v[i].line,
		    f->v[i].col, f->v[i].code);
	return s;
}

static void
show(const char *name, const struct findings *f)
{
	size_t i;
	char *s;

	for (i = 0; i < f->n; i++) {
		s = finding_text(&f->v[i]);
		print_message("%s: %s\n", name, s);
		free(s);
	}
}

/* What the monitor will read must be what was printed, to the byte. */
static void
round_trip(const char *name, const struct conf *c)
{
	struct findings f = {0};
	char *one = conf_print(c), *two, rev[65], rev2[65];
	struct conf_source src = {name, LAYER_CANON, one, 0};
	struct conf *again;

	assert_non_null(one);
	src.len = strlen(one);
	again = conf_load(&src, 1, NULL, &f);
	if (f.n > 0)
		show(name, &f);
	assert_non_null(again);
	assert_int_equal(f.n, 0);
	two = conf_print(again);
	assert_string_equal(one, two);
	assert_int_equal(conf_revision(c, rev), 0);
	assert_int_equal(conf_revision(again, rev2), 0);
	assert_string_equal(rev, rev2);
	conf_free(again);
	free(one);
	free(two);
}

/* ---- the directory ---- */

static int
golden_write(void)
{
	const char *s = getenv("ABX_GOLDEN");

	return s != NULL && strcmp(s, "write") == 0;
}

static void
spill(const char *dir, const char *name, const char *text)
{
	char path[512];
	FILE *fp;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fp = fopen(path, "w");
	assert_non_null(fp);
	fputs(text, fp);
	fclose(fp);
}

/* The files of one case. */
struct conf_case {
	struct conf_source src[3];
	size_t n;
	char *text[3], *envtext;
	const char *env[64];
};

static void
case_source(struct conf_case *cc, const char *name, const char *ext,
    const char *label, enum conf_layer layer)
{
	struct conf_source *s = &cc->src[cc->n];
	char file[300];
	size_t len;

	snprintf(file, sizeof(file), "%s.%s", name, ext);
	cc->text[cc->n] = slurp(DIR_CASES, file, &len);
	if (cc->text[cc->n] == NULL)
		return;
	*s = (struct conf_source){label, layer, cc->text[cc->n], len};
	cc->n++;
}

static void
case_open(struct conf_case *cc, const char *name)
{
	char file[300], *line, *rest;
	size_t len, n = 0;

	memset(cc, 0, sizeof(*cc));
	case_source(cc, name, "in", "conf", LAYER_FILE);
	assert_int_equal(cc->n, 1);
	case_source(cc, name, "drop", "drop-in", LAYER_DROPIN);
	case_source(cc, name, "op", "operator", LAYER_OPERATOR);
	while (env[n] != NULL) {
		cc->env[n] = env[n];
		n++;
	}
	snprintf(file, sizeof(file), "%s.env", name);
	rest = cc->envtext = slurp(DIR_CASES, file, &len);
	while (rest != NULL && (line = strsep(&rest, "\n")) != NULL)
		if (*line != '\0')
			cc->env[n++] = line;
	assert_true(n < nitems(cc->env));
}

static void
case_close(struct conf_case *cc)
{
	size_t i;

	for (i = 0; i < cc->n; i++)
		free(cc->text[i]);
	free(cc->envtext);
}

/* The rules, one a line, and below each what it selects. */
static char *
rules_text(const struct conf *c)
{
	const struct rule *r;
	struct out o = {0};
	char *s;
	size_t i;
	uint16_t op;

	wbuf_init(&o.w, 65536);
	for (i = 0; i < c->rules->n; i++) {
		r = &c->rules->v[i];
		out_object(&o, rule_keys, r);
		out_lit(&o, "\n");
		for (op = 0; op < OP_COUNT; op++)
			if (rule_selects(r, op)) {
				out_lit(&o, " ");
				out_lit(&o, ops[op].id);
			}
		out_lit(&o, "\n");
	}
	assert_false(o.w.err);
	s = strndup((const char *)o.w.p, o.w.len);
	assert_non_null(s);
	wbuf_free(&o.w);
	return s;
}

static void
check_rules(const char *name, const struct conf *c)
{
	char file[300], *want, *got;
	size_t len;

	snprintf(file, sizeof(file), "%s.rules", name);
	if ((want = slurp(DIR_CASES, file, &len)) == NULL)
		return;
	got = rules_text(c);
	if (golden_write())
		spill(DIR_CASES, file, got);
	else
		assert_string_equal(got, want);
	free(got);
	free(want);
}

static void
check_out(const char *name, const struct conf *c)
{
	char file[300], *want, *got;
	size_t len;

	snprintf(file, sizeof(file), "%s.out", name);
	if ((want = slurp(DIR_CASES, file, &len)) == NULL)
		return;
	want[strcspn(want, "\n")] = '\0';
	got = conf_print(c);
	if (golden_write()) {
		got = realloc(got, strlen(got) + 2);
		assert_non_null(got);
		strlcat(got, "\n", strlen(got) + 2);
		spill(DIR_CASES, file, got);
	} else
		assert_string_equal(got, want);
	free(got);
	free(want);
}

/* The findings that NAME.ok or NAME.err holds; NULL when neither is there. */
static char *
case_want(const char *name, int *good)
{
	char file[300], *want;
	size_t n;

	snprintf(file, sizeof(file), "%s.ok", name);
	*good = 1;
	if ((want = slurp(DIR_CASES, file, &n)) != NULL)
		return want;
	snprintf(file, sizeof(file), "%s.err", name);
	*good = 0;
	return slurp(DIR_CASES, file, &n);
}

static void
case_write(const char *name, int good, const char *got)
{
	char file[300];

	snprintf(file, sizeof(file), "%s/%s.%s", DIR_CASES, name,
	    good ? "err" : "ok");
	unlink(file);
	snprintf(file, sizeof(file), "%s.%s", name, good ? "ok" : "err");
	spill(DIR_CASES, file, got);
}

static void
case_judge(
    const char *name, const struct conf *c, const struct findings *f, int good)
{
	int want_good;
	char *want = case_want(name, &want_good), *got = summary(f);

	if (golden_write())
		case_write(name, good, got);
	else if (want == NULL || strcmp(want, got) != 0 || good != want_good) {
		show(name, f);
		fail_msg("%s: expected:\n%sgot:\n%s", name,
		    want == NULL ? "" : want, got);
	}
	free(want);
	free(got);
}

/* As the loader does once nothing else is wrong. */
static void
try_examples(const struct conf *c, struct findings *f)
{
	struct policy *p;

	if (c == NULL || findings_block(f, 1))
		return;
	p = policy_new(c, f);
	assert_non_null(p);
	policy_examples(c, p, f);
	assert_false(f->nomem);
	policy_free(p);
}

static void
one_case(const char *name)
{
	struct conf_world w = world();
	struct findings f = {0};
	struct conf_case cc;
	struct conf *c;
	int good;

	case_open(&cc, name);
	w.env = cc.env;
	c = load_all(cc.src, cc.n, &w, &f);
	try_examples(c, &f);
	good = !findings_block(&f, c != NULL && c->allow_lint_errors);
	case_judge(name, c, &f, good);
	if (good) {
		assert_non_null(c);
		round_trip(name, c);
		check_out(name, c);
		check_rules(name, c);
	}
	conf_free(c);
	findings_clear(&f);
	case_close(&cc);
}

static int
each_case(void (*fn)(const char *))
{
	struct dirent **v;
	int i, n = scandir(DIR_CASES, &v, NULL, alphasort), done = 0;
	size_t len;

	for (i = 0; i < n; i++) {
		len = strlen(v[i]->d_name);
		if (len > 3 && strcmp(v[i]->d_name + len - 3, ".in") == 0) {
			v[i]->d_name[len - 3] = '\0';
			fn(v[i]->d_name);
			done++;
		}
		free(v[i]);
	}
	free(v);
	return done;
}

static void
test_cases(void **state)
{
	assert_true(each_case(one_case) > 20);
}

/* Cut, doubled and changed texts end in findings, never in a crash, and what
 * is accepted can be printed and read again. */
static void
one_mutation(const char *text, size_t len)
{
	struct conf_world w = world();
	struct findings f = {0};
	struct conf *c = load("conf", text, len, &w, &f);

	if (c != NULL && !findings_block(&f, 1))
		round_trip("mutation", c);
	conf_free(c);
	findings_clear(&f);
}

static void
mutate_case(const char *name)
{
	static const char put[] = "\"{}[],:0a\\ -*/";
	char file[300], *text;
	size_t len, i;
	unsigned seed = 1;

	snprintf(file, sizeof(file), "%s.in", name);
	text = slurp(DIR_CASES, file, &len);
	assert_non_null(text);
	for (i = 0; i < len; i += 7)
		one_mutation(text, i);
	for (i = 0; i < 60 && len > 0; i++) {
		char old;
		size_t at;

		seed = seed * 1103515245 + 12345;
		at = (seed >> 8) % len;
		old = text[at];
		text[at] = put[(seed >> 4) % (sizeof(put) - 1)];
		one_mutation(text, len);
		text[at] = old;
	}
	free(text);
}

static void
test_mutations(void **state)
{
	each_case(mutate_case);
}

/* ---- tables of keys ---- */

static void
sorted(const struct ckey *k)
{
	for (; k->name != NULL && k[1].name != NULL; k++)
		if (strcmp(k->name, k[1].name) >= 0)
			fail_msg("%s stands before %s", k->name, k[1].name);
}

static void
test_sorted(void **state)
{
	sorted(conf_keys);
	sorted(http_keys);
	sorted(auth_keys);
	sorted(rule_keys);
	sorted(path_keys);
	sorted(command_keys);
	sorted(url_keys);
	sorted(limit_keys);
}

static void
test_programs(void **state)
{
	static const char *const esc[] = {"7z", "R", "apk", "bash", "find",
	    "git", "python3", "python3.11", "clang-14", "sh", "zsh", "tar"};
	size_t i;

	for (i = 0; i < nitems(esc); i++)
		assert_true(prog_escape_capable(esc[i]));
	assert_false(prog_escape_capable("ls"));
	assert_false(prog_escape_capable(""));
	assert_false(prog_escape_capable("3.11"));
	assert_true(prog_project_file("pytest"));
	assert_true(prog_project_file("ansible"));
	assert_true(prog_project_file("yarn"));
	assert_true(prog_writer("cp"));
	assert_true(prog_writer("bunzip2"));
	assert_true(prog_network("curl"));
	assert_true(prog_network("ab"));
	assert_false(prog_network("cat"));
}

/* ---- worlds ---- */

#define RUN "{\"allow\":\"commands.run\",\"commands\":{\"allow\":[\"true\"]}}"
#define READ "{\"allow\":\"files.list\",\"paths\":\"/srv\"}"
#define LISTEN(a) "\"listen\":[{\"address\":\"" a "\",\"port\":9}],"
#define SOCK(m) "\"listen\":[{\"unix\":\"/run/x\"" m "}],"

static void
test_worlds(void **state)
{
	static const struct {
		const char *text;  /* less version and braces */
		const char *token; /* ABX_SERVER_TOKEN=... */
		int root, require;
		const char *listen;
		int blocked;	   /* 2: only allow_lint_errors helps */
		const char *codes; /* in order */
	} t[] = {
	    {"\"rules\":[" READ "]", NULL, 0, 0, NULL, 0, ""},
	    {"\"rules\":[" READ "]", NULL, 1, 0, NULL, 2,
		"config.open_loopback_shared "},
	    {"\"rules\":[" READ "]", NULL, 0, 1, NULL, 1,
		"config.auth_secret_missing "},
	    {LISTEN("0.0.0.0") "\"rules\":[" READ "]", NULL, 0, 0, NULL, 1,
		"config.open_non_loopback "},
	    {LISTEN("::") "\"rules\":[" READ "]", NULL, 0, 0, NULL, 1,
		"config.open_non_loopback "},
	    {LISTEN("::1") "\"rules\":[" READ "]", NULL, 0, 0, NULL, 0, ""},
	    {LISTEN("127.9.9.9") "\"rules\":[" READ "]", NULL, 0, 0, NULL, 0,
		""},
	    {LISTEN("0.0.0.0") "\"rules\":[" READ "]", NULL, 0, 0,
		"127.0.0.1:99", 0, ""},
	    {"\"rules\":[" READ "]", NULL, 0, 0, "[::]:99", 1,
		"config.open_non_loopback "},
	    {"\"rules\":[" READ "]", NULL, 0, 0, "nowhere:99", 1,
		"config.type "},
	    {"\"rules\":[" READ "]", NULL, 0, 0, "127.0.0.1", 1,
		"config.type "},
	    {SOCK(",\"mode\":\"0660\",\"group\":\"abx\"") "\"rules\":[" READ
							  "]",
		NULL, 1, 0, NULL, 0, ""},
	    {SOCK("") "\"rules\":[" READ "]", NULL, 1, 0, NULL, 1,
		"config.open_non_loopback "},
	    {SOCK(",\"mode\":\"0666\",\"group\":\"abx\"") "\"rules\":[" READ
							  "]",
		NULL, 1, 0, NULL, 2, "config.open_loopback_shared "},
	    {"\"rules\":[" RUN "]", NULL, 0, 0, NULL, 1, "config.open_exec "},
	    {"\"allow_open\":true,\"rules\":[" RUN "]", NULL, 0, 0, NULL, 2,
		"config.open_exec "},
	    {"\"allow_open\":true,\"rules\":[" RUN "]", NULL, 0, 1, NULL, 1,
		"config.open_exec config.auth_secret_missing "},
	    {LISTEN("0.0.0.0") "\"allow_open\":true,\"rules\":[" READ "]", NULL,
		0, 0, NULL, 2, "config.open_non_loopback "},
	    /* a blanket deny takes it away again */
	    {"\"rules\":[" RUN ",{\"deny\":\"effect:exec\"}]", NULL, 0, 0, NULL,
		0, ""},
	    /* nobody without a credential is "*" */
	    {"\"rules\":[{\"allow\":\"commands.run\",\"principals\":\"*\","
	     "\"commands\":{\"allow\":[\"true\"]}}]",
		NULL, 0, 0, NULL, 0, "config.principal_unreachable "},
	    {"\"rules\":[{\"allow\":\"commands.run\",\"principals\":"
	     "\"role:admin\",\"commands\":{\"allow\":[\"true\"]}}]",
		NULL, 0, 0, NULL, 1, "config.open_exec "},
	    {"\"rules\":[" RUN "]", "ABX_SERVER_TOKEN=0123456789abcdef", 1, 1,
		NULL, 0, ""},
	    {"\"rules\":[" RUN "]", "ABX_SERVER_TOKEN=0123456789abcde", 1, 0,
		NULL, 1, "config.auth_secret_weak "},
	    {"\"rules\":[" RUN "]", "ABX_SERVER_TOKEN=", 1, 0, NULL, 1,
		"config.auth_secret_missing "},
	    {"\"auth\":{\"tokens\":[{\"id\":\"a\",\"token_file\":"
	     "\"/run/good\"}]},\"rules\":[" RUN "]",
		"ABX_SERVER_TOKEN=x", 1, 1, NULL, 0, "config.token_unused "},
	    {"\"auth\":{\"anonymous\":true},\"rules\":[" READ "]", NULL, 1, 1,
		NULL, 0, ""},
	    {"\"auth\":{\"anonymous\":true},\"rules\":[" RUN "]", NULL, 1, 0,
		NULL, 1, "config.open_exec "},
	    {"\"auth\":{\"anonymous\":true},\"rules\":[{\"allow\":"
	     "\"commands.run\",\"principals\":[\"role:admin\"],\"commands\":"
	     "{\"allow\":[\"true\"]}}]",
		NULL, 1, 0, NULL, 0, "config.principal_unreachable "},
	    /* what the environment takes away is not open */
	    {"\"rules\":[" RUN "]", "ABX_SERVER_READONLY=1", 0, 0, NULL, 0, ""},
	    {"\"rules\":[" RUN "]", "ABX_SERVER_DISABLE=commands.*", 0, 0, NULL,
		0, ""},
	    {"\"reload\":\"sighup\",\"rules\":[" READ "]", NULL, 0, 0, NULL, 0,
		"config.reload_enabled_open "},
	    {"\"rules\":[" READ "]", "ABX_SERVER_POLICY_RELOAD=sighup", 0, 0,
		NULL, 0, "config.reload_enabled_open "},
	    {"\"rules\":[" READ "]", "ABX_SERVER_DISABLE=", 0, 0, NULL, 0, ""},
	};
	const char *vars[2] = {NULL, NULL};
	char text[2048], got[1024];
	struct findings f = {0};
	struct conf_world w;
	struct conf *c;
	size_t i, k;

	for (i = 0; i < nitems(t); i++) {
		snprintf(text, sizeof(text), "{\"version\":1,%s}", t[i].text);
		w = world();
		vars[0] = t[i].token;
		w.env = vars;
		w.root_start = t[i].root;
		w.require_auth = t[i].require;
		w.listen = t[i].listen;
		c = load("conf", text, strlen(text), &w, &f);
		assert_non_null(c);
		got[0] = '\0';
		for (k = 0; k < f.n; k++) {
			strlcat(got, f.v[k].code, sizeof(got));
			strlcat(got, " ", sizeof(got));
		}
		if (strcmp(got, t[i].codes) != 0 ||
		    findings_block(&f, 0) != (t[i].blocked != 0) ||
		    findings_block(&f, 1) != (t[i].blocked == 1)) {
			show(text, &f);
			fail_msg("%s: %s", text, got);
		}
		if (!findings_block(&f, 1))
			round_trip("world", c);
		conf_free(c);
		findings_clear(&f);
	}
}

static void
test_single_token(void **state)
{
	static const char *const vars[] = {
	    "ABX_SERVER_TOKEN=0123456789abcdef", "ABX_SERVER_AUDIT=1", NULL};
	static const char text[] = "{\"version\":1}";
	struct conf_world w = world();
	struct findings f = {0};
	struct conf *c;

	w.env = vars;
	c = load("conf", text, sizeof(text) - 1, &w, &f);
	assert_non_null(c);
	assert_int_equal(f.n, 0);
	assert_int_equal(c->ntokens, 1);
	assert_string_equal(c->tokens[0].id, "token");
	assert_string_equal(c->tokens[0].roles.v[0], "admin");
	assert_false(c->open_mode);
	assert_int_equal(c->audit.n, 1);
	assert_int_equal(c->nlisten, 1);
	assert_string_equal(c->listen[0].addr, "127.0.0.1");
	assert_int_equal(c->listen[0].port, 8765);
	assert_string_equal(c->state_dir, "/var/lib/agent-sandbox");
	conf_free(c);
}

/* ---- layers ---- */

static void
test_layers(void **state)
{
	static const char file[] =
	    "{\"version\":1,\"auth\":{\"tokens\":[{\"id\":\"a\",\"token_env\":"
	    "\"T_ADMIN\"}]},\"protect_dirs\":\"/a\",\"audit\":{\"sink\":"
	    "\"stderr\"},\"preset\":\"drop-box\",\"root\":\"/srv\",\"rules\":"
	    "[{\"allow\":\"files.list\",\"paths\":\"/srv\"}]}";
	static const char drop[] =
	    "{\"version\":1,\"protect_dirs\":[\"/b\"],\"audit\":{\"sinks\":"
	    "[\"file:/var/log/x\"]},\n\"rules\":[{\"deny\":\"files.list\"}],"
	    "\n\"auth\":{},\n\"root\":\"/else\"}";
	static const char oper[] =
	    "{\"version\":1,\"protect_dirs\":\"/c\",\"disable\":"
	    "\"files.mkdir\",\"rules\":[{\"deny\":\"files.stat\"}]}";
	const struct conf_source src[] = {
	    {"file", LAYER_FILE, file, sizeof(file) - 1},
	    {"drop", LAYER_DROPIN, drop, sizeof(drop) - 1},
	    {"oper", LAYER_OPERATOR, oper, sizeof(oper) - 1},
	};
	struct conf_world w = world();
	struct findings f = {0};
	struct conf *c;
	char *s;

	w.preset = "download_only";
	w.root = "/data";
	c = conf_load(src, nitems(src), &w, &f);
	assert_non_null(c);
	s = summary(&f);
	assert_string_equal(s, "drop:3:1 config.duplicate_key\n"
			       "drop:4:1 config.duplicate_key\n");
	free(s);
	assert_int_equal(c->protect_dirs.n, 3);
	assert_int_equal(c->audit.n, 2);
	assert_int_equal(c->rules->n, 8);
	assert_int_equal(c->rules->v[0].layer, LAYER_CLI);
	assert_string_equal(c->rules->v[0].preset, "download-only");
	assert_string_equal(c->rules->v[1].paths.roots.v[0], "/data");
	assert_int_equal(c->rules->v[2].layer, LAYER_FILE);
	assert_string_equal(c->rules->v[2].preset, "drop-box");
	assert_null(c->rules->v[4].preset);
	assert_int_equal(c->rules->v[5].layer, LAYER_DROPIN);
	assert_true(c->rules->v[5].deny);
	assert_string_equal(c->rules->v[5].at.file, "drop");
	assert_false(c->rules->v[5].unmount);
	assert_true(c->rules->v[6].unmount);
	assert_int_equal(c->rules->v[6].layer, LAYER_OPERATOR);
	assert_false(c->rules->v[7].unmount);
	assert_int_equal(c->rules->v[7].layer, LAYER_OPERATOR);
	conf_free(c);
	findings_clear(&f);
}

static void
test_command_line(void **state)
{
	static const struct {
		const char *preset, *root, *code;
	} t[] = {
	    {"download-only", "/srv", NULL},
	    {"download-only", NULL, "config.root_required"},
	    {"download-only", "/absent", "config.root_invalid"},
	    {"download-only", "/", "config.root_is_slash"},
	    {"downlod-only", "/srv", "config.unknown_preset"},
	    {"legacy-compat", "/srv", "config.not_supported"},
	    {NULL, "/srv", "config.root_invalid"},
	};
	struct findings f = {0};
	struct conf_world w;
	struct conf *c;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		w = world();
		w.preset = t[i].preset;
		w.root = t[i].root;
		c = conf_load(NULL, 0, &w, &f);
		assert_non_null(c);
		assert_int_equal(f.n, t[i].code != NULL);
		if (t[i].code != NULL)
			assert_string_equal(f.v[0].code, t[i].code);
		else
			round_trip("command line", c);
		conf_free(c);
		findings_clear(&f);
	}
}

/* ---- what is delivered ---- */

/* Each must be startable, and what it says of itself must hold. */
static void
one_example(const char *dirname, const char *name)
{
	static const char *const vars[] = {"AGENT_TOKEN=agent-0123456789abcdef",
	    "ALICE_TOKEN=alice-0123456789abcdef",
	    "BLUE_TOKEN=blue-0123456789abcdef",
	    "BOB_TOKEN=bob-0123456789abcdef", "CI_TOKEN=ci-0123456789abcdef",
	    "COURIER_TOKEN=courier-0123456789abcdef",
	    "DASHBOARD_TOKEN=dashboard-0123456789abcdef",
	    "GRADER_TOKEN=grader-0123456789abcdef",
	    "INTAKE_TOKEN=intake-0123456789abcdef",
	    "OWNER_TOKEN=owner-0123456789abcdef",
	    "READER_TOKEN=reader-0123456789abcdef",
	    "RED_TOKEN=red-0123456789abcdef",
	    "REVIEWER_TOKEN=reviewer-0123456789abcdef",
	    "VIEWER_TOKEN=viewer-0123456789abcdef", NULL};
	struct conf_world w = world();
	struct findings f = {0};
	struct conf *c;
	size_t len;
	char *text = slurp(dirname, name, &len);

	assert_non_null(text);
	w.env = vars;
	c = load(name, text, len, &w, &f);
	try_examples(c, &f);
	if (findings_block(&f, 0)) {
		show(name, &f);
		fail_msg("%s cannot be started", name);
	}
	round_trip(name, c);
	conf_free(c);
	findings_clear(&f);
	free(text);
}

static void
test_delivered(void **state)
{
	struct dirent **v;
	int i, n = scandir(DIR_EXAMPLES, &v, NULL, alphasort), done = 0;

	for (i = 0; i < n; i++) {
		if (strstr(v[i]->d_name, ".json") != NULL) {
			one_example(DIR_EXAMPLES, v[i]->d_name);
			done++;
		}
		free(v[i]);
	}
	free(v);
	assert_true(done >= 8);
	one_example("etc", "server.json");
}

/* ---- printing ---- */

static void
test_revision(void **state)
{
	static const char a[] = "{\"version\":1,\"rules\":[{\"allow\":"
				"\"files.list\",\"paths\":\"/srv\"}]}",
			  b[] = "{\"version\":1,\n\n\"rules\":[\n{\"allow\":["
				"\"files.list\"],\"paths\":{\"roots\":["
				"\"/srv/\"]}}]}",
			  c[] = "{\"version\":1,\"rules\":[{\"allow\":"
				"\"files.stat\",\"paths\":\"/srv\"}]}";
	const char *texts[] = {a, b, c};
	struct conf_world w = world();
	struct findings f = {0};
	struct conf *conf;
	char rev[3][65], *s[3];
	size_t i;

	for (i = 0; i < 3; i++) {
		conf = load("conf", texts[i], strlen(texts[i]), &w, &f);
		assert_non_null(conf);
		assert_int_equal(conf_revision(conf, rev[i]), 0);
		s[i] = conf_print(conf);
		conf_free(conf);
	}
	assert_int_equal(f.n, 0);
	assert_string_equal(rev[0], rev[1]);
	assert_string_not_equal(rev[0], rev[2]);
	assert_string_not_equal(s[0], s[1]);
	for (i = 0; i < 3; i++)
		free(s[i]);
}

static void
test_secrets(void **state)
{
	static const char text[] =
	    "{\"version\":1,\"auth\":{\"tokens\":[{\"id\":\"a\",\"token_env\":"
	    "\"T_ADMIN\"},{\"id\":\"b\",\"token_file\":\"/run/good\"}]},"
	    "\"rules\":[{\"allow\":\"commands.run\",\"commands\":{\"allow\":"
	    "[\"true\"],\"env_pass\":[\"T_ADMIN\",\"EDITOR\",\"BAD_UTF8\","
	    "\"NOT_SET\"]}}]}";
	struct conf_world w = world();
	struct findings f = {0};
	struct conf *c = load("conf", text, sizeof(text) - 1, &w, &f);
	char *s;

	assert_non_null(c);
	assert_int_equal(f.n, 2);
	assert_string_equal(f.v[0].code, "config.secret_inline");
	assert_string_equal(f.v[1].code, "config.type");
	assert_int_equal(f.v[1].sev, FIND_WARN);
	s = conf_print(c);
	assert_null(strstr(s, "admin-token"));
	assert_null(strstr(s, "a-secret-from"));
	assert_non_null(strstr(s, "\"env\":[\"EDITOR=ed\"]"));
	free(s);
	conf_free(c);
	findings_clear(&f);
}

/* Canonical keys mean nothing in a file. */
static void
test_canonical_keys(void **state)
{
	static const char text[] =
	    "{\"version\":1,\"env\":[\"A=b\"],\"auth\":{\"open\":true,"
	    "\"anonymous\":true},\"rules\":[{\"allow\":\"core.check\",\"at\":"
	    "\"x:1:1\",\"layer\":2,\"preset\":\"y\"}]}";
	struct conf_world w = world();
	struct findings f = {0};
	struct conf *c = load("conf", text, sizeof(text) - 1, &w, &f);
	size_t i;

	assert_non_null(c);
	assert_int_equal(f.n, 5);
	for (i = 0; i < f.n; i++)
		assert_string_equal(f.v[i].code, "config.unknown_key");
	assert_false(c->open_mode);
	conf_free(c);
	findings_clear(&f);
}

static void
test_findings(void **state)
{
	struct findings f = {0};
	char *s;
	size_t i;

	assert_false(findings_block(&f, 0));
	findings_add(&f, FIND_WARN, "config.x", "a\nb", 1, 2, "m\x1b[%d", 7);
	findings_add(&f, FIND_WARN, "config.x", "a\nb", 1, 2, "m\x1b[%d", 7);
	findings_add(&f, FIND_WARN, "config.y", NULL, 0, 0, "cut \xe2\x82");
	assert_int_equal(f.n, 2);
	assert_false(findings_block(&f, 0));
	s = finding_text(&f.v[0]);
	assert_string_equal(s, "a\\x0ab:1:2: warning: config.x: m\\x1b[7");
	free(s);
	s = finding_text(&f.v[1]);
	assert_string_equal(s, ":0:0: warning: config.y: cut ??");
	free(s);
	findings_add(&f, FIND_LINT, "config.z", "f", 1, 1, "lint");
	assert_true(findings_block(&f, 0));
	assert_false(findings_block(&f, 1));
	findings_add(&f, FIND_ERROR, "config.z", "f", 1, 1, "error");
	assert_true(findings_block(&f, 1));
	findings_clear(&f);
	/* What no longer fits still blocks. */
	for (i = 0; i < 2000; i++)
		findings_add(
		    &f, FIND_WARN, "config.w", "f", (unsigned)i, 1, "w");
	assert_false(findings_block(&f, 1));
	findings_add(&f, FIND_ERROR, "config.z", "f", 1, 1, "error");
	assert_true(findings_block(&f, 1));
	findings_clear(&f);
}

static void
test_suggest(void **state)
{
	static const struct {
		const char *word, *cand, *best;
	} t[] = {
	    {"rulez", "rules", "rules"},
	    {"rluse", "rules", "rules"},
	    {"lisen", "listen", "listen"},
	    {"token_nev", "token_env", "token_env"},
	    {"paths", "path", "path"},
	    {"id", "ok", NULL},
	    {"completely", "other", NULL},
	    {"", "a", NULL},
	};
	struct suggest s;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		suggest_init(&s, t[i].word);
		suggest_try(&s, t[i].cand);
		if (t[i].best == NULL)
			assert_null(s.best);
		else
			assert_string_equal(s.best, t[i].best);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_mutations),
	    cmocka_unit_test(test_sorted),
	    cmocka_unit_test(test_programs),
	    cmocka_unit_test(test_worlds),
	    cmocka_unit_test(test_single_token),
	    cmocka_unit_test(test_layers),
	    cmocka_unit_test(test_command_line),
	    cmocka_unit_test(test_delivered),
	    cmocka_unit_test(test_revision),
	    cmocka_unit_test(test_secrets),
	    cmocka_unit_test(test_canonical_keys),
	    cmocka_unit_test(test_findings),
	    cmocka_unit_test(test_suggest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
