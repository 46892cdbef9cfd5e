/*
 * SPDX-License-Identifier: ISC
 *
 * Who a rule speaks to.  A 64-bit digest of names answers most questions
 * without comparing strings; it may say yes wrongly, never no.  Pure.
 */
#include "policy/engine.h"

#include <string.h>

#define BIT_AUTHENTICATED 1ULL

/* FNV-1a over kind and name, folded to one of the bits 1 to 63. */
static uint64_t
name_bit(const char *kind, const char *name)
{
	uint64_t h = 14695981039346656037ULL;

	for (; *kind != '\0'; kind++)
		h = (h ^ (unsigned char)*kind) * 1099511628211ULL;
	for (; *name != '\0'; name++)
		h = (h ^ (unsigned char)*name) * 1099511628211ULL;
	return 1ULL << (1 + h % 63);
}

static const char *
after(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

uint64_t
principal_bits(const struct principal *who)
{
	uint64_t bits = name_bit("id:", who->id);
	size_t i;

	if (who->authenticated)
		bits |= BIT_AUTHENTICATED;
	for (i = 0; i < who->nroles; i++)
		bits |= name_bit("role:", who->roles[i]);
	return bits;
}

uint64_t
principals_bits(const struct strlist *names)
{
	const char *name;
	uint64_t bits = 0;
	size_t i;

	for (i = 0; i < names->n; i++) {
		if (strcmp(names->v[i], "*") == 0)
			bits |= BIT_AUTHENTICATED;
		else if ((name = after(names->v[i], "id:")) != NULL)
			bits |= name_bit("id:", name);
		else if ((name = after(names->v[i], "role:")) != NULL)
			bits |= name_bit("role:", name);
	}
	return bits;
}

int
principal_has_role(const struct principal *who, const char *role)
{
	size_t i;

	for (i = 0; i < who->nroles; i++)
		if (strcmp(who->roles[i], role) == 0)
			return 1;
	return 0;
}

/* An unknown form names nobody. */
static int
names_principal(const char *text, const struct principal *who)
{
	const char *name;

	if (strcmp(text, "*") == 0)
		return who->authenticated;
	if ((name = after(text, "id:")) != NULL)
		return strcmp(name, who->id) == 0;
	if ((name = after(text, "role:")) != NULL)
		return principal_has_role(who, name);
	return 0;
}

int
principals_match(const struct strlist *names, uint64_t names_bits,
    const struct principal *who, uint64_t who_bits)
{
	size_t i;

	if (names->n == 0)
		return 1;
	if ((names_bits & who_bits) == 0)
		return 0;
	for (i = 0; i < names->n; i++)
		if (names_principal(names->v[i], who))
			return 1;
	return 0;
}
