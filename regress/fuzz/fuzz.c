/*
 * SPDX-License-Identifier: ISC
 *
 * Helpers of the fuzz targets.
 */
#include "regress/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pathd/tree.h"

void
fuzz_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
	abort();
}

uint8_t
feed_u8(struct feed *f)
{
	if (f->n == 0)
		return 0;
	f->n--;
	return *f->p++;
}

uint64_t
feed_uint(struct feed *f, size_t n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | feed_u8(f);
	return v;
}

char *
feed_str(struct feed *f, int sep, size_t max)
{
	const uint8_t *end;
	size_t n, len;
	char *s;

	if (f->n == 0)
		return fuzz_alloc(1);
	end = memchr(f->p, sep, f->n);
	n = end != NULL ? (size_t)(end - f->p) : f->n;
	len = strnlen((const char *)f->p, n < max ? n : max);
	s = fuzz_alloc(len + 1);
	memcpy(s, f->p, len);
	n += end != NULL;
	f->p += n;
	f->n -= n;
	return s;
}

uint8_t *
fuzz_copy(const void *p, size_t n)
{
	uint8_t *q = malloc(n);

	if (q == NULL && n > 0)
		abort();
	if (n > 0)
		memcpy(q, p, n);
	return q;
}

void *
fuzz_alloc(size_t n)
{
	void *p = calloc(1, n);

	if (p == NULL)
		abort();
	return p;
}

static char scratch[] = "/tmp/abx-fuzz-XXXXXX";

static void
clean(void)
{
	(void)tree_remove(NULL, AT_FDCWD, scratch);
}

const char *
fuzz_dir(void)
{
	CHECK(mkdtemp(scratch) != NULL);
	CHECK(atexit(clean) == 0);
	return scratch;
}

uint32_t
fuzz_rand(uint32_t *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 8;
}

uint64_t
fuzz_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}
