/*
 * SPDX-License-Identifier: ISC
 *
 * Listening sockets: taken from the service manager or bound here, handed to
 * the listener as descriptors.  Nothing is ever accepted here.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/size.h"
#include "monitor/parent.h"

static char notify_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
static int inherited; /* sockets from descriptor 3 on */

void
sock_environ(void)
{
	const char *n = getenv("NOTIFY_SOCKET"), *fds = getenv("LISTEN_FDS"),
		   *pid = getenv("LISTEN_PID");
	uint64_t v;
	int i;

	if (n != NULL && (n[0] == '/' || n[0] == '@'))
		strlcpy(notify_path, n, sizeof(notify_path));
	if (fds == NULL || pid == NULL ||
	    uint_parse(pid, strlen(pid), INT32_MAX, &v) == -1 ||
	    (pid_t)v != getpid() || uint_parse(fds, strlen(fds), 64, &v) == -1)
		return;
	inherited = (int)v;
	for (i = 0; i < inherited; i++)
		if (fcntl(3 + i, F_SETFD, FD_CLOEXEC) == -1)
			fatal("LISTEN_FDS names descriptor %d", 3 + i);
}

void
sock_notify(const char *text)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	socklen_t len;
	int fd;

	if (notify_path[0] == '\0')
		return;
	strlcpy(sa.sun_path, notify_path, sizeof(sa.sun_path));
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			  strlen(sa.sun_path));
	if (sa.sun_path[0] == '@')
		sa.sun_path[0] = '\0';
	if ((fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) == -1 ||
	    sendto(fd, text, strlen(text), MSG_NOSIGNAL,
		(const struct sockaddr *)&sa, len) == -1)
		log_warn("cannot notify the service manager");
	if (fd != -1)
		close(fd);
}

static int
bind_inet(const struct boot_listen *l)
{
	struct sockaddr_in in4 = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	const struct sockaddr *sa;
	socklen_t len;
	int fd, on = 1;

	in4.sin_port = in6.sin6_port = htons(l->port);
	if (inet_pton(AF_INET, l->addr, &in4.sin_addr) == 1) {
		sa = (const struct sockaddr *)&in4;
		len = sizeof(in4);
	} else if (inet_pton(AF_INET6, l->addr, &in6.sin6_addr) == 1) {
		sa = (const struct sockaddr *)&in6;
		len = sizeof(in6);
	} else {
		errno = EINVAL;
		return -1;
	}
	fd = socket(
	    sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == -1 ||
	    bind(fd, sa, len) == -1 || listen(fd, 1024) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A socket file that nobody listens on is a left-over and is removed; one
 * that answers is somebody's. */
static int
clear_stale(const struct sockaddr_un *sa, int type)
{
	struct stat st;
	int fd, rc;

	if (lstat(sa->sun_path, &st) == -1)
		return errno == ENOENT ? 0 : -1;
	if (!S_ISSOCK(st.st_mode)) {
		errno = EEXIST;
		return -1;
	}
	if ((fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0)) == -1)
		return -1;
	rc = connect(fd, (const struct sockaddr *)sa, sizeof(*sa));
	close(fd);
	if (rc == 0 || errno != ECONNREFUSED) {
		errno = EADDRINUSE;
		return -1;
	}
	return unlink(sa->sun_path);
}

static int
bind_unix(const struct boot_listen *l, int type)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct group *gr = NULL;
	mode_t old;
	int fd, rc;

	if (strlcpy(sa.sun_path, l->addr, sizeof(sa.sun_path)) >=
	    sizeof(sa.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (l->group[0] != '\0' && (gr = getgrnam(l->group)) == NULL) {
		errno = EINVAL;
		return -1;
	}
	if (clear_stale(&sa, type) == -1 ||
	    (fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) ==
		-1)
		return -1;
	/* nobody gets in before mode and group are what was asked */
	old = umask(0177);
	rc = bind(fd, (const struct sockaddr *)&sa, sizeof(sa));
	umask(old);
	if (rc == -1 ||
	    (gr != NULL && chown(sa.sun_path, (uid_t)-1, gr->gr_gid) == -1) ||
	    chmod(sa.sun_path, l->mode & 0777) == -1 ||
	    listen(fd, 1024) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

static int
same_inet(const struct sockaddr_storage *ss, const struct boot_listen *l)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;
	struct in6_addr a;

	if (inet_pton(ss->ss_family, l->addr, &a) != 1)
		return 0;
	if (ss->ss_family == AF_INET)
		return ntohs(in4->sin_port) == l->port &&
		       memcmp(&in4->sin_addr, &a, sizeof(in4->sin_addr)) == 0;
	return ntohs(in6->sin6_port) == l->port &&
	       memcmp(&in6->sin6_addr, &a, sizeof(a)) == 0;
}

/*
 * A socket of the service manager must be one that the configuration names:
 * what the lints said of "listen" would not hold for another.
 */
static int
is_configured(const struct parent *p, int fd)
{
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);
	const struct boot_listen *l;
	size_t i;

	if (getsockname(fd, (struct sockaddr *)&ss, &len) == -1)
		return 0;
	for (i = 0; i < p->boot.nlisten; i++) {
		l = &p->boot.listen[i];
		if (l->is_unix != (ss.ss_family == AF_UNIX))
			continue;
		if (l->is_unix ? strcmp(((struct sockaddr_un *)&ss)->sun_path,
				     l->addr) == 0
			       : same_inet(&ss, l))
			return 1;
	}
	return 0;
}

static void
say_unbound(const struct boot_listen *l)
{
	if (l->is_unix)
		log_warn("cannot listen on %s", l->addr);
	else
		log_warn("cannot listen on %s port %u", l->addr, l->port);
}

int
sock_open(struct parent *p)
{
	size_t i, n = p->boot.nlisten;

	if (inherited > 0)
		n = (size_t)inherited;
	if (n == 0) {
		log_warnx("nothing to listen on");
		return -1;
	}
	if ((p->socks = calloc(n, sizeof(*p->socks))) == NULL) {
		log_warn("sockets");
		return -1;
	}
	for (i = 0; i < n; i++, p->nsocks++) {
		if (inherited > 0) {
			p->socks[i] = 3 + (int)i;
			if (!is_configured(p, p->socks[i])) {
				log_warnx("LISTEN_FDS: socket %zu is none that "
					  "the configuration names",
				    i);
				return -1;
			}
		} else if (p->boot.listen[i].is_unix)
			p->socks[i] =
			    bind_unix(&p->boot.listen[i], SOCK_STREAM);
		else
			p->socks[i] = bind_inet(&p->boot.listen[i]);
		if (p->socks[i] == -1) {
			say_unbound(&p->boot.listen[i]);
			return -1;
		}
	}
	return 0;
}

int
sock_control(struct parent *p)
{
	struct boot_listen l = {0};
	struct group *gr;
	char dir[ABX_PATH_MAX], *slash;

	if (p->boot.control_path[0] == '\0')
		return 0;
	if (p->boot.control_group[0] != '\0') {
		if ((gr = getgrnam(p->boot.control_group)) == NULL) {
			log_warnx("control.group: there is no group %s",
			    p->boot.control_group);
			return -1;
		}
		p->control_gid = gr->gr_gid;
	}
	/* the run directory may not be there yet */
	strlcpy(dir, p->boot.control_path, sizeof(dir));
	if ((slash = strrchr(dir, '/')) != NULL && slash != dir) {
		*slash = '\0';
		if (mkdir(dir, 0755) == -1 && errno != EEXIST) {
			log_warn("run directory %s", dir);
			return -1;
		}
	}
	l.is_unix = 1;
	l.addr = p->boot.control_path;
	l.mode = 0660;
	l.group = p->boot.control_group;
	if ((p->control = bind_unix(&l, SOCK_SEQPACKET)) == -1) {
		log_warn("control socket %s", l.addr);
		return -1;
	}
	return 0;
}

void
sock_remove(const struct parent *p)
{
	size_t i;

	for (i = 0; inherited == 0 && i < p->nsocks; i++)
		if (p->boot.listen[i].is_unix &&
		    unlink(p->boot.listen[i].addr) == -1 && errno != ENOENT)
			log_warn("socket %s", p->boot.listen[i].addr);
}

void
sock_remove_control(const struct parent *p)
{
	if (p->boot.control_path[0] != '\0' &&
	    unlink(p->boot.control_path) == -1 && errno != ENOENT)
		log_warn("control socket %s", p->boot.control_path);
}

void
sock_names(const struct parent *p, char *out, size_t size)
{
	struct sockaddr_storage ss;
	socklen_t len;
	char addr[INET6_ADDRSTRLEN], part[160];
	size_t i;

	out[0] = '\0';
	for (i = 0; i < p->nsocks; i++) {
		len = sizeof(ss);
		memset(&ss, 0, sizeof(ss));
		if (getsockname(p->socks[i], (struct sockaddr *)&ss, &len) ==
		    -1)
			continue;
		if (ss.ss_family == AF_UNIX)
			snprintf(part, sizeof(part), "%s",
			    ((struct sockaddr_un *)&ss)->sun_path);
		else if (ss.ss_family == AF_INET)
			snprintf(part, sizeof(part), "%s:%u",
			    inet_ntop(AF_INET,
				&((struct sockaddr_in *)&ss)->sin_addr, addr,
				sizeof(addr)),
			    ntohs(((struct sockaddr_in *)&ss)->sin_port));
		else
			snprintf(part, sizeof(part), "[%s]:%u",
			    inet_ntop(AF_INET6,
				&((struct sockaddr_in6 *)&ss)->sin6_addr, addr,
				sizeof(addr)),
			    ntohs(((struct sockaddr_in6 *)&ss)->sin6_port));
		if (i > 0)
			strlcat(out, " ", size);
		strlcat(out, part, size);
	}
}
