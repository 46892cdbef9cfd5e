/*
 * SPDX-License-Identifier: ISC
 *
 * What of a configuration other processes are told.
 */
#ifndef ABX_CONFWIRE_H
#define ABX_CONFWIRE_H

#include "common/hash.h"
#include "common/payload.h"

struct conf;
struct confset;

/* What the parent must know; cs has a policy.  0, or -1 out of memory; the
 * caller clears it in both cases. */
int confwire_boot(struct boot *, const struct confset *cs);
/* What the listener must know.  Its lists are borrowed from the configuration,
 * its tokens are the caller's to free.  0, or -1 out of memory. */
int confwire_listener(
    struct lconf *, const struct conf *, const uint8_t key[SHA256_LEN]);
/* Add config.too_large for what does not fit into a message: what starts must
 * not fail there.  cs has a policy and its boot.  0, or -1 out of memory. */
int confwire_check(struct confset *cs);

#endif
