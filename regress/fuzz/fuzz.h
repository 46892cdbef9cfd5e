/*
 * SPDX-License-Identifier: ISC
 *
 * What the fuzz targets share.  A target is one file with
 * LLVMFuzzerTestOneInput: it turns bytes into a call of something pure, and
 * CHECKs what must hold whatever the bytes were, best against a second and
 * naive way to the same answer.  A target keeps no state between inputs.
 */
#ifndef ABX_FUZZ_H
#define ABX_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define CHECK(x)                                           \
	do {                                               \
		if (!(x))                                  \
			fuzz_fail(__FILE__, __LINE__, #x); \
	} while (0)
/* Say what does not hold, and abort. */
void fuzz_fail(const char *file, int line, const char *what)
    __attribute__((noreturn));

/* The bytes of an input, taken from the front. */
struct feed {
	const uint8_t *p;
	size_t n;
};
/* The next byte, 0 when there is none. */
uint8_t feed_u8(struct feed *);
/* The next n bytes (up to 8) as a number, missing ones 0. */
uint64_t feed_uint(struct feed *, size_t n);
/* Up to the next byte sep, which is passed over, or to the end, and not beyond
 * a NUL: a new string (free) of at most max bytes. */
char *feed_str(struct feed *, int sep, size_t max);

/* A copy of exactly n bytes (free), so that a read beyond is seen. */
uint8_t *fuzz_copy(const void *, size_t n);
/* calloc that cannot fail. */
void *fuzz_alloc(size_t n);
/* A new directory, its name borrowed; it goes with all in it at exit(3). */
const char *fuzz_dir(void);
/* The next number of a sequence that follows from the seed. */
uint32_t fuzz_rand(uint32_t *seed);
/* CPU time of this thread, in nanoseconds. */
uint64_t fuzz_cpu_ns(void);

#endif
