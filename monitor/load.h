/*
 * SPDX-License-Identifier: ISC
 *
 * The loader: abx-monitor -L, one run at start, and what "abxd -n" is.
 */
#ifndef ABX_LOAD_H
#define ABX_LOAD_H

/*
 * abx-monitor -L [-AD] [-f FILE] [-l ADDR:PORT] [-p PRESET] [-r ROOT], with
 * the channel to the parent as fd 3 and the service's environment (with -D,
 * for a reload, what BOOT.start_env kept of it).  Sends
 * FINDINGs and, when the service may start, BOOT and POLICY.  Returns the
 * exit status: 0 sent, 1 the findings block, 2 bad usage or a failure that
 * was logged.
 */
int load_main(int argc, char **argv);

#endif
