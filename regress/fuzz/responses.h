/*
 * SPDX-License-Identifier: ISC
 *
 * What a client got of a listener, as whole responses.
 */
#ifndef REGRESS_FUZZ_RESPONSES_H
#define REGRESS_FUZZ_RESPONSES_H

#include "common/wire.h"

/* They are whole HTTP responses, one behind the other. */
void responses_check(const struct wbuf *);
/* Take out what is another one each time: request numbers, dates and 100
 * Continue, which a client that does not wait is not sent. */
void responses_plain(struct wbuf *);

#endif
