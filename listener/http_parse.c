/*
 * SPDX-License-Identifier: ISC
 *
 * Request heads (RFC 9112) with everything refused on which two readers could
 * disagree: bare CR or LF, folded lines, space before a colon, doubled or odd
 * lengths, any coding but chunked (design: framing).  Pure; each byte is
 * looked at once however the head drips in.
 */
#include "listener/http_parse.h"

#include <string.h>
#include <strings.h>

#define F(id, text) [id] = {text, sizeof(text) - 1}
static const struct {
	const char *name;
	size_t len;
} field_names[HF_COUNT] = {
    F(HF_HOST, "host"),
    F(HF_ORIGIN, "origin"),
    F(HF_AUTHORIZATION, "authorization"),
    F(HF_ACCESS_TOKEN, "x-access-token"),
    F(HF_CONTENT_LENGTH, "content-length"),
    F(HF_TRANSFER_ENCODING, "transfer-encoding"),
    F(HF_CONNECTION, "connection"),
    F(HF_EXPECT, "expect"),
    F(HF_CONTENT_TYPE, "content-type"),
    F(HF_ACCEPT, "accept"),
    F(HF_RANGE, "range"),
    F(HF_IF_RANGE, "if-range"),
    F(HF_IF_MATCH, "if-match"),
    F(HF_IF_NONE_MATCH, "if-none-match"),
    F(HF_IDEMPOTENCY_KEY, "idempotency-key"),
    F(HF_CONTENT_DIGEST, "content-digest"),
    F(HF_FORWARDED_FOR, "x-forwarded-for"),
    F(HF_LAST_EVENT_ID, "last-event-id"),
};
#undef F

int
http_is_token(uint8_t c)
{
	/* one bit a character of 0x20 to 0x7f */
	static const uint32_t bits[3] = {0x03ff6cfa, 0xc7fffffe, 0x57ffffff};

	if (c < 0x20 || c > 0x7f)
		return 0;
	return bits[(c - 0x20) >> 5] >> (c & 31) & 1;
}

int
http_is_value(uint8_t c)
{
	return (c >= 0x20 && c != 0x7f) || c == '\t';
}

void
http_head_init(struct http_head *h)
{
	memset(h, 0, sizeof(*h));
}

static int
bad(struct http_head *h, enum code code)
{
	h->code = code;
	return -1;
}

int
http_slice_is(const uint8_t *buf, const struct http_slice *s, const char *text)
{
	return strlen(text) == s->len &&
	       strncasecmp((const char *)buf + s->off, text, s->len) == 0;
}

int
http_list_has(const char *list, size_t len, const char *token)
{
	size_t i = 0, from, to, want = strlen(token);

	while (i < len) {
		while (i < len && (list[i] == ' ' || list[i] == '\t'))
			i++;
		from = i;
		while (i < len && list[i] != ',' && list[i] != ';')
			i++;
		to = i;
		while (i < len && list[i] != ',')
			i++;
		i++;
		while (
		    to > from && (list[to - 1] == ' ' || list[to - 1] == '\t'))
			to--;
		if (to - from == want &&
		    strncasecmp(list + from, token, want) == 0)
			return 1;
	}
	return 0;
}

/* What rules a line out as soon as it has begun: no HTTP at all (a TLS hello,
 * say), or too much of it.  Asked of whole lines first of all too, so that the
 * answer does not depend on how much came at once.  n: bytes of the line that
 * are there, less its CR LF. */
static int
line_begins(struct http_head *h, const uint8_t *buf, size_t n, size_t max)
{
	const uint8_t *p = buf + h->pos;
	size_t i;

	if (h->fields_at != 0)
		return h->pos - h->fields_at + n > max
			   ? bad(h, C_REQ_HEADERS_TOO_LARGE)
			   : 0;
	for (i = 0; i < n && p[i] != ' '; i++)
		if (i >= HTTP_METHOD_MAX || !http_is_token(p[i]))
			return bad(h, C_REQ_BAD_FRAMING);
	return n > HTTP_LINE_MAX ? bad(h, C_REQ_BAD_TARGET) : 0;
}

static int
parse_version(struct http_head *h, const uint8_t *p, size_t n)
{
	if (n != 8 || memcmp(p, "HTTP/", 5) != 0 || p[5] < '0' || p[5] > '9' ||
	    p[6] != '.' || p[7] < '0' || p[7] > '9')
		return bad(h, C_REQ_BAD_FRAMING);
	if (p[5] != '1' || p[7] > '1')
		return bad(h, C_REQ_VERSION);
	h->minor = p[7] - '0';
	h->close = h->minor == 0;
	return 0;
}

/* method SP target SP version; a target with spaces is the target check's
 * business, so the version is what follows the last space. */
static int
request_line(struct http_head *h, const uint8_t *buf, size_t n)
{
	const uint8_t *p = buf + h->pos, *sp, *last;
	size_t i;

	if ((sp = memchr(p, ' ', n)) == NULL || sp == p ||
	    (size_t)(sp - p) > HTTP_METHOD_MAX)
		return bad(h, C_REQ_BAD_FRAMING);
	for (i = 0; p + i < sp; i++)
		if (!http_is_token(p[i]))
			return bad(h, C_REQ_BAD_FRAMING);
	last = memrchr(p, ' ', n);
	if (last == sp)
		return bad(h, C_REQ_BAD_FRAMING);
	h->method.off = h->pos;
	h->method.len = (uint32_t)(sp - p);
	h->target.off = (uint32_t)(sp + 1 - buf);
	h->target.len = (uint32_t)(last - sp - 1);
	return parse_version(h, last + 1, (size_t)(p + n - last - 1));
}

static int
parse_length(struct http_head *h, const uint8_t *p, size_t n)
{
	uint64_t v = 0;
	size_t i;

	if (n == 0 || h->seen[HF_CONTENT_LENGTH] > 1)
		return bad(h, C_REQ_BAD_FRAMING);
	for (i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9' ||
		    __builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(p[i] - '0'), &v) ||
		    v > INT64_MAX)
			return bad(h, C_REQ_BAD_FRAMING);
	}
	h->has_length = 1;
	h->length = v;
	return 0;
}

/* What the parser itself must know of a field. */
static int
known_field(struct http_head *h, enum http_field id, const uint8_t *buf)
{
	const struct http_slice *v = &h->field[id];
	const char *s = (const char *)buf + v->off;

	switch (id) {
	case HF_CONTENT_LENGTH:
		return parse_length(h, buf + v->off, v->len);
	case HF_TRANSFER_ENCODING:
		if (h->seen[id] > 1 || !http_slice_is(buf, v, "chunked"))
			return bad(h, C_REQ_BAD_FRAMING);
		h->chunked = 1;
		return 0;
	case HF_CONNECTION:
		h->close |= (uint8_t)http_list_has(s, v->len, "close");
		return 0;
	case HF_EXPECT:
		h->expect |= (uint8_t)http_slice_is(buf, v, "100-continue");
		return 0;
	case HF_ACCEPT:
		h->sse |=
		    (uint8_t)http_list_has(s, v->len, "text/event-stream");
		return 0;
	default:
		return 0;
	}
}

static int
keep_field(struct http_head *h, const uint8_t *buf, size_t namelen,
    const uint8_t *value, size_t len)
{
	const char *name = (const char *)buf + h->pos;
	int i;

	for (i = 0; i < HF_COUNT; i++)
		if (field_names[i].len == namelen &&
		    strncasecmp(field_names[i].name, name, namelen) == 0)
			break;
	if (i == HF_COUNT)
		return 0;
	h->field[i].off = (uint32_t)(value - buf);
	h->field[i].len = (uint32_t)len;
	if (h->seen[i] < UINT8_MAX)
		h->seen[i]++;
	return known_field(h, (enum http_field)i, buf);
}

static int
field_line(struct http_head *h, const uint8_t *buf, size_t n)
{
	const uint8_t *p = buf + h->pos, *v;
	size_t i, len;

	if (++h->nfields > HTTP_FIELDS_MAX)
		return bad(h, C_REQ_HEADERS_TOO_LARGE);
	for (i = 0; i < n && http_is_token(p[i]); i++)
		;
	if (i == 0 || i == n || p[i] != ':')
		return bad(h, C_REQ_BAD_FRAMING);
	v = p + i + 1;
	len = n - i - 1;
	while (len > 0 && (*v == ' ' || *v == '\t')) {
		v++;
		len--;
	}
	while (len > 0 && (v[len - 1] == ' ' || v[len - 1] == '\t'))
		len--;
	for (n = 0; n < len; n++)
		if (!http_is_value(v[n]))
			return bad(h, C_REQ_BAD_FRAMING);
	return keep_field(h, buf, i, v, len);
}

/* The empty line came. */
static int
finish(struct http_head *h, uint32_t end)
{
	if (h->seen[HF_HOST] != 1 || (h->chunked && h->has_length) ||
	    (h->chunked && h->minor == 0))
		return bad(h, C_REQ_BAD_FRAMING);
	h->end = end;
	return 1;
}

/* One whole line of n bytes at pos, without its CR LF. */
static int
one_line(struct http_head *h, const uint8_t *buf, size_t n)
{
	if (memchr(buf + h->pos, '\r', n) != NULL)
		return bad(h, C_REQ_BAD_FRAMING);
	if (h->fields_at == 0) {
		/* RFC 9112, 2.2: one empty line before a request is ignored */
		if (n == 0 && h->pos == 0)
			return 0;
		if (request_line(h, buf, n) == -1)
			return -1;
		h->fields_at = h->scan;
		return 0;
	}
	return n == 0 ? finish(h, h->scan) : field_line(h, buf, n);
}

int
http_head_feed(
    struct http_head *h, const uint8_t *buf, size_t len, size_t max_fields)
{
	const uint8_t *lf;
	size_t n;
	int rc, cr;

	while ((lf = memchr(buf + h->scan, '\n', len - h->scan)) != NULL) {
		n = (size_t)(lf - buf) - h->pos;
		cr = n > 0 && lf[-1] == '\r';
		n -= (size_t)cr;
		if (line_begins(h, buf, n, max_fields) == -1)
			return -1;
		if (!cr)
			return bad(h, C_REQ_BAD_FRAMING);
		h->scan = (uint32_t)(lf + 1 - buf);
		if ((rc = one_line(h, buf, n)) != 0)
			return rc;
		h->pos = h->scan;
	}
	h->scan = (uint32_t)len;
	n = len - h->pos;
	n -= n > 0 && buf[len - 1] == '\r';
	return line_begins(h, buf, n, max_fields);
}
