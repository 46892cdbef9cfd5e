/*
 * SPDX-License-Identifier: ISC
 *
 * What the parts of trip share: tests of each filter call by call, and of the
 * confinement of a running service.
 */
#ifndef ABX_TRIP_H
#define ABX_TRIP_H

#include <sys/types.h>

/* The directory of the programs, and who is to start them besides us. */
extern const char *trip_build, *trip_user;

/* trip_calls.c: each is a cmocka test. */
void trip_listener(void **);
void trip_monitor(void **);
void trip_unpack(void **);
void trip_pathd(void **);
void trip_execd(void **);
void trip_machine(void **);

/* trip_libc.c */
void trip_libc(void **);

/* trip_live.c */
int live_start(void **);
int live_start_user(void **);
int live_end(void **);
void live_ids(void **);
void live_namespaces(void **);
void live_descriptors(void **);
void live_untraceable(void **);
void live_refused(void **);
void live_landlock(void **);

/* trip_force.c: make a process do a system call.  It must be blocked in one;
 * it goes on as if it had been interrupted.  path (when not NULL) is put into
 * its memory and is argument number where.  0 and *rc, or -1 when it cannot
 * be traced, -2 when it died of SIGSYS, -3 when it died otherwise. */
int force_call(
    pid_t, long nr, const long args[6], const char *path, int where, long *rc);

#endif
