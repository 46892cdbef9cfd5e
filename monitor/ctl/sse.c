/*
 * SPDX-License-Identifier: ISC
 *
 * Takes a stream of events apart.  Pure: no I/O, nothing global.
 */
#include "monitor/ctl/sse.h"

#include <stdlib.h>
#include <string.h>

/* Add n bytes and a NUL to a buffer: 0 or -1. */
static int
add(char **p, size_t *len, size_t *cap, const char *s, size_t n)
{
	size_t want;
	char *q;

	if (n > SSE_MAX - *len)
		return -1;
	if (*len + n + 1 > *cap) {
		for (want = *cap == 0 ? 256 : *cap; want < *len + n + 1;)
			want *= 2;
		if ((q = realloc(*p, want)) == NULL)
			return -1;
		*p = q;
		*cap = want;
	}
	if (n > 0)
		memcpy(*p + *len, s, n);
	*len += n;
	(*p)[*len] = '\0';
	return 0;
}

/* The value of a field with that name, or NULL. */
static const char *
field(const char *line, const char *name)
{
	size_t n = strlen(name);

	if (strncmp(line, name, n) != 0 || line[n] != ':')
		return NULL;
	return line + n + 1 + (line[n + 1] == ' ');
}

static int
dispatch(struct sse *s, sse_cb cb, void *arg)
{
	int r = 0;

	if (s->ndata > 0)
		r = cb(
		    s->event[0] == '\0' ? "message" : s->event, s->data, arg);
	s->ndata = 0;
	s->event[0] = '\0';
	return r;
}

/* A whole line, without its end. */
static int
take_line(struct sse *s, sse_cb cb, void *arg)
{
	const char *v;

	if (s->nline > 0 && s->line[s->nline - 1] == '\r')
		s->line[--s->nline] = '\0';
	if (s->nline == 0)
		return dispatch(s, cb, arg);
	if (strlen(s->line) != s->nline)
		return -2;
	if ((v = field(s->line, "event")) != NULL)
		return strlcpy(s->event, v, sizeof(s->event)) >=
			       sizeof(s->event)
			   ? -2
			   : 0;
	if ((v = field(s->line, "data")) != NULL)
		return (s->ndata > 0 && add(&s->data, &s->ndata, &s->data_cap,
					    "\n", 1) == -1) ||
			       add(&s->data, &s->ndata, &s->data_cap, v,
				   strlen(v)) == -1
			   ? -2
			   : 0;
	return 0; /* a comment, or a field of no interest */
}

int
sse_take(struct sse *s, const char *p, size_t n, sse_cb cb, void *arg)
{
	const char *end;
	size_t len;
	int r;

	while (n > 0) {
		end = memchr(p, '\n', n);
		len = end == NULL ? n : (size_t)(end - p);
		if (add(&s->line, &s->nline, &s->line_cap, p, len) == -1)
			return -2;
		if (end == NULL)
			return 0;
		r = take_line(s, cb, arg);
		s->nline = 0;
		if (r != 0)
			return r;
		p += len + 1;
		n -= len + 1;
	}
	return 0;
}

void
sse_clear(struct sse *s)
{
	free(s->line);
	free(s->data);
	memset(s, 0, sizeof(*s));
}
