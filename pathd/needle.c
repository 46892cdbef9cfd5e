/*
 * SPDX-License-Identifier: ISC
 *
 * Plain text is looked for over many lines at once; an expression line by
 * line, so that it cannot span them, interpreted (no code is generated: the
 * process may not execute memory) and with limits on steps, depth and memory.
 * Pure.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "pathd/needle.h"

#define STEPS 200000 /* of one match, see pcre2_set_match_limit(3), and */
#define STEPS_BYTE 8 /* for each byte of the line: ".*" goes back over it */
#define STEPS_LINE (1U << 20)
#define HEAP_KIB 4096 /* of one match */
#define PARENS 64

struct needle {
	char *text; /* plain, owned; NULL with an expression */
	size_t len;
	pcre2_code *code;
	pcre2_match_data *md;
	pcre2_match_context *mc;
};

static enum code
needle_compile(struct needle *n, const char *pattern, int regex, int nocase)
{
	uint32_t opt = PCRE2_NEVER_BACKSLASH_C;
	pcre2_compile_context *cc;
	PCRE2_SIZE where;
	int err;

	if (utf8_valid(pattern, strlen(pattern)))
		opt |= PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
	if (nocase)
		opt |= PCRE2_CASELESS;
	if (!regex) /* which takes no other options */
		opt = (opt & ~PCRE2_NEVER_BACKSLASH_C) | PCRE2_LITERAL;
	if ((cc = pcre2_compile_context_create(NULL)) == NULL)
		return C_SRV_UNAVAILABLE;
	(void)pcre2_set_parens_nest_limit(cc, PARENS);
	n->code = pcre2_compile(
	    (PCRE2_SPTR)pattern, strlen(pattern), opt, &err, &where, cc);
	pcre2_compile_context_free(cc);
	if (n->code == NULL)
		return err == PCRE2_ERROR_HEAP_FAILED ? C_SRV_UNAVAILABLE
						      : C_ARGS_INVALID;
	n->md = pcre2_match_data_create(1, NULL);
	n->mc = pcre2_match_context_create(NULL);
	if (n->md == NULL || n->mc == NULL)
		return C_SRV_UNAVAILABLE;
	(void)pcre2_set_depth_limit(n->mc, STEPS);
	(void)pcre2_set_heap_limit(n->mc, HEAP_KIB);
	return C_OK;
}

struct needle *
needle_new(const char *pattern, int regex, int nocase, enum code *code)
{
	struct needle *n;

	*code = C_ARGS_INVALID;
	if (pattern[0] == '\0' || strchr(pattern, '\n') != NULL)
		return NULL;
	*code = C_SRV_UNAVAILABLE;
	if ((n = calloc(1, sizeof(*n))) == NULL)
		return NULL;
	if (regex || nocase)
		*code = needle_compile(n, pattern, regex, nocase);
	else if ((n->text = strdup(pattern)) != NULL) {
		n->len = strlen(pattern);
		*code = C_OK;
	}
	if (*code == C_OK)
		return n;
	needle_free(n);
	return NULL;
}

void
needle_free(struct needle *n)
{
	if (n == NULL)
		return;
	free(n->text);
	pcre2_code_free(n->code);
	pcre2_match_data_free(n->md);
	pcre2_match_context_free(n->mc);
	free(n);
}

static int
find_text(const struct needle *n, const uint8_t *p, size_t len, size_t *line,
    size_t *linelen, size_t *at)
{
	const uint8_t *hit, *from, *end;

	if ((hit = memmem(p, len, n->text, n->len)) == NULL)
		return 0;
	from = memrchr(p, '\n', (size_t)(hit - p));
	from = from == NULL ? p : from + 1;
	end = memchr(hit, '\n', len - (size_t)(hit - p));
	if (end == NULL)
		end = p + len;
	*line = (size_t)(from - p);
	*linelen = (size_t)(end - from);
	*at = (size_t)(hit - from);
	return 1;
}

static uint32_t
steps(size_t len)
{
	return STEPS +
	       STEPS_BYTE * (uint32_t)(len < STEPS_LINE ? len : STEPS_LINE);
}

static int
find_regex(struct needle *n, const uint8_t *p, size_t len, unsigned part,
    size_t *line, size_t *linelen, size_t *at)
{
	const uint8_t *q = p, *end = p + len, *nl;
	uint32_t opt;
	int rc;

	for (; q < end; q = nl + 1) {
		opt =
		    q == p && (part & NEEDLE_NOT_BEGIN) != 0 ? PCRE2_NOTBOL : 0;
		if ((nl = memchr(q, '\n', (size_t)(end - q))) == NULL) {
			nl = end;
			if ((part & NEEDLE_NOT_END) != 0)
				opt |= PCRE2_NOTEOL;
		}
		(void)pcre2_set_match_limit(n->mc, steps((size_t)(nl - q)));
		rc = pcre2_match(
		    n->code, q, (size_t)(nl - q), 0, opt, n->md, n->mc);
		if (rc == PCRE2_ERROR_NOMATCH)
			continue;
		if (rc < 0)
			return -1;
		*line = (size_t)(q - p);
		*linelen = (size_t)(nl - q);
		*at = pcre2_get_ovector_pointer(n->md)[0];
		return 1;
	}
	return 0;
}

int
needle_find(struct needle *n, const uint8_t *p, size_t len, unsigned part,
    size_t *line, size_t *linelen, size_t *at)
{
	if (n->text != NULL)
		return find_text(n, p, len, line, linelen, at);
	return find_regex(n, p, len, part, line, linelen, at);
}
