/*
 * SPDX-License-Identifier: ISC
 *
 * Regular expressions of custom rules, by PCRE2: without case, over bytes that
 * need not be valid UTF-8, and bounded; what would take too long counts as a
 * match.  They are interpreted: the monitor, which compiles them when it is
 * confined already, may not make memory executable.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/filter_int.h"

#define MATCH_LIMIT 20000 /* steps from one place */
#define DEPTH_LIMIT 10000
#define HEAP_LIMIT 4096 /* KiB */
#define SLICE 256	/* places to begin at between two looks at the clock */
#define REACH (8U * 1024) /* bytes that one match can span */
#define BUDGET_US 50000	  /* once, and for each MiB */

struct rx {
	pcre2_code *code;
	pcre2_match_data *md;
	pcre2_match_context *mc;
};

void
rx_free(struct rx *rx)
{
	if (rx == NULL)
		return;
	pcre2_code_free(rx->code);
	pcre2_match_data_free(rx->md);
	pcre2_match_context_free(rx->mc);
	free(rx);
}

/* Bytes are faster to go through than characters. */
static int
needs_utf(const char *s)
{
	if (strstr(s, "\\x{") != NULL || strstr(s, "\\p") != NULL ||
	    strstr(s, "\\P") != NULL || strstr(s, "\\X") != NULL)
		return 1;
	for (; *s != '\0'; s++)
		if ((unsigned char)*s >= 0x80)
			return 1;
	return 0;
}

struct rx *
rx_new(const char *regex, char *why, size_t size)
{
	uint32_t opts =
	    PCRE2_CASELESS | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C |
	    PCRE2_NO_AUTO_POSSESS | PCRE2_USE_OFFSET_LIMIT |
	    (needs_utf(regex) ? PCRE2_UTF | PCRE2_MATCH_INVALID_UTF : 0);
	struct rx *rx = calloc(1, sizeof(*rx));
	PCRE2_SIZE at;
	char text[100];
	int error;

	snprintf(why, size, "out of memory");
	if (rx == NULL)
		return NULL;
	rx->code = pcre2_compile(
	    (PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, opts, &error, &at, NULL);
	if (rx->code == NULL) {
		pcre2_get_error_message(
		    error, (PCRE2_UCHAR *)text, sizeof(text));
		snprintf(why, size, "at character %zu: %s", (size_t)at, text);
		rx_free(rx);
		return NULL;
	}
	rx->md = pcre2_match_data_create(1, NULL);
	rx->mc = pcre2_match_context_create(NULL);
	if (rx->md == NULL || rx->mc == NULL) {
		rx_free(rx);
		return NULL;
	}
	pcre2_set_match_limit(rx->mc, MATCH_LIMIT);
	pcre2_set_depth_limit(rx->mc, DEPTH_LIMIT);
	pcre2_set_heap_limit(rx->mc, HEAP_LIMIT);
	return rx;
}

int
rx_match(const struct rx *rx, const char *s, size_t n, uint64_t (*us)(void))
{
	uint64_t end = 0;
	size_t at, reach, limit;
	int r;

	if (us != NULL)
		end = us() + BUDGET_US + n / 1024 * (BUDGET_US / 1024 + 1);
	for (at = 0; at <= n; at = limit + 1) {
		limit = at + SLICE - 1;
		reach = n - at < REACH ? n : at + REACH;
		pcre2_set_offset_limit(rx->mc, limit);
		r = pcre2_match(rx->code, (PCRE2_SPTR)s, reach, at,
		    reach < n ? PCRE2_NOTEOL : 0, rx->md, rx->mc);
		if (r != PCRE2_ERROR_NOMATCH || (us != NULL && us() > end))
			return 1;
	}
	return 0;
}
