/*
 * SPDX-License-Identifier: ISC
 *
 * Reading configuration files: which layers are found, in which order, and
 * what is refused because somebody else could have written it.
 */
#include <sys/stat.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "monitor/conffile.h"

static char dir[64];

static const char *
in(const char *name)
{
	static char path[4][256];
	static unsigned turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static void
put(const char *name, const char *text, size_t len, mode_t mode)
{
	int fd = open(in(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd != -1);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void
put_text(const char *name, const char *text)
{
	put(name, text, strlen(text), 0644);
}

static int
setup(void **state)
{
	strlcpy(dir, "/tmp/abx-unit-XXXXXX", sizeof(dir));
	return mkdtemp(dir) == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	static const char *const names[] = {"server.d/a.json",
	    "server.d/b.json", "server.d/.c.json", "server.d/d.conf",
	    "server.d", "server.json", "operator.json", "link.json", "token"};
	size_t i;

	for (i = 0; i < nitems(names); i++)
		remove(in(names[i]));
	return rmdir(dir);
}

static const char *
only_code(const struct findings *f)
{
	assert_int_equal(f->n, 1);
	assert_int_equal(f->v[0].sev, FIND_ERROR);
	return f->v[0].code;
}

static void
test_layers(void **state)
{
	static const struct {
		enum conf_layer layer;
		const char *name, *data;
	} want[] = {
	    {LAYER_FILE, "server.json", "{}"},
	    {LAYER_DROPIN, "server.d/a.json", "[1]"},
	    {LAYER_DROPIN, "server.d/b.json", "[2]"},
	    {LAYER_OPERATOR, "operator.json", "[3]"},
	};
	struct conffile cf;
	struct findings f = {0};
	size_t i;

	assert_int_equal(mkdir(in("server.d"), 0755), 0);
	put_text("server.json", "{}");
	put_text("server.d/b.json", "[2]");
	put_text("server.d/a.json", "[1]");
	put_text("server.d/.c.json", "[4]");
	put_text("server.d/d.conf", "[5]");
	/* only root can write one that counts */
	if (geteuid() == 0)
		put_text("operator.json", "[3]");
	assert_int_equal(conffile_read(&cf, in("server.json"), 0, &f), 0);
	assert_int_equal(f.n, 0);
	assert_int_equal(cf.n, nitems(want) - (geteuid() != 0));
	for (i = 0; i < cf.n; i++) {
		assert_int_equal(cf.v[i].layer, want[i].layer);
		assert_string_equal(cf.v[i].name, in(want[i].name));
		assert_string_equal(cf.v[i].data, want[i].data);
		assert_int_equal(cf.v[i].len, strlen(want[i].data));
	}
	conffile_clear(&cf);
}

/* The operator's file binds the starter, so it is root's alone. */
static void
test_operator(void **state)
{
	struct conffile cf;
	struct findings f = {0};

	if (geteuid() != 0)
		skip();
	put_text("server.json", "{}");
	put_text("operator.json", "{}");
	assert_int_equal(chown(in("operator.json"), 1, 0), 0);
	assert_int_equal(chown(dir, 1, 0), 0);
	assert_int_equal(seteuid(1), 0);
	assert_int_equal(conffile_read(&cf, in("server.json"), 0, &f), 0);
	assert_int_equal(seteuid(0), 0);
	assert_string_equal(only_code(&f), "config.file_unsafe");
	assert_string_equal(f.v[0].file, in("operator.json"));
	assert_int_equal(cf.n, 1);
	conffile_clear(&cf);
	findings_clear(&f);
}

static void
test_missing(void **state)
{
	struct conffile cf;
	struct findings f = {0};

	assert_int_equal(conffile_read(&cf, in("server.json"), 0, &f), 0);
	assert_string_equal(only_code(&f), "config.file_unreadable");
	assert_int_equal(cf.n, 0);
	conffile_clear(&cf);
	findings_clear(&f);
	assert_int_equal(conffile_read(&cf, in("server.json"), 1, &f), 0);
	assert_int_equal(f.n, 0);
	conffile_clear(&cf);
	assert_int_equal(conffile_read(&cf, in("no/server.json"), 0, &f), 0);
	assert_string_equal(only_code(&f), "config.file_unreadable");
	conffile_clear(&cf);
	findings_clear(&f);
}

static void
test_unsafe(void **state)
{
	static const struct {
		mode_t mode;
		gid_t gid;
		int ok;
	} rows[] = {{0644, 0, 1}, {0600, 0, 1}, {0640, 1, 1}, {0664, 1, 0},
	    {0664, 0, 1}, {0646, 0, 0}, {0666, 0, 0}};
	struct conffile cf;
	struct findings f = {0};
	size_t i;

	for (i = 0; i < nitems(rows); i++) {
		put("server.json", "{}", 2, rows[i].mode);
		if (geteuid() == 0)
			assert_int_equal(
			    chown(in("server.json"), 0, rows[i].gid), 0);
		else if (rows[i].gid == 0 || getegid() == 0)
			continue;
		assert_int_equal(
		    conffile_read(&cf, in("server.json"), 0, &f), 0);
		assert_int_equal(cf.n, rows[i].ok);
		if (!rows[i].ok)
			assert_string_equal(
			    only_code(&f), "config.file_unsafe");
		conffile_clear(&cf);
		findings_clear(&f);
	}
}

static void
test_kinds(void **state)
{
	struct conffile cf;
	struct findings f = {0};

	put_text("server.json", "{}");
	assert_int_equal(symlink("server.json", in("link.json")), 0);
	assert_int_equal(conffile_read(&cf, in("link.json"), 0, &f), 0);
	assert_int_equal(cf.n, 1);
	conffile_clear(&cf);
	unlink(in("link.json"));
	/* nobody writes to it: it must not be waited for */
	assert_int_equal(mkfifo(in("link.json"), 0600), 0);
	assert_int_equal(conffile_read(&cf, in("link.json"), 0, &f), 0);
	assert_string_equal(only_code(&f), "config.file_unsafe");
	conffile_clear(&cf);
	findings_clear(&f);
	assert_int_equal(conffile_read(&cf, dir, 0, &f), 0);
	assert_string_equal(only_code(&f), "config.file_unsafe");
	conffile_clear(&cf);
	findings_clear(&f);
}

static void
test_open_directory(void **state)
{
	struct conffile cf;
	struct findings f = {0};

	put_text("server.json", "{}");
	assert_int_equal(chmod(dir, 0777), 0);
	assert_int_equal(conffile_read(&cf, in("server.json"), 0, &f), 0);
	assert_string_equal(only_code(&f), "config.file_unsafe");
	conffile_clear(&cf);
	findings_clear(&f);
}

static void
test_large(void **state)
{
	struct conffile cf;
	struct findings f = {0};
	char *text = malloc(CONFFILE_MAX + 1);

	assert_non_null(text);
	memset(text, ' ', CONFFILE_MAX + 1);
	put("server.json", text, CONFFILE_MAX, 0644);
	assert_int_equal(conffile_read(&cf, in("server.json"), 0, &f), 0);
	assert_int_equal(cf.n, 1);
	assert_int_equal(cf.v[0].len, CONFFILE_MAX);
	conffile_clear(&cf);
	put("server.json", text, CONFFILE_MAX + 1, 0644);
	assert_int_equal(conffile_read(&cf, in("server.json"), 0, &f), 0);
	assert_string_equal(only_code(&f), "config.file_unreadable");
	conffile_clear(&cf);
	findings_clear(&f);
	free(text);
}

static void
test_token(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		mode_t mode;
		const char *want; /* NULL: refused */
	} rows[] = {
	    {"secret\n", 7, 0600, "secret\n"},
	    {"secret", 6, 0400, "secret"},
	    {"two\n\n", 5, 0640, "two\n\n"},
	    {"", 0, 0600, ""},
	    {"secret\n", 7, 0644, NULL},
	    {"a\0b", 3, 0600, NULL},
	};
	struct findings f = {0};
	struct conffile cf = {.found = &f};
	char *got;
	size_t i;

	for (i = 0; i < nitems(rows); i++) {
		remove(in("token"));
		put("token", rows[i].text, rows[i].len, rows[i].mode);
		got = conffile_token(in("token"), &cf);
		if (rows[i].want != NULL)
			assert_string_equal(got, rows[i].want);
		else
			assert_null(got);
		assert_int_equal(f.n, rows[i].want == NULL);
		findings_clear(&f);
		free(got);
	}
	assert_null(conffile_token("relative", &cf));
	assert_int_equal(f.n, 1);
	findings_clear(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_layers, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_operator, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_unsafe, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_kinds, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_open_directory, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_large, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_token, setup, teardown),
	};

	umask(022);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
