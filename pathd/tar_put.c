/*
 * SPDX-License-Identifier: ISC
 *
 * Heads of the tar streams that are written here, in GNU's form (tar(5)): a
 * name that does not fit a head comes as content of one before it, and a number
 * that does not fit its octal digits in base 256.  Pure.
 */
#include <stdio.h>
#include <string.h>

#include "pathd/tar.h"

unsigned long
tar_sum(const struct tar_block *b, int is_signed)
{
	const char *p = (const char *)b;
	const size_t at = offsetof(struct tar_block, sum);
	unsigned long sum = 0;
	size_t i;

	for (i = 0; i < sizeof(*b); i++)
		if (i >= at && i < at + sizeof(b->sum))
			sum += ' ';
		else if (is_signed)
			sum += (unsigned long)(signed char)p[i];
		else
			sum += (unsigned char)p[i];
	return sum;
}

size_t
tar_pad(uint64_t size)
{
	return (size_t)(-size % TAR_BLOCK);
}

/* All digits of a field but for the NUL at its end; what does not fit into
 * them, in base 256. */
static void
put_number(char *f, size_t n, uint64_t v)
{
	uint64_t rest = v;
	size_t i;

	f[n - 1] = '\0';
	for (i = n - 1; i-- > 0; rest >>= 3)
		f[i] = (char)('0' + (rest & 7));
	if (rest == 0)
		return;
	for (i = n; i-- > 0; v >>= 8)
		f[i] = (char)(v & 0xff);
	f[0] = (char)0x80;
}

/* As much of it as there is room for: the whole, or a long one came before. */
static void
put_text(char *f, size_t n, const char *s)
{
	memcpy(f, s, strnlen(s, n));
}

static void
put_block(struct wbuf *w, struct tar_block *b)
{
	memcpy(b->magic, "ustar  ", sizeof(b->magic));
	put_number(b->uid, sizeof(b->uid), 0);
	put_number(b->gid, sizeof(b->gid), 0);
	put_number(b->sum, sizeof(b->sum) - 1, tar_sum(b, 0));
	b->sum[sizeof(b->sum) - 1] = ' ';
	wput_raw(w, b, sizeof(*b));
}

static void
put_long(struct wbuf *w, char type, const char *s)
{
	static const uint8_t zeros[TAR_BLOCK];
	struct tar_block b = {.name = "././@LongLink", .type = type};
	size_t n = strlen(s) + 1;

	put_number(b.mode, sizeof(b.mode), 0);
	put_number(b.size, sizeof(b.size), n);
	put_number(b.mtime, sizeof(b.mtime), 0);
	put_block(w, &b);
	wput_raw(w, s, n);
	wput_raw(w, zeros, tar_pad(n));
}

void
tar_put(struct wbuf *w, const struct tar_head *h)
{
	struct tar_block b = {.type = h->type};

	if (h->link != NULL && strlen(h->link) > sizeof(b.link))
		put_long(w, 'K', h->link);
	if (strlen(h->path) > sizeof(b.name))
		put_long(w, 'L', h->path);
	put_text(b.name, sizeof(b.name), h->path);
	if (h->link != NULL)
		put_text(b.link, sizeof(b.link), h->link);
	put_number(b.mode, sizeof(b.mode), h->mode & 0777);
	put_number(b.size, sizeof(b.size), h->size);
	/* nobody reads a time before 1970 the same way */
	put_number(
	    b.mtime, sizeof(b.mtime), h->mtime > 0 ? (uint64_t)h->mtime : 0);
	put_block(w, &b);
}
