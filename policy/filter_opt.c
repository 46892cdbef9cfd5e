/*
 * SPDX-License-Identifier: ISC
 *
 * Options and operands of a command as getopt_long(3) of the GNU C library
 * takes them: options may stand behind operands, letters may be bundled, and
 * long names may be cut short.
 */
#include <string.h>

#include "policy/filter_int.h"

void
optw_init(
    struct optw *o, const struct cmd *c, const char *opts, const char *longs)
{
	memset(o, 0, sizeof(*o));
	o->c = c;
	o->opts = opts;
	o->longs = longs;
	o->i = 1;
}

/* The next word as an argument. */
static void
take_arg(struct optw *o)
{
	o->at = o->i;
	o->arg = o->i < o->c->n ? cmd_s(o->c, o->i++) : NULL;
}

/* The entry "name", "name=", "name:x" or "name=:x" of longs that s cuts short
 * or spells out; NULL when there is none. */
static const char *
find_long(const char *longs, const char *s, size_t n)
{
	const char *p = longs;

	if (n == 0)
		return NULL;
	while ((p = strchr(p, ' ')) != NULL) {
		if (strncmp(++p, s, n) == 0)
			return p;
	}
	return NULL;
}

static void
long_option(struct optw *o, const char *s)
{
	const char *eq = strchr(s, '='), *entry, *end;
	size_t n = eq != NULL ? (size_t)(eq - s) : strlen(s);

	o->ch = '?';
	o->arg = eq != NULL ? eq + 1 : NULL;
	if ((entry = find_long(o->longs, s, n)) == NULL)
		return;
	end = entry + strcspn(entry, " ");
	if (end - entry > 2 && end[-2] == ':')
		o->ch = (unsigned char)end[-1];
	if (eq == NULL && memchr(entry, '=', (size_t)(end - entry)) != NULL)
		take_arg(o);
}

static void
short_option(struct optw *o)
{
	const char *at;

	o->ch = (unsigned char)*o->rest++;
	o->arg = NULL;
	at = o->ch == ':' ? NULL : strchr(o->opts, o->ch);
	if (at != NULL && at[1] == ':') {
		if (*o->rest != '\0')
			o->arg = o->rest;
		else
			take_arg(o);
		o->rest = NULL;
	} else if (*o->rest == '\0')
		o->rest = NULL;
}

int
optw_next(struct optw *o)
{
	const char *s;

	if (o->rest != NULL) {
		short_option(o);
		return 1;
	}
	if (o->i >= o->c->n)
		return 0;
	o->at = o->i;
	s = cmd_s(o->c, o->i);
	if (!o->ended && strcmp(s, "--") == 0) {
		o->ended = 1;
		o->i++;
		if (o->i >= o->c->n)
			return 0;
		o->at = o->i;
		s = cmd_s(o->c, o->i);
	}
	if (o->ended || s[0] != '-' || s[1] == '\0') {
		if (o->stop)
			return 0;
		o->i++;
		o->ch = 0;
		o->arg = s;
		return 1;
	}
	o->i++;
	if (s[1] == '-')
		long_option(o, s + 2);
	else {
		o->rest = s + 1;
		short_option(o);
	}
	return 1;
}
