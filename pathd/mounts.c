/*
 * SPDX-License-Identifier: ISC
 *
 * The mounts below the roots: a root that lies on a disk may hold a share of
 * the network, whose server is gone.  Owns the descriptor of the kernel's list
 * of mounts and the mark "slow" of roots.  Touches no path itself.
 */
#include "pathd/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/log.h"

#define LIST "/proc/self/mountinfo"
#define LINE_MAX_LEN (16 * 1024) /* two paths, escaped, and options */

static int list = -1;
static struct event changed_ev;
static struct walk_roots *marked;

/* ---- one line ---- */

static int
is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* \040 is a space, and so on; in place. */
static void
unescape(char *s)
{
	char *out = s;

	for (; *s != '\0'; out++)
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' &&
		    is_octal(s[2]) && is_octal(s[3])) {
			*out = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 +
				      (s[3] - '0'));
			s += 4;
		} else
			*out = *s++;
	*out = '\0';
}

int
mounts_line(char *line, const char **point, const char **type)
{
	char *p, *field = NULL;
	int i, behind = 0;

	*type = NULL;
	for (i = 0; *type == NULL && (p = strsep(&line, " ")) != NULL; i++) {
		if (i == 4)
			field = p;
		else if (behind)
			*type = p;
		else
			behind = i > 5 && strcmp(p, "-") == 0;
	}
	if (field == NULL || *field != '/' || *type == NULL)
		return 0;
	unescape(field);
	*point = field;
	return 1;
}

int
mounts_is_local(const char *type)
{
	static const char *const local[] = {"ext2", "ext3", "ext4", "xfs",
	    "btrfs", "tmpfs", "ramfs", "f2fs", "overlay", "zfs", "bcachefs",
	    "vfat", "exfat", "iso9660", "squashfs", "erofs", "proc", "sysfs",
	    "devtmpfs", "devpts", "cgroup2", "mqueue"};
	size_t i;

	for (i = 0; i < nitems(local); i++)
		if (strcmp(type, local[i]) == 0)
			return 1;
	return 0;
}

/* ---- the list ---- */

/* A mount below a root: on the root itself it would hide what is held. */
static int
is_below(const char *point, const char *root)
{
	size_t n = strlen(root);

	return strncmp(point, root, n) == 0 && point[n] == '/';
}

static void
mark(char *line, uint8_t *below)
{
	const char *point, *type;
	size_t i;

	if (!mounts_line(line, &point, &type) || mounts_is_local(type))
		return;
	for (i = 0; i < marked->n; i++)
		if (marked->v[i].path != NULL &&
		    is_below(point, marked->v[i].path))
			below[i] = 1;
}

/* Every line of the list: 0, or -1 with errno. */
static int
read_list(uint8_t *below)
{
	static char buf[LINE_MAX_LEN];
	size_t have = 0, len;
	off_t at = 0;
	ssize_t n;
	char *end;

	while ((n = pread(list, buf + have, sizeof(buf) - have, at)) > 0) {
		at += n;
		have += (size_t)n;
		while ((end = memchr(buf, '\n', have)) != NULL) {
			*end++ = '\0';
			len = (size_t)(end - buf);
			mark(buf, below);
			have -= len;
			memmove(buf, end, have);
		}
		if (have == sizeof(buf)) {
			errno = E2BIG;
			return -1;
		}
	}
	return n == 0 ? 0 : -1;
}

static void
look(void)
{
	uint8_t below[ABX_MAX_ROOTS] = {0};
	struct walk_root *r;
	size_t i;

	if (read_list(below) == -1) {
		/* not known is not local */
		log_warn("%s", LIST);
		memset(below, 1, sizeof(below));
	}
	for (i = 0; i < marked->n; i++) {
		r = &marked->v[i];
		if (r->fd == -1)
			continue;
		if (below[i] && !r->slow_below)
			log_info(
			    "%s: a file system below it may be slow", r->path);
		r->slow_below = below[i];
	}
}

void
mounts_open(struct walk_roots *roots)
{
	marked = roots;
	if ((list = open(LIST, O_RDONLY | O_CLOEXEC)) == -1)
		log_warn("%s", LIST);
	else
		look();
}

static void
changed_cb(evutil_socket_t fd, short what, void *arg)
{
	look();
}

void
mounts_start(struct event_base *base)
{
	if (list == -1)
		return;
	/* The list is always readable and says POLLERR once when it changed,
	 * which libevent tells a writer (proc_pid_mounts(5)). */
	event_assign(
	    &changed_ev, base, list, EV_WRITE | EV_PERSIST, changed_cb, NULL);
	if (event_add(&changed_ev, NULL) == -1)
		fatalx("event_add");
}
