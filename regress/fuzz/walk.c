/*
 * SPDX-License-Identifier: ISC
 *
 * Where a path really lies, in trees full of links: against a walk over
 * strings that knows nothing of descriptors, against what the kernel finds by
 * itself, and by both ways to open below a root.  Whatever is called found
 * lies in an asking root.  Input: for each step 1 byte (what) and a line (a
 * name, beginning with w, v or o for the place), for links a second line (@w,
 * @v, @o, @c in front stand for the places), for a question 1 byte more.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pathd/beneath.h"
#include "pathd/roots.h"
#include "pathd/tree.h"
#include "pathd/walk.h"
#include "policy/engine.h"
#include "regress/fuzz/fuzz.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Two roots, one of them configured by the name of a link, and a place
 * outside. */
static const char *base;
static int base_fd;
static struct walk_roots roots;
static const char *const places[] = {"w", "v", "o"};

static void
set_up(void)
{
	char path[80];

	base = fuzz_dir();
	CHECK((base_fd = open(base, OPEN_DIR)) != -1);
	CHECK(symlinkat("v", base_fd, "c") == 0);
	snprintf(path, sizeof(path), "%s/w", base);
	CHECK(roots_add(&roots, 0, path) == 0);
	snprintf(path, sizeof(path), "%s/c", base);
	CHECK(roots_add(&roots, 1, path) == 0);
}

/* ---- the tree ---- */

static size_t
place_of(const char *line)
{
	return line[0] == 'v' ? 1 : line[0] == 'o' ? 2 : 0;
}

/* The directory of the name and its last component, in a copy; no link is
 * followed.  -1 when there is none. */
static int
parent(const char *line, char *copy, const char **name)
{
	char *s = copy, *one;
	int fd, next;

	strlcpy(copy, *line == '\0' ? line : line + 1, 600);
	fd = openat(base_fd, places[place_of(line)], OPEN_DIR);
	*name = NULL;
	while (fd != -1 && (one = strsep(&s, "/")) != NULL) {
		if (*one == '\0' || strcmp(one, ".") == 0 ||
		    strcmp(one, "..") == 0)
			continue;
		if (*name != NULL) {
			next = openat(fd, *name, OPEN_DIR);
			close(fd);
			fd = next;
		}
		*name = one;
	}
	if (fd != -1 && *name == NULL) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void
target_text(const char *line, char *out, size_t size)
{
	const char *to = strchr("wvoc", line[0] == '@' ? line[1] : 'w');

	if (line[0] == '@' && line[1] != '\0' && to != NULL)
		snprintf(out, size, "%s/%c%s", base, *to, line + 2);
	else
		snprintf(out, size, "%s%s", line[0] == '/' ? "." : "", line);
}

static void
change(uint8_t what, struct feed *f)
{
	char *line = feed_str(f, '\n', 512), *second = NULL;
	char copy[600], from[600], text[700];
	const char *name, *old;
	int fd = parent(line, copy, &name), of, made;

	if (what % 8 >= 3)
		second = feed_str(f, '\n', 512);
	if (fd == -1)
		;
	else if (what % 8 == 0) {
		made = openat(
		    fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
		if (made != -1)
			close(made);
	} else if (what % 8 == 1)
		(void)mkdirat(fd, name, 0700);
	else if (what % 8 == 2) {
		if (unlinkat(fd, name, 0) == -1)
			(void)unlinkat(fd, name, AT_REMOVEDIR);
	} else if (what % 8 == 3 && (of = parent(second, from, &old)) != -1) {
		(void)linkat(of, old, fd, name, 0);
		close(of);
	} else {
		target_text(second, text, sizeof(text));
		if (text[0] != '\0')
			(void)symlinkat(text, fd, name);
	}
	if (fd != -1)
		close(fd);
	free(line);
	free(second);
}

/* ---- the model ---- */

struct found {
	enum facts_status status;
	char path[8192];
	size_t keep; /* bytes of the reference that the walk began at */
	unsigned missing, links;
	int symlink, ended;
	struct stat st;
};

static const char *
behind(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (strncmp(path, dir, n) != 0 || (path[n] != '\0' && path[n] != '/'))
		return NULL;
	return path + n + (path[n] == '/');
}

static void
end(struct found *m, enum facts_status status)
{
	m->status = status;
	m->ended = 1;
}

/* Begin at the reference whose spelling is the longest in front. */
static void
begin(const struct resolve_item *it, char *todo, struct found *m)
{
	char spell[2][1200], rest[8192];
	size_t i, k, best = 0;
	const char *dir;

	end(m, FS_OUTSIDE);
	rest[0] = '\0';
	for (i = 0; i < it->nrefs; i++) {
		snprintf(spell[0], sizeof(spell[0]), "%s/%s", base,
		    it->refs[i].root == 0 ? "w" : "v");
		snprintf(spell[1], sizeof(spell[1]), "%s/%s", base,
		    it->refs[i].root == 0 ? "w" : "c");
		for (k = 0; k < 2; k++) {
			dir = spell[k];
			if (it->refs[i].sub[0] != '\0') {
				strlcat(spell[k], "/", sizeof(spell[k]));
				strlcat(spell[k], it->refs[i].sub,
				    sizeof(spell[k]));
			}
			if (behind(todo, dir) == NULL || strlen(dir) <= best)
				continue;
			best = strlen(dir);
			m->ended = 0;
			m->status = FS_OK;
			snprintf(m->path, sizeof(m->path), "%s/%s", base,
			    it->refs[i].root == 0 ? "w" : "v");
			m->keep = strlen(m->path) +
				  (it->refs[i].sub[0] != '\0') +
				  strlen(it->refs[i].sub);
			/* what the reference has below its root is walked
			 * as all the rest is */
			snprintf(rest, sizeof(rest), "%s/%s", it->refs[i].sub,
			    behind(todo, dir));
		}
	}
	strlcpy(todo, rest, 8192);
}

static void
up(struct found *m)
{
	if (strlen(m->path) <= m->keep)
		end(m, FS_OUTSIDE);
	else if (m->missing > 0 || lstat(m->path, &m->st) == -1 ||
		 !S_ISDIR(m->st.st_mode))
		end(m, FS_ERRNO);
	else
		*strrchr(m->path, '/') = '\0';
}

static void
through(const struct resolve_item *it, const char *link, char *todo,
    struct found *m)
{
	char text[8192], next[8192];
	ssize_t n = readlink(link, text, sizeof(text) - 1);

	m->symlink = 1;
	if (strlen(m->path) < m->keep)
		end(m, FS_OUTSIDE);
	else if (++m->links > 40)
		end(m, FS_INVALID);
	if (m->ended)
		return;
	CHECK(n > 0);
	text[n] = '\0';
	snprintf(
	    next, sizeof(next), "%s%s%s", text, *todo == '\0' ? "" : "/", todo);
	strlcpy(todo, next, sizeof(next));
	/* the texts that begin with / spell a place without doublings */
	if (*todo == '/') {
		char *in, *out, *s = next;

		for (in = todo, out = s; *in != '\0'; in++)
			if (!(*in == '/' && (in[1] == '/' || in[1] == '\0')) &&
			    !(*in == '/' && in[1] == '.' &&
				(in[2] == '/' || in[2] == '\0') && ++in != s))
				*out++ = *in;
		*out = '\0';
		strlcpy(todo, *next == '\0' ? "/" : next, sizeof(next));
		begin(it, todo, m);
	}
}

static void
name(
    const struct resolve_item *it, const char *one, char *todo, struct found *m)
{
	char full[8192];
	struct stat st;
	size_t n = strlen(m->path);

	if (strlen(one) > 255) {
		end(m, FS_ERRNO);
		return;
	}
	snprintf(full, sizeof(full), "%s/%s", m->path, one);
	if (m->missing == 0 && lstat(full, &st) == -1 && errno != ENOENT) {
		end(m, FS_ERRNO);
		return;
	}
	if (m->missing > 0 || lstat(full, &st) == -1)
		m->missing++;
	else if (S_ISLNK(st.st_mode) && (*todo != '\0' || !it->nofollow)) {
		through(it, full, todo, m);
		return;
	}
	snprintf(m->path + n, sizeof(m->path) - n, "/%s", one);
}

static void
model(const struct resolve_item *it, struct found *m)
{
	char todo[8192], one[8192], *s;
	size_t n;

	memset(m, 0, sizeof(*m));
	strlcpy(todo, it->path, sizeof(todo));
	begin(it, todo, m);
	while (!m->ended && *todo != '\0') {
		n = strcspn(todo, "/");
		memcpy(one, todo, n);
		one[n] = '\0';
		s = todo + n + (todo[n] == '/');
		memmove(todo, s, strlen(s) + 1);
		if (n == 0)
			continue;
		if (strcmp(one, "..") == 0)
			up(m);
		else if (strcmp(one, ".") != 0)
			name(it, one, todo, m);
		else if (m->missing == 0 && (lstat(m->path, &m->st) == -1 ||
						!S_ISDIR(m->st.st_mode)))
			end(m, FS_ERRNO);
	}
}

/* ---- the checks ---- */

/* It lies where a reference says, and the kernel finds the same there. */
static void
check_found(const struct resolve_item *it, const struct facts *f)
{
	const struct rootref *ref = &it->refs[f->ref];
	const struct walk_root *r = walk_root(&roots, ref->root);
	char dir[1400], copy[8192], *slash;
	int nofollow, fd;
	struct stat st;
	unsigned i;

	CHECK(f->ref < it->nrefs && r != NULL);
	snprintf(dir, sizeof(dir), "%s%s%s", r->path,
	    ref->sub[0] != '\0' ? "/" : "", ref->sub);
	CHECK(behind(f->path, dir) != NULL && f->rel == strlen(dir));
	strlcpy(copy, f->path, sizeof(copy));
	for (i = 0; i < f->missing; i++) {
		CHECK(lstat(copy, &st) == -1);
		CHECK((slash = strrchr(copy, '/')) != NULL);
		*slash = '\0';
	}
	CHECK(lstat(copy, &st) == 0);
	CHECK(f->missing == 0 || S_ISDIR(st.st_mode));
	CHECK(f->missing > 0 || it->nofollow || !S_ISLNK(st.st_mode));
	if (f->missing == 0)
		CHECK(f->dev == st.st_dev && f->ino == st.st_ino &&
		      f->size == (uint64_t)st.st_size &&
		      f->nlink == st.st_nlink);
	/* by itself, through all the links; a root's own name is followed */
	snprintf(copy, sizeof(copy), "%s/c", base);
	nofollow = it->nofollow && strcmp(it->path, copy) != 0;
	fd = open(it->path, O_PATH | O_CLOEXEC | (nofollow ? O_NOFOLLOW : 0));
	/* a slash behind the text of a link asks for a directory only there */
	if (fd != -1 || errno != ENOTDIR || f->kind != FK_FILE)
		CHECK((fd != -1) == (f->missing == 0));
	if (fd != -1) {
		CHECK(fstat(fd, &st) == 0);
		CHECK(f->dev == st.st_dev && f->ino == st.st_ino);
		close(fd);
	}
	/* and again below its root, where it has no links any more */
	fd = beneath_open(r->fd, behind(f->path, r->path), O_PATH | O_CLOEXEC);
	if (f->missing == 0 && !S_ISLNK(st.st_mode)) {
		CHECK(fd != -1 && fstat(fd, &st) == 0);
		CHECK(f->dev == st.st_dev && f->ino == st.st_ino);
	}
	if (fd != -1)
		close(fd);
}

static void
check_fd(const struct facts *f, enum walk_want want, int fd)
{
	struct stat st;

	if (want == WALK_FACTS || f->status != FS_OK || f->missing > 0)
		CHECK(fd == -1);
	else if (f->kind == (want == WALK_DIR ? FK_DIR : FK_FILE))
		CHECK(fd != -1);
	else
		CHECK(fd == -1);
	if (fd == -1)
		return;
	CHECK(fstat(fd, &st) == 0);
	CHECK(st.st_dev == f->dev && st.st_ino == f->ino);
	close(fd);
}

static void
ask(uint8_t what, struct feed *f)
{
	static const struct rootref all[] = {
	    {0, ""}, {1, ""}, {0, "a"}, {0, "b"}, {1, "l"}};
	struct rootref refs[nitems(all)];
	struct resolve_item it = {.nofollow = what >> 3 & 1, .refs = refs};
	uint8_t which = feed_u8(f);
	enum walk_want want = (enum walk_want)(what >> 4 & 3) % 3;
	char *line = feed_str(f, '\n', 512), *tail = line;
	struct facts facts[2];
	struct found m;
	size_t i, n;
	int fd;

	for (i = 0; i < nitems(all); i++)
		if ((which >> i & 1) != 0)
			refs[it.nrefs++] = all[i];
	n = strlen(line) + strlen(base) + 8;
	it.path = fuzz_alloc(n);
	if (*tail != '\0')
		tail++;
	snprintf(it.path, n, "%s/%s%s%s", base,
	    line[0] == 'c' ? "c" : places[place_of(line)],
	    *tail == '\0' || *tail == '/' ? "" : "/", tail);
	if (path_is_normal(it.path)) {
		model(&it, &m);
		for (i = 0; i < 2; i++) {
			beneath_components((int)i);
			CHECK(walk_resolve(&roots, &it, want, &facts[i], &fd) ==
			      0);
			CHECK(facts[i].status == m.status);
			check_fd(&facts[i], want, fd);
			if (m.status == FS_OK) {
				CHECK(strcmp(facts[i].path, m.path) == 0);
				CHECK(facts[i].missing == m.missing);
				CHECK(facts[i].symlink == m.symlink);
				check_found(&it, &facts[i]);
			}
			facts_clear(&facts[i]);
		}
		beneath_components(0);
	}
	free(it.path);
	free(line);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	unsigned steps = 0;
	uint8_t what;
	size_t i;

	if (base == NULL)
		set_up();
	for (i = 0; i < nitems(places); i++)
		CHECK(mkdirat(base_fd, places[i], 0700) == 0);
	roots_open(&roots);
	while (f.n > 0 && steps++ < 64) {
		what = feed_u8(&f);
		if (what % 8 < 6)
			change(what, &f);
		else
			ask(what, &f);
	}
	for (i = 0; i < roots.n; i++) {
		CHECK(roots.v[i].fd != -1);
		close(roots.v[i].fd);
		free(roots.v[i].path);
		roots.v[i].path = NULL;
	}
	for (i = 0; i < nitems(places); i++)
		CHECK(tree_remove(NULL, base_fd, places[i]) == C_OK);
	return 0;
}
