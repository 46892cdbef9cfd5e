/*
 * SPDX-License-Identifier: ISC
 *
 * URL scopes: what is parsed, what is admitted, what is denied.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/url.h"

static void
test_parse(void **state)
{
	static const struct {
		const char *url, *host, *path; /* host NULL: invalid */
		uint16_t port;
	} t[] = {
	    {"https://example.org", "example.org", "/", 443},
	    {"HTTPS://Example.ORG/A?b=/../c", "example.org", "/A", 443},
	    {"http://example.org:8080/x/", "example.org", "/x/", 8080},
	    {"https://example.org./", "example.org", "/", 443},
	    {"https://a-b.c1?q", "a-b.c1", "/", 443},
	    {"https://10.0.0.1/", "10.0.0.1", "/", 443},
	    {"https://example.org/a%20b", "example.org", "/a%20b", 443},
	    {"https://example.org/..a/b..", "example.org", "/..a/b..", 443},
	    {"", NULL},
	    {"example.org", NULL},
	    {"//example.org/", NULL},
	    {"ftp://example.org/", NULL},
	    {"file:///etc/passwd", NULL},
	    {"https:/example.org", NULL},
	    {"https://", NULL},
	    {"https:///x", NULL},
	    {"https://u@example.org/", NULL},
	    {"https://u:p@example.org/", NULL},
	    {"https://example.org/#x", NULL},
	    {"https://example.org\\x", NULL},
	    {"https://example.org/ x", NULL},
	    {"https://exa\tmple.org/", NULL},
	    {"https://ex\xc3\xa4mple.org/", NULL},
	    {"https://example.org:/", NULL},
	    {"https://example.org:0/", NULL},
	    {"https://example.org:65536/", NULL},
	    {"https://example.org:4 3/", NULL},
	    {"https://[::1]/", NULL},
	    {"https://2130706433/", NULL},
	    {"https://0x7f000001/", NULL},
	    {"https://0177.0.0.1/", NULL},
	    {"https://127.1/", NULL},
	    {"https://127.0.0.256/", NULL},
	    {"https://127.0.0.0x1/", NULL},
	    {"https://1.2.3.4.5/", NULL},
	    {"https://a..b/", NULL},
	    {"https://.a/", NULL},
	    {"https://-a.b/", NULL},
	    {"https://a_b.c/", NULL},
	    {"https://a%2eb/", NULL},
	    {"https://a/x/../y", NULL},
	    {"https://a/./y", NULL},
	    {"https://a/%2e%2E/y", NULL},
	    {"https://a/.%2e", NULL},
	    {"https://a/x%2fy", NULL},
	    {"https://a/x%5Cy", NULL},
	    {"https://a/x%00", NULL},
	    {"https://a/%", NULL},
	    {"https://a/%2", NULL},
	    {"https://a/%zz", NULL},
	    {"https://a/%252e", NULL},
	    {"https://a/%61dmin", NULL},
	    {"https://a/%4A", NULL},
	    {"https://a/x%30", NULL},
	    {"https://a/x%2dy", NULL},
	    {"https://a/%7Eme", NULL},
	    {"https://a/f%2Etxt", NULL},
	    {"https://a/%5f", NULL},
	};
	struct url u;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		int r = url_parse(t[i].url, &u);

		if (r != (t[i].host == NULL ? -1 : 0))
			fail_msg("%s: %d", t[i].url, r);
		if (r == -1)
			continue;
		assert_string_equal(u.host, t[i].host);
		assert_string_equal(u.path, t[i].path);
		assert_int_equal(u.port, t[i].port);
	}
}

static void
test_long(void **state)
{
	char s[2100] = "https://a/";
	struct url u;

	memset(s + 10, 'x', 2048 - 10);
	s[2048] = '\0';
	assert_int_equal(url_parse(s, &u), 0);
	assert_int_equal(strlen(u.path), 2048 - 9);
	s[2048] = 'x';
	assert_int_equal(url_parse(s, &u), -1);
}

static void
add(struct strlist *l, const char *s)
{
	assert_int_equal(strlist_add(l, s, strlen(s)), 0);
}

static int
admitted(const struct url_scope *s, const char *text)
{
	struct url u;

	assert_int_equal(url_parse(text, &u), 0);
	return url_admitted(s, &u);
}

static void
test_scope(void **state)
{
	struct url_scope s;

	assert_int_equal(url_scope_init(&s), 0);
	assert_false(admitted(&s, "https://example.org/"));
	add(&s.hosts, "example.org");
	add(&s.hosts, "*.example.net");
	add(&s.hosts, "10.0.0.1");
	add(&s.hosts, "8.8.8.8");
	assert_true(admitted(&s, "https://EXAMPLE.org./x/y?z"));
	assert_true(admitted(&s, "https://a.b.example.net/"));
	assert_false(admitted(&s, "https://example.net/"));
	assert_false(admitted(&s, "https://badexample.net/"));
	assert_false(admitted(&s, "https://example.org.evil.org/"));
	assert_false(admitted(&s, "http://example.org/"));
	assert_false(admitted(&s, "https://example.org:8443/"));
	assert_false(admitted(&s, "https://10.0.0.1/"));
	assert_true(admitted(&s, "https://8.8.8.8/"));
	s.block_private = 0;
	assert_true(admitted(&s, "https://10.0.0.1/"));
	s.ports[s.nports++] = 8443;
	assert_true(admitted(&s, "https://example.org:8443/"));
	assert_false(admitted(&s, "https://example.org/"));
	strlist_clear(&s.paths);
	add(&s.paths, "/api/**");
	assert_true(admitted(&s, "https://example.org:8443/api/v1/x"));
	assert_false(admitted(&s, "https://example.org:8443/admin"));
	url_scope_clear(&s);
}

static void
test_private(void **state)
{
	static const char *const no[] = {"0.0.0.0", "10.1.2.3", "100.64.0.1",
	    "100.127.255.255", "127.0.0.1", "169.254.169.254", "172.16.0.1",
	    "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.168.1.1",
	    "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1",
	    "224.0.0.1", "255.255.255.255"};
	static const char *const yes[] = {"1.1.1.1", "100.63.255.255",
	    "100.128.0.1", "126.255.255.255", "128.0.0.1", "172.15.0.1",
	    "172.32.0.1", "192.167.255.255", "198.17.255.255", "198.20.0.1",
	    "223.255.255.255"};
	struct url_scope s;
	char text[64];
	size_t i;

	assert_int_equal(url_scope_init(&s), 0);
	for (i = 0; i < nitems(no); i++)
		add(&s.hosts, no[i]);
	for (i = 0; i < nitems(yes); i++)
		add(&s.hosts, yes[i]);
	for (i = 0; i < nitems(no); i++) {
		snprintf(text, sizeof(text), "https://%s/", no[i]);
		assert_false(admitted(&s, text));
	}
	for (i = 0; i < nitems(yes); i++) {
		snprintf(text, sizeof(text), "https://%s/", yes[i]);
		assert_true(admitted(&s, text));
	}
	url_scope_clear(&s);
}

static void
test_deny(void **state)
{
	static const struct {
		const char *pattern, *url;
		int hit;
	} t[] = {
	    {"example.org", "https://example.org/x", 1},
	    {"example.org", "http://example.org:99/", 1},
	    {"example.org", "https://www.example.org/", 0},
	    {"*.example.org", "https://www.example.org/", 1},
	    {"*", "https://any.thing/", 1},
	    {"https://example.org", "http://example.org/", 0},
	    {"example.org:8080", "http://example.org:8080/", 1},
	    {"example.org:8080", "http://example.org/", 0},
	    {"https://example.org/admin/**", "https://example.org/admin/x", 1},
	    {"https://example.org/admin", "https://example.org/admin/x", 1},
	    {"https://example.org/admin/**", "https://example.org/a", 0},
	    {"*/secret", "https://x.y/secret", 1},
	};
	static const char *const bad[] = {"", "Example.org", "ftp://x",
	    "https://", "x:0", "x:y", "https://x:1:2", "**", "a b",
	    "x/**/a/**/b/**/c/**"};
	struct url u;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		assert_null(url_pattern_why(t[i].pattern));
		assert_int_equal(url_parse(t[i].url, &u), 0);
		if (url_denied(t[i].pattern, &u) != t[i].hit)
			fail_msg("%s, %s", t[i].pattern, t[i].url);
	}
	for (i = 0; i < nitems(bad); i++)
		assert_non_null(url_pattern_why(bad[i]));
	/* what cannot be read fails closed */
	assert_true(url_denied("Example.org", &u));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parse),
	    cmocka_unit_test(test_long),
	    cmocka_unit_test(test_scope),
	    cmocka_unit_test(test_private),
	    cmocka_unit_test(test_deny),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
