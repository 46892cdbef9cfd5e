/*
 * SPDX-License-Identifier: ISC
 *
 * One call to the service over a connection of its own: the head, a body in
 * pieces, the answer in pieces.  What the answer says about itself is judged
 * by resp.c; nothing that came is printed but by show.c.
 */
#include "monitor/ctl/client.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "common/hash.h"
#include "common/log.h"
#include "monitor/ctl/resp.h"
#include "monitor/ctl/show.h"
#include "monitor/ctl/where.h"

#define SILENCE_S 600		      /* a long delete says nothing meanwhile */
#define JSON_MAX (512U * 1024 * 1024) /* of an answer that is kept whole */

struct client {
	struct where at;
};

struct talk {
	struct client *client;
	int fd;
	int chunked;  /* the body that is sent */
	int answered; /* head below is that of the answer */
	int nobody;   /* HEAD */
	int nowait;
	struct resp head;
	struct resp_body body;
	size_t from, to; /* of what was received and not used */
	uint8_t in[64 * 1024];
};

int
client_option(struct ctl *ctl, struct client_opts *o, int ch)
{
	switch (ch) {
	case CLIENT_URL:
		o->url = optarg;
		return 0;
	case CLIENT_SOCKET:
		o->socket = optarg;
		return 0;
	case CLIENT_TOKEN:
		o->token_file = optarg;
		return 0;
	default:
		return ctl_option(ctl, ch);
	}
}

struct client *
client_new(const struct ctl *ctl, const struct client_opts *o, int *status)
{
	struct client *c;

	*status = CTL_USAGE;
	if ((c = calloc(1, sizeof(*c))) == NULL) {
		log_warn("client");
		return NULL;
	}
	if ((*status = where_find(&c->at, ctl, o)) != CTL_YES) {
		client_free(c);
		return NULL;
	}
	return c;
}

void
client_free(struct client *c)
{
	if (c == NULL)
		return;
	where_clear(&c->at);
	free(c);
}

/* ---- the connection ---- */

static int
send_all(struct talk *c, const void *data, size_t n)
{
	const uint8_t *p = data;
	ssize_t done;

	while (n > 0) {
		done = send(c->fd, p, n, MSG_NOSIGNAL);
		if (done == -1 && errno == EINTR)
			continue;
		if (done == -1)
			return -1;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

static int
dial(struct talk *c)
{
	const struct where *at = &c->client->at;
	struct timeval tv = {SILENCE_S, 0};

	c->fd = socket(at->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd == -1 ||
	    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == -1 ||
	    setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) == -1 ||
	    connect(c->fd, (const struct sockaddr *)&at->addr, at->len) == -1) {
		log_warn("%s", at->name);
		return -1;
	}
	return 0;
}

static int
send_head(struct talk *c, const struct talk_ask *a)
{
	const struct where *at = &c->client->at;
	char length[64] = "", *head;
	int n, r;

	if (a->length == TALK_CHUNKED)
		strlcpy(
		    length, "Transfer-Encoding: chunked\r\n", sizeof(length));
	else if (a->length != TALK_NO_BODY)
		snprintf(length, sizeof(length), "Content-Length: %lld\r\n",
		    (long long)a->length);
	n = asprintf(&head,
	    "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n"
	    "%s%s%s%s%s%s%s%s%s\r\n",
	    a->method, a->target, at->host,
	    at->token == NULL ? "" : "Authorization: Bearer ",
	    at->token == NULL ? "" : at->token, at->token == NULL ? "" : "\r\n",
	    a->type == NULL ? "" : "Content-Type: ",
	    a->type == NULL ? "" : a->type, a->type == NULL ? "" : "\r\n",
	    length, a->expect ? "Expect: 100-continue\r\n" : "",
	    a->fields == NULL ? "" : a->fields);
	if (n == -1) {
		log_warn("%s", at->name);
		return -1;
	}
	/* a service that has closed may have answered; that is read later */
	r = send_all(c, head, (size_t)n);
	freezero(head, (size_t)n);
	if (r == -1 && errno != EPIPE && errno != ECONNRESET) {
		log_warn("%s", at->name);
		return -1;
	}
	return 0;
}

/* More of what the service sends: bytes, 0 at its end, -1. */
static ssize_t
fill(struct talk *c)
{
	ssize_t n;

	if (c->from == c->to)
		c->from = c->to = 0;
	else if (c->to == sizeof(c->in)) {
		memmove(c->in, c->in + c->from, c->to - c->from);
		c->to -= c->from;
		c->from = 0;
	}
	do
		n = recv(c->fd, c->in + c->to, sizeof(c->in) - c->to,
		    c->nowait ? MSG_DONTWAIT : 0);
	while (n == -1 && errno == EINTR);
	if (n > 0)
		c->to += (size_t)n;
	return n;
}

/* The next head: 0 or -1. */
static int
read_head(struct talk *c)
{
	const char *name = c->client->at.name;
	ssize_t n, got;

	for (;;) {
		n = resp_parse(
		    (const char *)c->in + c->from, c->to - c->from, &c->head);
		if (n == -1) {
			log_warnx("%s: what answers is not the service", name);
			return -1;
		}
		if (n > 0) {
			c->from += (size_t)n;
			return 0;
		}
		if ((got = fill(c)) == -1) {
			log_warn("%s", name);
			return -1;
		}
		if (got == 0) {
			log_warnx("%s: closed without an answer", name);
			return -1;
		}
	}
}

struct talk *
talk_new(struct client *client, const struct talk_ask *a)
{
	struct talk *c;

	if ((c = calloc(1, sizeof(*c))) == NULL) {
		log_warn("call");
		return NULL;
	}
	c->client = client;
	c->chunked = a->length == TALK_CHUNKED;
	c->nobody = strcmp(a->method, "HEAD") == 0;
	if (dial(c) == -1 || send_head(c, a) == -1 ||
	    (a->expect && read_head(c) == -1)) {
		talk_free(c);
		return NULL;
	}
	if (a->expect && c->head.status != 100) {
		c->answered = 1;
		resp_body_init(&c->body, &c->head, c->nobody);
	}
	return c;
}

void
talk_free(struct talk *c)
{
	if (c == NULL)
		return;
	if (c->fd != -1)
		close(c->fd);
	free(c);
}

int
talk_refused(const struct talk *c)
{
	return c->answered;
}

int
talk_send(struct talk *c, const void *p, size_t n)
{
	char size[24];
	int len = 0;

	if (!c->chunked)
		return send_all(c, p, n);
	len = snprintf(size, sizeof(size), "%zx\r\n", n);
	if (send_all(c, size, (size_t)len) == -1 || send_all(c, p, n) == -1)
		return -1;
	return send_all(c, "\r\n", 2);
}

int
talk_answer(struct talk *c)
{
	while (!c->answered) {
		if (read_head(c) == -1)
			return -1;
		if (c->head.status < 200)
			continue;
		c->answered = 1;
		resp_body_init(&c->body, &c->head, c->nobody);
	}
	return (int)c->head.status;
}

const struct resp *
talk_head(const struct talk *c)
{
	return &c->head;
}

int
talk_fd(const struct talk *c)
{
	return c->fd;
}

void
talk_nowait(struct talk *c)
{
	c->nowait = 1;
}

int
talk_ready(const struct talk *c)
{
	return c->from < c->to || c->body.state == RESP_DONE;
}

ssize_t
talk_read(struct talk *c, void *out, size_t size)
{
	const uint8_t *data;
	size_t len = 0;
	ssize_t used, got;

	while (c->body.state != RESP_DONE) {
		if (c->from == c->to && (got = fill(c)) <= 0) {
			if (got == -1 && errno == EAGAIN && c->nowait)
				return TALK_WAIT;
			if (got == -1)
				log_warn("%s", c->client->at.name);
			else
				log_warnx("%s: the answer was cut off",
				    c->client->at.name);
			return -1;
		}
		used = c->to - c->from < size ? (ssize_t)(c->to - c->from)
					      : (ssize_t)size;
		used = resp_body_take(
		    &c->body, c->in + c->from, (size_t)used, &data, &len);
		if (used == -1) {
			log_warnx(
			    "%s: the answer is malformed", c->client->at.name);
			return -1;
		}
		if (len > 0)
			memcpy(out, data, len);
		c->from += (size_t)used;
		if (len > 0)
			return (ssize_t)len;
	}
	return 0;
}

/* ---- JSON ---- */

struct source {
	struct talk *call;
	size_t total;
	int failed;
};

static size_t
source_cb(void *buf, size_t n, void *arg)
{
	struct source *s = arg;
	ssize_t got = talk_read(s->call, buf, n);

	if (got > 0)
		s->total += (size_t)got;
	if (got == -1 || s->total > JSON_MAX) {
		s->failed = 1;
		return (size_t)-1;
	}
	return (size_t)got;
}

json_t *
talk_json(struct talk *c)
{
	struct source s = {.call = c};
	json_error_t err;
	json_t *j;

	j = json_load_callback(source_cb, &s, JSON_REJECT_DUPLICATES, &err);
	if (j == NULL && s.total > JSON_MAX)
		log_warnx("the answer is too long");
	else if (j == NULL && !s.failed)
		log_warnx("the answer is not JSON");
	if (j != NULL && !json_is_object(j)) {
		log_warnx("the answer is not an object");
		json_decref(j);
		return NULL;
	}
	return j;
}

/* What the details add for people, in brackets: the author's reason, the
 * layer, the rules of the command policy, the argument that is wrong. */
static void
error_details(const json_t *j, const char *code, char *out, size_t size)
{
	const json_t *d = json_object_get(j, "details"), *rule;
	const char *words[8] = {
	    json_string_value(json_object_get(d, "reason")),
	    json_string_value(json_object_get(d, "layer")),
	    strncmp(code, "args.", 5) == 0
		? json_string_value(json_object_get(d, "param"))
		: NULL,
	};
	size_t i, n = 3;

	json_array_foreach(json_object_get(d, "rules"), i, rule)
		if (n < nitems(words))
			words[n++] = json_string_value(rule);
	out[0] = '\0';
	for (i = 0; i < n; i++)
		if (words[i] != NULL) {
			strlcat(out, out[0] == '\0' ? " (" : ", ", size - 1);
			strlcat(out, words[i], size - 1);
		}
	if (out[0] != '\0')
		strlcat(out, ")", size);
}

int
talk_error(struct talk *c)
{
	json_t *j = talk_json(c);
	const char *code, *text;
	char more[512];

	if (j == NULL)
		return CTL_UNREACHED;
	code = json_string_value(json_object_get(j, "code"));
	text = json_string_value(json_object_get(j, "error"));
	if (code == NULL)
		show_complaint("HTTP status %u", c->head.status);
	else {
		error_details(j, code, more, sizeof(more));
		show_complaint(
		    "%s: %s%s", code, text == NULL ? "" : text, more);
		if (strcmp(code, "auth.required") == 0)
			show_complaint("no token was sent: --token-file, "
				       "before the other arguments, or "
				       "ABX_SERVER_TOKEN gives one");
	}
	json_decref(j);
	return code == NULL ? CTL_UNREACHED : CTL_NO;
}

int
client_json(struct client *client, const char *method, const char *target,
    json_t *body, json_t **answer)
{
	char *text = body == NULL ? NULL : json_dumps(body, JSON_COMPACT);
	struct talk_ask a = {.method = method,
	    .target = target,
	    .type = text == NULL ? NULL : "application/json",
	    .length = text == NULL ? TALK_NO_BODY : (int64_t)strlen(text)};
	struct talk *c;
	int status = CTL_UNREACHED, http;

	if (body != NULL)
		json_decref(body);
	if (body != NULL && text == NULL) {
		log_warnx("out of memory");
		return CTL_USAGE;
	}
	if ((c = talk_new(client, &a)) != NULL) {
		if (text != NULL)
			(void)talk_send(c, text, strlen(text));
		if ((http = talk_answer(c)) >= 400)
			status = talk_error(c);
		else if (http != -1 && (*answer = talk_json(c)) != NULL)
			status = CTL_YES;
	}
	free(text);
	talk_free(c);
	return status;
}

/* ---- names of any bytes ---- */

char *
client_target(const char *prefix, const void *data, size_t n)
{
	static const char hex[] = "0123456789ABCDEF";
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
				    "qrstuvwxyz0123456789-._~/";
	const unsigned char *p = data;
	size_t at = strlen(prefix), i;
	char *out;

	if ((out = malloc(at + 3 * n + 1)) == NULL)
		return NULL;
	memcpy(out, prefix, at);
	for (i = 0; i < n; i++) {
		if (p[i] != '\0' && strchr(plain, p[i]) != NULL) {
			out[at++] = (char)p[i];
			continue;
		}
		out[at++] = '%';
		out[at++] = hex[p[i] >> 4];
		out[at++] = hex[p[i] & 15];
	}
	out[at] = '\0';
	return out;
}

int
client_put_path(json_t *j, const char *name, const char *path)
{
	char key[64], *b;
	size_t n = strlen(path), size = 4 * ((n + 2) / 3) + 1;
	int r = -1;

	if (utf8_valid(path, n))
		return json_object_set_new(j, name, json_string(path));
	if ((b = malloc(size)) == NULL)
		return -1;
	snprintf(key, sizeof(key), "%s_base64", name);
	if (base64_encode(path, n, b, size) != -1)
		r = json_object_set_new(j, key, json_string(b));
	free(b);
	return r;
}

char *
client_bytes(const json_t *j, const char *name, size_t *len)
{
	char key[64], *out;
	const json_t *v;
	size_t n;
	int got;

	snprintf(key, sizeof(key), "%s_base64", name);
	if ((v = json_object_get(j, key)) == NULL) {
		v = json_object_get(j, name);
		if (!json_is_string(v))
			return NULL;
		*len = json_string_length(v);
		return strdup(json_string_value(v));
	}
	if (!json_is_string(v))
		return NULL;
	n = json_string_length(v);
	if ((out = malloc(n + 1)) == NULL)
		return NULL;
	got = base64_decode(json_string_value(v), n, (uint8_t *)out, n);
	if (got == -1 || memchr(out, '\0', (size_t)got) != NULL) {
		free(out);
		return NULL;
	}
	out[got] = '\0';
	*len = (size_t)got;
	return out;
}
