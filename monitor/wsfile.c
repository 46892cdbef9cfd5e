/*
 * SPDX-License-Identifier: ISC
 *
 * The lines about workspaces in the state directory, on two descriptors that
 * the parent opened: what the last run wrote is read once, and what is still
 * true of it is written into a new file, which grows by a line a change and is
 * written anew when it has grown much.  A line that was torn costs only itself.
 */
#include <sys/stat.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "monitor/workspace.h"

#define GROWN (1024 * 1024) /* bytes of changes, then it is written anew */

struct wstab workspaces;

static int old = -1, cur = -1;
static off_t size, limit; /* of cur, and how large it may become */
static int torn;	  /* cur does not end with a newline */

int
wsfile_fd(uint32_t index, int fd)
{
	int *at = index == 0 ? &old : &cur;

	if (index > 1 || *at != -1)
		return -1;
	*at = fd;
	return 0;
}

int
wsfile_there(void)
{
	return cur != -1;
}

/* ---- reading ---- */

struct reader {
	char line[WS_LINE_MAX];
	size_t len; /* what of it came so far; WS_LINE_MAX: too long */
	size_t bad;
};

static void
read_bytes(struct reader *r, const char *p, size_t n)
{
	for (; n > 0; p++, n--) {
		if (*p != '\n') {
			if (r->len < sizeof(r->line))
				r->line[r->len++] = *p;
			continue;
		}
		if (r->len > 0 && wstab_take(&workspaces, r->line, r->len))
			r->bad++;
		r->len = 0;
	}
}

static void
read_lines(void)
{
	struct reader r = {.len = 0};
	char buf[16384];
	ssize_t n;

	while ((n = read(old, buf, sizeof(buf))) > 0)
		read_bytes(&r, buf, (size_t)n);
	if (n == -1)
		fatal("the index of workspaces");
	if (r.len > 0)
		r.bad++;
	if (r.bad > 0)
		log_warnx(
		    "the index of workspaces had %zu broken lines", r.bad);
}

/* ---- writing ---- */

/* At that place of the file: 0, or -1, and *n bytes of it were written. */
static int
put(const struct wbuf *b, off_t at, size_t *n)
{
	ssize_t m;

	*n = 0;
	errno = ENOMEM;
	m = b->err ? -1 : pwrite(cur, b->p, b->len, at);
	if (m > 0)
		*n = (size_t)m;
	if (m != -1 && (size_t)m == b->len)
		return 0;
	log_warn("the index of workspaces");
	return -1;
}

/* At the end of the file: 0 or -1. */
static int
append(const struct wbuf *b)
{
	size_t n;
	int rc = put(b, size, &n);

	size += (off_t)n;
	torn = rc == 0 ? 0 : torn | (n > 0);
	return rc;
}

static int
write_line(const struct ws *w, int gone)
{
	struct wbuf b;
	int rc;

	if (cur == -1)
		return -1;
	wbuf_init(&b, WS_LINE_MAX);
	if (torn)
		wput_raw(&b, "\n", 1);
	wstab_line(&b, w, gone);
	rc = append(&b);
	wbuf_free(&b);
	return rc;
}

/* Every line that is true.  It begins with an empty line, so that a file which
 * is not empty is one that was finished, and that what was torn is. */
static void
all_lines(struct wbuf *b)
{
	struct ws *w;

	wbuf_init(b, WS_LINE_MAX * (workspaces.n + 1));
	wput_raw(b, "\n", 1);
	for (w = workspaces.all; w != NULL; w = w->next)
		if (w->owner != NULL) /* else it never had one */
			wstab_line(b, w, 0);
}

/*
 * Lines of what is long gone are dropped.  What is true is written at the end,
 * then at the beginning, and then the rest is cut off: whenever that is
 * interrupted, one of both is whole, and older lines between them are followed
 * by newer ones.
 */
static void
compact(void)
{
	const off_t end = size;
	struct wbuf b;
	size_t n;

	limit = size + GROWN; /* when this fails */
	all_lines(&b);
	if (append(&b) == 0 && fdatasync(cur) == 0 && (off_t)b.len < end &&
	    put(&b, 0, &n) == 0 && fdatasync(cur) == 0 &&
	    ftruncate(cur, (off_t)b.len) == 0) {
		size = (off_t)b.len;
		limit = 2 * size + GROWN;
	}
	wbuf_free(&b);
}

/* Behind each change. */
static void
grown(void)
{
	if (size > limit)
		compact();
}

int
wsfile_save(struct ws *w)
{
	if (write_line(w, 0) == -1)
		return -1;
	w->saved = w->used;
	grown();
	return 0;
}

int
wsfile_gone(const struct ws *w)
{
	int rc = write_line(w, 1);

	if (rc == 0)
		grown();
	return rc;
}

/* Everything that is true into the new file. */
static int
write_all(void)
{
	struct wbuf b;
	int rc;

	all_lines(&b);
	rc = append(&b);
	wbuf_free(&b);
	return rc == 0 ? fsync(cur) : -1;
}

/* A full disk must not keep the service from starting: the file of the last
 * run stays what it is, and nobody has a workspace until the next start. */
static void
go_without(void)
{
	log_warnx("the index of workspaces cannot be written: "
		  "no session has a workspace");
	if (ftruncate(cur, 0) == -1)
		fatal("the index of workspaces");
	close(cur);
	cur = -1;
	while (workspaces.all != NULL)
		wstab_remove(&workspaces, workspaces.all);
}

void
wsfile_open(void)
{
	struct stat st;

	if (old == -1 || cur == -1) {
		log_warnx("without its index no session has a workspace");
		return;
	}
	if (fstat(old, &st) == -1 || !S_ISREG(st.st_mode))
		fatalx("the index of workspaces is no file");
	read_lines();
	close(old);
	old = -1;
	if (write_all() == -1)
		go_without();
	limit = 2 * size + GROWN;
}
