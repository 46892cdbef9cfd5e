/*
 * SPDX-License-Identifier: ISC
 *
 * Makes and removes placeholders.  A line is in the journal before the name
 * is where others see it, so that a death at any moment leaves nothing that
 * the next start does not find; nothing is removed because of its name alone:
 * it must be the same inode, and still as it was made.
 *
 *	? PATH		a directory is about to be made under this random name
 *	+ DEV INO KIND PATH	made, and about to be there
 *	- DEV INO	it is no more ours
 *
 * PATH is hex.
 */
#include "execd/absent.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "common/abx.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/size.h"

#define TEMP_PREFIX ".abx-"
#define TEMP_RANDOM 16
#define DOT ".\n"
#define LINE_SIZE (2 * ABX_PATH_MAX + 128)
#define JOURNAL_MAX (8 * 1024 * 1024)
#define JOURNAL_LARGE (256 * 1024) /* emptied when nothing in it counts */

struct place {
	struct place *next;
	dev_t dev;
	ino_t ino;
	enum absent_kind kind;
	size_t refs;
	int dead; /* somebody removed it, and its number means another */
	char path[ABX_PATH_MAX + 1];
};
struct absent_refs {
	struct place **v;
	size_t n;
};

static struct {
	int journal, on;
	struct place *places;
} all = {-1, 0, NULL};

static void shrink(void);

/* ---- journal ---- */

static int
note(const char *line)
{
	size_t len = strlen(line);

	if (all.journal == -1) {
		errno = EROFS;
		return -1;
	}
	if (flock(all.journal, LOCK_EX) == -1)
		return -1;
	if (write(all.journal, line, len) != (ssize_t)len) {
		(void)flock(all.journal, LOCK_UN);
		errno = ENOSPC;
		return -1;
	}
	return flock(all.journal, LOCK_UN);
}

static int
note_temp(const char *path)
{
	char line[LINE_SIZE] = "? ";

	hex_encode((const uint8_t *)path, strlen(path), line + 2);
	strlcat(line, "\n", sizeof(line));
	return note(line);
}

static int
note_made(const struct place *p)
{
	char line[LINE_SIZE];
	int n;

	n = snprintf(line, sizeof(line), "+ %" PRIu64 " %" PRIu64 " %d ",
	    (uint64_t)p->dev, (uint64_t)p->ino, (int)p->kind);
	hex_encode((const uint8_t *)p->path, strlen(p->path), line + n);
	strlcat(line, "\n", sizeof(line));
	return note(line);
}

static void
note_gone(const struct place *p)
{
	char line[64];

	snprintf(line, sizeof(line), "- %" PRIu64 " %" PRIu64 "\n",
	    (uint64_t)p->dev, (uint64_t)p->ino);
	if (note(line) == -1)
		log_warn("the journal of placeholders");
}

/* ---- objects ---- */

/* The directory of a path, found through no link, and the last name. */
static int
open_parent(const char *path, const char **name)
{
	struct open_how how = {O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
	    RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	char dir[ABX_PATH_MAX + 1];
	const char *slash = strrchr(path, '/');

	if (path[0] != '/' || slash == NULL || slash[1] == '\0' ||
	    strlcpy(dir, path, sizeof(dir)) >= sizeof(dir)) {
		errno = EINVAL;
		return -1;
	}
	dir[slash == path ? 1 : slash - path] = '\0';
	*name = slash + 1;
	return (int)syscall(SYS_openat2, AT_FDCWD, dir, &how, sizeof(how));
}

/* Does the file hold what it was made with? */
static int
same_text(int dir, const char *name, const struct stat *st, const char *text)
{
	size_t len = strlen(text);
	char buf[8];
	ssize_t n;
	int fd;

	if (!S_ISREG(st->st_mode) || st->st_size != (off_t)len ||
	    st->st_nlink != 1)
		return 0;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1)
		return 0;
	n = read(fd, buf, sizeof(buf));
	close(fd);
	return n == (ssize_t)len && memcmp(buf, text, len) == 0;
}

/* 0 when it is not there any more, or is another's now; -1 with errno when
 * that cannot be said. */
static int
remove_place(const struct place *p)
{
	const char *name;
	struct stat st;
	int dir, rc = 0;

	if ((dir = open_parent(p->path, &name)) == -1)
		return -1;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		rc = errno == ENOENT ? 0 : -1;
	else if (st.st_dev != p->dev || st.st_ino != p->ino)
		rc = 0;
	else if (p->kind == ABSENT_DIR) {
		if (unlinkat(dir, name, AT_REMOVEDIR) == -1 &&
		    errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT)
			rc = -1;
	} else if (same_text(
		       dir, name, &st, p->kind == ABSENT_DOT ? DOT : "") &&
		   unlinkat(dir, name, 0) == -1 && errno != ENOENT)
		rc = -1;
	close(dir);
	return rc;
}

/* ---- life ---- */

void
absent_init(int journal, int on)
{
	all.journal = journal;
	all.on = on;
}

int
absent_on(void)
{
	return all.on;
}

static struct place *
find(dev_t dev, ino_t ino)
{
	struct place *p;

	for (p = all.places; p != NULL; p = p->next)
		if (p->dev == dev && p->ino == ino && !p->dead)
			return p;
	return NULL;
}

int
absent_is(dev_t dev, ino_t ino)
{
	return find(dev, ino) != NULL;
}

/* Is over: out of the table, and out of the journal when it is gone. */
static void
forget(struct place *p)
{
	struct place **q;

	for (q = &all.places; *q != p; q = &(*q)->next)
		;
	*q = p->next;
	/* the line of who has its number now ends its own, too */
	if (p->dead)
		;
	else if (remove_place(p) == 0)
		note_gone(p);
	else
		log_warn("the placeholder %s", p->path);
	free(p);
	if (all.places == NULL)
		shrink();
}

void
absent_tidy(void)
{
	struct place *p, *next;

	for (p = all.places; p != NULL; p = next) {
		next = p->next;
		if (p->refs == 0)
			forget(p);
	}
}

/* ---- making ---- */

/* The path of what is to be name in dir. */
static int
path_of(int dir, const char *name, char path[ABX_PATH_MAX + 1])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	if ((n = readlink(link, path, ABX_PATH_MAX)) == -1)
		return -1;
	if ((size_t)n + 1 + strlen(name) > ABX_PATH_MAX || path[0] != '/') {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (n > 1)
		path[n++] = '/';
	strlcpy(path + n, name, ABX_PATH_MAX + 1 - (size_t)n);
	return 0;
}

static int
make_dir(int dir, const char *name, struct place *p)
{
	char temp[sizeof(TEMP_PREFIX) + 2 * TEMP_RANDOM];
	char path[ABX_PATH_MAX + 1];
	uint8_t r[TEMP_RANDOM];
	struct stat st;
	int save;

	random_bytes(r, sizeof(r));
	strlcpy(temp, TEMP_PREFIX, sizeof(temp));
	hex_encode(r, sizeof(r), temp + sizeof(TEMP_PREFIX) - 1);
	if (path_of(dir, temp, path) == -1 || note_temp(path) == -1 ||
	    mkdirat(dir, temp, 0755) == -1)
		return -1;
	if (fstatat(dir, temp, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode)) {
		p->dev = st.st_dev;
		p->ino = st.st_ino;
		if (note_made(p) == 0 &&
		    renameat2(dir, temp, dir, name, RENAME_NOREPLACE) == 0)
			return 0;
	}
	save = errno;
	(void)unlinkat(dir, temp, AT_REMOVEDIR);
	errno = save;
	return -1;
}

static int
make_file(int dir, const char *name, struct place *p)
{
	const char *text = p->kind == ABSENT_DOT ? DOT : "";
	char self[64], link[64];
	struct stat st;
	int fd, rc = -1, save;

	/* not below dir itself, which is O_PATH */
	snprintf(self, sizeof(self), "/proc/self/fd/%d", dir);
	fd = open(self, O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
	if (fd == -1)
		return -1;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
	    fstat(fd, &st) == 0) {
		p->dev = st.st_dev;
		p->ino = st.st_ino;
		if (note_made(p) == 0)
			rc = linkat(
			    AT_FDCWD, link, dir, name, AT_SYMLINK_FOLLOW);
	}
	save = errno;
	close(fd);
	errno = save;
	return rc;
}

int
absent_make(int dir, const char *name, enum absent_kind kind)
{
	struct place *p, *old;
	int save;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		return -1;
	p->kind = kind;
	if (path_of(dir, name, p->path) == 0 &&
	    (kind == ABSENT_DIR ? make_dir(dir, name, p)
				: make_file(dir, name, p)) == 0) {
		if ((old = find(p->dev, p->ino)) != NULL)
			old->dead = 1;
		p->next = all.places;
		all.places = p;
		return 0;
	}
	save = errno;
	if (p->ino != 0)
		note_gone(p);
	free(p);
	errno = save;
	return -1;
}

/* ---- holding ---- */

int
absent_hold(const struct profile_binds *b, struct absent_refs **out)
{
	struct absent_refs *r = NULL;
	struct place *p;
	size_t i;

	*out = NULL;
	if (all.places == NULL)
		return 0;
	if ((r = calloc(1, sizeof(*r))) == NULL ||
	    (r->v = calloc(b->n + 1, sizeof(struct place *))) == NULL) {
		free(r);
		return -1;
	}
	for (i = 0; i < b->n; i++)
		if ((p = find(b->v[i].dev, b->v[i].ino)) != NULL) {
			p->refs++;
			r->v[r->n++] = p;
		}
	*out = r;
	return 0;
}

void
absent_drop(struct absent_refs *r)
{
	size_t i;

	if (r == NULL)
		return;
	for (i = 0; i < r->n; i++)
		r->v[i]->refs--;
	free(r->v);
	free(r);
	absent_tidy();
}

/* ---- what the journal says ---- */

struct line {
	char what;
	struct place p; /* of '?': the path alone */
};

static int
path_from(const char *hex, char path[ABX_PATH_MAX + 1])
{
	size_t n = strlen(hex) / 2;

	if (n == 0 || n > ABX_PATH_MAX ||
	    hex_decode(hex, (uint8_t *)path, n) == -1)
		return -1;
	path[n] = '\0';
	return strlen(path) == n ? 0 : -1;
}

/* One line without its newline: 0 or -1. */
static int
parse(const char *text, struct line *l)
{
	uint64_t dev = 0, ino = 0, kind = 0;
	const char *p = text + 2;

	memset(l, 0, sizeof(*l));
	l->what = text[0];
	if (text[0] == '\0' || text[1] != ' ')
		return -1;
	if (text[0] == '?')
		return path_from(p, l->p.path);
	if ((text[0] != '+' && text[0] != '-') || uint_word(&p, &dev) == -1 ||
	    uint_word(&p, &ino) == -1)
		return -1;
	l->p.dev = (dev_t)dev;
	l->p.ino = (ino_t)ino;
	if (text[0] == '-')
		return *p == '\0' ? 0 : -1;
	if (uint_word(&p, &kind) == -1 || kind > ABSENT_DOT)
		return -1;
	l->p.kind = (enum absent_kind)kind;
	return path_from(p, l->p.path);
}

/* The whole journal, NUL-terminated; NULL when it is empty or cannot be
 * read. */
static char *
slurp(void)
{
	struct stat st;
	size_t have = 0, size;
	ssize_t n;
	char *text;

	if (all.journal == -1 || fstat(all.journal, &st) == -1 ||
	    st.st_size <= 0 || st.st_size > JOURNAL_MAX)
		return NULL;
	size = (size_t)st.st_size;
	if ((text = malloc(size + 1)) == NULL)
		return NULL;
	while (have < size) {
		n = pread(all.journal, text + have, size - have, (off_t)have);
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	text[have] = '\0';
	return text;
}

static int
gone_later(const char *rest, const struct place *p)
{
	char want[64];

	snprintf(want, sizeof(want), "\n- %" PRIu64 " %" PRIu64 "\n",
	    (uint64_t)p->dev, (uint64_t)p->ino);
	return strstr(rest, want) != NULL;
}

/* Go through it; fn gets those that are not known to be gone. */
static void
each(void (*fn)(const struct line *, void *), void *arg)
{
	static struct line l; /* large */
	char *text = slurp(), *p, *end;

	for (p = text; p != NULL && *p != '\0'; p = end + 1) {
		if ((end = strchr(p, '\n')) == NULL)
			break; /* half a line: nothing was made yet */
		*end = '\0';
		if (parse(p, &l) == 0 && l.what != '-') {
			*end = '\n';
			if (l.what == '?' || !gone_later(end, &l.p))
				fn(&l, arg);
		}
		*end = '\n';
	}
	free(text);
}

static void
recover_cb(const struct line *l, void *arg)
{
	size_t *n = arg;
	const char *name;
	int dir;

	if (l->what == '+') {
		if (remove_place(&l->p) == 0)
			(*n)++;
		else if (errno != ENOENT)
			log_warn("the placeholder %s", l->p.path);
		return;
	}
	/* a name that nobody else chose; only an empty directory goes */
	if ((dir = open_parent(l->p.path, &name)) == -1)
		return;
	if (strncmp(name, TEMP_PREFIX, sizeof(TEMP_PREFIX) - 1) == 0)
		(void)unlinkat(dir, name, AT_REMOVEDIR);
	close(dir);
}

void
absent_recover(void)
{
	size_t n = 0;

	if (all.journal == -1)
		return;
	each(recover_cb, &n);
	if (n > 0)
		log_info("%zu placeholders of an earlier life are gone", n);
	if (ftruncate(all.journal, 0) == -1)
		log_warn("the journal of placeholders");
}

static void
count_cb(const struct line *l, void *arg)
{
	size_t *n = arg;

	*n += l->what == '+';
}

/* Empty a journal that has become large, if nobody needs a line of it. */
static void
shrink(void)
{
	struct stat st;
	size_t n = 0;

	if (all.journal == -1 || fstat(all.journal, &st) == -1 ||
	    st.st_size < JOURNAL_LARGE || flock(all.journal, LOCK_EX) == -1)
		return;
	each(count_cb, &n);
	if (n == 0 && ftruncate(all.journal, 0) == -1)
		log_warn("the journal of placeholders");
	(void)flock(all.journal, LOCK_UN);
}
