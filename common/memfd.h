/*
 * SPDX-License-Identifier: ISC
 *
 * Memory files that go to another process.
 */
#ifndef ABX_MEMFD_H
#define ABX_MEMFD_H

#include <stddef.h>

/*
 * A new memfd with these n bytes, sealed against every change and further
 * seals (memfd_create(2), fcntl(2) F_ADD_SEALS), close-on-exec, its offset
 * behind them.  name is for /proc only.  The caller closes it.  -1 with errno.
 */
int memfd_sealed(const char *name, const void *, size_t n);

#endif
