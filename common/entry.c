/*
 * SPDX-License-Identifier: ISC
 *
 * Entries as clients see them: JSON, entity tags, times.  Pure; the calendar
 * is computed here because gmtime_r opens a file on its first use.
 */
#include "common/entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/frame.h"
#include "common/hash.h"
#include "common/payload.h"
#include "common/wire.h"

void
json_raw_put(struct wbuf *w, const char *s)
{
	wput_raw(w, s, strlen(s));
}

void
json_uint_put(struct wbuf *w, uint64_t v)
{
	char buf[20];
	size_t i = sizeof(buf);

	do {
		buf[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v != 0);
	wput_raw(w, buf + i, sizeof(buf) - i);
}

/* Bytes of the well-formed UTF-8 sequence at p, 0 when there is none. */
static size_t
seq_len(const uint8_t *p, size_t n)
{
	size_t len = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;

	return len <= n && utf8_valid(p, len) ? len : 0;
}

static void
put_escape(struct wbuf *w, uint8_t c)
{
	char buf[8];

	switch (c) {
	case '"':
	case '\\':
		buf[0] = '\\';
		buf[1] = (char)c;
		wput_raw(w, buf, 2);
		return;
	case '\n':
		wput_raw(w, "\\n", 2);
		return;
	case '\r':
		wput_raw(w, "\\r", 2);
		return;
	case '\t':
		wput_raw(w, "\\t", 2);
		return;
	}
	snprintf(buf, sizeof(buf), "\\u%04x", c);
	wput_raw(w, buf, 6);
}

void
json_str_put(struct wbuf *w, const void *s, size_t n)
{
	const uint8_t *p = s, *end, *run = p;
	size_t len;

	if (n == 0) {
		/* s may be NULL */
		wput_raw(w, "\"\"", 2);
		return;
	}
	end = p + n;
	wput_raw(w, "\"", 1);
	while (p < end) {
		if (*p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\') {
			p++;
			continue;
		}
		len = *p < 0x80 ? 0 : seq_len(p, (size_t)(end - p));
		if (len > 0) {
			p += len;
			continue;
		}
		wput_raw(w, run, (size_t)(p - run));
		if (*p < 0x80)
			put_escape(w, *p);
		else
			wput_raw(w, "\xef\xbf\xbd", 3);
		run = ++p;
	}
	wput_raw(w, run, (size_t)(p - run));
	wput_raw(w, "\"", 1);
}

static void
put_le64(uint8_t *p, uint64_t v)
{
	int i;

	for (i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

void
etag_make(char out[ETAG_SIZE], uint64_t dev, uint64_t ino, uint64_t size,
    int64_t mtime, uint32_t mtime_ns)
{
	uint8_t in[40], digest[SHA256_LEN];

	/* a digest, so that device and inode numbers do not show */
	put_le64(in, dev);
	put_le64(in + 8, ino);
	put_le64(in + 16, size);
	put_le64(in + 24, (uint64_t)mtime);
	put_le64(in + 32, mtime_ns);
	sha256(in, sizeof(in), digest);
	out[0] = '"';
	base64url_encode(digest, 16, out + 1, ETAG_SIZE - 1);
	out[ETAG_SIZE - 2] = '"';
	out[ETAG_SIZE - 1] = '\0';
}

int
etag_listed(const char *s, size_t n, const char *etag, int weak)
{
	size_t i = 0, from, len = strlen(etag);
	int is_weak, found = 0, tags = 0;

	if (n == 1 && s[0] == '*')
		return 1;
	for (;;) {
		while (i < n && (s[i] == ' ' || s[i] == '\t' || s[i] == ','))
			i++;
		if (i == n)
			return tags == 0 ? -1 : found;
		is_weak = n - i >= 2 && s[i] == 'W' && s[i + 1] == '/';
		i += is_weak ? 2 : 0;
		from = i;
		if (i == n || s[i] != '"')
			return -1;
		for (i++; i < n && s[i] != '"'; i++)
			continue;
		if (i++ == n || (i < n && strchr(" \t,", s[i]) == NULL))
			return -1;
		tags = 1;
		if ((weak || !is_weak) && i - from == len &&
		    memcmp(s + from, etag, len) == 0)
			found = 1;
	}
}

struct civil {
	unsigned year, month, day, hour, min, sec, wday;
};

/* Days to a date by counting in 400-year eras that begin on 1 March. */
static void
civil_from(int64_t t, struct civil *c)
{
	const int64_t last = 253402300799;  /* 9999-12-31T23:59:59 */
	const int64_t first = -62167219200; /* 0000-01-01T00:00:00 */
	int64_t days, rest, era;
	unsigned doe, yoe, doy, mp;

	if (t > last)
		t = last;
	if (t < first)
		t = first;
	days = t / 86400;
	rest = t % 86400;
	if (rest < 0) {
		rest += 86400;
		days--;
	}
	c->hour = (unsigned)(rest / 3600);
	c->min = (unsigned)(rest / 60 % 60);
	c->sec = (unsigned)(rest % 60);
	c->wday = (unsigned)(((days + 4) % 7 + 7) % 7);
	days += 719468;
	era = (days >= 0 ? days : days - 146096) / 146097;
	doe = (unsigned)(days - era * 146097);
	yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	mp = (5 * doy + 2) / 153;
	c->day = doy - (153 * mp + 2) / 5 + 1;
	c->month = mp < 10 ? mp + 3 : mp - 9;
	c->year = (unsigned)((int64_t)yoe + era * 400 + (c->month <= 2));
}

void
time_rfc3339(char out[RFC3339_SIZE], int64_t sec, uint32_t ns)
{
	struct civil c;

	civil_from(sec, &c);
	snprintf(out, RFC3339_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
	    c.year % 10000, c.month % 100, c.day % 100, c.hour % 100,
	    c.min % 100, c.sec % 100, ns / 1000000 % 1000);
}

void
time_http(char out[HTTPDATE_SIZE], int64_t sec)
{
	static const char day[7][4] = {
	    "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char mon[12][4] = {"Jan", "Feb", "Mar", "Apr", "May",
	    "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	struct civil c;

	civil_from(sec, &c);
	snprintf(out, HTTPDATE_SIZE, "%s, %02u %s %04u %02u:%02u:%02u GMT",
	    day[c.wday % 7], c.day % 100, mon[(c.month - 1) % 12],
	    c.year % 10000, c.hour % 100, c.min % 100, c.sec % 100);
}

const char *
entry_type(uint8_t type)
{
	switch (type) {
	case FK_FILE:
		return "file";
	case FK_DIR:
		return "directory";
	case FK_LINK:
		return "symlink";
	default:
		return "other";
	}
}

static void
put_base64(struct wbuf *w, const char *name, const void *p, size_t n)
{
	size_t size = 4 * ((n + 2) / 3) + 1;
	char *b;

	if ((b = malloc(size)) == NULL) {
		w->err = 1;
		return;
	}
	if (base64_encode(p, n, b, size) == -1)
		w->err = 1;
	json_raw_put(w, ",\"");
	json_raw_put(w, name);
	json_raw_put(w, "\":\"");
	json_raw_put(w, b);
	json_raw_put(w, "\"");
	free(b);
}

void
entry_path_put(struct wbuf *w, const char *member, const char *path,
    const char *name, size_t len)
{
	char exact[32];

	char buf[2 * ABX_PATH_MAX + 2];
	size_t n = strnlen(path, ABX_PATH_MAX);

	memcpy(buf, path, n);
	if (len > 0) {
		if (n > 0 && buf[n - 1] != '/')
			buf[n++] = '/';
		memcpy(buf + n, name, len);
		n += len;
	}
	json_str_put(w, member, strlen(member));
	json_raw_put(w, ":");
	json_str_put(w, buf, n);
	if (!utf8_valid(buf, n)) {
		snprintf(exact, sizeof(exact), "%s_base64", member);
		put_base64(w, exact, buf, n);
	}
}

void
entry_put(
    struct wbuf *w, const char *path, int join, const struct list_entry *e)
{
	char mode[8], mtime[RFC3339_SIZE], etag[ETAG_SIZE];
	const char *name = memrchr(e->name, '/', e->namelen);
	size_t n;

	/* of a name below a directory the last component */
	name = name == NULL || e->namelen == 1 ? e->name : name + 1;
	n = e->namelen - (size_t)(name - e->name);

	snprintf(mode, sizeof(mode), "%04o", e->mode & 07777);
	time_rfc3339(mtime, e->mtime, e->mtime_ns);
	etag_make(etag, e->dev, e->ino, e->size, e->mtime, e->mtime_ns);
	json_raw_put(w, "{\"name\":");
	json_str_put(w, name, n);
	if (!utf8_valid(name, n))
		put_base64(w, "name_base64", name, n);
	json_raw_put(w, ",");
	entry_path_put(w, "path", path, e->name, join ? e->namelen : 0);
	json_raw_put(w, ",\"type\":\"");
	json_raw_put(w, entry_type(e->type));
	json_raw_put(w, "\",\"size\":");
	json_uint_put(w, e->size);
	json_raw_put(w, ",\"mode\":\"");
	json_raw_put(w, mode);
	json_raw_put(w, "\",\"mtime\":\"");
	json_raw_put(w, mtime);
	json_raw_put(w, "\",\"etag\":");
	json_str_put(w, etag, ETAG_SIZE - 1);
	json_raw_put(w, "}");
}
