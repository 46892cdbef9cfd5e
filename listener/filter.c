/*
 * SPDX-License-Identifier: ISC
 *
 * The system calls of the listener besides those that every process has
 * (common/jail.c).  It can move bytes and take connections; it cannot make a
 * socket or set an option of one, open a file or start a program.
 */
#include "listener/listener.h"

const struct jail_call filter_calls[] = {
    {"accept4", 0, 0, 0, 0},
    {"recvfrom", 0, 0, 0, 0},
    {"sendto", 1, 4, UINT64_MAX, 0}, /* send(2): no address */
    {"shutdown", 0, 0, 0, 0},
    {"sendfile", 0, 0, 0, 0},
    {"splice", 0, 0, 0, 0},
    {"preadv2", 0, 0, 0, 0},
    {"pwritev2", 0, 0, 0, 0},
    {"memfd_create", 0, 0, 0, 0},
    {NULL, 0, 0, 0, 0},
};
