/*
 * SPDX-License-Identifier: ISC
 *
 * A program that runs inside of a sandbox, tries everything and says what
 * came of it, one line each: GROUP NAME RESULT, the result being "ok", a
 * number, or the name of an errno.  It judges nothing: expected.txt does.
 */
#ifndef ABX_INSIDE_H
#define ABX_INSIDE_H

/* The name of an errno; "errnoN" when it has none here. */
const char *errno_name(int);
/* One line.  rc -1: errno is the result, else "ok". */
void say(const char *group, const char *name, long rc);
void say_number(const char *group, const char *name, long long n);

void try_calls(void);
void try_sockets(void);
void try_places(void);
/* NAME=PATH words: is that to be seen, read, listed? */
void try_named(char **words);
void try_limits(void);
/* Make the call of that name, which is to end the process. */
void try_death(const char *name);

#endif
