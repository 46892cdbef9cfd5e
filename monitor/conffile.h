/*
 * SPDX-License-Identifier: ISC
 *
 * Reading the files that a configuration consists of: FILE, server.d beside
 * it in name order, operator.json, token files.  Bytes only; what they mean
 * is policy/'s business.  Used by the loader and by abxctl, never by a
 * process that clients can reach.
 */
#ifndef ABX_CONFFILE_H
#define ABX_CONFFILE_H

#include "policy/policy.h"

#define CONFFILE_DEFAULT "/etc/agent-sandbox/server.json"
#define CONFFILE_MAX (4U * 1024 * 1024) /* bytes of one file */
#define CONFFILE_DROPINS 250		/* files in server.d */
#define CONFFILE_TOKEN_MAX 4096		/* bytes of a token file */

struct conffile {
	char *file; /* FILE as it was given, owned */
	char *dir;  /* canonical directory that it lies in, owned; or NULL */
	struct conf_source *v; /* names and data owned, data NUL-terminated */
	size_t n;
	struct findings *found; /* borrowed: where token files complain */
};

/*
 * Read every layer that is a file.  file NULL means CONFFILE_DEFAULT; with
 * optional a FILE that does not exist is no fault.  What cannot be read
 * becomes config.file_unreadable, what others could have written
 * config.file_unsafe, and that file is left out.  0, or -1 out of memory.
 */
int conffile_read(
    struct conffile *, const char *file, int optional, struct findings *);
/* Wipe and free everything. */
void conffile_clear(struct conffile *);

/* conf_world.token_file, with a struct conffile as arg: the content of an
 * absolute path as a new string; NULL when there is none that may be used,
 * said as a finding. */
char *conffile_token(const char *path, void *arg);
/* conf_world.dir_check: 0 when path is a directory, else an errno. */
int conffile_dir(const char *path, void *arg);

#endif
