/*
 * SPDX-License-Identifier: ISC
 *
 * What a test sees of a service from outside: its processes in /proc, and
 * answers to HTTP.  See stage.h.
 */
#include "regress/privsep/stage.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KID_MS 15000
#define CALL_MS 20000

/* ---- processes ---- */

/* Parent and name of a process: 0, or -1 when it is gone or a zombie. */
static int
proc_stat(pid_t pid, pid_t *parent, char *name, size_t size)
{
	char path[64], line[512], *open, *close;
	FILE *f;
	int ok;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if ((f = fopen(path, "re")) == NULL)
		return -1;
	ok = fgets(line, sizeof(line), f) != NULL;
	fclose(f);
	if (!ok || (open = strchr(line, '(')) == NULL ||
	    (close = strrchr(line, ')')) == NULL || close[2] == 'Z')
		return -1;
	snprintf(name, size, "%.*s", (int)(close - open - 1), open + 1);
	*parent = (pid_t)strtol(close + 4, NULL, 10);
	return 0;
}

static pid_t
find_kid(const struct stage *s, const char *want)
{
	const struct dirent *e;
	char name[32];
	pid_t pid, parent, found = -1;
	DIR *d;

	if ((d = opendir("/proc")) == NULL)
		die("/proc");
	while (found == -1 && (e = readdir(d)) != NULL) {
		pid = (pid_t)strtol(e->d_name, NULL, 10);
		if (pid > 0 &&
		    proc_stat(pid, &parent, name, sizeof(name)) == 0 &&
		    parent == s->abxd && strcmp(name, want) == 0)
			found = pid;
	}
	closedir(d);
	return found;
}

pid_t
stage_new_kid(const struct stage *s, const char *name, pid_t old)
{
	double end = now() + KID_MS / 1e3;
	pid_t pid;

	while (((pid = find_kid(s, name)) == -1 || pid == old) && now() < end)
		nap_ms(5);
	return pid == old ? -1 : pid;
}

pid_t
stage_kid(const struct stage *s, const char *name)
{
	return stage_new_kid(s, name, -1);
}

size_t
proc_fds(pid_t pid)
{
	char path[64];
	size_t n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	if ((d = opendir(path)) == NULL)
		return 0;
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n < 2 ? 0 : n - 2;
}

const char *
proc_field(pid_t pid, const char *name)
{
	static char buf[8][256];
	static unsigned turn;
	char path[64], line[512], *out = buf[turn++ % 8];
	size_t n = strlen(name);
	FILE *f;

	out[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if ((f = fopen(path, "re")) == NULL)
		return out;
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, name, n) == 0 && line[n] == ':') {
			line[strcspn(line, "\n")] = '\0';
			snprintf(out, sizeof(buf[0]), "%s",
			    line + n + 1 + strspn(line + n + 1, " \t"));
			break;
		}
	fclose(f);
	return out;
}

size_t
proc_rss(pid_t pid)
{
	return strtoul(proc_field(pid, "VmRSS"), NULL, 10);
}

/* ---- HTTP ---- */

void
reply_clear(struct reply *r)
{
	free(r->body);
	memset(r, 0, sizeof(*r));
}

int
http_connect(const struct stage *s)
{
	struct sockaddr_in sa = {.sin_family = AF_INET};
	struct timeval tv = {CALL_MS / 1000, 0};
	int fd, on = 1;

	sa.sin_port = htons((uint16_t)s->port);
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if ((fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) == -1)
		return -1;
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == -1 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == -1 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

static int
send_all(int fd, const char *p, size_t n)
{
	ssize_t m;

	for (; n > 0; p += m, n -= (size_t)m) {
		m = send(fd, p, n, MSG_NOSIGNAL);
		if (m == -1)
			return -1;
	}
	return 0;
}

int
http_send(int fd, const char *token, const char *method, const char *target,
    const char *body, size_t length)
{
	char head[8192], type[128] = "";
	int n;

	if (length > 0 || body != NULL)
		snprintf(type, sizeof(type),
		    "Content-Type: %s\r\nContent-Length: %zu\r\n",
		    strcmp(method, "PUT") == 0 ? "application/octet-stream"
					       : "application/json",
		    length);
	n = snprintf(head, sizeof(head),
	    "%s %s HTTP/1.1\r\nHost: localhost\r\n"
	    "Authorization: Bearer %s\r\nConnection: close\r\n%s\r\n",
	    method, target, token, type);
	if (n < 0 || (size_t)n >= sizeof(head))
		die("the head is too long");
	if (send_all(fd, head, (size_t)n) == -1)
		return -1;
	return body == NULL ? 0 : send_all(fd, body, length);
}

int
http_read(int fd, struct reply *r, int ms)
{
	struct pollfd p = {fd, POLLIN, 0};
	char *text = NULL, *q, *body;
	size_t n = 0, cap = 0;
	ssize_t got;

	memset(r, 0, sizeof(*r));
	for (;;) {
		if (cap - n < 4096) {
			cap = cap == 0 ? 8192 : cap * 2;
			if ((q = realloc(text, cap)) == NULL)
				die("realloc");
			text = q;
		}
		if (poll(&p, 1, ms) != 1 ||
		    (got = read(fd, text + n, cap - n - 1)) <= 0)
			break;
		n += (size_t)got;
	}
	text[n] = '\0';
	body = strstr(text, "\r\n\r\n");
	if (strncmp(text, "HTTP/1.1 ", 9) != 0 || body == NULL) {
		free(text);
		return 0;
	}
	r->status = (int)strtol(text + 9, NULL, 10);
	body += 4;
	r->len = n - (size_t)(body - text);
	memmove(text, body, r->len + 1);
	r->body = text;
	return r->status;
}

int
http_call(const struct stage *s, const char *token, const char *method,
    const char *target, const char *body, struct reply *r)
{
	struct reply mine = {0};
	int fd = http_connect(s), status = 0;

	if (r != NULL)
		memset(r, 0, sizeof(*r));
	if (fd == -1)
		return 0;
	if (http_send(fd, token, method, target, body,
		body == NULL ? 0 : strlen(body)) == 0)
		status = http_read(fd, r == NULL ? &mine : r, CALL_MS);
	close(fd);
	reply_clear(&mine);
	return status;
}
