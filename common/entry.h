/*
 * SPDX-License-Identifier: ISC
 *
 * How a directory entry looks to a client, written once for the listings of
 * the listener and the stat of the monitor: JSON strings, entity tags, times.
 * Pure.
 */
#ifndef ABX_ENTRY_H
#define ABX_ENTRY_H

#include <stddef.h>
#include <stdint.h>

struct wbuf;
struct list_entry;

#define ETAG_SIZE 25	 /* quoted, 22 characters, and the NUL */
#define RFC3339_SIZE 25	 /* 2023-11-14T22:13:20.250Z and the NUL */
#define HTTPDATE_SIZE 30 /* Tue, 14 Nov 2023 22:13:20 GMT and the NUL */

/* n bytes as a JSON string with its quotes (RFC 8259).  A byte that is not
 * part of well-formed UTF-8 becomes U+FFFD. */
void json_str_put(struct wbuf *, const void *, size_t n);
/* An unsigned decimal. */
void json_uint_put(struct wbuf *, uint64_t);
/* A C string as it is. */
void json_raw_put(struct wbuf *, const char *);

/* The strong entity tag (RFC 9110, 8.8.3) of a file in this state, quotes
 * included; download, stat and list agree on it. */
void etag_make(char out[ETAG_SIZE], uint64_t dev, uint64_t ino, uint64_t size,
    int64_t mtime, uint32_t mtime_ns);
/* Whether a list of tags, or "*", as If-Match and If-None-Match have it (RFC
 * 9110, 13.1) holds a tag: 1, 0, or -1 when it is no such list.  weak: by weak
 * comparison, else only strong tags count. */
int etag_listed(const char *, size_t, const char *etag, int weak);
/* UTC with milliseconds (RFC 3339); years beyond 0 to 9999 are clamped. */
void time_rfc3339(char out[RFC3339_SIZE], int64_t sec, uint32_t ns);
/* IMF-fixdate (RFC 9110, 5.6.7). */
void time_http(char out[HTTPDATE_SIZE], int64_t sec);

/* A path as a member of that name (without a comma in front), and its exact
 * bytes as NAME_base64 when it is not UTF-8: the caller's spelling of a
 * directory and len bytes below it, at most ABX_PATH_MAX. */
void entry_path_put(struct wbuf *, const char *member, const char *path,
    const char *name, size_t len);
/* The word for an enum facts_kind. */
const char *entry_type(uint8_t);
/* One entry as a JSON object.  path is the caller's spelling: of the entry
 * itself, or with join of the directory that the name is appended to. */
void entry_put(
    struct wbuf *, const char *path, int join, const struct list_entry *);

#endif
