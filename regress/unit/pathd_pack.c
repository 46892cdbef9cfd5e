/*
 * SPDX-License-Identifier: ISC
 *
 * Archives that are written: files that change under way, and the same bytes
 * for the same tree.
 */
#include "pathd_tree.h"

#include "pathd/pack.h"

#define SIZE 200000

struct packing {
	struct tmp t;
	struct bulk b;
	struct rootref ref;
	struct target src;
	struct wbuf w;
	off_t becomes; /* the size of the file meanwhile */
};

static int
change_cb(void *arg)
{
	struct packing *k = arg;

	if (k->w.len > 0) /* after the first piece of it */
		assert_int_equal(truncate(at(&k->t, "w/d/f"), k->becomes), 0);
	return 0;
}

static int
keep_cb(void *arg, const void *p, size_t n)
{
	wput_raw(arg, p, n);
	return 0;
}

static int
full_cb(void *arg, const void *p, size_t n)
{
	return -1;
}

static void
packing_new(struct packing *k)
{
	static uint8_t text[SIZE];
	int fd;

	memset(k, 0, sizeof(*k));
	tmp_new(&k->t);
	roots_open(&k->t.pd.roots);
	make_dir(&k->t, "w/d");
	make_file(&k->t, "w/d/f", "");
	memset(text, 'x', sizeof(text));
	fd = open(at(&k->t, "w/d/f"), O_WRONLY | O_CLOEXEC);
	assert_int_not_equal(fd, -1);
	assert_int_equal(write(fd, text, SIZE), SIZE);
	close(fd);
	k->src = target_of(&k->t, "d");
	k->b.src = &k->src;
	k->b.nsrc = 1;
	assert_int_equal(strlist_add(&k->b.names, "", 0), 0);
	k->b.refs = &k->ref;
	k->b.nrefs = 1;
	k->b.max_bytes = k->b.max_entries = UINT64_MAX;
	wbuf_init(&k->w, 4 * SIZE);
}

static void
packing_free(struct packing *k)
{
	wbuf_free(&k->w);
	strlist_clear(&k->b.names);
	target_clear(&k->src);
	tmp_free(&k->t);
}

static enum code
packed(struct packing *k, pack_cb out, const struct stopper *stop)
{
	struct pack p = {
	    .pd = &k->t.pd, .b = &k->b, .stop = stop, .out = out, .arg = &k->w};
	enum code code;

	wbuf_reset(&k->w);
	code = pack_run(&p);
	pack_fin_clear(&p.fin);
	return code;
}

/* A head, the content, what fills its last block, and the end. */
static size_t
whole(void)
{
	return 512 + (SIZE + 511) / 512 * 512 + 1024;
}

/* What was promised comes, whatever becomes of the file. */
static void
test_changes(void **state)
{
	static const off_t becomes[] = {0, 1, 65536, SIZE - 1, SIZE + 100000};
	struct stopper stop;
	struct packing k;
	size_t i, n;

	for (i = 0; i < nitems(becomes); i++) {
		packing_new(&k);
		k.becomes = becomes[i];
		stop = (struct stopper){change_cb, &k};
		assert_int_equal(packed(&k, keep_cb, &stop), C_OK);
		assert_false(k.w.err);
		assert_int_equal(k.w.len, whole());
		assert_memory_equal(k.w.p, "f\0", 2);
		assert_memory_equal(k.w.p + 124, "00000606500", 12);
		for (n = 512; n < k.w.len && k.w.p[n] == 'x'; n++)
			continue;
		assert_true(
		    becomes[i] < SIZE ? n < 512 + SIZE : n == 512 + SIZE);
		for (; n < k.w.len; n++)
			assert_int_equal(k.w.p[n], 0);
		packing_free(&k);
	}
}

static void
test_same_bytes(void **state)
{
	struct packing k;
	struct wbuf first;
	uint16_t how;

	packing_new(&k);
	for (how = 0; how <= PF_GZIP; how += PF_GZIP) {
		k.b.flags = how;
		assert_int_equal(packed(&k, keep_cb, NULL), C_OK);
		first = k.w;
		wbuf_init(&k.w, 4 * SIZE);
		assert_int_equal(packed(&k, keep_cb, NULL), C_OK);
		assert_int_equal(k.w.len, first.len);
		assert_memory_equal(k.w.p, first.p, first.len);
		assert_true(how != 0 ? first.len < 2000 : first.len == whole());
		wbuf_free(&first);
		assert_int_equal(packed(&k, full_cb, NULL), C_SRV_UNAVAILABLE);
	}
	packing_free(&k);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_changes),
	    cmocka_unit_test(test_same_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
