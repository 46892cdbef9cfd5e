/*
 * SPDX-License-Identifier: ISC
 *
 * Searches, in a worker.  Each entry is judged again; links are not followed;
 * what holds a NUL is taken for binary and passed over (design: paths,
 * "Use").  Memory does not depend on the files.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/frame.h"
#include "common/glob.h"
#include "pathd/beneath.h"
#include "pathd/needle.h"
#include "pathd/roots.h"
#include "pathd/search.h"
#include "pathd/tree.h"

#define BLOCK (256 * 1024)
/* Of a line that does not fit a block: a match is found that is not longer. */
#define OVERLAP ABX_PATTERN_MAX
#define TEXT_MAX 1024 /* bytes of a line that are answered */
#define TEXT_BEFORE 200
#define TIME_S 60 /* then the answer is truncated */
#define OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

enum code
search_open(struct search *s, const struct pathd *pd, const struct bulk *b)
{
	int names = (b->flags & PF_NAMES) != 0;
	const struct walk_root *root;
	char full[ABX_PATH_MAX + 1];
	enum code code;
	struct stat st;

	memset(s, 0, sizeof(*s));
	s->pd = pd;
	s->b = b;
	s->dir = -1;
	if (b->nsrc != 1 || b->has_dst)
		return C_SRV_INTERNAL;
	if (names &&
	    (!glob_segment_ok(b->pattern, strlen(b->pattern)) ||
		b->pattern[0] == '\0' || strchr(b->pattern, '/') != NULL))
		return C_ARGS_INVALID;
	if (!names) {
		s->needle = needle_new(b->pattern, (b->flags & PF_REGEX) != 0,
		    (b->flags & PF_NOCASE) != 0, &code);
		if (s->needle == NULL)
			return code;
	}
	if ((code = roots_locate(&pd->roots, &b->src[0], &root, full)) != C_OK)
		return code;
	s->dir = beneath_open(root->fd, full, O_RDONLY | O_DIRECTORY);
	if (s->dir == -1)
		return beneath_walk_code(errno);
	if (fstat(s->dir, &st) == -1 || st.st_dev != b->src[0].dev ||
	    st.st_ino != b->src[0].ino)
		return C_POL_PATH_CHANGED;
	if ((s->path = roots_path(root, full)) == NULL ||
	    sight_new(&s->sight, pd, b->refs, b->nrefs, b->flags, &b->deny) ==
		-1)
		return C_SRV_UNAVAILABLE;
	return C_OK;
}

void
search_close(struct search *s)
{
	if (s->dir != -1)
		close(s->dir);
	needle_free(s->needle);
	sight_clear(&s->sight);
	free(s->path);
	memset(s, 0, sizeof(*s));
	s->dir = -1;
}

/* ---- the walk ---- */

struct hunt {
	struct search *s;
	struct framer f;
	size_t below; /* bytes of a path up to the names that are sent */
	uint64_t count, line;
	uint64_t base; /* bytes of the line before those in the buffer */
	time_t end;
	int truncated;
	int passing; /* the line at hand has a match, the rest is passed over */
	uint8_t buf[BLOCK];
};

static time_t
now(void)
{
	struct timespec ts = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* One more answer: C_OK, or TREE_DONE when there are enough. */
static enum code
hunt_count(struct hunt *h)
{
	if (h->count == h->s->b->max_entries) {
		h->truncated = 1;
		return TREE_DONE;
	}
	h->count++;
	return C_OK;
}

static enum code
send_match(struct hunt *h, const char *path, const uint8_t *line, size_t len,
    size_t at)
{
	struct list_match m = {.path = path + h->below, .line = h->line};
	uint64_t column = h->base + at;
	enum code code;

	if ((code = hunt_count(h)) != C_OK)
		return code;
	m.pathlen = strlen(m.path);
	m.column = column >= UINT32_MAX ? UINT32_MAX : (uint32_t)column + 1;
	/* of an endless line what is around the match */
	if (len > TEXT_MAX && at > TEXT_BEFORE) {
		line += at - TEXT_BEFORE;
		len -= at - TEXT_BEFORE;
	}
	m.text = (const char *)line;
	m.textlen = len < TEXT_MAX ? len : TEXT_MAX;
	list_match_put(&h->f.w, &m);
	return framer_put(&h->f, FR_MATCH) == -1 ? TREE_DONE : C_OK;
}

static uint64_t
newlines(const uint8_t *p, size_t n)
{
	uint64_t count = 0;
	size_t i;

	for (i = 0; i < n; i++)
		count += p[i] == '\n';
	return count;
}

/* All matches in n bytes of whole lines, or, when it is open, of one that goes
 * on; the line number moves on. */
static enum code
hunt_lines(
    struct hunt *h, const char *path, const uint8_t *p, size_t n, int open)
{
	const unsigned end = open ? NEEDLE_NOT_END : 0;
	size_t line, len, at;
	enum code code;
	int rc;

	while ((rc = needle_find(h->s->needle, p, n,
		    end | (h->base > 0 ? NEEDLE_NOT_BEGIN : 0), &line, &len,
		    &at)) == 1) {
		h->line += newlines(p, line);
		if (line > 0)
			h->base = 0;
		if ((code = send_match(h, path, p + line, len, at)) != C_OK)
			return code;
		h->passing = open;
		if (line + len == n)
			return C_OK; /* the last one has no newline */
		h->line++;
		h->base = 0;
		p += line + len + 1;
		n -= line + len + 1;
		if (framer_stopped(&h->f))
			return TREE_DONE;
	}
	h->line += newlines(p, n);
	if (!open)
		h->base = 0;
	return rc == 0 ? C_OK : C_ARGS_INVALID;
}

static size_t
drop(struct hunt *h, size_t have, size_t n)
{
	memmove(h->buf, h->buf + n, have - n);
	return have - n;
}

/* What is left behind the line that is passed over. */
static size_t
pass_over(struct hunt *h, size_t have)
{
	const uint8_t *nl = memchr(h->buf, '\n', have);

	if (nl == NULL)
		return 0;
	h->passing = 0;
	h->base = 0;
	h->line++;
	return drop(h, have, (size_t)(nl - h->buf) + 1);
}

/* Some more of the file, behind the bytes that are there: how much, 0 at its
 * end, -1 when it is not to be read on. */
static ssize_t
hunt_read(struct hunt *h, int fd, size_t have)
{
	ssize_t n;

	do
		n = read(fd, h->buf + have, sizeof(h->buf) - have);
	while (n == -1 && errno == EINTR);
	/* one bad file is no reason to see nothing of the others */
	if (n > 0 && memchr(h->buf + have, '\0', (size_t)n) != NULL)
		return -1;
	return n;
}

/* Blocks of whole lines; of a line that is longer one after the other, each
 * with the end of the one before, until one has a match. */
static enum code
hunt_file(struct hunt *h, const char *path, int fd)
{
	size_t have = 0, whole;
	const uint8_t *nl;
	enum code code;
	ssize_t n;
	int open;

	h->line = 1;
	h->base = 0;
	h->passing = 0;
	for (;;) {
		if ((n = hunt_read(h, fd, have)) == -1)
			return C_OK;
		have += (size_t)n;
		if (h->passing)
			have = pass_over(h, have);
		whole = have;
		open = 0;
		if (n > 0 && (nl = memrchr(h->buf, '\n', have)) != NULL)
			whole = (size_t)(nl - h->buf) + 1;
		else if (n > 0 && have < sizeof(h->buf))
			continue;
		else
			open = n > 0;
		code = hunt_lines(h, path, h->buf, whole, open);
		if (code != C_OK || n == 0)
			return code;
		if (open && !h->passing)
			whole -= OVERLAP;
		if (open)
			h->base += whole;
		have = drop(h, have, whole);
		if (framer_stopped(&h->f))
			return TREE_DONE;
	}
}

static enum code
hunt_content(struct hunt *h, int dir, const char *name, const char *path)
{
	enum code code = C_OK;
	struct stat st;
	int fd;

	if ((fd = openat(dir, name, OPEN_FILE)) == -1) {
		code = beneath_act_code(errno);
		return beneath_short(code) ? code : C_OK;
	}
	if (fstat(fd, &st) == 0 && sight_content(&h->s->sight, &st) &&
	    (uint64_t)st.st_size <= h->s->b->max_bytes)
		code = hunt_file(h, path, fd);
	close(fd);
	return code;
}

/* ASCII letters made small, in place. */
static void
fold(char *s)
{
	for (; *s != '\0'; s++)
		if (*s >= 'A' && *s <= 'Z')
			*s = (char)(*s - 'A' + 'a');
}

static int
name_matches(const struct bulk *b, const char *name)
{
	char pattern[ABX_PATTERN_MAX + 1], folded[256];

	if ((b->flags & PF_NOCASE) == 0)
		return glob_segment(b->pattern, name, strlen(name));
	if (strlcpy(pattern, b->pattern, sizeof(pattern)) >= sizeof(pattern) ||
	    strlcpy(folded, name, sizeof(folded)) >= sizeof(folded))
		return 0;
	fold(pattern);
	fold(folded);
	return glob_segment(pattern, folded, strlen(folded));
}

static enum code
hunt_entry(void *arg, int dir, const char *name, const char *path,
    const struct stat *st)
{
	struct hunt *h = arg;
	enum code code;

	if (!sight_entry(&h->s->sight, path, st))
		return TREE_SKIP;
	if (now() > h->end) {
		h->truncated = 1;
		return TREE_DONE;
	}
	if (h->s->needle != NULL)
		return S_ISREG(st->st_mode) ? hunt_content(h, dir, name, path)
					    : C_OK;
	if (!name_matches(h->s->b, name))
		return C_OK;
	if ((code = hunt_count(h)) != C_OK)
		return code;
	return framer_entry(&h->f, path + h->below, st) == -1 ? TREE_DONE
							      : C_OK;
}

static enum code
hunt_barred(void *arg, const char *path, enum code code)
{
	struct hunt *h = arg;

	h->truncated |= code == C_FS_NAME_TOO_LONG;
	return code == C_SRV_UNAVAILABLE ? code : C_OK;
}

static int
hunt_stop(void *arg)
{
	struct hunt *h = arg;

	return framer_stopped(&h->f);
}

static const struct tree_ops hunt_ops = {
    .entry = hunt_entry, .barred = hunt_barred, .stop = hunt_stop};

int
search_send(struct search *s, framer_cb cb, void *arg)
{
	struct hunt *h;
	enum code code;
	int rc;

	if ((h = calloc(1, sizeof(*h))) == NULL)
		return -1;
	h->s = s;
	h->end = now() + TIME_S;
	h->below = strcmp(s->path, "/") == 0 ? 1 : strlen(s->path) + 1;
	framer_init(&h->f, cb, arg);
	code = tree_walk(s->dir, s->path, &hunt_ops, h);
	rc = framer_end(&h->f, code, h->truncated);
	framer_free(&h->f);
	free(h);
	return rc;
}
