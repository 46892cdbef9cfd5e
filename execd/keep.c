/*
 * SPDX-License-Identifier: ISC
 *
 * Bounded capture of a stream and the queue of frames.  Pure.
 */
#include "execd/keep.h"

#include <stdlib.h>
#include <string.h>

#include "common/frame.h"

#define RING_FIRST 4096
#define FRAMES_KEPT (256 * 1024)

void
keep_init(struct keep *k, uint64_t max, int head_tail)
{
	memset(k, 0, sizeof(*k));
	k->head_max = head_tail ? max / 5 * 2 + max % 5 * 2 / 5 : max;
	if (max - k->head_max > SIZE_MAX / 2)
		k->ring_max = SIZE_MAX / 2;
	else
		k->ring_max = (size_t)(max - k->head_max);
}

void
keep_free(struct keep *k)
{
	free(k->ring);
	memset(k, 0, sizeof(*k));
}

/* Make the ring hold need bytes if it may; it only grows before it wraps, so
 * its bytes start at 0 then.  What memory denies is dropped. */
static void
ring_grow(struct keep *k, size_t need)
{
	size_t cap = k->ring_cap == 0 ? RING_FIRST : k->ring_cap;
	uint8_t *p;

	if (need > k->ring_max)
		need = k->ring_max;
	if (need <= k->ring_cap || k->ring_pos != 0)
		return;
	while (cap < need)
		cap *= 2;
	if (cap > k->ring_max)
		cap = k->ring_max;
	if ((p = realloc(k->ring, cap)) == NULL)
		return;
	k->ring = p;
	k->ring_cap = cap;
}

/* Is it a byte within a character? */
static int
inner(uint8_t c)
{
	return (c & 0xc0) == 0x80;
}

/* Bytes that the character at the end of these lacks, if it is one. */
static size_t
missing(const uint8_t last[3])
{
	size_t back, want;
	uint8_t c;

	for (back = 1; back <= 3; back++) {
		c = last[3 - back];
		if (inner(c))
			continue;
		want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		return want > back ? want - back : 0;
	}
	return 0;
}

/* There will be a cut, behind the head: its last character is completed from
 * what is in the ring, which did not wrap yet, and from the bytes that come.
 * How many of those it takes. */
static size_t
complete(struct keep *k, const uint8_t *p, size_t n)
{
	size_t want = missing(k->last), own = 0, from = 0;
	uint8_t c;

	k->cut = 1;
	if (k->dropped > 0)
		return 0; /* for want of memory: it may have wrapped */
	while (k->nedge < want && k->ring_max > 0) {
		if (own < k->ring_len)
			c = k->ring[own];
		else if (from < n)
			c = p[from];
		else
			break;
		if (!inner(c))
			break;
		if (own < k->ring_len)
			own++;
		else
			from++;
		k->edge[k->nedge++] = c;
		k->ring_max--;
	}
	k->ring_len -= own;
	if (own > 0)
		memmove(k->ring, k->ring + own, k->ring_len);
	return from;
}

static void
ring_put(struct keep *k, const uint8_t *p, size_t n)
{
	size_t over, at, m, cap;

	if (!k->cut && k->ring_len + n > k->ring_max) {
		m = complete(k, p, n);
		p += m;
		n -= m;
	}
	ring_grow(k, k->ring_len + n);
	cap = k->ring_cap < k->ring_max ? k->ring_cap : k->ring_max;
	if (n > cap) {
		/* only the end can stay */
		k->dropped += n - cap;
		p += n - cap;
		n = cap;
	}
	if (n == 0)
		return;
	over = k->ring_len + n > cap ? k->ring_len + n - cap : 0;
	k->dropped += over;
	k->ring_pos = (k->ring_pos + over) % k->ring_cap;
	k->ring_len -= over;
	at = (k->ring_pos + k->ring_len) % k->ring_cap;
	m = k->ring_cap - at < n ? k->ring_cap - at : n;
	memcpy(k->ring + at, p, m);
	memcpy(k->ring, p + m, n - m);
	k->ring_len += n;
}

static void
note_last(struct keep *k, const uint8_t *p, size_t n)
{
	const size_t all = sizeof(k->last);

	if (n < all)
		memmove(k->last, k->last + n, all - n);
	else {
		p += n - all;
		n = all;
	}
	if (n > 0)
		memcpy(k->last + all - n, p, n);
}

size_t
keep_take(struct keep *k, const uint8_t *p, size_t n)
{
	uint64_t room = k->head_max - k->head;
	size_t now = n > room ? (size_t)room : n;

	k->head += now;
	note_last(k, p, now);
	if (n > now && k->ring_max > 0)
		ring_put(k, p + now, n - now);
	else
		k->dropped += n - now;
	return now;
}

/* The end of a character of which the beginning is gone. */
static void
skip_inner(struct keep *k)
{
	size_t i;

	for (i = 0; i < 3 && k->ring_len > 0 && inner(k->ring[k->ring_pos]);
	     i++) {
		k->ring_pos = (k->ring_pos + 1) % k->ring_cap;
		k->ring_len--;
		k->dropped++;
	}
}

void
keep_tail(struct keep *k, const uint8_t *p[KEEP_PIECES], size_t n[KEEP_PIECES])
{
	size_t first;

	if (k->dropped > 0)
		skip_inner(k);
	first = k->ring_cap - k->ring_pos;
	if (first > k->ring_len)
		first = k->ring_len;
	p[0] = k->edge;
	n[0] = k->nedge;
	p[1] = k->ring == NULL ? NULL : k->ring + k->ring_pos;
	n[1] = first;
	p[2] = k->ring;
	n[2] = k->ring_len - first;
}

/* ---- frames ---- */

void
frames_free(struct frames *f)
{
	free(f->p);
	memset(f, 0, sizeof(*f));
}

static int
frames_room(struct frames *f, size_t need)
{
	size_t cap = f->cap == 0 ? 4096 : f->cap;
	uint8_t *p;

	if (f->off > 0 && f->cap - f->len < need) {
		memmove(f->p, f->p + f->off, f->len - f->off);
		f->len -= f->off;
		f->off = 0;
	}
	if (f->cap - f->len >= need)
		return 0;
	if (__builtin_add_overflow(f->len, need, &need))
		return -1;
	while (cap < need)
		if (__builtin_mul_overflow(cap, 2, &cap))
			return -1;
	if ((p = realloc(f->p, cap)) == NULL)
		return -1;
	f->p = p;
	f->cap = cap;
	return 0;
}

int
frames_put(struct frames *f, uint8_t kind, const uint8_t *p, size_t n)
{
	size_t m, need;

	if (__builtin_add_overflow(n, (n / FRAME_MAX + 1) * FRAME_HDR, &need) ||
	    frames_room(f, need) == -1)
		return -1;
	while (n > 0) {
		m = n > FRAME_MAX ? FRAME_MAX : n;
		frame_head(f->p + f->len, kind, (uint32_t)m);
		memcpy(f->p + f->len + FRAME_HDR, p, m);
		f->len += FRAME_HDR + m;
		p += m;
		n -= m;
	}
	return 0;
}

size_t
frames_left(const struct frames *f)
{
	return f->len - f->off;
}

void
frames_sent(struct frames *f, size_t n)
{
	f->off += n;
	if (f->off < f->len)
		return;
	f->off = f->len = 0;
	/* what a slow reader has made of it is not kept */
	if (f->cap > FRAMES_KEPT)
		frames_free(f);
}
