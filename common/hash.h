/*
 * SPDX-License-Identifier: ISC
 *
 * SHA-256 and HMAC-SHA-256 (BearSSL), a hash for tables, constant-time
 * comparison, random bytes, base64, hex.  Pure but for random_bytes.
 */
#ifndef ABX_HASH_H
#define ABX_HASH_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_LEN 32

void sha256(const void *, size_t, uint8_t out[SHA256_LEN]);
/* The same in pieces.  NULL when out of memory; sha256_end frees, and gives
 * the digest when out is not NULL. */
struct sha256_ctx;
struct sha256_ctx *sha256_new(void);
void sha256_add(struct sha256_ctx *, const void *, size_t);
void sha256_end(struct sha256_ctx *, uint8_t *out);
void hmac_sha256(const void *key, size_t keylen, const void *, size_t,
    uint8_t out[SHA256_LEN]);
/* FNV-1a with 32 bits (http://www.isthe.com/chongo/tech/comp/fnv/), for tables
 * that are bounded: who chooses keys can find some that share a bucket. */
uint32_t fnv32(const void *, size_t n);
/* 1 when equal; time depends on n only. */
int ct_equal(const void *, const void *, size_t n);
/* Fill from getrandom(2); aborts when the kernel cannot. */
void random_bytes(void *, size_t);
/* Lower-case hex into out of 2n+1 bytes. */
void hex_encode(const void *, size_t n, char *out);
/* The value of a hex digit, -1 when it is none. */
int hex_digit(char);
/* Exactly 2n hex digits into n bytes: 0, else -1. */
int hex_decode(const char *, uint8_t *out, size_t n);
/* base64url without padding into out; outsize >= (n*4+2)/3+1.  Returns the
 * length, or -1 when it does not fit. */
int base64url_encode(const void *, size_t n, char *out, size_t outsize);
/* RFC 4648 base64 with padding; outsize >= 4*((n+2)/3)+1.  Length or -1. */
int base64_encode(const void *, size_t n, char *out, size_t outsize);
/* Strict decoder (padding required, no white space).  Length or -1. */
int base64_decode(const char *, size_t n, uint8_t *out, size_t outsize);
/* "r-" and 128 random bits; out is ABX_REQID_LEN + 1 bytes. */
void request_id(char *out);
/* 1 when n bytes are well-formed UTF-8 (RFC 3629; no surrogates). */
int utf8_valid(const void *, size_t n);

#endif
