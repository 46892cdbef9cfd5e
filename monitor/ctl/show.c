/*
 * SPDX-License-Identifier: ISC
 *
 * Renders what the verbs found out, as text or as JSON; decides nothing.
 */
#include "monitor/ctl/show.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"

/* U+0080 to U+009F are control characters too, and terminals obey them. */
static int
is_control(const char *s)
{
	unsigned char c = (unsigned char)s[0], next = (unsigned char)s[1];

	return c < 0x20 || c == 0x7f || (c == 0xc2 && next < 0xa0);
}

/* s with control characters, and with bad all bytes above 0x7e too, as
 * \xNN. */
static char *
escaped(const char *s, int bad)
{
	static const char hex[] = "0123456789abcdef";
	char *out, *p;
	unsigned char c;
	int second = 0;

	if ((p = out = reallocarray(NULL, strlen(s) + 1, 4)) == NULL)
		return NULL;
	for (; (c = (unsigned char)*s) != '\0'; s++) {
		if (!second && !is_control(s) && !(bad && c > 0x7e)) {
			*p++ = (char)c;
			continue;
		}
		second = !second && c == 0xc2;
		*p++ = '\\';
		*p++ = 'x';
		*p++ = hex[c >> 4];
		*p++ = hex[c & 15];
	}
	*p = '\0';
	return out;
}

static int
valid(const char *s)
{
	return utf8_valid(s, strlen(s));
}

static void __attribute__((format(printf, 3, 0)))
vshow(FILE *f, const char *front, const char *fmt, va_list ap)
{
	char *raw, *line;

	if (vasprintf(&raw, fmt, ap) == -1)
		return;
	if ((line = escaped(raw, !valid(raw))) != NULL)
		fprintf(f, "%s%s\n", front, line);
	free(line);
	free(raw);
}

void
show_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vshow(stdout, "", fmt, ap);
	va_end(ap);
}

void
show_complaint(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vshow(stderr, "abxctl: ", fmt, ap);
	va_end(ap);
}

void
show_name(FILE *f, const char *name, size_t n)
{
	char *text;

	if (!isatty(fileno(f))) {
		fwrite(name, 1, n, f);
		return;
	}
	if ((text = escaped(name, !valid(name))) != NULL)
		fputs(text, f);
	free(text);
}

static int
colourful(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL &&
	       term != NULL && strcmp(term, "dumb") != 0;
}

const char *
show_colour(enum show_colour c)
{
	static const char *const seq[] = {"\033[32m", "\033[33m", "\033[31m"};

	return colourful() ? seq[c] : "";
}

const char *
show_plain(void)
{
	return colourful() ? "\033[0m" : "";
}

json_t *
show_str(const char *s)
{
	char *text;
	json_t *j;

	if (s == NULL)
		return json_null();
	if (valid(s))
		return json_string(s);
	if ((text = escaped(s, 1)) == NULL)
		return NULL;
	j = json_string(text);
	free(text);
	return j;
}

int
show_json(json_t *j)
{
	int r;

	if (j == NULL) {
		fprintf(stderr, "abxctl: out of memory\n");
		return -1;
	}
	r = json_dumpf(j, stdout,
	    JSON_COMPACT | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0));
	json_decref(j);
	putchar('\n');
	return r;
}

void
show_findings(const struct findings *f, int errors_only)
{
	size_t i;
	char *text;

	for (i = 0; i < f->n; i++) {
		if (errors_only && f->v[i].sev == FIND_WARN)
			continue;
		if ((text = finding_text(&f->v[i])) != NULL)
			show_line("%s", text);
		free(text);
	}
}

json_t *
show_findings_json(const struct findings *f)
{
	json_t *list;
	const struct finding *v;
	size_t i;

	if ((list = json_array()) == NULL)
		return NULL;
	for (i = 0; i < f->n; i++) {
		v = &f->v[i];
		if (json_array_append_new(list,
			json_pack("{s:o,s:i,s:i,s:s,s:s,s:o}", "file",
			    show_str(v->file), "line", (int)v->line, "column",
			    (int)v->col, "severity", confset_severity(v->sev),
			    "code", v->code, "message", show_str(v->msg))) ==
		    -1) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* ---- operations and principals ---- */

static void
known_principal(
    struct principal *who, const char *id, const struct strlist *roles)
{
	who->id = id;
	who->roles = (const char *const *)roles->v;
	who->nroles = roles->n;
	who->authenticated = 1;
}

/* The i-th principal that can exist: tokens, peers, then anonymous.  0, or -1
 * past the end. */
static int
nth_principal(const struct conf *c, size_t i, struct principal *who)
{
	static const char *const admin[] = {"admin"};

	memset(who, 0, sizeof(*who));
	if (i < c->ntokens) {
		known_principal(who, c->tokens[i].id, &c->tokens[i].roles);
		return 0;
	}
	i -= c->ntokens;
	if (i < c->npeers) {
		known_principal(who, c->peers[i].id, &c->peers[i].roles);
		return 0;
	}
	if (i > c->npeers || (!c->open_mode && !c->anonymous))
		return -1;
	who->id = "anonymous";
	who->roles = admin;
	who->nroles = c->open_mode ? 1 : 0;
	return 0;
}

static int
is_listed(uint16_t op)
{
	return (ops[op].flags & OF_LATER) == 0;
}

static void
show_ops_head(const struct conf *c)
{
	struct principal who;
	size_t i;

	printf("%-20s", "operation");
	for (i = 0; nth_principal(c, i, &who) == 0; i++)
		printf("  %s", who.id);
	putchar('\n');
}

void
show_ops(const struct confset *cs)
{
	struct principal who;
	uint16_t op;
	size_t i;
	int width;

	show_ops_head(cs->conf);
	for (op = 0; op < OP_COUNT; op++) {
		if (!is_listed(op))
			continue;
		/* blanks at the end of a line are kept off by "last" */
		printf("%-20s", ops[op].id);
		width = 0;
		for (i = 0; nth_principal(cs->conf, i, &who) == 0; i++) {
			printf("%*s  %s", width, "",
			    policy_mounted(cs->policy, op, &who) ? "+" : "-");
			width = (int)strlen(who.id) - 1;
		}
		putchar('\n');
	}
}

static json_t *
op_principals(const struct confset *cs, uint16_t op)
{
	struct principal who;
	json_t *list;
	size_t i;

	if ((list = json_array()) == NULL)
		return NULL;
	for (i = 0; nth_principal(cs->conf, i, &who) == 0; i++)
		if (policy_mounted(cs->policy, op, &who) &&
		    json_array_append_new(list, show_str(who.id)) == -1) {
			json_decref(list);
			return NULL;
		}
	return list;
}

json_t *
show_ops_json(const struct confset *cs)
{
	json_t *list;
	uint16_t op;

	if ((list = json_array()) == NULL)
		return NULL;
	for (op = 0; op < OP_COUNT; op++) {
		if (!is_listed(op))
			continue;
		if (json_array_append_new(
			list, json_pack("{s:s,s:o}", "op", ops[op].id,
				  "principals", op_principals(cs, op))) == -1) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}
