/*
 * SPDX-License-Identifier: ISC
 *
 * Encoders and decoders of the payloads between listener and monitor.  Pure;
 * as payload.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/codes.h"
#include "common/payload.h"
#include "common/payload_int.h"

void
ask_clear(struct ask *a)
{
	args_clear(&a->args);
	explicit_bzero(a, sizeof(*a));
}

void
ask_put(struct wbuf *w, const struct ask *a)
{
	wput_str(w, a->reqid);
	wput_u16(w, a->op);
	wput_str(w, a->opname);
	wput_u8(w, a->has_cred);
	if (a->has_cred)
		wput_str(w, a->token);
	wput_u8(w, a->has_peer);
	if (a->has_peer)
		wput_raw(w, a->peer, sizeof(a->peer));
	wput_str(w, a->remote);
	wput_u16(w, a->flags);
	wput_u8(w, a->body);
	wput_u64(w, a->length);
	wput_str(w, a->if_match);
	wput_str(w, a->if_none_match);
	wput_str(w, a->last_event);
	wput_str(w, a->idem);
	wput_u8(w, a->bad_idem);
	digest_put(w, a->has_digest, a->digest);
	wput_u8(w, a->bad_digest);
	wput_u8(w, a->args_in_fd);
	if (!a->args_in_fd)
		args_put(w, &a->args);
}

int
ask_get(struct rbuf *r, struct ask *a)
{
	const uint8_t *p;

	memset(a, 0, sizeof(*a));
	rget_strto(r, a->reqid, sizeof(a->reqid));
	a->op = rget_u16(r);
	rget_strto(r, a->opname, sizeof(a->opname));
	if ((a->has_cred = (uint8_t)rget_bool(r)))
		rget_strto(r, a->token, sizeof(a->token));
	if ((a->has_peer = (uint8_t)rget_bool(r)) &&
	    (p = rget_raw(r, sizeof(a->peer))) != NULL)
		memcpy(a->peer, p, sizeof(a->peer));
	rget_strto(r, a->remote, sizeof(a->remote));
	a->flags = rget_u16(r);
	a->body = rget_u8(r);
	a->length = rget_u64(r);
	rget_strto(r, a->if_match, sizeof(a->if_match));
	rget_strto(r, a->if_none_match, sizeof(a->if_none_match));
	rget_strto(r, a->last_event, sizeof(a->last_event));
	rget_strto(r, a->idem, sizeof(a->idem));
	a->bad_idem = (uint8_t)rget_bool(r);
	digest_get(r, &a->has_digest, a->digest);
	a->bad_digest = (uint8_t)rget_bool(r);
	a->args_in_fd = (uint8_t)rget_bool(r);
	if (a->flags > 31 || a->body > ASK_BODY_BAD || !reqid_ok(a->reqid))
		r->err = 1;
	errno = 0;
	if (!r->err && !a->args_in_fd && args_get(r, &a->args) == -1 &&
	    errno == ENOMEM) {
		a->unread = 1;
		rbuf_init(r, NULL, 0);
	}
	GET_END(r, a, ask_clear);
}

void
ans_clear(struct ans *a)
{
	free(a->body);
	memset(a, 0, sizeof(*a));
}

void
ans_put(struct wbuf *w, const struct ans *a)
{
	wput_u8(w, a->kind);
	wput_u16(w, a->status);
	wput_u16(w, a->code);
	wput_u16(w, a->flags);
	wput_u32(w, a->retry_after);
	wput_u64(w, a->size);
	wput_i64(w, a->mtime);
	wput_u32(w, a->mtime_ns);
	wput_u64(w, a->dev);
	wput_u64(w, a->ino);
	wput_str(w, a->body);
	if (a->kind == ANS_JSON && a->body == NULL)
		w->err = 1; /* out of memory */
}

int
ans_get(struct rbuf *r, struct ans *a)
{
	memset(a, 0, sizeof(*a));
	a->kind = rget_u8(r);
	a->status = rget_u16(r);
	a->code = code_get(r);
	a->flags = rget_u16(r);
	a->retry_after = rget_u32(r);
	a->size = rget_u64(r);
	mtime_get(r, &a->mtime, &a->mtime_ns);
	a->dev = rget_u64(r);
	a->ino = rget_u64(r);
	a->body = rget_str(r, ABX_BODY_MAX);
	if (a->kind > ANS_RUN || a->status < 200 || a->status > 599)
		r->err = 1;
	GET_END(r, a, ans_clear);
}

void
fin_put(struct wbuf *w, const struct fin *f)
{
	wput_u64(w, f->bytes_in);
	wput_u64(w, f->bytes_out);
	wput_u8(w, f->outcome);
	wput_u64(w, f->us);
}

int
fin_get(struct rbuf *r, struct fin *f)
{
	f->bytes_in = rget_u64(r);
	f->bytes_out = rget_u64(r);
	f->outcome = rget_u8(r);
	f->us = rget_u64(r);
	if (f->outcome > FIN_CANCELLED)
		r->err = 1;
	GET_PLAIN(r, f);
}

void
reject_put(struct wbuf *w, const struct reject *j)
{
	wput_u16(w, j->code);
	wput_u32(w, j->count);
	wput_str(w, j->reqid);
	wput_str(w, j->remote);
}

int
reject_get(struct rbuf *r, struct reject *j)
{
	int named;

	j->code = code_get(r);
	j->count = rget_u32(r);
	rget_strto(r, j->reqid, sizeof(j->reqid));
	rget_strto(r, j->remote, sizeof(j->remote));
	named = j->reqid[0] != '\0';
	if (j->code == C_OK || j->count == 0 ||
	    named != (j->remote[0] != '\0') ||
	    (named && (j->count != 1 || !reqid_ok(j->reqid))))
		r->err = 1;
	GET_PLAIN(r, j);
}

void
lconf_clear(struct lconf *c)
{
	free(c->tokens);
	strlist_clear(&c->allowed_hosts);
	strlist_clear(&c->allowed_origins);
	strlist_clear(&c->trusted_proxies);
	explicit_bzero(c, sizeof(*c));
}

void
lconf_put(struct wbuf *w, const struct lconf *c)
{
	size_t i;

	wput_raw(w, c->hmac_key, sizeof(c->hmac_key));
	wput_u32(w, (uint32_t)c->ntokens);
	for (i = 0; i < c->ntokens; i++)
		wput_u32(w, c->tokens[i]);
	wput_u8(w, c->open);
	wput_u8(w, c->anonymous);
	wput_u8(w, c->anonymous_health);
	wput_u8(w, c->has_auth_exec);
	wput_u8(w, c->has_peers);
	wput_u64(w, c->header_timeout_ms);
	wput_u64(w, c->head_deadline_ms);
	wput_u64(w, c->idle_timeout_ms);
	wput_u64(w, c->shutdown_grace_ms);
	wput_u32(w, c->max_pre_auth);
	wput_u32(w, c->max_connections);
	wput_u64(w, c->max_header_bytes);
	wput_u64(w, c->max_request_bytes);
	wput_u64(w, c->min_rate);
	strlist_put(w, &c->allowed_hosts);
	strlist_put(w, &c->allowed_origins);
	strlist_put(w, &c->trusted_proxies);
}

int
lconf_get(struct rbuf *r, struct lconf *c)
{
	const uint8_t *p;
	uint32_t n, i;

	memset(c, 0, sizeof(*c));
	if ((p = rget_raw(r, sizeof(c->hmac_key))) != NULL)
		memcpy(c->hmac_key, p, sizeof(c->hmac_key));
	n = rget_u32(r);
	if (n > 16384)
		r->err = 1;
	if (!r->err && n > 0 &&
	    (c->tokens = calloc(n, sizeof(*c->tokens))) == NULL)
		r->err = 1;
	for (i = 0; !r->err && i < n; i++)
		c->tokens[c->ntokens++] = rget_u32(r);
	c->open = (uint8_t)rget_bool(r);
	c->anonymous = (uint8_t)rget_bool(r);
	c->anonymous_health = (uint8_t)rget_bool(r);
	c->has_auth_exec = (uint8_t)rget_bool(r);
	c->has_peers = (uint8_t)rget_bool(r);
	c->header_timeout_ms = rget_u64(r);
	c->head_deadline_ms = rget_u64(r);
	c->idle_timeout_ms = rget_u64(r);
	c->shutdown_grace_ms = rget_u64(r);
	c->max_pre_auth = rget_u32(r);
	c->max_connections = rget_u32(r);
	c->max_header_bytes = rget_u64(r);
	c->max_request_bytes = rget_u64(r);
	c->min_rate = rget_u64(r);
	strlist_get(r, &c->allowed_hosts, 1024, 255);
	strlist_get(r, &c->allowed_origins, 1024, 512);
	strlist_get(r, &c->trusted_proxies, 1024, 64);
	GET_END(r, c, lconf_clear);
}
