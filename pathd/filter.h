/*
 * SPDX-License-Identifier: ISC
 *
 * What pathd may ask of the kernel.
 */
#ifndef ABX_PATHD_FILTER_H
#define ABX_PATHD_FILTER_H

#include "common/jail.h"

/* System calls besides those of every child; ends with name NULL. */
extern const struct jail_call pathd_calls[];

#endif
