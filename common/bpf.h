/*
 * SPDX-License-Identifier: ISC
 *
 * Seccomp programs that were made before: those of commands, and that of what
 * reads archives.
 */
#ifndef ABX_BPF_H
#define ABX_BPF_H

#include <stddef.h>

/* Put one on this process and what it starts, for ever: code is an array of
 * struct sock_filter, aligned, of len bytes (seccomp(2)).  System calls only.
 * 0, or -1 with errno, EINVAL when it is empty or too long. */
int bpf_load(const void *code, size_t len);

#endif
