/*
 * SPDX-License-Identifier: ISC
 *
 * What is looked for, and searches of trees on both walks.
 */
#include "pathd_tree.h"

#include "common/frame.h"
#include "pathd/beneath.h"
#include "pathd/needle.h"
#include "pathd/search.h"

static void
test_needle(void **state)
{
	static const struct {
		const char *pattern, *text;
		int regex, nocase, found;
		size_t line, len, at;
		unsigned part;
	} t[] = {
	    {"b", "abc\n", 0, 0, 1, 0, 3, 1},
	    {"b", "a\nxb", 0, 0, 1, 2, 2, 1},
	    {"b", "a\nb\nb\n", 0, 0, 1, 2, 1, 0},
	    {"z", "a\nb\n", 0, 0, 0, 0, 0, 0},
	    {"B", "a\nb\n", 0, 0, 0, 0, 0, 0},
	    {"B", "a\nb\n", 0, 1, 1, 2, 1, 0},
	    {"i.t", "int\n", 0, 0, 0, 0, 0, 0},
	    {"I.T", "i.t\n", 0, 1, 1, 0, 3, 0},
	    {"i.t", "int\n", 1, 0, 1, 0, 3, 0},
	    {"^b$", "ab\nb\n", 1, 0, 1, 3, 1, 0},
	    {"a\\sb", "a\nb\n", 1, 0, 0, 0, 0, 0},
	    {"^$", "a\n\nb\n", 1, 0, 1, 2, 0, 0},
	    {"\xc3\xa9", "caf\xc3\xa9\n", 1, 0, 1, 0, 5, 3},
	    {"^.$", "\xff\xff\n\xc3\xa9\n", 1, 0, 1, 3, 2, 0},
	    {"(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n", 1, 0, -1,
		0, 0, 0},
	    {"^b", "b\nb\n", 1, 0, 1, 2, 1, 0, NEEDLE_NOT_BEGIN},
	    {"^b", "b\nb\n", 1, 0, 1, 0, 1, 0, NEEDLE_NOT_END},
	    {"b$", "ab\nb", 1, 0, 1, 0, 2, 1, NEEDLE_NOT_END},
	    {"b$", "a\nb", 1, 0, 0, 0, 0, 0, NEEDLE_NOT_END},
	    {"b", "ab", 0, 0, 1, 0, 2, 1, NEEDLE_NOT_BEGIN | NEEDLE_NOT_END},
	};
	static const char *const bad[] = {"", "a\nb"};
	static const char *const badre[] = {"(", "[a", "a**", "\\", "\\C",
	    "(((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((("
	    "(a))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))"
	    "))"};
	size_t i, line, len, at;
	struct needle *n;
	enum code code;
	int rc;

	for (i = 0; i < nitems(t); i++) {
		n = needle_new(t[i].pattern, t[i].regex, t[i].nocase, &code);
		assert_non_null(n);
		line = len = at = 0;
		rc = needle_find(n, (const uint8_t *)t[i].text,
		    strlen(t[i].text), t[i].part, &line, &len, &at);
		if (rc != t[i].found ||
		    (rc == 1 && (line != t[i].line || len != t[i].len ||
				    at != t[i].at)))
			fail_msg("%s in %s: %d %zu %zu %zu", t[i].pattern,
			    t[i].text, rc, line, len, at);
		needle_free(n);
	}
	for (i = 0; i < nitems(bad); i++) {
		assert_null(needle_new(bad[i], 0, 0, &code));
		assert_int_equal(code, C_ARGS_INVALID);
	}
	for (i = 0; i < nitems(badre); i++) {
		assert_null(needle_new(badre[i], 1, 0, &code));
		assert_int_equal(code, C_ARGS_INVALID);
	}
	needle_free(NULL);
}

/* ---- trees ---- */

struct found {
	struct frame_dec dec;
	char text[8192]; /* "path:line:column:text " or "path " */
	int code, truncated;
};

static int
found_cb(void *arg, const uint8_t *p, size_t n)
{
	struct found *f = arg;
	const uint8_t *payload;
	struct list_match m;
	struct list_entry e;
	char one[600];
	uint8_t kind;
	size_t len;

	while (frame_feed(&f->dec, &p, &n, &kind, &payload, &len) == 1) {
		if (kind == FR_END) {
			f->code = payload[0] | payload[1] << 8;
			f->truncated = payload[2];
			continue;
		}
		if (kind == FR_ENTRY) {
			assert_int_equal(list_entry_get(payload, len, &e), 0);
			snprintf(
			    one, sizeof(one), "%.*s ", (int)e.namelen, e.name);
		} else {
			assert_int_equal(kind, FR_MATCH);
			assert_int_equal(list_match_get(payload, len, &m), 0);
			snprintf(one, sizeof(one), "%.*s:%u:%u:%.*s ",
			    (int)m.pathlen, m.path, (unsigned)m.line, m.column,
			    m.textlen > 100 ? 100 : (int)m.textlen, m.text);
		}
		strlcat(f->text, one, sizeof(f->text));
	}
	return 0;
}

static struct found *
hunt(const struct tmp *t, const char *pattern, uint16_t flags, uint64_t max)
{
	struct rootref ref = {0, ""};
	struct target src = target_of(t, "");
	char pat[64], none[] = "x", *name = none;
	struct bulk b = {.src = &src,
	    .nsrc = 1,
	    .flags = flags,
	    .max_bytes = 1 << 20,
	    .max_entries = max,
	    .refs = &ref,
	    .nrefs = 1,
	    .pattern = pat,
	    .names = {&name, 1}};
	struct found *f = calloc(1, sizeof(*f));
	struct search s;

	assert_non_null(f);
	snprintf(pat, sizeof(pat), "%s", pattern);
	assert_int_equal(strlist_add(&b.deny, "**/.env", 7), 0);
	f->code = search_open(&s, &t->pd, &b);
	if (f->code == C_OK)
		assert_int_equal(search_send(&s, found_cb, f), 0);
	search_close(&s);
	target_clear(&src);
	strlist_clear(&b.deny);
	return f;
}

static void
expect(const struct tmp *t, const char *pattern, uint16_t flags, uint64_t max,
    int code, int truncated, const char *want)
{
	struct found *f = hunt(t, pattern, flags, max);

	assert_string_equal(f->text, want);
	assert_int_equal(f->code, code);
	assert_int_equal(f->truncated, truncated);
	free(f);
}

/* A line of so many letters, an end. */
static void
make_long(struct tmp *t, const char *name, size_t before, const char *word,
    size_t behind, const char *end)
{
	FILE *f = fopen(at(t, name), "w");
	char *fill = malloc(before + behind + 1);

	assert_non_null(f);
	assert_non_null(fill);
	memset(fill, 'x', before + behind + 1);
	assert_int_equal(fwrite(fill, 1, before, f), before);
	assert_int_not_equal(fputs(word, f), EOF);
	assert_int_equal(fwrite(fill, 1, behind, f), behind);
	assert_int_not_equal(fputs(end, f), EOF);
	assert_int_equal(fclose(f), 0);
	free(fill);
}

/* Of a line that no block holds: a match wherever it lies is found, once, at
 * its true column, and the lines behind it have their numbers. */
static void
test_long_lines(void **state)
{
	static const size_t places[] = {0, 1, 200000, 262140, 262144 - 4096,
	    262144, 300000, 524288 - 4096 - 3, 600000};
	char want[200];
	struct found *f;
	struct tmp t;
	size_t i, n;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	for (i = 0; i < nitems(places); i++) {
		n = places[i];
		make_long(
		    &t, "w/long", n, "needle", 700000 - n, "\nneedle\nxneedle");
		f = hunt(&t, "needle", 0, 99);
		snprintf(want, sizeof(want), "long:1:%zu:", n + 1);
		assert_int_equal(strncmp(f->text, want, strlen(want)), 0);
		assert_non_null(strstr(f->text, " long:2:1:needle long:3:2:"));
		assert_null(strstr(f->text + 1, "long:1:"));
		free(f);
		f = hunt(&t, "^n.*e$", PF_REGEX, 99);
		assert_string_equal(f->text, "long:2:1:needle ");
		free(f);
		f = hunt(&t, "x?needle", PF_REGEX, 99);
		assert_non_null(strstr(f->text, "long:1:"));
		assert_non_null(strstr(f->text, "long:3:1:xneedle "));
		free(f);
	}
	/* with two in it, and without an end */
	make_long(&t, "w/long", 262142, "needle", 262142, "needle");
	f = hunt(&t, "needle", 0, 99);
	assert_int_equal(strncmp(f->text, "long:1:262143:", 14), 0);
	assert_null(strstr(f->text + 1, "long:"));
	free(f);
	f = hunt(&t, "needle$", PF_REGEX, 99);
	assert_int_equal(strncmp(f->text, "long:1:524291:", 14), 0);
	free(f);
	tmp_free(&t);
}

/* A file whose lines cross blocks, and one line that is longer than any. */
static void
make_big(struct tmp *t)
{
	int fd, i;
	char line[128];

	fd = open(at(t, "w/big"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_not_equal(fd, -1);
	memset(line, 'x', sizeof(line));
	line[99] = '\n';
	for (i = 0; i < 6000; i++)
		assert_int_equal(write(fd, line, 100), 100);
	assert_int_equal(write(fd, "last needle", 11), 11);
	close(fd);
	fd = open(at(t, "w/endless"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_not_equal(fd, -1);
	line[99] = 'x';
	for (i = 0; i < 3000; i++)
		assert_int_equal(write(fd, line, 100), 100);
	assert_int_equal(write(fd, "pin\npin", 7), 7);
	close(fd);
}

static void
check(int components)
{
	struct found *f;
	struct tmp t;

	beneath_components(components);
	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_dir(&t, "w/d");
	make_file(&t, "w/d/a.c", "int main;\n\nint other\n");
	make_file(&t, "w/d/.env", "int secret;\n");
	make_file(&t, "w/d/B.C", "");
	make_link(&t, "w/l.c", "d/a.c");
	make_link(&t, "w/out.c", at(&t, "out/secret"));
	make_link(&t, "w/d/loop", "..");
	expect(&t, "int", 0, 99, C_OK, 0,
	    "d/a.c:1:1:int main; d/a.c:3:1:int other ");
	expect(&t, "int", 0, 2, C_OK, 0,
	    "d/a.c:1:1:int main; d/a.c:3:1:int other ");
	expect(&t, "int", 0, 1, C_OK, 1, "d/a.c:1:1:int main; ");
	expect(&t, "OUTSIDE", 0, 99, C_OK, 0, "");
	expect(&t, "secret", 0, 99, C_OK, 0, "");
	expect(&t, "m.*n", PF_REGEX, 99, C_OK, 0, "d/a.c:1:5:int main; ");
	expect(&t, "(", PF_REGEX, 99, C_ARGS_INVALID, 0, "");
	expect(&t, "b.c", PF_NAMES | PF_NOCASE, 99, C_OK, 0, "d/B.C ");
	expect(&t, "B.*", PF_NAMES, 99, C_OK, 0, "d/B.C ");
	expect(&t, "[", PF_NAMES, 99, C_ARGS_INVALID, 0, "");
	expect(&t, "d/*", PF_NAMES, 99, C_ARGS_INVALID, 0, "");
	f = hunt(&t, "*.c", PF_NAMES, 99);
	assert_non_null(strstr(f->text, "d/a.c "));
	assert_non_null(strstr(f->text, "l.c "));
	assert_null(strstr(f->text, "out.c"));
	free(f);
	make_big(&t);
	expect(&t, "needle", 0, 99, C_OK, 0, "big:6001:6:last needle ");
	expect(&t, "needle$", PF_REGEX, 99, C_OK, 0, "big:6001:6:last needle ");
	f = hunt(&t, "^pin", PF_REGEX, 99);
	assert_non_null(strstr(f->text, "endless:2:1:pin "));
	free(f);
	tmp_free(&t);
	beneath_components(0);
}

static void
test_openat2(void **state)
{
	check(0);
}

static void
test_components(void **state)
{
	check(1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_needle),
	    cmocka_unit_test(test_openat2),
	    cmocka_unit_test(test_long_lines),
	    cmocka_unit_test(test_components),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
