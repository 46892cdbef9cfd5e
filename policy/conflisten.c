/*
 * SPDX-License-Identifier: ISC
 *
 * Where the service listens: "listen", --listen, and the bounds of "http".
 * Nothing is resolved here: an address is numeric.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "policy/confkey.h"

#define LISTEN_MAX 16
#define LISTEN_ADDR "127.0.0.1"
#define LISTEN_PORT 8765
#define MODE_ABSENT 0xffffU

#define OFF(f) offsetof(struct conf, f)
const struct ckey http_keys[] = {
    {"head_deadline", K_MSEC, 0, OFF(head_deadline_ms), 100, 600000},
    {"header_timeout", K_MSEC, 0, OFF(header_timeout_ms), 100, 600000},
    {"idle_timeout", K_MSEC, 0, OFF(idle_timeout_ms), 100, 3600000},
    {"max_connections", K_U32, 0, OFF(max_connections), 2, 4096},
    {"max_header_bytes", K_SIZE, 0, OFF(max_header_bytes), 1024, 65536},
    {"max_pre_auth", K_U32, 0, OFF(max_pre_auth), 1, 4096},
    {"max_request_bytes", K_SIZE, 0, OFF(max_request_bytes), 1024,
	16 * 1024 * 1024},
    {"min_rate", K_SIZE, 0, OFF(min_rate), 0, 1ULL << 30},
    {NULL},
};
#undef OFF

void
conf_listen_clear(struct conf *c)
{
	size_t i;

	for (i = 0; i < c->nlisten; i++) {
		free(c->listen[i].addr);
		free(c->listen[i].group);
	}
	free(c->listen);
	c->listen = NULL;
	c->nlisten = 0;
}

static int
is_numeric(const char *addr)
{
	char buf[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, addr, buf) == 1 ||
	       inet_pton(AF_INET6, addr, buf) == 1;
}

static int
check_address(struct cload *cl, const struct node *n)
{
	if (is_numeric(n->s))
		return 0;
	conf_find(cl, n, FIND_ERROR, "config.type",
	    "\"address\": \"%.80s\": a numeric address is expected, such as "
	    "127.0.0.1 or ::1",
	    n->s);
	return -1;
}

int
check_socket(struct cload *cl, const struct node *n)
{
	if (n->len > 107) {
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "the path of a socket has at most 107 bytes");
		return -1;
	}
	return check_dir(cl, n);
}

#define OFF(f) offsetof(struct conf_listen, f)
static const struct ckey listen_keys[] = {
    {"address", K_STR, 0, OFF(addr), .check = check_address},
    {"group", K_STR, 0, OFF(group), .check = check_name},
    {"mode", K_OCTAL, 0, OFF(mode), 0660, 0777},
    {"port", K_PORT, 0, OFF(port), 1, 65535},
    {"unix", K_STR, 0, OFF(addr), .check = check_socket},
    {"wires", K_LATER},
    {NULL},
};
#undef OFF

/* Keys that do not go together; 0, or -1 after a finding. */
static int
listen_kind(struct cload *cl, const struct node *n, struct conf_listen *l)
{
	const struct node *addr = node_get(n, "address"),
			  *port = node_get(n, "port"),
			  *sock = node_get(n, "unix"),
			  *mode = node_get(n, "mode"),
			  *group = node_get(n, "group");

	l->is_unix = sock != NULL;
	if (sock != NULL && addr == NULL && port == NULL)
		return 0;
	if (sock == NULL && addr != NULL && port != NULL && mode == NULL &&
	    group == NULL)
		return 0;
	conf_find(cl, n, FIND_ERROR, "config.type",
	    "a listener has \"address\" and \"port\", or \"unix\" with "
	    "\"mode\" and \"group\"");
	return -1;
}

static int
listen_push(struct cload *cl, struct conf_listen *l)
{
	struct conf *c = cl->c;
	struct conf_listen *v;

	v = recallocarray(c->listen, c->nlisten, c->nlisten + 1, sizeof(*v));
	if (v == NULL)
		return conf_nomem(cl);
	c->listen = v;
	c->listen[c->nlisten++] = *l;
	memset(l, 0, sizeof(*l));
	return 0;
}

/* One that would be bound a second time: 1 after the finding. */
static int
listen_twice(
    struct cload *cl, const struct node *n, const struct conf_listen *l)
{
	const struct conf_listen *o;
	size_t i;

	for (i = 0; i < cl->c->nlisten; i++) {
		o = &cl->c->listen[i];
		/* a port that was refused is 0 */
		if (o->is_unix != l->is_unix || o->port != l->port ||
		    (!l->is_unix && l->port == 0) ||
		    strcmp(o->addr, l->addr) != 0)
			continue;
		conf_find(cl, n, FIND_ERROR, "config.duplicate_id",
		    "another listener has that %s already: %.200s",
		    l->is_unix ? "socket" : "address and port", l->addr);
		return 1;
	}
	return 0;
}

static int
listen_read(struct cload *cl, const struct node *n)
{
	struct conf_listen l = {.mode = MODE_ABSENT};
	int usable, error;

	usable = listen_kind(cl, n, &l) == 0;
	error = conf_object(cl, n, listen_keys, &l);
	if (l.is_unix && (l.mode == MODE_ABSENT || l.group == NULL))
		cl->unix_open = 1;
	if (l.mode == MODE_ABSENT)
		l.mode = l.is_unix ? 0600 : 0;
	if (error == 0 && usable && l.addr != NULL && !listen_twice(cl, n, &l))
		error = listen_push(cl, &l);
	free(l.addr);
	free(l.group);
	return error;
}

int
get_listen(struct cload *cl, const struct node *n, void *obj)
{
	origin_set(cl, &cl->c->rules->listen_at, n);
	if (n->type == N_LIST && (n->n == 0 || n->n > LISTEN_MAX)) {
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "\"listen\" has 1 to %d listeners", LISTEN_MAX);
		return 0;
	}
	return conf_each(cl, n, "a list of listeners", listen_read);
}

int
put_listen(struct out *o, const void *obj)
{
	const struct conf *c = obj;
	const struct conf_listen *l;
	char mode[16];
	size_t i;

	out_lit(o, "[");
	for (i = 0; i < c->nlisten; i++) {
		l = &c->listen[i];
		out_lit(o, i > 0 ? ",{" : "{");
		if (!l->is_unix) {
			out_lit(o, "\"address\":");
			out_str(o, l->addr);
			out_lit(o, ",\"port\":");
			out_u64(o, l->port);
		} else {
			if (l->group != NULL) {
				out_lit(o, "\"group\":");
				out_str(o, l->group);
				out_lit(o, ",");
			}
			snprintf(mode, sizeof(mode), "%04o", l->mode);
			out_lit(o, "\"mode\":");
			out_str(o, mode);
			out_lit(o, ",\"unix\":");
			out_str(o, l->addr);
		}
		out_lit(o, "}");
	}
	out_lit(o, "]");
	return 1;
}

int
listen_loopback(const struct conf_listen *l)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (inet_pton(AF_INET, l->addr, &v4) == 1)
		return (ntohl(v4.s_addr) >> 24) == 127;
	return inet_pton(AF_INET6, l->addr, &v6) == 1 &&
	       IN6_IS_ADDR_LOOPBACK(&v6);
}

/* "ADDR:PORT" or "[ADDR]:PORT" of the command line; 0 or -1. */
static int
listen_split(const char *s, char *addr, size_t size, uint16_t *port)
{
	const char *colon = strrchr(s, ':');
	size_t len;
	uint64_t v;

	if (colon == NULL ||
	    uint_parse(colon + 1, strlen(colon + 1), 65535, &v) == -1 || v == 0)
		return -1;
	len = (size_t)(colon - s);
	if (len > 1 && s[0] == '[' && s[len - 1] == ']') {
		s++;
		len -= 2;
	}
	if (len >= size)
		return -1;
	memcpy(addr, s, len);
	addr[len] = '\0';
	*port = (uint16_t)v;
	return is_numeric(addr) ? 0 : -1;
}

/* The command line replaces the list; without both there is a default. */
int
conf_listen_finish(struct cload *cl)
{
	const char *arg = cl->w != NULL ? cl->w->listen : NULL;
	struct conf_listen l = {.port = LISTEN_PORT};
	char addr[64] = LISTEN_ADDR;
	int error;

	if (cl->canon || (arg == NULL && cl->c->nlisten > 0))
		return 0;
	/* What was said was wrong, and that is a finding already. */
	if (arg == NULL && cl->c->rules->listen_at.file != NULL)
		return 0;
	if (arg != NULL) {
		conf_listen_clear(cl->c);
		cl->unix_open = 0;
		if (listen_split(arg, addr, sizeof(addr), &l.port) == -1) {
			findings_add(cl->f, FIND_ERROR, "config.type",
			    "command line", 0, 0,
			    "\"%.80s\" is not ADDRESS:PORT", arg);
			return 0;
		}
	}
	if ((l.addr = strdup(addr)) == NULL)
		return conf_nomem(cl);
	error = listen_push(cl, &l);
	free(l.addr);
	return error;
}
