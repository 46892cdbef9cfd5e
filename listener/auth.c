/*
 * SPDX-License-Identifier: ISC
 *
 * Extraction of credentials and the prefilter.  Pure.
 */
#include "listener/auth.h"

#include <string.h>
#include <strings.h>

#include <bearssl.h>

#include "common/hash.h"

/* token68 of RFC 9110, 11.2, at most ABX_TOKEN_MAX bytes. */
static int
is_token68(const char *s, size_t n)
{
	size_t i;

	if (n == 0 || n > ABX_TOKEN_MAX)
		return 0;
	for (i = 0; i < n; i++)
		if (!((s[i] >= '0' && s[i] <= '9') ||
			(s[i] >= 'A' && s[i] <= 'Z') ||
			(s[i] >= 'a' && s[i] <= 'z') ||
			(s[i] != '\0' && strchr("-._~+/", s[i]) != NULL)))
			break;
	if (i == 0)
		return 0;
	while (i < n && s[i] == '=')
		i++;
	return i == n;
}

/* The token of an Authorization value, or NULL for another scheme. */
static const char *
bearer(const char *s, size_t n, size_t *len)
{
	if (n < 7 || strncasecmp(s, "Bearer ", 7) != 0)
		return NULL;
	s += 7;
	n -= 7;
	while (n > 0 && *s == ' ') {
		s++;
		n--;
	}
	*len = n;
	return s;
}

enum code
auth_extract(const struct http_head *h, const uint8_t *buf, char *token)
{
	const struct http_slice *a = &h->field[HF_AUTHORIZATION];
	const struct http_slice *x = &h->field[HF_ACCESS_TOKEN];
	const char *s = NULL, *t = NULL;
	size_t n = 0, m = 0;

	token[0] = '\0';
	if (h->seen[HF_AUTHORIZATION] > 1 || h->seen[HF_ACCESS_TOKEN] > 1)
		return C_AUTH_CONFLICT;
	if (h->seen[HF_AUTHORIZATION]) {
		s = bearer((const char *)buf + a->off, a->len, &n);
		if (s == NULL)
			return C_AUTH_INVALID;
	}
	if (h->seen[HF_ACCESS_TOKEN]) {
		t = (const char *)buf + x->off;
		m = x->len;
	}
	if (s != NULL && t != NULL && (n != m || memcmp(s, t, n) != 0))
		return C_AUTH_CONFLICT;
	if (s == NULL) {
		s = t;
		n = m;
	}
	if (s == NULL)
		return C_OK;
	if (!is_token68(s, n))
		return C_AUTH_INVALID;
	memcpy(token, s, n);
	token[n] = '\0';
	return C_OK;
}

/* The key's part of the HMAC, kept since it is half of the work of a request
 * here and the key stays the same. */
static const br_hmac_key_context *
prepared(const struct lconf *conf)
{
	static uint8_t key[sizeof(conf->hmac_key)];
	static br_hmac_key_context k;
	static int done;

	if (!done || memcmp(key, conf->hmac_key, sizeof(key)) != 0) {
		memcpy(key, conf->hmac_key, sizeof(key));
		br_hmac_key_init(&k, &br_sha256_vtable, key, sizeof(key));
		done = 1;
	}
	return &k;
}

static int
known(const struct lconf *conf, const char *token)
{
	uint8_t digest[SHA256_LEN], mac[SHA256_LEN];
	br_hmac_context c;
	uint32_t prefix;
	unsigned hit = 0;
	size_t i;

	/* of its digest, since that is all that the monitor has of a token */
	sha256(token, strlen(token), digest);
	br_hmac_init(&c, prepared(conf), 0);
	br_hmac_update(&c, digest, sizeof(digest));
	br_hmac_out(&c, mac);
	prefix = (uint32_t)mac[0] | (uint32_t)mac[1] << 8 |
		 (uint32_t)mac[2] << 16 | (uint32_t)mac[3] << 24;
	for (i = 0; i < conf->ntokens; i++)
		hit |= conf->tokens[i] == prefix;
	explicit_bzero(&c, sizeof(c));
	explicit_bzero(digest, sizeof(digest));
	explicit_bzero(mac, sizeof(mac));
	return hit != 0;
}

enum code
auth_admit(
    const struct lconf *conf, const char *token, int known_peer, int health)
{
	if (conf->open)
		return C_OK;
	if (token[0] == '\0')
		return conf->anonymous || known_peer ||
			       (health && conf->anonymous_health)
			   ? C_OK
			   : C_AUTH_REQUIRED;
	return conf->has_auth_exec || known(conf, token) ? C_OK
							 : C_AUTH_INVALID;
}

void
auth_wipe(const struct http_head *h, uint8_t *buf)
{
	static const enum http_field ids[2] = {
	    HF_AUTHORIZATION, HF_ACCESS_TOKEN};
	size_t i;

	for (i = 0; i < 2; i++)
		if (h->seen[ids[i]])
			explicit_bzero(
			    buf + h->field[ids[i]].off, h->field[ids[i]].len);
}
