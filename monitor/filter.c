/*
 * SPDX-License-Identifier: ISC
 *
 * The system calls of the monitor besides those that every process needs: it
 * opens nothing, makes no socket, executes nothing.
 */
#include "common/jail.h"
#include "monitor/mon.h"

const struct jail_call monitor_calls[] = {
    /* arguments and command lines over 16 KiB travel in sealed memfds */
    {"memfd_create", 0, 0, 0, 0},
    {"ftruncate", 0, 0, 0, 0},
    /* the index of workspaces */
    {"pwrite64", 0, 0, 0, 0},
    {"fdatasync", 0, 0, 0, 0},
    /* system.info */
    {"uname", 0, 0, 0, 0},
    {"sysinfo", 0, 0, 0, 0},
    {"sched_getaffinity", 0, 0, 0, 0},
    /* abxctl's connections, and who is at their other end */
    {"accept4", 0, 0, 0, 0},
    {"getsockopt", 0, 0, 0, 0},
    /* and of the listener's */
    {"getsockname", 0, 0, 0, 0},
    {NULL, 0, 0, 0, 0},
};
