/*
 * SPDX-License-Identifier: ISC
 *
 * Looks at what a client got of a listener.  Pure.
 */
#include "regress/fuzz/responses.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/abx.h"
#include "regress/fuzz/fuzz.h"

void
responses_plain(struct wbuf *w)
{
	static const char again[] = "HTTP/1.1 100 Continue\r\n\r\n";
	static const char date[] = "\r\nDate: ";
	static const char id[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	char *s = (char *)w->p;
	size_t i, k, out = 0;

	for (i = 0; i < w->len; i++) {
		if (w->len - i >= sizeof(again) - 1 &&
		    memcmp(s + i, again, sizeof(again) - 1) == 0) {
			i += sizeof(again) - 2;
			continue;
		}
		if (w->len - i > sizeof(date) + 29 &&
		    memcmp(s + i, date, sizeof(date) - 1) == 0)
			i += sizeof(date) - 1 + 29;
		s[out++] = s[i];
		if (s[i] != 'r' || w->len - i < ABX_REQID_LEN ||
		    s[i + 1] != '-')
			continue;
		for (k = 2; k < ABX_REQID_LEN && strchr(id, s[i + k]) != NULL;)
			k++;
		if (k == ABX_REQID_LEN)
			i += ABX_REQID_LEN - 1;
	}
	w->len = out;
}

/* The value of a field of a head, or NULL. */
static const char *
value(const char *head, const char *end, const char *name)
{
	const char *s = head;
	size_t n = strlen(name);

	while ((s = memmem(s, (size_t)(end - s), "\r\n", 2)) != NULL) {
		s += 2;
		if ((size_t)(end - s) > n && strncasecmp(s, name, n) == 0 &&
		    s[n] == ':')
			return s + n + 1 + (s[n + 1] == ' ');
	}
	return NULL;
}

static const char *
past_chunks(const char *s, const char *end)
{
	char *e;
	size_t n;

	do {
		CHECK(s < end && isxdigit((unsigned char)*s));
		n = strtoul(s, &e, 16);
		CHECK(e + 2 <= end && e[0] == '\r' && e[1] == '\n');
		s = e + 2;
		CHECK((size_t)(end - s) >= n + 2);
		CHECK(memcmp(s + n, "\r\n", 2) == 0);
		s += n + 2;
	} while (n > 0);
	return s;
}

/* One response: what follows it. */
static const char *
past_response(const char *s, const char *end)
{
	const char *head = s, *body, *len, *close;
	unsigned status;
	size_t n;

	CHECK((size_t)(end - s) > 12 && memcmp(s, "HTTP/1.1 ", 9) == 0);
	status = (unsigned)strtoul(s + 9, NULL, 10);
	CHECK(status == 100 || (status >= 200 && status <= 599));
	body = memmem(s, (size_t)(end - s), "\r\n\r\n", 4);
	CHECK(body != NULL);
	body += 4;
	len = value(head, body, "Content-Length");
	close = value(head, body, "Connection");
	if (status == 304 || status == 204 || status == 100)
		return body;
	if (value(head, body, "Transfer-Encoding") != NULL) {
		CHECK(len == NULL);
		return past_chunks(body, end);
	}
	if (len == NULL) {
		CHECK(close != NULL && strncmp(close, "close", 5) == 0);
		return end; /* until it closes */
	}
	n = strtoul(len, NULL, 10);
	CHECK((size_t)(end - body) >= n);
	return body + n;
}

void
responses_check(const struct wbuf *w)
{
	const char *s = (const char *)w->p, *end;

	if (w->len == 0)
		return;
	end = s + w->len;
	while (s < end)
		s = past_response(s, end);
	CHECK(s == end);
}
