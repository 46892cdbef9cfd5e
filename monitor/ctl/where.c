/*
 * SPDX-License-Identifier: ISC
 *
 * Finds the service for a client and reads the client's token: the command
 * line never holds one, since every user can read it.
 */
#include "monitor/ctl/where.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "common/log.h"
#include "common/size.h"
#include "monitor/ctl/show.h"

static int
take_unix(struct where *w, const char *path)
{
	struct sockaddr_un *sa = (struct sockaddr_un *)&w->addr;

	sa->sun_family = AF_UNIX;
	if (strlcpy(sa->sun_path, path, sizeof(sa->sun_path)) >=
	    sizeof(sa->sun_path)) {
		log_warnx("%s: the name is too long for a socket", path);
		return -1;
	}
	w->len = sizeof(*sa);
	strlcpy(w->host, "localhost", sizeof(w->host));
	return (w->name = strdup(path)) == NULL ? -1 : 0;
}

/* A numeric address or localhost; what is not this machine is refused. */
static int
take_inet(struct where *w, const char *addr, uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&w->addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&w->addr;
	char text[INET6_ADDRSTRLEN];

	if (strcmp(addr, "localhost") == 0)
		addr = "127.0.0.1";
	if (strcmp(addr, "0.0.0.0") == 0)
		addr = "127.0.0.1";
	if (strcmp(addr, "::") == 0)
		addr = "::1";
	if (inet_pton(AF_INET, addr, &v4->sin_addr) == 1 &&
	    (ntohl(v4->sin_addr.s_addr) >> 24) == 127) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		w->len = sizeof(*v4);
		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
		snprintf(w->host, sizeof(w->host), "%s:%u", text, port);
	} else if (inet_pton(AF_INET6, addr, &v6->sin6_addr) == 1 &&
		   IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		w->len = sizeof(*v6);
		snprintf(w->host, sizeof(w->host), "[::1]:%u", port);
	} else {
		log_warnx("%s: only the loopback addresses of this machine and "
			  "unix sockets can be called",
		    addr);
		return -1;
	}
	return (w->name = strdup(w->host)) == NULL ? -1 : 0;
}

/* http://ADDRESS:PORT with an optional slash behind. */
static int
take_url(struct where *w, const char *url)
{
	static const char scheme[] = "http://";
	char host[80], *colon, *end;
	const char *addr = host;
	uint64_t port = 80;
	size_t n;

	if (strncmp(url, scheme, sizeof(scheme) - 1) != 0 ||
	    strlcpy(host, url + sizeof(scheme) - 1, sizeof(host)) >=
		sizeof(host))
		goto bad;
	n = strlen(host);
	if (n > 0 && host[n - 1] == '/')
		host[--n] = '\0';
	colon = strrchr(host, ':');
	if (host[0] == '[') {
		if ((end = strchr(host, ']')) == NULL)
			goto bad;
		addr = host + 1;
		*end = '\0';
		colon = end[1] == ':' ? end + 1 : NULL;
		if (colon == NULL && end[1] != '\0')
			goto bad;
	}
	if (colon != NULL) {
		*colon = '\0';
		if (uint_parse(colon + 1, strlen(colon + 1), 65535, &port) ==
		    -1)
			goto bad;
	}
	if (strchr(addr, '/') == NULL && port > 0)
		return take_inet(w, addr, (uint16_t)port);
bad:
	log_warnx("%s: not http://ADDRESS:PORT", url);
	return -1;
}

/* The first address of FILE's that this program can call. */
static int
take_listen(struct where *w, const struct ctl *ctl)
{
	struct confset cs;
	const struct conf_listen *l;
	int r = -1;

	if (confset_load(&cs, &ctl->opts) == -1 || cs.conf == NULL) {
		show_findings(&cs.found, 1);
		log_warnx("without a configuration --url or --socket says "
			  "where the service listens");
	} else if (cs.conf->nlisten == 0)
		log_warnx("the configuration listens nowhere");
	else {
		l = &cs.conf->listen[0];
		r = l->is_unix ? take_unix(w, l->addr)
			       : take_inet(w, l->addr, l->port);
	}
	confset_clear(&cs);
	return r;
}

/* What a header field can hold of a token; anything else is no token. */
static int
token_ok(const char *s)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvw"
			     "xyz0123456789-._~+/=");

	return n > 0 && n <= ABX_TOKEN_MAX && s[n] == '\0';
}

static int
take_token_file(struct where *w, const char *path)
{
	char b[ABX_TOKEN_MAX + 3];
	struct stat st;
	ssize_t n = -1;
	int fd, r = -1;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) == -1 ||
	    fstat(fd, &st) == -1)
		log_warn("%s", path);
	else if (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0)
		log_warnx(
		    "%s: not a regular file that nobody else can read", path);
	else if ((n = read(fd, b, sizeof(b) - 1)) == -1)
		log_warn("%s", path);
	else {
		b[n] = '\0';
		b[strcspn(b, "\r\n")] = '\0';
		if (!token_ok(b))
			log_warnx("%s: holds no token", path);
		else if ((w->token = strdup(b)) != NULL)
			r = 0;
	}
	explicit_bzero(b, sizeof(b));
	if (fd != -1)
		close(fd);
	return r;
}

static int
take_token(struct where *w, const struct client_opts *o)
{
	const char *env;

	if (o->token_file != NULL)
		return take_token_file(w, o->token_file);
	env = getenv("ABX_SERVER_TOKEN");
	if (env == NULL || env[0] == '\0')
		return 0; /* a peer of a unix socket, or open mode */
	if (!token_ok(env)) {
		log_warnx("ABX_SERVER_TOKEN: not a token");
		return -1;
	}
	return (w->token = strdup(env)) == NULL ? -1 : 0;
}

int
where_find(struct where *w, const struct ctl *ctl, const struct client_opts *o)
{
	int r;

	memset(w, 0, sizeof(*w));
	if (o->url != NULL && o->socket != NULL) {
		log_warnx("--url and --socket exclude each other");
		return CTL_USAGE;
	}
	if (o->socket != NULL)
		r = take_unix(w, o->socket);
	else if (o->url != NULL)
		r = take_url(w, o->url);
	else
		r = take_listen(w, ctl);
	if (r == -1 || take_token(w, o) == -1)
		return CTL_USAGE;
	return CTL_YES;
}

void
where_clear(struct where *w)
{
	if (w->token != NULL)
		freezero(w->token, strlen(w->token));
	free(w->name);
	memset(w, 0, sizeof(*w));
}
