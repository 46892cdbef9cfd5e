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
 * the world is in conf_world.c.  Run from the top of the tree.
 */
#include "regress/unit/conf_world.h"

#define DIR_CASES "regress/conf"
#define DIR_EXAMPLES "etc/examples"

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_mutations),
	    cmocka_unit_test(test_sorted),
	    cmocka_unit_test(test_programs),
	    cmocka_unit_test(test_delivered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
