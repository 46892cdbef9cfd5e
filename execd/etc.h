/*
 * SPDX-License-Identifier: ISC
 *
 * The /etc that every sandbox shares.
 */
#ifndef ABX_EXECD_ETC_H
#define ABX_EXECD_ETC_H

#include <sys/types.h>

/* Fill the empty directory fd with stubs (passwd, group, hosts, nsswitch.conf)
 * and with copies of the few files of the host's /etc that programs need and
 * everybody may read.  Nothing that is missing is an error; fatal when the
 * stubs cannot be written. */
void etc_fill(int fd, uid_t, gid_t);

#endif
