/*
 * SPDX-License-Identifier: ISC
 *
 * Digests by BearSSL, random bytes by getrandom(2), small encoders.
 */
#include "common/hash.h"

#include <sys/random.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bearssl.h>

void
sha256(const void *p, size_t n, uint8_t out[SHA256_LEN])
{
	br_sha256_context c;

	br_sha256_init(&c);
	br_sha256_update(&c, p, n);
	br_sha256_out(&c, out);
	explicit_bzero(&c, sizeof(c));
}

struct sha256_ctx {
	br_sha256_context c;
};

struct sha256_ctx *
sha256_new(void)
{
	struct sha256_ctx *x = malloc(sizeof(*x));

	if (x != NULL)
		br_sha256_init(&x->c);
	return x;
}

void
sha256_add(struct sha256_ctx *x, const void *p, size_t n)
{
	br_sha256_update(&x->c, p, n);
}

void
sha256_end(struct sha256_ctx *x, uint8_t *out)
{
	if (x == NULL)
		return;
	if (out != NULL)
		br_sha256_out(&x->c, out);
	explicit_bzero(x, sizeof(*x));
	free(x);
}

void
hmac_sha256(const void *key, size_t keylen, const void *p, size_t n,
    uint8_t out[SHA256_LEN])
{
	br_hmac_key_context k;
	br_hmac_context c;

	br_hmac_key_init(&k, &br_sha256_vtable, key, keylen);
	br_hmac_init(&c, &k, 0);
	br_hmac_update(&c, p, n);
	br_hmac_out(&c, out);
	explicit_bzero(&k, sizeof(k));
	explicit_bzero(&c, sizeof(c));
}

uint32_t
fnv32(const void *p, size_t n)
{
	const uint8_t *q = p;
	uint32_t h = 2166136261U;

	while (n-- > 0)
		h = (h ^ *q++) * 16777619U;
	return h;
}

int
ct_equal(const void *a, const void *b, size_t n)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t d = 0;
	size_t i;

	for (i = 0; i < n; i++)
		d |= x[i] ^ y[i];
	return d == 0;
}

void
random_bytes(void *p, size_t n)
{
	uint8_t *q = p;
	ssize_t m;

	while (n > 0) {
		if ((m = getrandom(q, n, 0)) == -1) {
			if (errno == EINTR)
				continue;
			abort();
		}
		q += m;
		n -= (size_t)m;
	}
}

void
hex_encode(const void *p, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *q = p;
	size_t i;

	for (i = 0; i < n; i++) {
		*out++ = digits[q[i] >> 4];
		*out++ = digits[q[i] & 15];
	}
	*out = '\0';
}

int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int
hex_decode(const char *s, uint8_t *out, size_t n)
{
	int hi, lo;
	size_t i;

	if (strlen(s) != n * 2)
		return -1;
	for (i = 0; i < n; i++) {
		hi = hex_digit(s[2 * i]);
		lo = hex_digit(s[2 * i + 1]);
		if (hi == -1 || lo == -1)
			return -1;
		out[i] = (uint8_t)(hi << 4 | lo);
	}
	return 0;
}

static const char b64std[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char b64url[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int
encode64(const char *abc, int pad, const uint8_t *p, size_t n, char *out,
    size_t size)
{
	size_t need = pad ? (n + 2) / 3 * 4 : (n * 4 + 2) / 3, o = 0, i, k;
	uint32_t v;

	if (n > INT32_MAX / 2 || need + 1 > size)
		return -1;
	for (i = 0; i < n; i += 3) {
		k = n - i < 3 ? n - i : 3;
		v = (uint32_t)p[i] << 16 |
		    (k > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
		    (k > 2 ? p[i + 2] : 0);
		out[o++] = abc[v >> 18 & 63];
		out[o++] = abc[v >> 12 & 63];
		if (k > 1)
			out[o++] = abc[v >> 6 & 63];
		else if (pad)
			out[o++] = '=';
		if (k > 2)
			out[o++] = abc[v & 63];
		else if (pad)
			out[o++] = '=';
	}
	out[o] = '\0';
	return (int)o;
}

int
base64url_encode(const void *p, size_t n, char *out, size_t size)
{
	return encode64(b64url, 0, p, n, out, size);
}

int
base64_encode(const void *p, size_t n, char *out, size_t size)
{
	return encode64(b64std, 1, p, n, out, size);
}

static int
b64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int
base64_decode(const char *s, size_t n, uint8_t *out, size_t size)
{
	size_t i, o = 0, k, want;
	uint32_t v;
	int d, pads;

	if (n % 4 != 0 || n > INT32_MAX)
		return -1;
	for (i = 0; i < n; i += 4) {
		pads = 0;
		v = 0;
		for (k = 0; k < 4; k++) {
			if (s[i + k] == '=' && i + 4 == n && k >= 2) {
				pads++;
				v <<= 6;
				continue;
			}
			if (pads > 0 || (d = b64_digit(s[i + k])) == -1)
				return -1;
			v = v << 6 | (uint32_t)d;
		}
		want = 3 - (size_t)pads;
		/* unused bits must be zero: one text a value */
		if ((pads == 1 && (v & 0xff) != 0) ||
		    (pads == 2 && (v & 0xffff) != 0) || o + want > size)
			return -1;
		out[o++] = v >> 16 & 0xff;
		if (want > 1)
			out[o++] = v >> 8 & 0xff;
		if (want > 2)
			out[o++] = v & 0xff;
	}
	return (int)o;
}

void
request_id(char *out)
{
	/* one getrandom(2) a batch: this is on the path of every request */
	static uint8_t pool[16 * 64];
	static size_t left;

	if (left == 0) {
		random_bytes(pool, sizeof(pool));
		left = sizeof(pool);
	}
	left -= 16;
	out[0] = 'r';
	out[1] = '-';
	base64url_encode(pool + left, 16, out + 2, 23);
}

int
utf8_valid(const void *data, size_t n)
{
	const uint8_t *p = data, *end;
	uint32_t cp;
	int more;

	if (n == 0)
		return 1; /* data may be NULL */
	end = p + n;
	while (p < end) {
		if (*p < 0x80) {
			p++;
			continue;
		}
		if (*p >= 0xc2 && *p <= 0xdf) {
			more = 1;
			cp = *p & 0x1f;
		} else if (*p >= 0xe0 && *p <= 0xef) {
			more = 2;
			cp = *p & 0x0f;
		} else if (*p >= 0xf0 && *p <= 0xf4) {
			more = 3;
			cp = *p & 0x07;
		} else
			return 0;
		p++;
		if (end - p < more)
			return 0;
		n = (size_t)more;
		while (more-- > 0) {
			if ((*p & 0xc0) != 0x80)
				return 0;
			cp = cp << 6 | (*p++ & 0x3f);
		}
		if ((n == 2 && (cp < 0x800 || (cp >= 0xd800 && cp < 0xe000))) ||
		    (n == 3 && (cp < 0x10000 || cp > 0x10ffff)))
			return 0;
	}
	return 1;
}
