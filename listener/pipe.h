/*
 * SPDX-License-Identifier: ISC
 *
 * Pipes that were handed over by other processes.
 */
#ifndef ABX_PIPE_H
#define ABX_PIPE_H

#include <sys/types.h>

#include <stddef.h>

/* As read(2) and write(2), but they never wait: EAGAIN instead, whatever the
 * pipe's own flags say by now. */
ssize_t pipe_read(int fd, void *, size_t);
ssize_t pipe_write(int fd, const void *, size_t);

#endif
