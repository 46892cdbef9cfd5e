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

static void
ring_put(struct keep *k, const uint8_t *p, size_t n)
{
	size_t over, at, m;

	ring_grow(k, k->ring_len + n);
	if (n > k->ring_cap) {
		/* only the end can stay */
		k->dropped += n - k->ring_cap;
		p += n - k->ring_cap;
		n = k->ring_cap;
	}
	if (n == 0)
		return;
	over =
	    k->ring_len + n > k->ring_cap ? k->ring_len + n - k->ring_cap : 0;
	k->dropped += over;
	k->ring_pos = (k->ring_pos + over) % k->ring_cap;
	k->ring_len -= over;
	at = (k->ring_pos + k->ring_len) % k->ring_cap;
	m = k->ring_cap - at < n ? k->ring_cap - at : n;
	memcpy(k->ring + at, p, m);
	memcpy(k->ring, p + m, n - m);
	k->ring_len += n;
}

size_t
keep_take(struct keep *k, const uint8_t *p, size_t n)
{
	uint64_t room = k->head_max - k->head;
	size_t now = n > room ? (size_t)room : n;

	k->head += now;
	if (n > now && k->ring_max > 0)
		ring_put(k, p + now, n - now);
	else
		k->dropped += n - now;
	return now;
}

void
keep_tail(const struct keep *k, const uint8_t *p[2], size_t n[2])
{
	size_t first = k->ring_cap - k->ring_pos;

	if (first > k->ring_len)
		first = k->ring_len;
	p[0] = k->ring == NULL ? NULL : k->ring + k->ring_pos;
	n[0] = first;
	p[1] = k->ring;
	n[1] = k->ring_len - first;
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
