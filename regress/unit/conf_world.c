/*
 * SPDX-License-Identifier: ISC
 *
 * The configuration beyond the cases of regress/conf: what depends on how the
 * service is started, layers, what is printed, and the list of findings.
 */
#include "regress/unit/conf_world.h"

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
	    {"\"rules\":[" READ "]", "ABX_SERVER_AUDIT=0", 0, 0, NULL, 0, ""},
	    {"\"rules\":[" READ "]", "ABX_SERVER_AUDIT=", 0, 0, NULL, 0, ""},
	    {"\"rules\":[" READ "]", "ABX_SERVER_AUDIT=yes", 0, 0, NULL, 1,
		"config.type "},
	    {"\"audit\":{\"sink\":\"stderr\"},\"rules\":[" READ "]",
		"ABX_SERVER_AUDIT=yes", 0, 0, NULL, 0, ""},
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

/* The operator's bounds of commands only become tighter. */
static void
test_bounds(void **state)
{
	static const char file[] =
	    "{\"version\":1,\"preset\":\"download-only\",\"root\":\"/srv\","
	    "\"auth\":{\"tokens\":[{\"id\":\"a\",\"token_env\":\"T_ADMIN\"}]},"
	    "\"sandbox\":{\"max_pids\":100,\"max_memory_mb\":512,"
	    "\"total_memory\":\"1GiB\",\"total_cpu_percent\":150}}";
	static const char oper[] =
	    "{\"version\":1,\"sandbox\":{\"max_pids\":50,"
	    "\"max_memory_mb\":1024,\"cpu_quota_percent\":75,"
	    "\"total_memory\":\"2GiB\",\"total_pids\":400,"
	    "\"total_cpu_percent\":100}}";
	const struct conf_source src[] = {
	    {"file", LAYER_FILE, file, sizeof(file) - 1},
	    {"oper", LAYER_OPERATOR, oper, sizeof(oper) - 1},
	};
	struct conf_world w = world();
	struct findings f = {0};
	struct conf *c;
	size_t n;

	for (n = 1; n <= nitems(src); n++) {
		c = conf_load(src, n, &w, &f);
		assert_non_null(c);
		assert_int_equal(f.n, 0);
		assert_int_equal(c->max_pids, n == 1 ? 100 : 50);
		assert_int_equal(c->max_memory_mb, 512);
		assert_int_equal(c->cpu_percent, n == 1 ? 0 : 75);
		assert_int_equal(c->total_memory, 1 << 30);
		assert_int_equal(c->total_pids, n == 1 ? 0 : 400);
		assert_int_equal(c->total_cpu, n == 1 ? 150 : 100);
		round_trip("bounds", c);
		conf_free(c);
	}
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
	findings_clear(&f);
	findings_add(&f, FIND_WARN, "config.x", "f\xc2\x9b", 1, 2,
	    "\xc3\xbc\xc2\xa0\xe2\x80\x93|\xc2\x9b|\xe2\x80\xae|\xe2\x81\xa6|"
	    "\xef\xbb\xbf|\xe2\x80\x8b");
	s = finding_text(&f.v[0]);
	assert_string_equal(s,
	    "f\\xc2\\x9b:1:2: warning: config.x: \xc3\xbc\xc2\xa0\xe2\x80\x93|"
	    "\\xc2\\x9b|\\xe2\\x80\\xae|\\xe2\\x81\\xa6|\\xef\\xbb\\xbf|"
	    "\\xe2\\x80\\x8b");
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

/* What is wrong is said of the key that it belongs to. */
static void
test_names_the_key(void **state)
{
	static const struct {
		const char *text, *msg;
	} t[] = {
	    {"{\"version\": 1.0}", "\"version\" is the whole number 1"},
	    {"{\"version\": \"1\"}", "\"version\" is the whole number 1"},
	    {"{\"server\": {\"version\": 1}, \"version\": 1}",
		"\"server\" is around the whole configuration or not at all: "
		"move the other keys into it"},
	    {"{\"version\": 1, \"rules\": [7]}",
		"in \"rules\" an object is expected here, not a number"},
	    {"{\"version\": 1, \"protect_dirs\": [null]}",
		"in \"protect_dirs\" a string is expected here, not null"},
	    {"{\"version\": 1, \"protect_dirs\": [\"a\"]}",
		"\"protect_dirs\": \"a\": an absolute directory is expected"},
	    {"{\"version\": 1, \"rules\": [{\"allow\": \"files.list\", "
	     "\"paths\": \"a\"}]}",
		"\"paths\": \"a\": an absolute directory is expected"},
	    {"{\"version\": 1, \"listen\": [{\"address\": \"localhost\", "
	     "\"port\": 80}]}",
		"\"address\": \"localhost\": a numeric address is expected, "
		"such as 127.0.0.1 or ::1"},
	    {"{\"version\": 1, \"rules\": [{\"allow\": \"commands.run\", "
	     "\"commands\": {\"env_fixed\": {\"A B\": \"x\"}}}]}",
		"\"env_fixed\": \"A B\": not the name of an environment "
		"variable"},
	    {"{\"version\": 1, \"rules\": [{\"deny\": [\"file.list\"]}]}",
		"\"deny\": the selector \"file.list\" matches no operation; "
		"did you mean \"files.list\"?"},
	    {"{\"version\": 1, \"limits\": {\"rate\": \"1\"}}",
		"\"rate\" is \"1\", not a rate such as \"10/min\", \"5/s\" or "
		"\"100/h\""},
	    {"{\"version\": 1, \"sandbox\": {\"require\": [\"all\"]}}",
		"\"require\": \"all\": a layer is namespaces, seccomp, "
		"landlock or cgroup"},
	};
	struct conf_world w = world();
	struct findings f = {0};
	size_t i, len;

	for (i = 0; i < nitems(t); i++) {
		len = strlen(t[i].text);
		conf_free(load("conf", t[i].text, len, &w, &f));
		assert_true(f.n > 0);
		assert_string_equal(f.v[0].msg, t[i].msg);
		assert_int_equal(f.v[0].line, 1);
		findings_clear(&f);
	}
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
	    cmocka_unit_test(test_worlds),
	    cmocka_unit_test(test_single_token),
	    cmocka_unit_test(test_layers),
	    cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_command_line),
	    cmocka_unit_test(test_revision),
	    cmocka_unit_test(test_secrets),
	    cmocka_unit_test(test_canonical_keys),
	    cmocka_unit_test(test_findings),
	    cmocka_unit_test(test_names_the_key),
	    cmocka_unit_test(test_suggest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
