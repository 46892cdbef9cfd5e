/*
 * SPDX-License-Identifier: ISC
 *
 * Chunked bodies: sizes of hex digits only, CR LF and nothing else at each
 * end of line, bounded extensions and trailers, which are checked and
 * dropped (design: framing).  Pure.
 */
#include "listener/http_chunk.h"

#include <string.h>

#include "listener/http_parse.h"

enum {
	S_SIZE,
	S_EXT,
	S_SIZE_LF,
	S_DATA,
	S_DATA_CR,
	S_DATA_LF,
	S_LINE, /* start of a trailer line, or of the last empty line */
	S_NAME,
	S_VALUE,
	S_VALUE_LF,
	S_END_LF,
	S_END
};

void
chunk_init(struct chunk_dec *d)
{
	memset(d, 0, sizeof(*d));
}

static int
hex_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return -1;
}

static int
size_byte(struct chunk_dec *d, uint8_t c)
{
	int v = hex_value(c);

	if (v >= 0) {
		/* leading zeros count too, so the line stays bounded */
		if (++d->digits > 16 || d->left > (uint64_t)INT64_MAX >> 4)
			return -1;
		d->left = d->left << 4 | (uint64_t)v;
		return S_SIZE;
	}
	if (d->digits == 0)
		return -1;
	d->count = 0;
	return c == ';' ? S_EXT : c == '\r' ? S_SIZE_LF : -1;
}

static int
trailer_byte(struct chunk_dec *d, uint8_t c)
{
	if (++d->count > CHUNK_TRAILER_MAX)
		return -1;
	switch (d->state) {
	case S_LINE:
		return c == '\r' ? S_END_LF : http_is_token(c) ? S_NAME : -1;
	case S_NAME:
		return c == ':' ? S_VALUE : http_is_token(c) ? S_NAME : -1;
	case S_VALUE:
		return c == '\r' ? S_VALUE_LF : http_is_value(c) ? S_VALUE : -1;
	case S_VALUE_LF:
		return c == '\n' ? S_LINE : -1;
	default:
		return c == '\n' ? S_END : -1;
	}
}

/* The state after one byte that is not data, or -1. */
static int
next_state(struct chunk_dec *d, uint8_t c)
{
	switch (d->state) {
	case S_SIZE:
		return size_byte(d, c);
	case S_EXT:
		if (c == '\r')
			return S_SIZE_LF;
		return ++d->count < CHUNK_EXT_MAX && http_is_value(c) ? S_EXT
								      : -1;
	case S_SIZE_LF:
		d->count = 0;
		d->digits = 0;
		return c != '\n' ? -1 : d->left > 0 ? S_DATA : S_LINE;
	case S_DATA_CR:
		return c == '\r' ? S_DATA_LF : -1;
	case S_DATA_LF:
		return c == '\n' ? S_SIZE : -1;
	default:
		return trailer_byte(d, c);
	}
}

int
chunk_feed(struct chunk_dec *d, const uint8_t **p, size_t *n,
    const uint8_t **data, size_t *len)
{
	int s;

	while (d->state != S_END && *n > 0) {
		if (d->state == S_DATA) {
			*data = *p;
			*len = d->left < *n ? (size_t)d->left : *n;
			*p += *len;
			*n -= *len;
			d->left -= *len;
			if (d->left == 0)
				d->state = S_DATA_CR;
			return 1;
		}
		if ((s = next_state(d, **p)) == -1)
			return -1;
		d->state = (uint8_t)s;
		(*p)++;
		(*n)--;
	}
	return d->state == S_END ? 2 : 0;
}
