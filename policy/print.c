/*
 * SPDX-License-Identifier: ISC
 *
 * The effective configuration as canonical JSON, driven by the tables that
 * read it, and its revision.  Rows stand in the order of their names, so the
 * text is sorted by itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "policy/confkey.h"
#include "policy/json.h"

void
out_lit(struct out *o, const char *s)
{
	wput_raw(&o->w, s, strlen(s));
}

/* Length of the well-formed character at s, 0 when it is not. */
static size_t
char_len(const char *s, size_t left)
{
	unsigned char c = (unsigned char)*s;
	size_t n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;

	return n <= left && utf8_valid(s, n) ? n : 0;
}

void
out_str(struct out *o, const char *s)
{
	size_t n, left = strlen(s);
	char buf[8];

	out_lit(o, "\"");
	for (; left > 0; s += n, left -= n) {
		n = char_len(s, left);
		if (n == 0) {
			/* Only a file name can be so. */
			out_lit(o, "\xef\xbf\xbd");
			n = 1;
		} else if (*s == '"' || *s == '\\') {
			buf[0] = '\\';
			buf[1] = *s;
			wput_raw(&o->w, buf, 2);
		} else if ((unsigned char)*s < 0x20) {
			snprintf(buf, sizeof(buf), "\\u%04x", *s);
			out_lit(o, buf);
		} else
			wput_raw(&o->w, s, n);
	}
	out_lit(o, "\"");
}

void
out_u64(struct out *o, uint64_t v)
{
	char buf[24];

	snprintf(buf, sizeof(buf), "%llu", (unsigned long long)v);
	out_lit(o, buf);
}

void
out_list(struct out *o, const struct strlist *l)
{
	size_t i;

	out_lit(o, "[");
	for (i = 0; i < l->n; i++) {
		if (i > 0)
			out_lit(o, ",");
		out_str(o, l->v[i]);
	}
	out_lit(o, "]");
}

/* A number of any type; 0 when it is absent. */
static int
put_number(struct out *o, const struct ckey *k, const void *at)
{
	char buf[40];
	uint64_t v;

	if (k->type == K_U32 || k->type == K_OCTAL)
		v = *(const uint32_t *)at;
	else if (k->type == K_PORT)
		v = *(const uint16_t *)at;
	else
		v = *(const uint64_t *)at;
	if (v == LIMIT_NONE || (v == 0 && (k->flags & CK_OPT0) != 0))
		return 0;
	if (k->type == K_OCTAL)
		snprintf(buf, sizeof(buf), "\"%04llo\"", (unsigned long long)v);
	else if (k->type == K_MSEC)
		snprintf(buf, sizeof(buf), "\"%llums\"", (unsigned long long)v);
	else
		snprintf(buf, sizeof(buf), "%llu", (unsigned long long)v);
	out_lit(o, buf);
	return 1;
}

static int
put_str(struct out *o, const char *s)
{
	if (s != NULL)
		out_str(o, s);
	return s != NULL;
}

/* The value of a row; 0 when it has none. */
static int
put_value(struct out *o, const struct ckey *k, const void *obj)
{
	const void *at = (const char *)obj + k->off;
	int b;

	switch (k->type) {
	case K_BOOL:
	case K_NBOOL:
		b = *(const int *)at != 0;
		out_lit(o, b != (k->type == K_NBOOL) ? "true" : "false");
		return 1;
	case K_STR:
	case K_DIR:
		return put_str(o, *(char *const *)at);
	case K_ENUM:
		return put_str(o, k->words[*(const int *)at]);
	case K_LIST:
		out_list(o, at);
		return 1;
	case K_OBJ:
		out_object(o, k->sub, at);
		return 1;
	case K_FUNC:
		return k->put == NULL ? 0 : k->put(o, obj);
	case K_KEEP:
	case K_LATER:
		return 0;
	default:
		return put_number(o, k, at);
	}
}

void
out_object(struct out *o, const struct ckey *k, const void *obj)
{
	const char *sep = "";
	size_t start;

	out_lit(o, "{");
	for (; k->name != NULL; k++) {
		if ((k->flags & CK_ALIAS) != 0 ||
		    ((k->flags & CK_ORIGIN) != 0 && !o->origins))
			continue;
		start = o->w.len;
		out_lit(o, sep);
		out_str(o, k->name);
		out_lit(o, ":");
		if (put_value(o, k, obj))
			sep = ",";
		else if (o->w.len > start)
			o->w.len = start;
	}
	out_lit(o, "}");
}

/* The text with or without origins into a fresh writer: 0 or -1. */
static int
conf_render(const struct conf *c, int origins, struct wbuf *w)
{
	struct out o = {.origins = origins};

	wbuf_init(&o.w, JSON_MAX);
	out_object(&o, conf_keys, c);
	if (o.w.err) {
		wbuf_free(&o.w);
		return -1;
	}
	*w = o.w;
	return 0;
}

char *
conf_print(const struct conf *c)
{
	struct wbuf w;
	char *s = NULL;

	if (conf_render(c, 1, &w) == -1)
		return NULL;
	if ((s = malloc(w.len + 1)) != NULL) {
		memcpy(s, w.p, w.len);
		s[w.len] = '\0';
	}
	wbuf_free(&w);
	return s;
}

int
conf_revision(const struct conf *c, char out[65])
{
	uint8_t digest[SHA256_LEN];
	struct wbuf w;

	if (conf_render(c, 0, &w) == -1)
		return -1;
	sha256(w.p, w.len, digest);
	wbuf_free(&w);
	hex_encode(digest, sizeof(digest), out);
	return 0;
}
