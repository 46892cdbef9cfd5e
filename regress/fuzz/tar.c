/*
 * SPDX-License-Identifier: ISC
 *
 * Tar streams and gzip.  A hostile stream says the same however it comes, its
 * content lies within its files, and what is read of it can be written and is
 * read again as that; what was compressed comes back.  Input: 1 byte (bit 0
 * gzip, 1 sums are mended), then the stream.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/abx.h"
#include "pathd/gz.h"
#include "pathd/tar.h"
#include "regress/fuzz/fuzz.h"

#define MADE_MAX (1 << 22)

struct source {
	const uint8_t *p;
	size_t n, step;
	uint8_t *last; /* what was handed out goes with the next */
	struct gz_in *gz;
	size_t made;
};

static int
plain_cb(void *arg, const uint8_t **p, size_t *n)
{
	struct source *s = arg;

	free(s->last);
	s->last = NULL;
	*n = s->n < s->step ? s->n : s->step;
	if (*n == 0)
		return 0;
	*p = s->last = fuzz_copy(s->p, *n);
	s->p += *n;
	s->n -= *n;
	return 1;
}

static int
gzip_cb(void *arg, const uint8_t **p, size_t *n)
{
	struct source *s = arg;
	int rc = gz_in_get(s->gz, p, n);

	CHECK(rc != 1 || *n > 0);
	if (rc != 1)
		return rc;
	if (*n > MADE_MAX - s->made)
		*n = MADE_MAX - s->made;
	s->made += *n;
	return *n > 0;
}

static void
source_init(struct source *s, const uint8_t *p, size_t n, size_t step, int gzip)
{
	memset(s, 0, sizeof(*s));
	s->p = p;
	s->n = n;
	s->step = step;
	if (gzip)
		CHECK((s->gz = gz_in_new(plain_cb, s)) != NULL);
}

static void
source_clear(struct source *s)
{
	gz_in_free(s->gz);
	free(s->last);
}

static uint64_t
mix(uint64_t h, const void *p, size_t n)
{
	const uint8_t *b = p;

	while (n-- > 0)
		h = (h ^ *b++) * 1099511628211ULL;
	return h;
}

/* Written as one head, it is read as what it is. */
static void
check_head(const struct member *m)
{
	const char types[] = {[ME_FILE] = '0', [ME_DIR] = '5', [ME_LINK] = '2'};
	struct tar_head h = {.mode = m->mode,
	    .size = m->size,
	    .path = m->path,
	    .link = m->type == ME_LINK ? m->link : NULL};
	struct member again;
	struct source s;
	struct tar_in t;
	struct wbuf w;
	size_t n = strlen(m->path);

	if (m->type > ME_LINK ||
	    (m->type == ME_FILE && n > 0 && m->path[n - 1] == '/'))
		return;
	h.type = types[m->type];
	wbuf_init(&w, MADE_MAX);
	tar_put(&w, &h);
	CHECK(!w.err && w.len % TAR_BLOCK == 0);
	source_init(&s, w.p, w.len, 700, 0);
	tar_in_init(&t, plain_cb, &s);
	CHECK(tar_next(&t, &again) == 1);
	CHECK(again.type == m->type && again.mode == m->mode);
	CHECK(strcmp(again.path, m->path) == 0);
	CHECK(m->type != ME_LINK || strcmp(again.link, m->link) == 0);
	CHECK(m->type != ME_FILE || again.size == m->size);
	CHECK(s.n == 0);
	member_clear(&again);
	tar_in_clear(&t);
	source_clear(&s);
	wbuf_free(&w);
}

/* A number that any difference in what it says changes. */
static uint64_t
read_all(const uint8_t *p, size_t n, size_t step, int gzip)
{
	uint64_t sum = 14695981039346656037ULL, off, end;
	const uint8_t *data;
	struct source s;
	struct member m;
	struct tar_in t;
	size_t len;
	int rc;

	source_init(&s, p, n, step, gzip);
	tar_in_init(&t, gzip ? gzip_cb : plain_cb, &s);
	while ((rc = tar_next(&t, &m)) == 1) {
		CHECK(strlen(m.path) <= ABX_PATH_MAX);
		CHECK(strlen(m.link) <= ABX_PATH_MAX);
		CHECK(m.type >= ME_FILE && m.type <= ME_OTHER);
		CHECK(m.mode <= 0777 && m.size <= INT64_MAX);
		sum = mix(sum, &m.type, 1);
		sum = mix(sum, &m.mode, sizeof(m.mode));
		sum = mix(sum, &m.size, sizeof(m.size));
		sum = mix(sum, m.path, strlen(m.path));
		sum = mix(sum, m.link, strlen(m.link));
		while ((rc = tar_data(&t, &off, &data, &len)) == 1) {
			CHECK(len > 0);
			CHECK(!__builtin_add_overflow(off, len, &end));
			CHECK(m.type != ME_FILE || end <= m.size);
			for (; len > 0; len--, off++) {
				sum = mix(sum, &off, sizeof(off));
				sum = mix(sum, data++, 1);
			}
		}
		check_head(&m);
		member_clear(&m);
		if (rc == -1)
			break;
	}
	CHECK(rc != -1 || t.code != C_OK);
	sum = mix(sum, &t.code, sizeof(t.code));
	tar_in_clear(&t);
	source_clear(&s);
	return sum;
}

static int
keep_cb(void *arg, const void *p, size_t n)
{
	wput_raw(arg, p, n);
	return 0;
}

static void
check_gzip(const uint8_t *p, size_t n)
{
	struct gz_out *g;
	const uint8_t *q;
	struct source s;
	struct wbuf w;
	size_t k, at = 0;
	int rc;

	wbuf_init(&w, MADE_MAX);
	CHECK((g = gz_out_new(keep_cb, &w)) != NULL);
	CHECK(gz_out_put(g, p, n / 3, 0) == 0);
	CHECK(gz_out_put(g, p + n / 3, n - n / 3, 1) == 0);
	gz_out_free(g);
	CHECK(!w.err);
	source_init(&s, w.p, w.len, 1 + n % 97, 1);
	while ((rc = gz_in_get(s.gz, &q, &k)) == 1) {
		CHECK(k <= n - at && memcmp(p + at, q, k) == 0);
		at += k;
	}
	CHECK(rc == 0 && at == n);
	source_clear(&s);
	wbuf_free(&w);
}

/* Every block that is not zero gets a sum that is right. */
static void
mend(uint8_t *p, size_t n)
{
	struct tar_block b;
	char sum[24];

	for (; n >= TAR_BLOCK; n -= TAR_BLOCK, p += TAR_BLOCK) {
		memcpy(&b, p, sizeof(b));
		if (memcmp(b.magic, "ustar", 5) != 0)
			continue;
		snprintf(sum, sizeof(sum), "%06lo", tar_sum(&b, 0));
		memcpy(p + offsetof(struct tar_block, sum), sum, 8);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	uint8_t how = feed_u8(&f);
	uint8_t *p;

	if (f.n > 1 << 18)
		return 0;
	p = fuzz_copy(f.p, f.n);
	if ((how & 2) != 0)
		mend(p, f.n);
	CHECK(read_all(p, f.n, 1 + f.n % 601, how & 1) ==
	      read_all(p, f.n, 1 << 16, how & 1));
	check_gzip(p, f.n);
	free(p);
	return 0;
}
