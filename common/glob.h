/*
 * SPDX-License-Identifier: ISC
 *
 * Path patterns of the policy (server.json(5), "Globs"): bytes, segments,
 * "**" for any number of segments, * ? [a-z] [!a-z] inside one.  Compiled
 * once, matched in time linear in the path; pure; never a regular expression.
 */
#ifndef ABX_GLOB_H
#define ABX_GLOB_H

#include <stddef.h>

struct glob;

/* Compile a pattern.  An absolute one ("/x/y") or a floating one ("**" or
 * "**" "/x", and a bare name without a slash, which floats) is complete by
 * itself; "a/b" is relative and needs an anchor (an absolute directory, ""
 * for "/"), which is taken literally.  anchor may be NULL when the pattern is
 * complete.  NULL with *why set to a constant sentence: too long, too many
 * segments, too many "**", bad class, NULL anchor for a relative one; *why is
 * NULL when out of memory. */
struct glob *glob_new(
    const char *pattern, const char *anchor, const char **why);
void glob_free(struct glob *);
/* 1 when the pattern is relative and needs an anchor. */
int glob_needs_anchor(const char *pattern);
/* 1 when the pattern matches the absolute, normal path itself or one of its
 * ancestors (a matched directory covers everything below it). */
int glob_covers(const struct glob *, const char *path);
/* 1 when it matches exactly this path. */
int glob_match(const struct glob *, const char *path);
/* 1 when it may match something below the absolute, normal path. */
int glob_below(const struct glob *, const char *path);
/* 1 when the one-segment pattern (no slash) matches the bytes; '/' is never
 * matched by a wildcard. */
int glob_segment(const char *pattern, const char *s, size_t len);
/* 1 when n bytes are a well-formed one-segment pattern (its classes end). */
int glob_segment_ok(const char *, size_t n);
/* 1 when a pattern matches the whole string, slash by slash; no wildcard
 * crosses a '/' and "**" means no more than "*". */
int glob_words(const char *pattern, const char *s);
/* The pattern as one absolute or floating text that glob_new(text, NULL)
 * takes back (wildcards in the anchor escaped as classes): new string, NULL
 * when out of memory or over ABX_PATH_MAX. */
char *glob_text(const char *pattern, const char *anchor);
/* What the pattern asks for below an absolute, normal directory, once for each
 * way in which its segments lead there: fn gets a rest as glob_quote takes it,
 * "" when the directory is covered.  A pattern that floats floats on and is not
 * told.  0, the first other answer of fn, or -1 when out of memory. */
int glob_rests(const struct glob *, const char *dir,
    int (*fn)(const char *rest, void *arg), void *arg);
/* An absolute path, taken literally, and rest, a pattern below it or "", as
 * one text that glob_new(text, NULL) takes.  New string, or NULL as above. */
char *glob_quote(const char *path, const char *rest);

#endif
