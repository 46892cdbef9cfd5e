/*
 * SPDX-License-Identifier: ISC
 *
 * Content-Digest: a dictionary of byte sequences (RFC 9530, section 2; RFC
 * 9651, sections 3.2 and 4.2).  Pure.
 */
#include "listener/digest.h"

#include <string.h>

/* White space between members. */
static size_t
skip_space(const char *s, size_t len, size_t i)
{
	while (i < len && (s[i] == ' ' || s[i] == '\t'))
		i++;
	return i;
}

static int
is_key(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       strchr("_-.*", c) != NULL;
}

/* One member at *i: its key and the text between the colons.  0 or -1. */
static int
member(const char *s, size_t len, size_t *i, size_t *keylen, const char **val,
    size_t *vallen)
{
	size_t k = *i, v;

	while (k < len && s[k] != '\0' && is_key(s[k]))
		k++;
	*keylen = k - *i;
	if (*keylen == 0 || len - k < 3 || s[k] != '=' || s[k + 1] != ':')
		return -1;
	v = k += 2;
	while (k < len && s[k] != ':')
		k++;
	if (k == len)
		return -1;
	*val = s + v;
	*vallen = k - v;
	k = skip_space(s, len, k + 1);
	/* parameters mean nothing to us; quoted ones could hold a comma */
	if (k < len && s[k] == ';')
		while (k < len && s[k] != ',' && s[k] != '"')
			k++;
	*i = k;
	return k == len || s[k] == ',' ? 0 : -1;
}

int
digest_parse(const char *s, size_t len, uint8_t out[SHA256_LEN])
{
	uint8_t buf[SHA256_LEN + 3];
	size_t i = skip_space(s, len, 0), key, at, vallen;
	const char *val;
	int found = 0;

	for (;;) {
		at = i;
		if (member(s, len, &i, &key, &val, &vallen) == -1)
			return -1;
		if (key == 7 && memcmp(s + at, "sha-256", 7) == 0) {
			if (vallen != 44 || base64_decode(val, vallen, buf,
						sizeof(buf)) != SHA256_LEN)
				return -1;
			memcpy(out, buf, SHA256_LEN);
			found = 1;
		}
		if (i == len)
			return found;
		i = skip_space(s, len, i + 1);
	}
}
