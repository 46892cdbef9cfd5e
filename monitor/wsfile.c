/*
 * SPDX-License-Identifier: ISC
 *
 * The lines about workspaces in the state directory, on two descriptors that
 * the parent opened: what the last run wrote is read once, and what is still
 * true of it is written into a new file, which grows by a line a change.  A
 * line that was torn costs only itself.
 */
#include <sys/stat.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "monitor/workspace.h"

#define GROWN (64LL * 1024 * 1024) /* from then on only what must be */

struct wstab workspaces;

static int old = -1, cur = -1;
static off_t size; /* of cur */
static int torn;   /* cur does not end with a newline */

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

static int
write_line(const struct ws *w, int gone)
{
	struct wbuf b;
	ssize_t n = -1;

	if (cur == -1)
		return -1;
	wbuf_init(&b, WS_LINE_MAX);
	if (torn)
		wput_raw(&b, "\n", 1);
	wstab_line(&b, w, gone);
	errno = ENOMEM;
	if (!b.err)
		n = write(cur, b.p, b.len);
	if (n == -1 || (size_t)n != b.len) {
		log_warn("the index of workspaces");
		torn |= n > 0;
	} else
		torn = 0;
	if (n > 0)
		size += n;
	n = n != -1 && (size_t)n == b.len ? 0 : -1;
	wbuf_free(&b);
	return (int)n;
}

int
wsfile_save(struct ws *w)
{
	/* what is already there can be looked up, if not its last use */
	if (w->saved > 0 && size > GROWN)
		return 0;
	if (write_line(w, 0) == -1)
		return -1;
	w->saved = w->used;
	return 0;
}

int
wsfile_gone(const struct ws *w)
{
	return write_line(w, 1);
}

/* Everything that is true into the new file.  It begins with an empty line, so
 * that one which is not empty is one that was finished. */
static int
write_all(void)
{
	struct ws *w;

	for (w = workspaces.all; w != NULL; w = w->next)
		if (write_line(w, 0) == -1)
			return -1;
	return fsync(cur);
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
	if (write(cur, "\n", 1) != 1 || write_all() == -1)
		go_without();
}
