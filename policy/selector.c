/*
 * SPDX-License-Identifier: ISC
 *
 * Selectors: which operations a rule means.  Pure look-ups in ops.def.  On
 * the allow side a selector that is not the exact id never reaches an
 * operation that must be named; on the deny side it reaches everything.
 */
#include <string.h>

#include "policy/confkey.h"
#include "policy/engine.h"

struct group {
	const char *name;	/* with "group:" */
	const char *members[8]; /* exact ids, "x.*" or "x.**" */
};

static const struct group groups[] = {
    {"group:files-read", {"files.list", "files.stat", "files.download",
			     "files.search", "files.export", "files.watch"}},
    {"group:files", {"files.**"}},
    {"group:commands", {"commands.run", "process.*"}},
    {"group:process", {"process.*"}},
    {"group:terminal", {"terminal.*"}},
    {"group:system", {"system.info", "system.env.get"}},
    {"group:agents", {"agents.**"}},
    {"group:net", {"net.fetch"}},
    {"group:core", {"core.capabilities", "core.check", "core.openapi"}},
};

/* What a did-you-mean may say besides ids and groups. */
static const char *const common_forms[] = {"core.*", "files.*", "commands.*",
    "process.*", "terminal.*", "system.*", "net.*", "workspace.*",
    "approvals.*", "agents.*", "files.**", "agents.**", "effect:read",
    "effect:write", "effect:delete", "effect:exec", "effect:net",
    "effect:admin"};

static int
starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static int
ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n > m && strcmp(s + n - m, suffix) == 0;
}

static unsigned
effect_bit(const char *name, size_t len)
{
	const char *known;
	unsigned bit;

	for (bit = 1; (known = op_effect_name(bit)) != NULL; bit <<= 1)
		if (strlen(known) == len && memcmp(known, name, len) == 0)
			return bit;
	return 0;
}

/* "effect:read,write" as bits; 0 when a name is unknown or missing. */
static unsigned
effect_set(const char *sel)
{
	const char *p = sel + strlen("effect:");
	unsigned set = 0, bit;
	size_t len;

	for (;;) {
		len = strcspn(p, ",");
		bit = effect_bit(p, len);
		if (bit == 0)
			return 0;
		set |= bit;
		if (p[len] == '\0')
			return set;
		p += len + 1;
	}
}

static const struct group *
group_find(const char *sel)
{
	size_t i;

	for (i = 0; i < nitems(groups); i++)
		if (strcmp(groups[i].name, sel) == 0)
			return &groups[i];
	return NULL;
}

/* Characters of ids, so that a typing error in punctuation is no selector. */
static int
id_chars(const char *s, size_t n)
{
	return n > 0 && s[0] != '.' && s[n - 1] != '.' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789._-") >= n;
}

enum sel_rank
selector_rank(const char *sel)
{
	size_t n = strlen(sel);

	if (strcmp(sel, "*") == 0)
		return SEL_STAR;
	if (starts(sel, "effect:"))
		return effect_set(sel) != 0 ? SEL_EFFECT : SEL_BAD;
	if (starts(sel, "group:"))
		return group_find(sel) != NULL ? SEL_GROUP : SEL_BAD;
	if (ends(sel, ".**"))
		return id_chars(sel, n - 3) ? SEL_DEEP : SEL_BAD;
	if (ends(sel, ".*"))
		return id_chars(sel, n - 2) ? SEL_LEVEL : SEL_BAD;
	return id_chars(sel, n) ? SEL_EXACT : SEL_BAD;
}

/* "x.*" and "x.**" against an id; what is below x. */
static int
below(const char *sel, const char *id, int deep)
{
	size_t n = strlen(sel) - (deep ? 2 : 1); /* the dot stays */

	return strncmp(sel, id, n) == 0 && id[n] != '\0' &&
	       (deep || strchr(id + n, '.') == NULL);
}

static int
in_group(const char *sel, const char *id)
{
	const struct group *g = group_find(sel);
	const char *m;
	size_t i;

	for (i = 0; i < nitems(g->members) && g->members[i] != NULL; i++) {
		m = g->members[i];
		if (ends(m, ".**")  ? below(m, id, 1)
		    : ends(m, ".*") ? below(m, id, 0)
				    : strcmp(m, id) == 0)
			return 1;
	}
	return 0;
}

static int
in_effects(unsigned set, unsigned effects, int deny_side)
{
	return deny_side ? (effects & set) != 0 : (effects & ~set) == 0;
}

int
selector_matches(const char *sel, uint16_t op, int deny_side)
{
	const char *id = ops[op].id;
	enum sel_rank rank = selector_rank(sel);

	if (rank != SEL_EXACT && !deny_side && op_explicit_only(&ops[op]))
		return 0;
	switch (rank) {
	case SEL_STAR:
		return 1;
	case SEL_EFFECT:
		return in_effects(effect_set(sel), ops[op].effects, deny_side);
	case SEL_GROUP:
		return in_group(sel, id);
	case SEL_DEEP:
		return below(sel, id, 1);
	case SEL_LEVEL:
		return below(sel, id, 0);
	case SEL_EXACT:
		return strcmp(sel, id) == 0;
	case SEL_BAD:
		break;
	}
	return 0;
}

int
selector_known(const char *sel)
{
	uint16_t op;

	for (op = 0; op < OP_COUNT; op++)
		if (selector_matches(sel, op, 1))
			return 1;
	return 0;
}

/* The first op whose last segment is that of the selector. */
static const char *
same_last_segment(const char *sel)
{
	const char *last = strrchr(sel, '.'), *dot;
	uint16_t op;

	if (last == NULL || last[1] == '\0')
		return NULL;
	for (op = 0; op < OP_COUNT; op++) {
		dot = strrchr(ops[op].id, '.');
		if (dot != NULL && strcmp(dot, last) == 0)
			return ops[op].id;
	}
	return NULL;
}

const char *
selector_suggest(const char *sel)
{
	struct suggest s;
	uint16_t op;
	size_t i;

	suggest_init(&s, sel);
	for (op = 0; op < OP_COUNT; op++)
		suggest_try(&s, ops[op].id);
	for (i = 0; i < nitems(groups); i++)
		suggest_try(&s, groups[i].name);
	for (i = 0; i < nitems(common_forms); i++)
		suggest_try(&s, common_forms[i]);
	return s.best != NULL ? s.best : same_last_segment(sel);
}
