/*
 * SPDX-License-Identifier: ISC
 *
 * A sandbox's profile as bubblewrap arguments and as the launcher's set-up.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "execd/profile.h"

static const struct profile_base base = {
    {{"/bin", "usr/bin"}, {"/lib", ""}}, 2, 65536, 0};

/* The arguments, each followed by a blank. */
static char *
render(const struct profile_base *pb, const struct profile_binds *b)
{
	static char text[8192];
	struct wbuf w;
	size_t i;

	wbuf_init(&w, sizeof(text) - 1);
	profile_args(&w, pb, b);
	assert_int_equal(w.err, 0);
	memcpy(text, w.p, w.len);
	for (i = 0; i < w.len; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	text[w.len] = '\0';
	wbuf_free(&w);
	return text;
}

static void
test_args(void **state)
{
	static struct profile_binds b;
	struct profile_base ll = base;
	const char *s, *w, *g;

	assert_int_equal(profile_bind(&b, "/w/.git", 501, 1, 1, 1, 2), 0);
	assert_int_equal(profile_bind(&b, "/w", 500, 1, 0, 1, 1), 0);
	assert_int_equal(profile_bind(&b, "/r", 502, 0, 0, 1, 3), 0);
	profile_sort(&b);
	s = render(&base, &b);
	assert_non_null(strstr(s, "--unshare-user --unshare-ipc --unshare-pid "
				  "--unshare-net --unshare-uts "));
	assert_non_null(strstr(s, "--disable-userns "));
	assert_non_null(strstr(s, "--cap-drop ALL "));
	assert_non_null(strstr(s, "--symlink usr/bin /bin "));
	assert_non_null(strstr(s, "--ro-bind /lib /lib "));
	assert_non_null(strstr(s, "--size 65536 --tmpfs /tmp "));
	assert_non_null(strstr(s, "--ro-bind-fd 502 /r "));
	assert_non_null(strstr(s, "--remount-ro / "));
	/* B49: options all, so the launcher is what follows "--" */
	assert_null(strstr(s, " -- "));
	w = strstr(s, "--bind-fd 500 /w ");
	g = strstr(s, "--bind-fd 501 /w/.git ");
	assert_non_null(w);
	assert_non_null(g);
	assert_true(w < g);
	ll.landlock = 1;
	assert_null(strstr(render(&ll, &b), "--remount-ro"));
	b.v[0].fd = b.v[1].fd = b.v[2].fd = -1; /* numbers only */
	profile_clear(&b);
}

static void
test_binds(void **state)
{
	static const struct {
		const char *inner;
		int err;
	} t[] = {{"/w", 0}, {"/w", EEXIST}, {"", EINVAL}, {"w", EINVAL},
	    {"/", EINVAL}, {"//w", EINVAL}, {"/w/", EINVAL}, {"/w/..", EINVAL},
	    {"/w/./x", EINVAL}, {"/w/..x", 0}, {"/usr", EINVAL},
	    {"/usr/local/x", 0}, {"/etc", EINVAL}, {"/proc", EINVAL},
	    {"/proc/1", EINVAL}, {"/dev/shm/x", EINVAL}, {"/device", 0},
	    {"/run", EINVAL}, {"/run/x", 0}, {"/tmp", 0}, {"/bin", EINVAL}};
	static struct profile_binds b;
	size_t i;
	int rc;

	for (i = 0; i < nitems(t); i++) {
		errno = 0;
		rc = profile_bind(&b, t[i].inner, -1, 0, 0, 0, 0);
		if (rc != (t[i].err == 0 ? 0 : -1) || errno != t[i].err)
			fail_msg("%s: %d %s", t[i].inner, rc, strerror(errno));
	}
	assert_true(profile_shows(&b, "/usr/bin"));
	assert_true(profile_shows(&b, "/w/x"));
	assert_false(profile_shows(&b, "/wx"));
	assert_false(profile_shows(&b, "/opt/bin"));
	profile_clear(&b);
}

/* What is hidden is not to be found below either, and is never writable. */
static void
test_hide(void **state)
{
	static struct profile_binds b;

	assert_int_equal(profile_bind(&b, "/w", -1, 1, 0, 1, 1), 0);
	assert_int_equal(profile_bind(&b, "/w/a", -1, 1, 1, 1, 2), 0);
	assert_int_equal(profile_bind(&b, "/w/a/b", -1, 1, 1, 1, 3), 0);
	assert_int_equal(profile_bind(&b, "/w/ab", -1, 1, 1, 1, 4), 0);
	assert_int_equal(profile_hide(&b, "/w/a", -1, 9, 9), 0);
	assert_int_equal(b.n, 3);
	assert_null(profile_find(&b, "/w/a/b"));
	assert_non_null(profile_find(&b, "/w/ab"));
	assert_int_equal(profile_find(&b, "/w/a")->ino, 9);
	assert_int_equal(profile_find(&b, "/w/a")->rw, 0);
	assert_int_equal(profile_find(&b, "/w")->rw, 1);
	profile_clear(&b);
}

static void
test_too_many(void **state)
{
	static struct profile_binds b;
	char path[32];
	int i;

	for (i = 0; i < PROFILE_MAX_BINDS; i++) {
		snprintf(path, sizeof(path), "/x%d", i);
		assert_int_equal(profile_bind(&b, path, -1, 0, 0, 0, 0), 0);
	}
	assert_int_equal(profile_bind(&b, "/y", -1, 0, 0, 0, 0), -1);
	assert_int_equal(errno, ENFILE);
	profile_clear(&b);
}

static void
test_place(void **state)
{
	static const struct {
		const char *root, *inner;
		enum profile_place want;
	} t[] = {{"/w", "/w", PLACE_FREE}, {"/w", "/w/a/b", PLACE_FREE},
	    {"/w", "/w/.git", PLACE_GIT}, {"/w", "/w/a/.git", PLACE_GIT},
	    {"/w", "/w/.git/hooks", PLACE_PROTECTED},
	    {"/w", "/w/.git/modules/x", PLACE_PROTECTED},
	    {"/w", "/w/.gitx", PLACE_FREE}, {"/w", "/w/x.git", PLACE_FREE},
	    {"/w", "/w/.claude", PLACE_PROTECTED},
	    {"/w", "/w/a/.vscode/b", PLACE_PROTECTED},
	    {"/w", "/w/.claudex", PLACE_FREE},
	    /* above the root the operator knows best */
	    {"/home/u/.codex/w", "/home/u/.codex/w/a", PLACE_FREE},
	    {NULL, "/w/.git", PLACE_FREE}, {"/v", "/w/.git", PLACE_FREE},
	    /* the configuration says which */
	    {"/w", "/w/.own", PLACE_PROTECTED},
	    {"/w", "/w/a/.own/b", PLACE_PROTECTED},
	    {"/w", "/w/.agents", PLACE_FREE}};
	static char git[] = ".git", claude[] = ".claude", vscode[] = ".vscode",
		    codex[] = ".codex", own[] = ".own";
	static char *v[] = {git, claude, vscode, codex, own};
	const struct strlist names = {v, nitems(v)}, none = {NULL, 0};
	size_t i;

	for (i = 0; i < nitems(t); i++)
		if (profile_place(&names, t[i].root, t[i].inner) != t[i].want)
			fail_msg("%s %s", t[i].root, t[i].inner);
	assert_int_equal(profile_place(&none, "/w", "/w/.git"), PLACE_FREE);
}

static unsigned
rights_of(const struct xl_setup *s, const char *path)
{
	size_t i;

	for (i = 0; i < s->npaths; i++)
		if (strcmp(s->paths[i].path, path) == 0)
			return s->paths[i].rights;
	return 0;
}

static void
test_setup(void **state)
{
	static struct profile_binds b;
	struct xl_setup s = {0}, t;
	struct wbuf w;
	struct rbuf r;

	assert_int_equal(profile_bind(&b, "/w", -1, 1, 0, 7, 8), 0);
	assert_int_equal(profile_bind(&b, "/w/.git", -1, 1, 1, 7, 9), 0);
	assert_int_equal(profile_bind(&b, "/r", -1, 0, 0, 7, 10), 0);
	assert_int_equal(profile_setup(&s, &base, &b), 0);
	assert_int_equal(
	    rights_of(&s, "/w"), XLR_READ | XLR_EXEC | XLR_WRITE | XLR_MAKE);
	assert_int_equal(rights_of(&s, "/r"), XLR_READ | XLR_EXEC);
	assert_int_equal(rights_of(&s, "/w/.git"), 0);
	assert_int_equal(rights_of(&s, "/usr"), XLR_READ | XLR_EXEC);
	assert_int_equal(rights_of(&s, "/lib"), XLR_READ | XLR_EXEC);
	assert_int_equal(rights_of(&s, "/bin"), 0);
	assert_int_equal(rights_of(&s, "/proc"), XLR_READ);
	assert_int_equal(s.nchecks, 3);
	assert_string_equal(s.checks[1].path, "/w/.git");
	assert_int_equal(s.checks[1].ino, 9);
	assert_int_equal(s.checks[1].ro, 0);
	assert_int_equal(s.checks[2].ro, 1);
	/* and over the wire */
	wbuf_init(&w, 65536);
	xl_setup_put(&w, &s);
	assert_int_equal(w.err, 0);
	rbuf_init(&r, w.p, w.len);
	assert_int_equal(xl_setup_get(&r, &t), 0);
	assert_int_equal(t.npaths, s.npaths);
	assert_int_equal(rights_of(&t, "/w"), rights_of(&s, "/w"));
	assert_int_equal(t.checks[2].ino, 10);
	wbuf_free(&w);
	xl_setup_clear(&s);
	xl_setup_clear(&t);
	profile_clear(&b);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_args),
	    cmocka_unit_test(test_binds),
	    cmocka_unit_test(test_hide),
	    cmocka_unit_test(test_too_many),
	    cmocka_unit_test(test_place),
	    cmocka_unit_test(test_setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
