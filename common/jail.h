/*
 * SPDX-License-Identifier: ISC
 *
 * Confinement primitives: ids, capabilities, rlimits, empty root, Landlock,
 * seccomp from a const array.  A step that the kernel supports and that fails
 * is fatal.  The file knows no process in particular.
 */
#ifndef ABX_JAIL_H
#define ABX_JAIL_H

#include <sys/types.h>
#include <sys/resource.h>

#include <stddef.h>
#include <stdint.h>

/* Landlock rights in our own words; mapped to what the running ABI knows. */
enum jail_right {
	JR_READ = 1, /* read files, list directories */
	JR_EXEC = 2,
	JR_WRITE = 4 /* write, make, remove, rename across (REFER), truncate */
};
struct jail_path {
	int fd; /* O_PATH or directory descriptor, borrowed */
	unsigned rights;
};

/* One allowed system call, by name; with nargs conditions all must hold. */
struct jail_call {
	const char *name;
	int narg;	      /* 0: any arguments; 1: condition below */
	unsigned arg;	      /* which argument */
	uint64_t mask, value; /* (arg & mask) == value */
};

struct jail {
	int empty_root; /* pivot into an empty read-only tmpfs before ids */
	int landlock;	/* 1: restrict to paths (none: nothing opens) */
	struct jail_path paths[1100];
	size_t npaths;
	const struct jail_call *calls; /* ends with name NULL */
	int deny_list; /* calls are refused with EPERM instead; rest allowed */
	uint64_t nofile; /* RLIMIT_NOFILE to set, 0: leave */
};

/* uid, gid and no supplementary groups, capabilities cleared (permitted,
 * inheritable, ambient, bounding).  root: started as root. */
void jail_ids(int root, uid_t, gid_t);
/* New user (when not root) and mount namespace with an empty root. */
void jail_empty_root(int root);
/* Write own uid and gid as an identity map of a fresh user namespace. */
void jail_idmap(uid_t, gid_t);
/* Newest Landlock ABI of the kernel, 0 when it has none. */
int jail_landlock_abi(void);
void jail_landlock(const struct jail_path *, size_t);
/* Build and load the filter; a refused call kills the process (deny_list:
 * EPERM). */
void jail_seccomp(const struct jail_call *, int deny_list);
/* The program of a libseccomp context, for bpf_load: 0 and *code is *len bytes
 * that the caller owns, or -1 with errno. */
int jail_export(void *ctx, uint8_t **code, size_t *len);
/* That of what jail_seccomp would load, for processes that are started later:
 * without memory libseccomp does not always return. */
void jail_compile(
    const struct jail_call *, int deny_list, uint8_t **code, size_t *len);
/* How many descriptors there may be. */
struct rlimit jail_nofile_now(void);
/* no_new_privs, DUMPABLE 0, jail_no_core, PDEATHSIG KILL and a check that
 * the parent (ppid, 0: fd 3) is alive. */
void jail_parent(pid_t ppid);
/* No core of this process and of what it starts, in no file and for no program
 * of the host (ABX_NO_CORE).  Fatal on failure. */
void jail_no_core(void);
/* Empty root when asked for, then ids and capabilities. */
void jail_drop(const struct jail *, int root, uid_t, gid_t);
/* Parent check, no_new_privs, Landlock, DUMPABLE 0, seccomp, in this order;
 * then one line of text that says what the kernel reports of this process,
 * into out.  status is a descriptor of /proc/self/status opened before. */
void jail_confine(
    const struct jail *, pid_t ppid, int status, char *out, size_t outsize);

#endif
