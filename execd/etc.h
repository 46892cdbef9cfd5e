/*
 * SPDX-License-Identifier: ISC
 *
 * The /etc that every sandbox shares.
 */
#ifndef ABX_EXECD_ETC_H
#define ABX_EXECD_ETC_H

#include <sys/types.h>

/* Fill the empty directory, which must be below a mount of ours, with stubs
 * (passwd, group, hosts, nsswitch.conf) and with copies of the few files of the
 * host's /etc that programs need and everybody may read.  Nothing that is
 * missing is an error; fatal when the stubs cannot be written.  A process of
 * its own does it beside what else a start needs, with mounts of its own of
 * both directories: those that it came from may be made read-only and go. */
void etc_begin(int dir, uid_t, gid_t);
/* Wait until it is complete, before the first command; fatal when it failed. */
void etc_wait(void);

#endif
