/*
 * SPDX-License-Identifier: ISC
 *
 * Tar streams: heads as they are written and read back, every form that others
 * write, what is broken, and gzip around it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/abx.h"
#include "pathd/gz.h"
#include "pathd/tar.h"

/* ---- streams made by hand ---- */

struct made {
	struct wbuf w;
	size_t at, step; /* of reading: that much at a time */
};

static void
made_init(struct made *m)
{
	wbuf_init(&m->w, 4 * 1024 * 1024);
	m->at = 0;
	m->step = 64 * 1024;
}

static int
made_more(void *arg, const uint8_t **p, size_t *n)
{
	struct made *m = arg;
	size_t left = m->w.len - m->at;

	*p = m->w.p + m->at;
	*n = left < m->step ? left : m->step;
	m->at += *n;
	return *n > 0;
}

static void
add_raw(struct made *m, const void *p, size_t n)
{
	static const uint8_t zeros[TAR_BLOCK];

	wput_raw(&m->w, p, n);
	wput_raw(&m->w, zeros, tar_pad(n));
	assert_false(m->w.err);
}

/* A head whose sum is right, as it is now or as it was of old. */
static void
add_block(struct made *m, struct tar_block *b, int is_signed)
{
	char sum[9];

	snprintf(sum, sizeof(sum), "%06lo", tar_sum(b, is_signed));
	memcpy(b->sum, sum, sizeof(b->sum));
	wput_raw(&m->w, b, sizeof(*b));
}

static struct tar_block
block(const char *name, char type, const char *size)
{
	struct tar_block b = {.mode = "0000644", .type = type};

	memcpy(b.name, name, strnlen(name, sizeof(b.name)));
	memcpy(b.size, size, strnlen(size, sizeof(b.size)));
	memcpy(b.magic, "ustar\00000", sizeof(b.magic));
	return b;
}

static void
add(struct made *m, const char *name, char type, const char *content)
{
	char size[24];
	struct tar_block b;

	snprintf(size, sizeof(size), "%011zo", strlen(content));
	b = block(name, type, size);
	add_block(m, &b, 0);
	add_raw(m, content, strlen(content));
}

static void
add_pax(struct made *m, const char *const *attrs)
{
	char text[8192] = "", line[4400];
	size_t n, len;

	for (; *attrs != NULL; attrs++) {
		n = strlen(*attrs) + 2; /* a blank and a newline */
		for (len = n + 1; (size_t)snprintf(line, sizeof(line),
				      "%zu %s\n", len, *attrs) != len;)
			len++;
		assert_true(strlcat(text, line, sizeof(text)) < sizeof(text));
	}
	add(m, "PaxHeaders/x", 'x', text);
}

static void
add_end(struct made *m)
{
	static const uint8_t zeros[TAR_TAIL];

	wput_raw(&m->w, zeros, sizeof(zeros));
}

/* All of it as text: type, mode, size, name, link, content with its holes. */
static enum code
told(struct made *m, char *out, size_t size)
{
	struct tar_in t;
	struct member e;
	const uint8_t *p;
	uint64_t off;
	size_t n, used = 0;
	int rc;

	out[0] = '\0';
	m->at = 0;
	tar_in_init(&t, made_more, m);
	while ((rc = tar_next(&t, &e)) == 1) {
		used += (size_t)snprintf(out + used, size - used,
		    "%u %o %ju %.90s %.90s", e.type, e.mode, (uintmax_t)e.size,
		    e.path, e.link);
		member_clear(&e);
		for (; (rc = tar_data(&t, &off, &p, &n)) == 1;)
			used += (size_t)snprintf(out + used, size - used,
			    " %ju:%.*s", (uintmax_t)off, (int)n,
			    (const char *)p);
		used += (size_t)snprintf(out + used, size - used, "\n");
		assert_true(used < size);
		if (rc == -1)
			break;
	}
	rc = rc == -1 ? (int)t.code : (int)C_OK;
	tar_in_clear(&t);
	return (enum code)rc;
}

static void
want(struct made *m, const char *text)
{
	char out[8192];

	m->step = 64 * 1024;
	assert_int_equal(told(m, out, sizeof(out)), C_OK);
	assert_string_equal(out, text);
	wbuf_free(&m->w);
}

/* ---- what is written ---- */

static void
test_head(void **state)
{
	struct tar_head h = {'0', 0104755, 1700000000, 3, "a/b", NULL};
	static const char text[] =
	    "0000755\0000000000\0000000000\00000000000003\00014524770400\000";
	struct wbuf w;

	wbuf_init(&w, 65536);
	tar_put(&w, &h);
	assert_int_equal(w.len, TAR_BLOCK);
	assert_memory_equal(w.p, "a/b\0", 4);
	assert_memory_equal(w.p + 100, text, sizeof(text) - 1);
	assert_memory_equal(w.p + 257, "ustar  \0", 8);
	assert_int_equal(strtoul((char *)w.p + 148, NULL, 8),
	    tar_sum((const struct tar_block *)(const void *)w.p, 0));
	assert_memory_equal(w.p + 154, "\0 0\0", 4);
	wbuf_free(&w);
	assert_int_equal(tar_pad(0), 0);
	assert_int_equal(tar_pad(1), 511);
	assert_int_equal(tar_pad(512), 0);
	assert_int_equal(tar_pad(1ULL << 40), 0);
}

/* What is written is read as what it was, names of any bytes and length. */
static void
test_round(void **state)
{
	static const size_t lengths[] = {1, 99, 100, 101, 511, 512, 4095, 4096};
	static const uint64_t sizes[] = {
	    0, 1, 077777777777ULL, 1ULL << 33, 1ULL << 40, INT64_MAX};
	char path[ABX_PATH_MAX + 2], link[ABX_PATH_MAX + 2];
	struct tar_head h = {'2', 0777, -1, 0, path, link};
	struct member e;
	struct made m;
	struct tar_in t;
	size_t i;

	for (i = 0; i < nitems(lengths); i++) {
		memset(path, 0xff, lengths[i]);
		path[lengths[i]] = '\0';
		memset(link, 'l', lengths[i]);
		link[lengths[i]] = '\0';
		made_init(&m);
		tar_put(&m.w, &h);
		tar_in_init(&t, made_more, &m);
		assert_int_equal(tar_next(&t, &e), 1);
		assert_string_equal(e.path, path);
		assert_string_equal(e.link, link);
		assert_int_equal(e.type, ME_LINK);
		member_clear(&e);
		assert_int_equal(tar_next(&t, &e), 0);
		tar_in_clear(&t);
		wbuf_free(&m.w);
	}
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	made_init(&m);
	tar_put(&m.w, &h);
	assert_int_equal(told(&m, link, sizeof(link)), C_FS_NAME_TOO_LONG);
	wbuf_free(&m.w);
	h = (struct tar_head){'0', 0600, 0, 0, "a", NULL};
	for (i = 0; i < nitems(sizes); i++) {
		made_init(&m);
		h.size = sizes[i];
		tar_put(&m.w, &h);
		tar_in_init(&t, made_more, &m);
		assert_int_equal(tar_next(&t, &e), 1);
		assert_true(e.size == sizes[i]);
		member_clear(&e);
		tar_in_clear(&t);
		wbuf_free(&m.w);
	}
}

/* ---- what others write ---- */

static void
test_types(void **state)
{
	struct tar_block b;
	struct made m;

	made_init(&m);
	add(&m, "f", '0', "abc");
	add(&m, "old", '\0', "d");
	add(&m, "strange", 'Q', "e");
	add(&m, "dir", '5', "");
	add(&m, "olddir/", '0', "");
	add(&m, "fifo", '6', "");
	add(&m, "rest", 'M', "");
	b = block("l", '2', "00000000005"); /* a size that says nothing */
	memcpy(b.link, "to", 2);
	add_block(&m, &b, 0);
	b.type = '1';
	add_block(&m, &b, 0);
	add(&m, "label", 'V', "passed over");
	add(&m, "global", 'g', "14 path=other\n");
	add(&m, "g", '0', "");
	add_end(&m);
	wput_raw(&m.w, "rest", 4);
	want(&m,
	    "1 644 3 f  0:abc\n1 644 1 old  0:d\n1 644 1 strange  0:e\n"
	    "2 644 0 dir \n2 644 0 olddir/ \n5 644 0 fifo \n5 644 0 rest \n"
	    "3 644 0 l to\n4 644 0 l to\n1 644 0 g \n");
}

static void
test_numbers(void **state)
{
	struct tar_block b;
	struct made m;

	made_init(&m);
	b = block("blanks", '0', "      2     ");
	add_block(&m, &b, 0);
	add_raw(&m, "ab", 2);
	b = block("full", '0', "000000000002");
	add_block(&m, &b, 0);
	add_raw(&m, "cd", 2);
	b = block("none", '2', "");
	add_block(&m, &b, 0);
	b = block("\xc3\xbc", '0', "0"); /* signed sums are others */
	add_block(&m, &b, 1);
	b = block("256", '0', "");
	memcpy(b.size, "\x80\0\0\0\0\0\0\0\0\0\0\1", 12);
	add_block(&m, &b, 0);
	add_raw(&m, "e", 1);
	want(&m, "1 644 2 blanks  0:ab\n1 644 2 full  0:cd\n3 644 0 none \n"
		 "1 644 0 \xc3\xbc \n1 644 1 256  0:e\n");
}

static void
test_names(void **state)
{
	static const char *const attrs[] = {"path=p\xff/x", "mtime=1.5",
	    "linkpath=elsewhere", "SCHILY.xattr.user.a=b\nc", NULL};
	struct tar_block b = block("name", '0', "0");
	struct made m;

	made_init(&m);
	memcpy(b.u.ustar.prefix, "pre/fix", 7);
	add_block(&m, &b, 0);
	memcpy(b.magic, "ustar  ", 8); /* GNU has something else there */
	add_block(&m, &b, 0);
	add(&m, "././@LongLink", 'L', "long");
	add(&m, "././@LongLink", 'K', "target");
	add(&m, "n", '2', "");
	add_pax(&m, attrs);
	add(&m, "n", '2', "");
	add(&m, "n", '0', "");
	/* of a second name the size counts since pax */
	add_pax(&m, attrs);
	add(&m, "n", '1', "x");
	want(&m, "1 644 0 pre/fix/name \n1 644 0 name \n3 644 0 long target\n"
		 "3 644 0 p\xff/x elsewhere\n1 644 0 n \n"
		 "4 644 0 p\xff/x elsewhere 0:x\n");
}

/* ---- holes ---- */

static void
test_holes_old(void **state)
{
	struct tar_block b = block("s", 'S', "00000000007");
	char next[TAR_BLOCK] = "";
	struct made m;

	made_init(&m);
	memcpy(b.magic, "ustar  ", 8);
	memcpy(b.u.gnu.map[0], "00000000001\00000000000002", 24);
	memcpy(b.u.gnu.map[1], "00000000010\00000000000001", 24);
	memcpy(b.u.gnu.map[2], "00000000020\00000000000001", 24);
	memcpy(b.u.gnu.map[3], "00000000030\00000000000001", 24);
	memcpy(b.u.gnu.real, "00000001000", 12);
	b.u.gnu.more = 1;
	add_block(&m, &b, 0);
	memcpy(next, "00000000040\00000000000002", 24);
	memcpy(next + 24, "00000001000\00000000000000", 24);
	wput_raw(&m.w, next, sizeof(next));
	add_raw(&m, "abcdefg", 7);
	add(&m, "after", '0', "h");
	want(&m, "1 644 512 s  1:ab 8:c 16:d 24:e 32:fg\n"
		 "1 644 1 after  0:h\n");
}

static void
test_holes_pax(void **state)
{
	static const char *const v00[] = {"GNU.sparse.size=100",
	    "GNU.sparse.numblocks=2", "GNU.sparse.offset=5",
	    "GNU.sparse.numbytes=2", "GNU.sparse.offset=50",
	    "GNU.sparse.numbytes=1", NULL};
	static const char *const v01[] = {"GNU.sparse.size=100",
	    "GNU.sparse.name=real", "GNU.sparse.map=5,2,50,1", NULL};
	static const char *const v10[] = {"GNU.sparse.major=1",
	    "GNU.sparse.minor=0", "GNU.sparse.name=real",
	    "GNU.sparse.realsize=100", "path=GNUSparseFile.0/real", NULL};
	static const char *const none[] = {
	    "GNU.sparse.size=100", "GNU.sparse.map=", NULL};
	char text[TAR_BLOCK + 4];
	struct made m;

	made_init(&m);
	add_pax(&m, v00);
	add(&m, "s", '0', "abc");
	add_pax(&m, v01);
	add(&m, "s", '0', "abc");
	add_pax(&m, v10);
	memset(text, '.', sizeof(text)); /* padding */
	memcpy(text, "2\n5\n2\n50\n1\n", 11);
	memcpy(text + TAR_BLOCK, "abc", 4);
	add(&m, "s", '0', text);
	add_pax(&m, none);
	add(&m, "n", '0', "");
	want(&m, "1 644 100 s  5:ab 50:c\n1 644 100 real  5:ab 50:c\n"
		 "1 644 100 real  5:ab 50:c\n1 644 100 n \n");
}

/* ---- what is broken ---- */

static void
refused(struct made *m, enum code code, const char *what)
{
	char out[8192];
	enum code is = told(m, out, sizeof(out));

	if (is != code)
		fail_msg("%s: %d instead of %d", what, is, code);
	wbuf_free(&m->w);
}

static void
test_broken_holes(void **state)
{
	static const char *const bad[][4] = {
	    {"GNU.sparse.size=100", "GNU.sparse.map=5"},
	    {"GNU.sparse.size=100", "GNU.sparse.map=5,x"},
	    {"GNU.sparse.size=100", "GNU.sparse.map=5,2"},
	    {"GNU.sparse.size=100", "GNU.sparse.map=5,4"},
	    {"GNU.sparse.size=100", "GNU.sparse.map=98,3"},
	    {"GNU.sparse.size=100", "GNU.sparse.map="},
	    {"GNU.sparse.map=5,3"},
	    {"GNU.sparse.size=2", "GNU.sparse.map=0,2,1,1"},
	    {"GNU.sparse.size=9223372036854775807",
		"GNU.sparse.map=9223372036854775807,3"},
	    {"GNU.sparse.size=9223372036854775808", "GNU.sparse.map=5,3"},
	    {"GNU.sparse.size=-1", "GNU.sparse.map=5,3"},
	    {"GNU.sparse.size=100", "GNU.sparse.major=1"},
	    {"GNU.sparse.size=100", "GNU.sparse.major=2"},
	};
	struct made m;
	size_t i;

	for (i = 0; i < nitems(bad); i++) {
		made_init(&m);
		add_pax(&m, bad[i]);
		add(&m, "s", '0', "abc");
		refused(&m, C_ARGS_INVALID, bad[i][0]);
	}
}

static void
test_broken_heads(void **state)
{
	static const char *const sizes[] = {"-1", "8", "0x1",
	    "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	    "\x80\1\1\1\1\1\1\1\1\1\1\1"};
	static const char *const records[] = {"x", "4 a=", "5 a=b", "6 a=b\nx",
	    "99 a=b\n", "0 a=b\n", " a=b\n", "4 ab\n",
	    "18446744073709551622 a=b\n", "9 size=x\n", "8 size=\n"};
	struct tar_block b;
	struct made m;
	size_t i;

	for (i = 0; i < nitems(sizes); i++) {
		made_init(&m);
		b = block("a", '0', sizes[i]);
		add_block(&m, &b, 0);
		add_end(&m);
		refused(&m, C_ARGS_INVALID, sizes[i]);
	}
	for (i = 0; i < nitems(records); i++) {
		made_init(&m);
		add(&m, "x", 'x', records[i]);
		add(&m, "a", '0', "");
		refused(&m, C_ARGS_INVALID, records[i]);
	}
	made_init(&m);
	b = block("a", 'x', "00004000001"); /* 1 MiB and one */
	add_block(&m, &b, 0);
	refused(&m, C_ARGS_INVALID, "a head that is too large");
	made_init(&m);
	b = block("a", 'x', "00000000014");
	add_block(&m, &b, 0);
	add_raw(&m, "12 path=a\0b\n", 12);
	add(&m, "a", '0', "");
	refused(&m, C_ARGS_INVALID, "a name with NUL");
	made_init(&m);
	add(&m, "of star", 'S', "0");
	refused(&m, C_ARGS_INVALID, "holes that are not GNU's");
	made_init(&m);
	add(&m, "L", 'L', "name");
	add_end(&m);
	refused(&m, C_ARGS_INVALID, "a long name of nothing");
}

/* Wherever it is cut and however it comes: whole, or said to be broken. */
static void
test_cut(void **state)
{
	static const char *const attrs[] = {"path=p", NULL};
	char whole[8192], out[8192];
	struct made m;
	size_t i, len;

	made_init(&m);
	add_pax(&m, attrs);
	add(&m, "f", '0', "abc");
	add(&m, "x", '0', "");
	for (m.step = 1; m.step < 2000; m.step += 499) {
		assert_int_equal(told(&m, out, sizeof(out)), C_OK);
		if (m.step > 1000)
			assert_string_equal(
			    out, "1 644 3 p  0:abc\n1 644 0 x \n");
	}
	assert_int_equal(told(&m, whole, sizeof(whole)), C_OK);
	len = m.w.len;
	for (i = 0; i < len; i++) {
		m.w.len = i;
		/* the last member is whole, and so may be what is there */
		if (i == len - TAR_BLOCK)
			assert_int_equal(told(&m, out, sizeof(out)), C_OK);
		else
			assert_int_equal(
			    told(&m, out, sizeof(out)), C_ARGS_INVALID);
	}
	m.w.len = len;
	m.w.p[3 * TAR_BLOCK - 20] ^= 1; /* the head of f */
	refused(&m, C_ARGS_INVALID, "a wrong sum");
	made_init(&m);
	add_end(&m);
	assert_int_equal(told(&m, out, sizeof(out)), C_OK);
	wbuf_free(&m.w);
}

/* ---- gzip ---- */

static int
keep_cb(void *arg, const void *p, size_t n)
{
	wput_raw(arg, p, n);
	return 0;
}

static void
pressed(struct wbuf *w, const void *p, size_t n)
{
	struct gz_out *g = gz_out_new(keep_cb, w);
	size_t half = n / 2;

	assert_non_null(g);
	assert_int_equal(gz_out_put(g, p, half, 0), 0);
	assert_int_equal(
	    gz_out_put(g, (const uint8_t *)p + half, n - half, 1), 0);
	gz_out_free(g);
}

/* What is left of it, and how it ended. */
static int
unpressed(struct made *m, struct wbuf *out)
{
	struct gz_in *g = gz_in_new(made_more, m);
	const uint8_t *p;
	size_t n;
	int rc;

	assert_non_null(g);
	m->at = 0;
	wbuf_init(out, 16 * 1024 * 1024);
	while ((rc = gz_in_get(g, &p, &n)) == 1)
		wput_raw(out, p, n);
	gz_in_free(g);
	return rc;
}

static void
want_bytes(struct made *m, const void *p, size_t n)
{
	struct wbuf out;

	assert_int_equal(unpressed(m, &out), 0);
	assert_int_equal(out.len, n);
	assert_memory_equal(out.p, p, n);
	wbuf_free(&out);
}

static void
test_gzip(void **state)
{
	static const size_t steps[] = {1, 7, 64 * 1024};
	static uint8_t data[300000];
	struct wbuf out;
	struct made m;
	size_t i, len;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i < 200000 ? i * i >> 7 : 0);
	for (i = 0; i < nitems(steps); i++) {
		made_init(&m);
		m.step = steps[i];
		pressed(&m.w, data, sizeof(data));
		want_bytes(&m, data, sizeof(data));
		wput_raw(&m.w, "and garbage", 11);
		want_bytes(&m, data, sizeof(data));
		wbuf_free(&m.w);
		/* two in a row, and what is none at all */
		made_init(&m);
		m.step = steps[i];
		pressed(&m.w, data, 1000);
		len = m.w.len;
		pressed(&m.w, data + 1000, 1000);
		want_bytes(&m, data, 2000);
		m.w.len = len - 1;
		assert_int_equal(unpressed(&m, &out), -1);
		wbuf_free(&out);
		m.w.len = len;
		m.w.p[len - 5] ^= 1; /* the sum of what was pressed */
		assert_int_equal(unpressed(&m, &out), -1);
		wbuf_free(&out);
		wbuf_free(&m.w);
		made_init(&m);
		m.step = steps[i];
		wput_raw(&m.w, "plain", 5);
		want_bytes(&m, "plain", 5);
		wbuf_free(&m.w);
	}
	made_init(&m);
	pressed(&m.w, data, 0);
	want_bytes(&m, data, 0);
	wbuf_free(&m.w);
}

static int
stop_cb(void *arg, const void *p, size_t n)
{
	return -1;
}

static void
test_gzip_stops(void **state)
{
	struct gz_out *g = gz_out_new(stop_cb, NULL);

	assert_non_null(g);
	assert_int_equal(gz_out_put(g, "x", 1, 0), 0);
	assert_int_equal(gz_out_put(g, "x", 1, 1), -1);
	gz_out_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_head),
	    cmocka_unit_test(test_round),
	    cmocka_unit_test(test_types),
	    cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_holes_old),
	    cmocka_unit_test(test_holes_pax),
	    cmocka_unit_test(test_broken_holes),
	    cmocka_unit_test(test_broken_heads),
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_gzip),
	    cmocka_unit_test(test_gzip_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
