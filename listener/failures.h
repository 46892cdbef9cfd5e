/*
 * SPDX-License-Identifier: ISC
 *
 * How often a wrong credential was tried lately.
 */
#ifndef LISTENER_FAILURES_H
#define LISTENER_FAILURES_H

#include <stdint.h>

/* A wrong token was presented at that time (us): 0 while it may be tried
 * again, else the seconds until then (design: authentication, 10 a minute). */
uint32_t failures_add(const char *token, uint64_t now);

#endif
