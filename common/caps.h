/*
 * SPDX-License-Identifier: ISC
 *
 * What capset(2) takes, third version of the interface: linux/capability.h
 * without libcap.
 */
#ifndef ABX_CAPS_H
#define ABX_CAPS_H

#include <stdint.h>

struct cap_hdr {
	uint32_t version;
	int pid;
};
/* Two of them: 32 capabilities each. */
struct cap_data {
	uint32_t effective, permitted, inheritable;
};
#define CAP_VERSION_3 0x20080522

#endif
