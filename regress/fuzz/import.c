/*
 * SPDX-License-Identifier: ISC
 *
 * Imports of archives into a directory: a tar stream through the reader, or
 * members as it might say them if it had been taken over.  All of it comes to
 * be or none: the members as a naive list has them, no link leads out, nothing
 * beside the directory changes, and nothing is left behind.  Input: 1 byte
 * (bit 0 tar, 1 gzip, 2 hard links admitted, 3 no symbolic ones, 4 not empty
 * before, 5 small limits), then the tar, or for each member 2 bytes (type,
 * mode), its name, a newline, its link or content, a newline.
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <linux/openat2.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sanitizer/lsan_interface.h>

static void died(int) __attribute__((noreturn));
#define _exit(status) died(status)
#include "pathd/unpack.c"
#undef _exit

#include "common/payload.h"
#include "pathd/import.h"
#include "pathd/roots.h"
#include "pathd/tree.h"
#include "regress/fuzz/fuzz.h"

#define MEMBERS 64

/* What an archive should lead to: the last of each name. */
struct want {
	char *rel;
	uint8_t type;
	char *text; /* content, or where the link leads */
};

static const char *base;
static struct pathd pd;
static int root_fd;
static jmp_buf reader;

static void
died(int status)
{
	longjmp(reader, 1);
}

/* The reader is no process of its own here. */
void
jail_compile(
    const struct jail_call *calls, int log, uint8_t **code, size_t *len)
{
}

int
bpf_load(const void *code, size_t len)
{
	return 0;
}

/* ---- the tree ---- */

static char *
take_file(int dir, const char *name, size_t n)
{
	char *text = fuzz_alloc(n + 1);
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW);

	CHECK(fd != -1 && read(fd, text, n) == (ssize_t)n);
	close(fd);
	return text;
}

/* Call f for every entry below, its path, and its text. */
static void
visit(int dir, const char *prefix,
    void (*f)(void *, const char *, const struct stat *, const char *),
    void *arg)
{
	char path[2 * ABX_PATH_MAX], text[2 * ABX_PATH_MAX] = "", *file;
	struct dirent *e;
	struct stat st;
	ssize_t n;
	DIR *d;
	int fd;

	CHECK((d = fdopendir(dir)) != NULL);
	while ((e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		CHECK(fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0);
		snprintf(path, sizeof(path), "%s%s", prefix, e->d_name);
		if (S_ISLNK(st.st_mode)) {
			n = readlinkat(dir, e->d_name, text, sizeof(text) - 1);
			CHECK(n > 0);
			text[n] = '\0';
			f(arg, path, &st, text);
		} else if (S_ISREG(st.st_mode)) {
			CHECK(st.st_size < 1 << 20);
			file = take_file(dir, e->d_name, (size_t)st.st_size);
			f(arg, path, &st, file);
			free(file);
		} else
			f(arg, path, &st, "");
		if (!S_ISDIR(st.st_mode))
			continue;
		strlcat(path, "/", sizeof(path));
		fd = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY);
		CHECK(fd != -1);
		visit(fd, path, f, arg);
	}
	closedir(d);
}

static int
open_target(void)
{
	int fd = openat(root_fd, "d", O_RDONLY | O_DIRECTORY);

	CHECK(fd != -1);
	return fd;
}

/* A number that any change of the tree changes. */
static void
sum_entry(void *arg, const char *path, const struct stat *st, const char *text)
{
	uint64_t *sum = arg, h = 14695981039346656037ULL;
	char line[6 * ABX_PATH_MAX];
	const char *s;

	snprintf(line, sizeof(line), "%s %o %jd %.8192s", path, st->st_mode,
	    (intmax_t)(S_ISDIR(st->st_mode) ? 0 : st->st_size), text);
	for (s = line; *s != '\0'; s++)
		h = (h ^ (uint8_t)*s) * 1099511628211ULL;
	*sum += h; /* in no order */
}

static uint64_t
sum(void)
{
	uint64_t n = 0;

	visit(open_target(), "", sum_entry, &n);
	return n;
}

static void
count_entry(
    void *arg, const char *path, const struct stat *st, const char *text)
{
	++*(int *)arg;
}

static void
make(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY, 0644);

	CHECK(fd != -1);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void
set_up(void)
{
	char root[80];

	base = fuzz_dir();
	snprintf(root, sizeof(root), "%s/w", base);
	CHECK(mkdir(root, 0755) == 0);
	CHECK((root_fd = open(root, O_RDONLY | O_DIRECTORY)) != -1);
	pd.journal = -1;
	pd.umask = 027;
	umask(027);
	CHECK(roots_add(&pd.roots, 0, root) == 0);
	roots_open(&pd.roots);
}

/* The directory as it is before. */
static void
fresh(int filled)
{
	int fd, sub;

	CHECK(mkdirat(root_fd, "d", 0755) == 0);
	if (!filled)
		return;
	fd = open_target();
	make(fd, "f", "old");
	make(fd, "g", "two names");
	CHECK(linkat(fd, "g", fd, "h", 0) == 0);
	CHECK(mkdirat(fd, "sub", 0755) == 0 && symlinkat("f", fd, "l") == 0);
	CHECK((sub = openat(fd, "sub", O_RDONLY | O_DIRECTORY)) != -1);
	make(sub, "x", "below");
	close(sub);
	close(fd);
}

/* ---- the model ---- */

struct model {
	struct want v[MEMBERS];
	size_t n;
	int texts; /* contents are known */
};

/* The name without what says nothing, or NULL when it may not be. */
static char *
plain_name(const char *raw)
{
	char *copy = strdup(raw), *s = copy, *one;
	char *out = fuzz_alloc(strlen(raw) + 2);
	int bad = raw[0] == '/';

	CHECK(copy != NULL);
	while ((one = strsep(&s, "/")) != NULL) {
		if (*one == '\0' || strcmp(one, ".") == 0)
			continue;
		bad |= strcmp(one, "..") == 0;
		strcat(out, *out == '\0' ? "" : "/");
		strcat(out, one);
	}
	free(copy);
	if (!bad)
		return out;
	free(out);
	return NULL;
}

static struct want *
wanted(struct model *m, const char *rel)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (strcmp(m->v[i].rel, rel) == 0)
			return &m->v[i];
	return NULL;
}

/* A member that was admitted. */
static void
expect(struct model *m, const struct member *b, const char *text)
{
	struct want *w, *of = NULL;
	char *rel = plain_name(b->path), *to;

	CHECK(rel != NULL && b->type != ME_OTHER);
	CHECK(strcmp(rel, ".env") != 0 && strstr(rel, "/.env/") == NULL &&
	      strncmp(rel, ".env/", 5) != 0);
	if (b->type == ME_HARD) {
		CHECK((to = plain_name(b->link)) != NULL);
		of = wanted(m, to);
		free(to);
		CHECK(of != NULL && of->type == ME_FILE);
		text = of->text;
	}
	if ((w = wanted(m, rel)) != NULL && w->type == ME_DIR)
		CHECK(b->type == ME_DIR);
	if (rel[0] == '\0' || (w != NULL && w->type == ME_DIR)) {
		free(rel);
		return;
	}
	if (w == NULL) {
		w = &m->v[m->n++];
		w->rel = rel;
	} else {
		CHECK(b->type != ME_DIR);
		free(rel);
	}
	to = strdup(b->type == ME_LINK ? b->link : text);
	CHECK(to != NULL);
	free(w->text);
	w->text = to;
	w->type = b->type == ME_HARD ? ME_FILE : b->type;
}

/* An entry of the directory afterwards: wanted, on the way to one, or from
 * before. */
static void
check_entry(
    void *arg, const char *path, const struct stat *st, const char *text)
{
	static const char *const before[] = {
	    "f", "g", "h", "l", "sub", "sub/x"};
	struct model *m = arg;
	const struct want *w = wanted(m, path);
	size_t i, n = strlen(path);

	CHECK((st->st_mode & 07000) == 0);
	CHECK(S_ISDIR(st->st_mode) || S_ISREG(st->st_mode) ||
	      S_ISLNK(st->st_mode));
	if (w != NULL) {
		CHECK(w->type == (S_ISDIR(st->st_mode)	    ? ME_DIR
				     : S_ISLNK(st->st_mode) ? ME_LINK
							    : ME_FILE));
		if (w->type == ME_LINK || (w->type == ME_FILE && m->texts))
			CHECK(strcmp(w->text, text) == 0);
		return;
	}
	for (i = 0; i < m->n; i++)
		if (strncmp(m->v[i].rel, path, n) == 0 &&
		    m->v[i].rel[n] == '/') {
			CHECK(S_ISDIR(st->st_mode));
			return;
		}
	for (i = 0; i < nitems(before); i++)
		if (strcmp(path, before[i]) == 0)
			return;
	CHECK(!"an entry that nobody asked for");
}

/* Where it leads, the kernel says, and is within. */
static void
check_link(void *arg, const char *path, const struct stat *st, const char *text)
{
	struct open_how how = {
	    .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
	int fd = *(int *)arg;

	if (!S_ISLNK(st->st_mode))
		return;
	fd = (int)syscall(SYS_openat2, fd, path, &how, sizeof(how));
	CHECK(fd != -1 || errno != EXDEV);
	if (fd != -1)
		close(fd);
}

static void
check_tree(struct model *m)
{
	struct stat st;
	size_t i;
	int fd = open_target();

	visit(dup(fd), "", check_entry, m);
	visit(open_target(), "", check_link, &fd);
	for (i = 0; i < m->n; i++)
		CHECK(fstatat(fd, m->v[i].rel, &st, AT_SYMLINK_NOFOLLOW) == 0);
	close(fd);
}

/* ---- the archive ---- */

static enum code
give(struct import *im, struct model *model, const struct member *m,
    const char *text)
{
	enum code code = import_member(im, m);

	if (code != C_OK)
		return code;
	if (m->type == ME_FILE && text != NULL && *text != '\0')
		code = import_data(im, 0, (const uint8_t *)text, strlen(text));
	if (code == C_OK)
		expect(model, m, text == NULL ? "" : text);
	return code;
}

static enum code
from_lines(struct import *im, struct model *model, struct feed *f)
{
	struct member m;
	enum code code = C_OK;

	model->texts = 1;
	while (code == C_OK && f->n > 0 && model->n < MEMBERS) {
		m.type = 1 + feed_u8(f) % 5;
		m.mode = feed_uint(f, 1) * 2;
		m.path = feed_str(f, '\n', 512);
		m.link = feed_str(f, '\n', 512);
		m.size = m.type == ME_FILE ? strlen(m.link) : 0;
		code = give(im, model, &m, m.link);
		member_clear(&m);
	}
	return code;
}

/* Heads of members with sums that are right. */
static void
mend(uint8_t *p, size_t n)
{
	unsigned long sum, size;
	char field[13] = "";
	size_t i;

	while (n >= 512) {
		memset(p + 148, ' ', 8);
		for (sum = 0, i = 0; i < 512; i++)
			sum += p[i];
		if (sum == 8UL * ' ')
			memset(p + 148, 0, 8); /* the end */
		else {
			snprintf(field, sizeof(field), "%06lo", sum);
			memcpy(p + 148, field, 7);
		}
		memcpy(field, p + 124, 12);
		size = strtoul(field, NULL, 8) / 512 * 512 +
		       (strtoul(field, NULL, 8) % 512 != 0 ? 512 : 0);
		if (size > n - 512)
			break;
		p += 512 + size;
		n -= 512 + size;
	}
}

static enum code
frame(struct import *im, struct model *model, struct rbuf *r, uint8_t kind)
{
	struct unpack_end end;
	struct member m;
	enum code code;
	uint64_t off;

	switch (kind) {
	case UNPACK_MEMBER:
		if (member_get(r, &m) == -1)
			return C_SRV_INTERNAL;
		code = m.size < 1 << 20 && model->n < MEMBERS
			   ? give(im, model, &m, NULL)
			   : C_LIM_MAX_BYTES;
		member_clear(&m);
		return code;
	case UNPACK_DATA:
		off = rget_u64(r);
		CHECK(!r->err);
		return import_data(im, off, r->p, r->len);
	default:
		CHECK(kind == UNPACK_END);
		CHECK(unpack_end_get(r, &end) == 0);
		return (enum code)end.code;
	}
}

static enum code
from_tar(struct import *im, struct model *model, struct feed *f, int gzip)
{
	static struct unpacker u;
	struct unpack_end end = {0};
	uint8_t *p = fuzz_copy(f->p, f->n), *out;
	struct frame_dec *dec = fuzz_alloc(sizeof(*dec));
	enum code code = C_ARGS_INVALID;
	const uint8_t *at, *payload;
	size_t left, len;
	struct rbuf r;
	uint8_t kind;
	int whole = 0, in, rc;

	if (!gzip)
		mend(p, f->n);
	in = memfd_create("tar", MFD_CLOEXEC);
	CHECK(in != -1 && write(in, p, f->n) == (ssize_t)f->n);
	CHECK(lseek(in, 0, SEEK_SET) == 0);
	free(p);
	memset(&u, 0, sizeof(u));
	u.in = in;
	CHECK((u.out = memfd_create("frames", MFD_CLOEXEC)) != -1);
	u.max = 1 << 20;
	wbuf_init(&u.w, FRAME_MAX);
	__lsan_disable(); /* when it dies all its memory goes */
	if (setjmp(reader) == 0) {
		CHECK((u.sha = sha256_new()) != NULL);
		end.code = (uint16_t)read_archive(&u, gzip);
		end.bytes = u.bytes;
		sha256_end(u.sha, end.digest);
		unpack_end_put(&u.w, &end);
		send_frame(&u, UNPACK_END);
	}
	__lsan_enable();
	wbuf_free(&u.w);
	left = (size_t)lseek(u.out, 0, SEEK_CUR);
	out = fuzz_alloc(left + 1);
	CHECK(pread(u.out, out, left, 0) == (ssize_t)left);
	at = out;
	while ((rc = frame_feed(dec, &at, &left, &kind, &payload, &len)) == 1) {
		CHECK(!whole);
		rbuf_init(&r, payload, len);
		whole = kind == UNPACK_END;
		if ((code = frame(im, model, &r, kind)) != C_OK)
			break;
	}
	CHECK(rc != -1);
	if (code == C_OK && !whole)
		code = C_ARGS_INVALID;
	free(out);
	free(dec);
	close(u.in);
	close(u.out);
	return code;
}

/* ---- the target ---- */

static void
order(struct bulk *b, struct rootref *ref, uint8_t how)
{
	struct stat st;

	memset(b, 0, sizeof(*b));
	memset(ref, 0, sizeof(*ref));
	CHECK(fstatat(root_fd, "d", &st, 0) == 0);
	b->dst.rel = strdup("d");
	b->dst.kind = FK_DIR;
	b->dst.dev = st.st_dev;
	b->dst.ino = st.st_ino;
	b->has_dst = 1;
	b->flags = (uint16_t)((how & 4 ? PF_HARDLINKS : 0) |
			      (how & 8 ? PF_NOSYMLINKS : 0));
	b->max_bytes = how & 32 ? 16 : UINT64_MAX;
	b->max_entries = how & 32 ? 3 : UINT64_MAX;
	b->refs = ref;
	b->nrefs = 1;
	CHECK(strlist_add(&b->deny, "**/.env", 7) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	struct model model = {0};
	struct rootref ref;
	struct import im;
	struct bulk b;
	uint8_t how = feed_u8(&f);
	uint64_t before;
	enum code code;
	int entries = 0;
	size_t i;

	if (base == NULL)
		set_up();
	fresh(how & 16);
	before = sum();
	order(&b, &ref, how);
	CHECK(import_open(&im, &pd, &b) == C_OK);
	code = how & 1 ? from_tar(&im, &model, &f, how & 2)
		       : from_lines(&im, &model, &f);
	if (code == C_OK)
		code = import_commit(&im);
	if (code == C_OK && (how & 32) != 0)
		CHECK(im.entries <= 3 && im.bytes <= 16);
	import_close(&im);
	if (code == C_OK)
		check_tree(&model);
	else
		CHECK(sum() == before);
	CHECK(tree_remove(NULL, root_fd, "d") == C_OK);
	CHECK(lseek(root_fd, 0, SEEK_SET) == 0);
	visit(dup(root_fd), "", count_entry, &entries);
	CHECK(entries == 0);
	target_clear(&b.dst);
	strlist_clear(&b.deny);
	for (i = 0; i < model.n; i++) {
		free(model.v[i].rel);
		free(model.v[i].text);
	}
	return 0;
}
