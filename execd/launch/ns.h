/*
 * SPDX-License-Identifier: ISC
 *
 * The namespaces of a process, to be compared.
 */
#ifndef ABX_LAUNCH_NS_H
#define ABX_LAUNCH_NS_H

#include "execd/launch/xl.h"

/* user, mnt, pid, ipc, uts, net, cgroup: as links in proc(5). */
extern const char *const ns_paths[XL_NAMESPACES];

/* The inodes behind those links: 0, or -1 with errno. */
int ns_inodes(uint64_t ns[XL_NAMESPACES]);

#endif
