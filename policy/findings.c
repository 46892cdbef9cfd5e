/*
 * SPDX-License-Identifier: ISC
 *
 * The list of findings and its text form.  Pure; printing is the caller's.
 */
#include "policy/policy.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "policy/confkey.h"

#define FINDINGS_MAX 1000 /* more than that helps nobody */

void
findings_clear(struct findings *f)
{
	size_t i;

	for (i = 0; i < f->n; i++) {
		free(f->v[i].file);
		free(f->v[i].msg);
	}
	free(f->v);
	memset(f, 0, sizeof(*f));
}

/* A name or a cut message may hold half a character: make it valid UTF-8. */
static void
finding_repair(char *s)
{
	size_t n, left = strlen(s);

	while (left > 0) {
		unsigned char c = (unsigned char)*s;

		n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
		if (n > left || !utf8_valid(s, n)) {
			*s = '?';
			n = 1;
		}
		s += n;
		left -= n;
	}
}

/* The same bad root may be named by several presets. */
static int
finding_known(const struct findings *f, const struct finding *new)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->v[i].line == new->line &&
		    f->v[i].col == new->col &&strcmp(f->v[i].code, new->code) ==
			0 &&
		    strcmp(f->v[i].file, new->file) == 0 &&
		    strcmp(f->v[i].msg, new->msg) == 0)
			return 1;
	return 0;
}

void
findings_vadd(struct findings *f, enum find_sev sev, const char *code,
    const char *file, unsigned line, unsigned col, const char *fmt, va_list ap)
{
	struct finding *v, *new;
	size_t cap;

	if (f->n == FINDINGS_MAX) {
		/* What blocks must not get lost behind warnings. */
		if (sev != FIND_WARN)
			f->nomem = 1;
		return;
	}
	if (f->n == f->cap) {
		cap = f->cap == 0 ? 16 : f->cap * 2;
		if ((v = recallocarray(f->v, f->cap, cap, sizeof(*v))) ==
		    NULL) {
			f->nomem = 1;
			return;
		}
		f->v = v;
		f->cap = cap;
	}
	new = &f->v[f->n];
	new->file = strdup(file == NULL ? "" : file);
	if (vasprintf(&new->msg, fmt, ap) == -1)
		new->msg = NULL;
	if (new->file == NULL || new->msg == NULL) {
		free(new->file);
		free(new->msg);
		memset(new, 0, sizeof(*new));
		f->nomem = 1;
		return;
	}
	finding_repair(new->file);
	finding_repair(new->msg);
	new->line = line;
	new->col = col;
	new->sev = sev;
	new->code = code;
	if (finding_known(f, new)) {
		free(new->file);
		free(new->msg);
		memset(new, 0, sizeof(*new));
		return;
	}
	f->n++;
}

void
findings_add(struct findings *f, enum find_sev sev, const char *code,
    const char *file, unsigned line, unsigned col, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	findings_vadd(f, sev, code, file, line, col, fmt, ap);
	va_end(ap);
}

int
findings_block(const struct findings *f, int allow_lint_errors)
{
	size_t i;

	/* One that was lost may have been the one that blocks. */
	if (f->nomem)
		return 1;
	for (i = 0; i < f->n; i++)
		if (f->v[i].sev == FIND_ERROR ||
		    (f->v[i].sev == FIND_LINT && !allow_lint_errors))
			return 1;
	return 0;
}

/* Bytes of a character at s (valid UTF-8) that steers a terminal or is not to
 * be seen: controls of both halves, the marks that turn the direction of text
 * around, spaces without width.  0 for any other. */
static size_t
unseen(const char *s)
{
	const unsigned char *c = (const unsigned char *)s;

	if (c[0] < 0x20 || c[0] == 0x7f)
		return 1;
	if (c[0] == 0xc2 && c[1] < 0xa0)
		return 2; /* U+0080 to U+009F */
	if (c[0] == 0xe2 && c[1] == 0x80 &&
	    ((c[2] >= 0x8b && c[2] <= 0x8f) || (c[2] >= 0xa8 && c[2] <= 0xae)))
		return 3; /* U+200B to U+200F, U+2028 to U+202E */
	if (c[0] == 0xe2 && c[1] == 0x81 && c[2] >= 0xa0 && c[2] <= 0xaf)
		return 3; /* U+2060 to U+206F */
	if (c[0] == 0xef && c[1] == 0xbb && c[2] == 0xbf)
		return 3; /* U+FEFF */
	return 0;
}

/* What nobody would see of a name or message, or a terminal would obey, in
 * hex. */
static char *
finding_escape(const char *s)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = strlen(s);
	char *out = reallocarray(NULL, n + 1, 4), *o = out;

	if (out == NULL)
		return NULL;
	while (*s != '\0') {
		if ((n = unseen(s)) == 0) {
			*o++ = *s++;
			continue;
		}
		for (; n > 0; n--, s++) {
			*o++ = '\\';
			*o++ = 'x';
			*o++ = hex[(unsigned char)*s >> 4];
			*o++ = hex[*s & 15];
		}
	}
	*o = '\0';
	return out;
}

char *
finding_text(const struct finding *f)
{
	static const char *const sev[] = {"error", "error", "warning"};
	char *raw, *out;

	if (asprintf(&raw, "%s:%u:%u: %s: %s: %s", f->file, f->line, f->col,
		sev[f->sev], f->code, f->msg) == -1)
		return NULL;
	out = finding_escape(raw);
	free(raw);
	return out;
}
