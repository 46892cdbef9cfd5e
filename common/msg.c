/*
 * SPDX-License-Identifier: ISC
 *
 * The message table and the first check of every received message.  Asks the
 * kernel what a descriptor is; changes nothing.  libc only.
 */
#include "common/msg.h"

#include <sys/stat.h>

#include <fcntl.h>

static const struct msg_row rows[] = {
#define MSG(sym, num, min, max, fdk) {num, #sym, min, max, fdk},
#include "common/msg.def"
#undef MSG
};

const struct msg_row *
msg_row(uint16_t type)
{
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].type == type)
			return &rows[i];
	return NULL;
}

const char *
msg_name(uint16_t type)
{
	const struct msg_row *r = msg_row(type);

	return r == NULL ? "unknown" : r->name;
}

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#endif
#define SEALS_WANTED 0x0f /* SEAL, SHRINK, GROW, WRITE */

static int
is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals != -1 && (seals & SEALS_WANTED) == SEALS_WANTED;
}

/* What it is, but for seals: a memfd is a regular file here. */
static enum fd_kind
plain_kind(int fd)
{
	struct stat st;
	int flags;

	if (fstat(fd, &st) == -1 || (flags = fcntl(fd, F_GETFL)) == -1)
		return FDK_ANY;
	if (S_ISSOCK(st.st_mode))
		return FDK_SOCKET;
	if (S_ISDIR(st.st_mode))
		return (flags & O_ACCMODE) == O_RDONLY ? FDK_DIR : FDK_ANY;
	if ((flags & O_PATH) != 0)
		return FDK_ANY;
	if (S_ISFIFO(st.st_mode))
		switch (flags & O_ACCMODE) {
		case O_RDONLY:
			return FDK_PIPE_R;
		case O_WRONLY:
			return FDK_PIPE_W;
		default:
			return FDK_ANY;
		}
	if (!S_ISREG(st.st_mode))
		return FDK_ANY;
	return (flags & O_ACCMODE) == O_RDONLY ? FDK_FILE_R : FDK_ANY;
}

enum fd_kind
msg_fd_kind(int fd)
{
	return is_sealed(fd) ? FDK_MEMFD : plain_kind(fd);
}

/* *found: what was found out on the way. */
static int
kind_fits(enum fd_kind want, int fd, enum fd_kind *found)
{
	enum fd_kind got;

	*found = FDK_NONE;
	if (want == FDK_NONE)
		return fd == -1;
	if (fd == -1)
		return want == FDK_MEMFD_OPT || want == FDK_ANS_OPT ||
		       want == FDK_FACTS_OPT;
	*found = FDK_ANY;
	if (want == FDK_ANY)
		return 1;
	if (want == FDK_MEMFD || want == FDK_MEMFD_OPT)
		return is_sealed(fd);
	*found = got = plain_kind(fd);
	switch (want) {
	case FDK_ANS_OPT:
		return got == FDK_FILE_R || got == FDK_PIPE_R ||
		       got == FDK_PIPE_W;
	case FDK_FACTS_OPT:
		return got == FDK_FILE_R || got == FDK_DIR;
	default:
		return got == want;
	}
}

int
msg_check(struct imsg *m, const char **why)
{
	const struct msg_row *r = msg_row(m->type);
	enum fd_kind kind = FDK_NONE;

	*why = NULL;
	if (r == NULL)
		*why = "unknown type";
	else if (m->len < r->min || m->len > r->max)
		*why = "length out of bounds";
	else if (!kind_fits(r->fd, m->fd, &kind))
		*why = "wrong descriptor";
	m->kind = (uint8_t)kind;
	return *why == NULL ? 0 : -1;
}

const char *
proc_name(enum proc_kind k)
{
	switch (k) {
	case PROC_PARENT:
		return "abxd";
	case PROC_LISTENER:
		return "abx-listener";
	case PROC_MONITOR:
		return "abx-monitor";
	case PROC_PATHD:
		return "abx-pathd";
	case PROC_EXECD:
		return "abx-execd";
	case PROC_LOADER:
		return "abx-loader";
	default:
		return "unknown";
	}
}
