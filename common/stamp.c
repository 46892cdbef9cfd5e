/*
 * SPDX-License-Identifier: ISC
 *
 * The times of directories.  Nothing but the kernel sets the change time of an
 * inode (inode(7)), and it does so whenever an entry comes, goes or is renamed.
 * That tells all on a file system of this machine that is known to do it, when
 * the time was well past before the reading began (else a later change could
 * get the same), while nobody has set the clock, and not when names in a
 * directory come and go with a key.
 */
#include "common/stamp.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <linux/magic.h>

/* A C library may know less of statx(2) than the kernel. */
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U
#endif
#define MNT_ID_AT (offsetof(struct statx, stx_dev_minor) + sizeof(uint32_t))

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* Make the timer tell when somebody sets the clock from now on: 0 or -1
 * (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET). */
static int
clock_watch(int fd)
{
	const struct itimerspec never = {{0, 0}, {INT64_MAX / 2000000000, 0}};

	return timerfd_settime(
	    fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
}

/* Change times that are to come can be those that were once somebody has set
 * the clock. */
int
stamp_steady(void)
{
	static int fd = -1;
	uint64_t n;

	if (fd != -1) {
		if (read(fd, &n, sizeof(n)) == -1 && errno == EAGAIN)
			return 1;
		close(fd);
	}
	recall_clear();
	fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (fd != -1 && clock_watch(fd) == -1) {
		close(fd);
		fd = -1;
	}
	return fd != -1;
}

/* Linux 6.8 and newer have one that never comes again. */
static uint64_t
mount_of(const struct statx *sx)
{
	uint64_t id = 0;

	if ((sx->stx_mask & STATX_MNT_ID_UNIQUE) != 0)
		memcpy(&id, (const char *)sx + MNT_ID_AT, sizeof(id));
	return id;
}

int
stamp_of(int dir, const char *name, struct recall_id *id)
{
	const unsigned want =
	    STATX_TYPE | STATX_INO | STATX_CTIME | STATX_MTIME;
	struct statx sx;

	if (statx(dir, name,
		AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT |
		    (*name == '\0' ? AT_EMPTY_PATH : 0),
		want | STATX_MNT_ID_UNIQUE, &sx) == -1)
		return -1;
	if (!S_ISDIR(sx.stx_mode)) {
		errno = ENOTDIR;
		return -1;
	}
	id->dev = makedev(sx.stx_dev_major, sx.stx_dev_minor); /* as st_dev */
	id->ino = sx.stx_ino;
	/* images that were made alike have the same inodes and times, and when
	 * one is mounted after the other the same device */
	id->mount = mount_of(&sx);
	id->ctime.tv_sec = sx.stx_ctime.tv_sec;
	id->ctime.tv_nsec = sx.stx_ctime.tv_nsec;
	id->mtime.tv_sec = sx.stx_mtime.tv_sec;
	id->mtime.tv_nsec = sx.stx_mtime.tv_nsec;
	/* what an encrypted one shows depends on the keys that are there */
	return (sx.stx_mask & want) == want &&
		       (sx.stx_attributes & STATX_ATTR_ENCRYPTED) == 0
		   ? 0
		   : 1;
}

int
stamp_tells(int fd)
{
	struct statfs sf;

	/* those of file systems that other machines, programs or snapshots
	 * have a part in may not */
	return fstatfs(fd, &sf) == 0 &&
	       (sf.f_type == EXT4_SUPER_MAGIC || sf.f_type == XFS_SUPER_MAGIC ||
		   sf.f_type == TMPFS_MAGIC);
}
