/*
 * SPDX-License-Identifier: ISC
 *
 * Small encoders and decoders: base64, hex, UTF-8, JSON strings, times; each
 * back to where it came from, or against another's.  Input: bytes.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "common/codes.h"
#include "common/entry.h"
#include "common/hash.h"
#include "common/wire.h"
#include "regress/fuzz/fuzz.h"

static void
check_base64(const uint8_t *p, size_t n)
{
	size_t cap = 4 * ((n + 2) / 3) + 1;
	char *text = fuzz_alloc(cap), *again = fuzz_alloc(n + 4);
	uint8_t *out = fuzz_alloc(n + 1);
	int len;

	/* bytes to text and back */
	len = base64_encode(p, n, text, cap);
	CHECK(len == (int)cap - 1 && strlen(text) == cap - 1);
	CHECK(base64_encode(p, n, text, cap - 1) == -1);
	CHECK(base64_decode(text, cap - 1, out, n) == (int)n);
	CHECK(memcmp(out, p, n) == 0);
	CHECK(n == 0 || base64_decode(text, cap - 1, out, n - 1) == -1);
	CHECK(base64url_encode(p, n, text, cap) == (int)(n * 4 + 2) / 3);
	/* any text that is taken is the one text of its value */
	len = base64_decode((const char *)p, n, out, n);
	if (len >= 0) {
		CHECK(n % 4 == 0 && len <= (int)n);
		CHECK(base64_encode(out, (size_t)len, again, n + 4) == (int)n);
		CHECK(memcmp(again, p, n) == 0);
	}
	free(text);
	free(again);
	free(out);
}

static void
check_hex(const uint8_t *p, size_t n)
{
	char *text = fuzz_alloc(2 * n + 1);
	uint8_t *out = fuzz_alloc(n + 1);

	hex_encode(p, n, text);
	CHECK(strlen(text) == 2 * n && hex_decode(text, out, n) == 0);
	CHECK(memcmp(out, p, n) == 0);
	CHECK(hex_decode(text, out, n + 1) == -1);
	free(text);
	free(out);
}

/* jansson takes a string exactly when it is UTF-8 without NUL. */
static void
check_utf8(const uint8_t *p, size_t n)
{
	json_t *s = json_stringn((const char *)p, n), *back;
	struct wbuf w;

	CHECK((s != NULL) == utf8_valid(p, n));
	wbuf_init(&w, SIZE_MAX);
	json_str_put(&w, p, n);
	CHECK(!w.err && utf8_valid(w.p, w.len));
	back = json_loadb(
	    (char *)w.p, w.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	CHECK(back != NULL);
	if (s != NULL)
		CHECK(json_equal(s, back));
	json_decref(s);
	json_decref(back);
	wbuf_free(&w);
}

static void
check_times(int64_t t, uint32_t ns)
{
	char a[HTTPDATE_SIZE], b[RFC3339_SIZE], want[64];
	struct tm tm;

	time_http(a, t);
	time_rfc3339(b, t, ns);
	CHECK(strlen(a) == HTTPDATE_SIZE - 1 && strlen(b) == RFC3339_SIZE - 1);
	if (t < -62167219200 || t > 253402300799)
		return;
	CHECK(gmtime_r(&t, &tm) != NULL);
	strftime(want, sizeof(want), "%a, %d %b ", &tm);
	CHECK(strncmp(a, want, strlen(want)) == 0);
	snprintf(want, sizeof(want), "%04d %02d:%02d:%02d GMT",
	    tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
	CHECK(strcmp(a + 12, want) == 0);
	snprintf(want, sizeof(want), "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ",
	    tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
	    tm.tm_sec, ns / 1000000 % 1000);
	CHECK(strcmp(b, want) == 0);
}

/* An error body is JSON whatever a rule's author wrote. */
static void
check_error(unsigned code, const char *text)
{
	char *s = code_body((enum code)(code % C_COUNT), "r-1", "files.stat",
	    text, "path", NULL);
	json_t *o;

	CHECK(s != NULL);
	o = json_loads(s, JSON_REJECT_DUPLICATES, NULL);
	if (utf8_valid(text, strlen(text)))
		CHECK(json_is_object(o));
	json_decref(o);
	free(s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	uint8_t *p = fuzz_copy(data, size);
	uint64_t t;
	char *s;

	check_base64(p, size);
	check_hex(p, size);
	check_utf8(p, size);
	t = feed_uint(&f, 8);
	check_times((int64_t)t, (uint32_t)t);
	check_times((int64_t)(t & 0x7ffffffff), (uint32_t)feed_uint(&f, 4));
	s = feed_str(&f, '\0', size);
	check_error((unsigned)t, s);
	free(s);
	free(p);
	return 0;
}
