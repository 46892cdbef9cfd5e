/*
 * SPDX-License-Identifier: ISC
 *
 * Limits and names that every program shares.  Nothing here does anything;
 * a number that two processes must agree on lives here and nowhere else.
 */
#ifndef ABX_H
#define ABX_H

#include <stddef.h>
#include <stdint.h>

#define ABX_VERSION "0.1.0"

#define ABX_PATH_MAX 4096	    /* bytes of a path, without the NUL */
#define ABX_PATH_SEGS 256	    /* segments of a path */
#define ABX_GLOB_STARSTARS 3	    /* "**" segments in one pattern */
#define ABX_TOKEN_MAX 512	    /* bytes of a presented credential */
#define ABX_WORKSPACE_LEN 32	    /* hex digits of a workspace's name */
#define ABX_MAX_WORKSPACES 2048	    /* in all */
#define ABX_MAX_WORKSPACES_EACH 256 /* of one principal */
#define ABX_ID_MAX 128	 /* bytes of a principal id, role, session name */
#define ABX_MAX_ROLES 32 /* roles of one principal */
#define ABX_REQID_LEN 24 /* "r-" and 22 base64url characters, no NUL */

/* RLIMIT_CORE in bytes: too few for a file, and where core_pattern names a
 * program, the one value with which the kernel does not start it
 * (do_coredump in its fs/coredump.c; with 0 it does, core(5)) */
#define ABX_NO_CORE 1

/* RLIMIT_NOFILE of the service's processes: a process at its limit loses what
 * is sent to it.  4096 connections that wait and as many that are served, with
 * four each and some over in any process; execd refuses runs beyond it.  Where
 * the hard limit is lower the listener serves fewer. */
#define ABX_NOFILE 20736
#define ABX_NOFILE_LOW 4096

/* how long a session's sandbox is kept in which nothing runs */
#define ABX_SESSION_IDLE_MS 600000

#define ABX_MAX_ARGS 64			 /* members of one argument object */
#define ABX_MAX_ARGV 4096		 /* words of one command */
#define ABX_MAX_ENV 512			 /* variables of one command */
#define ABX_INLINE_BODY (16 * 1024)	 /* larger bodies travel in a memfd */
#define ABX_BODY_MAX (64U * 1024 * 1024) /* largest body memfd */

#define ABX_MAX_RESOLVE 32	 /* paths in one RESOLVE */
#define ABX_MAX_ROOTREFS 32	 /* roots that one path may ask for */
#define ABX_MAX_ROOTS 1024	 /* root directories of one policy */
#define ABX_DENY_MAX (64 * 1024) /* bytes of one compiled deny set */
#define ABX_MAX_DENY 1024	 /* patterns in one deny set */
#define ABX_MAX_COVERS 256 /* denied entries that one command is kept from */
#define ABX_MAX_BINDS 64   /* SPAWN_BIND before one SPAWN */

#define ABX_MAX_EDITS 1024 /* replacements in one files.edit */
#define ABX_MAX_SKIPPED 64 /* entries that an archive reports as left out */
#define ABX_DIFF_MAX (48 * 1024) /* bytes of the diff of a dry run */
#define ABX_PATTERN_MAX 4096	 /* bytes of a pattern to search for */

#define ABX_FD_PARENT 3 /* a child's channel to the parent */

#ifndef nitems
#define nitems(a) (sizeof(a) / sizeof((a)[0]))
#endif

#endif
