/*
 * SPDX-License-Identifier: ISC
 *
 * The seccomp programs of a sandbox, compiled once and sent to launchers, and
 * the deny list of execd itself.
 */
#ifndef ABX_EXECD_FILTER_H
#define ABX_EXECD_FILTER_H

#include "common/jail.h"
#include "execd/launch/xl.h"

/* What execd and everything below it is refused; ends with name NULL. */
extern const struct jail_call filter_execd[];

/*
 * Compile the programs of a sandbox without network into s->filters,
 * s->nfilters and s->nofork (owned by s).  0, or -1 with errno.
 */
int filter_build(struct xl_setup *);

#endif
