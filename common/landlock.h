/*
 * SPDX-License-Identifier: ISC
 *
 * Landlock's constants and structs (landlock(7), kernel documentation
 * userspace-api/landlock.rst) up to ABI 7, carried here since the headers that
 * we are built with may be older.  libc is all it needs: the static launcher
 * has it too.
 */
#ifndef ABX_LANDLOCK_H
#define ABX_LANDLOCK_H

#include <sys/syscall.h>

#include <stdint.h>

#define LL_EXECUTE (1ULL << 0)
#define LL_WRITE_FILE (1ULL << 1)
#define LL_READ_FILE (1ULL << 2)
#define LL_READ_DIR (1ULL << 3)
#define LL_REMOVE_DIR (1ULL << 4)
#define LL_REMOVE_FILE (1ULL << 5)
#define LL_MAKE_ALL (0x7fULL << 6) /* char dir reg sock fifo block sym */
#define LL_MAKE_BLOCK (1ULL << 11)
#define LL_REFER (1ULL << 13)	  /* ABI 2 */
#define LL_TRUNCATE (1ULL << 14)  /* ABI 3 */
#define LL_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#define LL_NET_ALL 3ULL		  /* bind and connect TCP, ABI 4 */
#define LL_SCOPE_ALL 3ULL	  /* abstract sockets and signals, ABI 6 */
#define LL_FILE_RIGHTS \
	(LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE | LL_IOCTL_DEV)
#define LL_RULE_PATH_BENEATH 1
#define LL_CREATE_VERSION 1U

struct ll_attr {
	uint64_t fs, net, scoped;
};
struct ll_path {
	uint64_t access;
	int32_t fd;
} __attribute__((packed));

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#endif
