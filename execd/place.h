/*
 * SPDX-License-Identifier: ISC
 *
 * Places of a sandbox's file system by their names.
 */
#ifndef ABX_EXECD_PLACE_H
#define ABX_EXECD_PLACE_H

/* 1 when the path is dir or lies below it. */
int place_within(const char *path, const char *dir);
/* 1 for what is the sandbox's own (design: sandbox): nothing is shown in its
 * place. */
int place_reserved(const char *path);

#endif
