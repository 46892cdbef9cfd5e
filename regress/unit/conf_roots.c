/*
 * SPDX-License-Identifier: ISC
 *
 * The lint of roots that nobody can reach: which rule, which root and which
 * directory it names, and what it must say nothing of.
 */
#include "regress/unit/conf_world.h"

#define DIRS(k, ...) "\"" k "\":{\"roots\":[" __VA_ARGS__ "]}"
#define PATHS(...) "{\"allow\":\"files.list\"," DIRS("paths", __VA_ARGS__) "}"
#define WORK(...)                                                      \
	"{\"allow\":\"commands.run\",\"name\":\"work\",\"commands\":{" \
	"\"allow\":[\"true\"]," DIRS("cwd", __VA_ARGS__) "}}"

/* /link leads to /state, and /state/out out of it. */
static char *
canonical(const char *path, void *arg)
{
	char buf[256];

	if (strncmp(path, "/gone", 5) == 0) {
		errno = ELOOP;
		return NULL;
	}
	if (strncmp(path, "/state/out", 10) == 0)
		snprintf(buf, sizeof(buf), "/srv%s", path + 10);
	else if (strncmp(path, "/link", 5) == 0)
		snprintf(buf, sizeof(buf), "/state%s", path + 5);
	else
		snprintf(buf, sizeof(buf), "%s", path);
	return strdup(buf);
}

static const char *const dirs[] = {"/state", "/srv/log", "/etc/abx"};
static const struct {
	const char *text; /* rules and more */
	const char *want; /* what is said, without the advice */
} rows[] = {
    {"\"rules\":[" PATHS("\"/srv\"") "]", ""},
    /* one that contains it, and one whose name only begins alike */
    {"\"rules\":[" PATHS("\"/srv\",\"/etc\"") "]", ""},
    {"\"rules\":[" PATHS("\"/srv/logs\",\"/states\"") "]", ""},
    {"\"rules\":[" PATHS("\"/state\"") "]",
	"2:10 \"paths\": /state is /state\n"},
    {"\"rules\":[" PATHS("\"/srv/a\",\"/srv//log/./b/\"") "]",
	"2:10 \"paths\": /srv/log/b lies in /srv/log\n"},
    {"\"rules\":[" PATHS("\"/srv\"") ",\n" WORK("\"/etc/abx/w\"") "]",
	"3:1 \"cwd\" of \"work\": /etc/abx/w lies in /etc/abx\n"},
    /* what a placeholder stands for lies in it, or does not matter */
    {"\"rules\":[" PATHS("\"/state/{session}\"") "]",
	"2:10 \"paths\": /state/{session} lies in /state\n"},
    {"\"rules\":[" WORK("\"/srv/log/{principal.id}\"") "]",
	"2:10 \"cwd\" of \"work\": /srv/log/{principal.id} lies in "
	"/srv/log\n"},
    {"\"rules\":[" PATHS("\"/srv/{session}\"") "]", ""},
    /* where it really lies counts */
    {"\"rules\":[" PATHS("\"/link/a\"") "]",
	"2:10 \"paths\": /link/a lies in /state\n"},
    {"\"rules\":[" PATHS("\"/state/out/a\"") "]", ""},
    {"\"rules\":[" PATHS("\"/gone\"") "]", ""},
    /* the system's */
    {"\"rules\":[" PATHS("\"/proc/self\",\"/dev\",\"/sys/fs\"") "]",
	"2:10 \"paths\": /proc/self lies in /proc\n"
	"2:10 \"paths\": /dev is /dev\n"
	"2:10 \"paths\": /sys/fs lies in /sys\n"},
    /* each scope of a rule, and each rule once */
    {"\"rules\":[{\"allow\":\"files.copy\",\"paths\":{\"src\":"
     "\"/srv\",\"dst\":\"/state/d\"}}]",
	"2:10 \"dst\": /state/d lies in /state\n"},
    {"\"preset\":\"workspace-exec\",\"root\":\"/state/w\"",
	"2:10 \"paths\" of \"preset workspace-exec\": /state/w lies in "
	"/state\n2:10 \"cwd\" of \"preset workspace-exec\": /state/w "
	"lies in /state\n"},
    /* a deny that reaches into one is as it should be */
    {"\"rules\":[{\"deny\":\"files.list\",\"paths\":[\"/state/**\"]}]", ""},
    /* where sessions work, if commands can run */
    {"\"sandbox\":{\"workspace_root\":\"/state/ws\"},\"rules\":[" WORK(
	 "\"/srv\"") "]",
	"2:11 \"workspace_root\": /state/ws lies in /state\n"},
    {"\"sandbox\":{\"workspace_root\":\"/state/ws\"},\"rules\":[" PATHS(
	 "\"/srv\"") "]",
	""},
};

/* "LINE:COLUMN WHERE DIRECTORY" of one finding. */
static void
said(const struct finding *f, char *out, size_t size)
{
	static const char mid[] = " the protected directory ",
			  tail[] = ", so nothing below it can be reached; "
				   "name another directory";
	const char *at, *end;
	size_t n = strlen(out);

	assert_string_equal(f->code, "config.root_protected");
	assert_int_equal(f->sev, FIND_WARN);
	assert_string_equal(f->file, "conf");
	at = strstr(f->msg, mid);
	end = strstr(f->msg, tail);
	assert_true(at != NULL && end != NULL && at < end);
	assert_string_equal(end, tail);
	snprintf(out + n, size - n, "%u:%u %.*s %.*s\n", f->line, f->col,
	    (int)(at - f->msg), f->msg, (int)(end - at) - (int)sizeof(mid) + 1,
	    at + sizeof(mid) - 1);
}

static void
test_roots(void **state)
{
	struct strlist protect = {0};
	struct findings f = {0};
	struct conf_world w = world();
	struct conf_source src = {"conf", LAYER_FILE, NULL, 0};
	struct conf *c;
	char text[1024], got[1024];
	size_t i, k;

	for (i = 0; i < nitems(dirs); i++)
		assert_int_equal(
		    strlist_add(&protect, dirs[i], strlen(dirs[i])), 0);
	w.canonical = canonical;
	for (i = 0; i < nitems(rows); i++) {
		src.len = (size_t)snprintf(text, sizeof(text),
		    "{\"version\":1,\"auth\":{\"tokens\":[{\"id\":\"a\","
		    "\"token_env\":\"T_ADMIN\"}]},\n%s}",
		    rows[i].text);
		src.data = text;
		c = conf_load(&src, 1, &w, &f);
		assert_non_null(c);
		show(text, &f);
		assert_int_equal(f.n, 0);
		conf_lint_roots(c, &w, &protect, &f);
		assert_false(f.nomem);
		got[0] = '\0';
		for (k = 0; k < f.n; k++)
			said(&f.v[k], got, sizeof(got));
		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s: %s", text, got);
		conf_free(c);
		findings_clear(&f);
	}
	strlist_clear(&protect);
}

/* A token file that callers could read. */
static void
test_token_files(void **state)
{
	static const char *const secret = "/run/good";
	static const struct {
		const char *rules;
		int root; /* started by root */
		const char *over, *msg;
	} t[] = {
	    {PATHS("\"/srv\""), 0, NULL, NULL},
	    {PATHS("\"/srv\",\"/run\""), 0, NULL,
		"\"token_file\": /run/good lies in /run, which the rule at "
		"conf:3 opens to callers; move it, or deny it there"},
	    {PATHS("\"/run\""), 1, NULL, NULL},
	    {PATHS("\"/run\""), 0, "/run", NULL},
	    {PATHS("\"/run/goodly\",\"/ru\""), 0, NULL, NULL},
	    {PATHS("\"/run/{principal.id}\""), 0, NULL, NULL},
	    {WORK("\"/run\""), 0, NULL,
		"\"token_file\": /run/good lies in /run, which the rule at "
		"conf:3 opens to callers; move it, or deny it there"},
	    {"{\"allow\":\"files.list\",\"paths\":{\"roots\":\"/run\",\"deny\":"
	     "[\"good\"]}}",
		0, NULL, NULL},
	    {"{\"allow\":\"files.list\",\"paths\":{\"roots\":\"/run\",\"deny\":"
	     "[\"/run/g*\"]}}",
		0, NULL, NULL},
	    {"{\"allow\":\"files.list\",\"paths\":{\"roots\":\"/run\",\"deny\":"
	     "[\"**/bad\"]}}",
		0, NULL,
		"\"token_file\": /run/good lies in /run, which the rule at "
		"conf:3 opens to callers; move it, or deny it there"},
	    {"{\"deny\":\"files.list\",\"paths\":[\"/run/**\"]}", 0, NULL,
		NULL},
	};
	struct findings f = {0};
	struct conf_world w = world();
	struct conf_source src = {"conf", LAYER_FILE, NULL, 0};
	struct strlist protect = {0};
	struct conf *c;
	char text[1024];
	size_t i;

	w.canonical = canonical;
	for (i = 0; i < nitems(t); i++) {
		w.root_start = t[i].root;
		if (t[i].over != NULL)
			assert_int_equal(
			    strlist_add(&protect, t[i].over, strlen(t[i].over)),
			    0);
		src.len = (size_t)snprintf(text, sizeof(text),
		    "{\"version\":1,\"auth\":{\"tokens\":[{\"id\":\"a\",\n"
		    "\"token_file\":\"%s\"}]},\n\"rules\":[%s]}",
		    secret, t[i].rules);
		src.data = text;
		c = conf_load(&src, 1, &w, &f);
		assert_non_null(c);
		assert_int_equal(f.n, 0);
		conf_lint_roots(c, &w, &protect, &f);
		/* a root that is protected itself is another finding */
		if (t[i].over != NULL) {
			assert_int_equal(f.n, 1);
			assert_string_equal(
			    f.v[0].code, "config.root_protected");
		} else if (t[i].msg == NULL) {
			show(text, &f);
			assert_int_equal(f.n, 0);
		} else {
			assert_int_equal(f.n, 1);
			assert_string_equal(
			    f.v[0].code, "config.token_file_reachable");
			assert_string_equal(f.v[0].msg, t[i].msg);
			assert_int_equal(f.v[0].line, 2);
			assert_int_equal(f.v[0].sev, FIND_WARN);
		}
		conf_free(c);
		findings_clear(&f);
		strlist_clear(&protect);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_roots),
	    cmocka_unit_test(test_token_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
