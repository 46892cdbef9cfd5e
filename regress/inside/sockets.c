/*
 * SPDX-License-Identifier: ISC
 *
 * Sockets of every family and type, alone and in pairs.  A line stands for all
 * families in a row whose types all come to the same.
 */
#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "regress/inside/inside.h"

#define FAMILIES 64 /* more than there are */
static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM,
    SOCK_SEQPACKET, SOCK_DCCP, SOCK_PACKET, SOCK_STREAM | SOCK_CLOEXEC,
    SOCK_DGRAM | SOCK_NONBLOCK, 0};
#define NTYPES (sizeof(types) / sizeof(types[0]))

static const char *
one(long family, int type, int pair)
{
	int sv[2] = {-1, -1};
	long rc = pair ? syscall(SYS_socketpair, family, type, 0, sv)
		       : syscall(SYS_socket, family, type, 0);

	if (rc == -1)
		return errno_name(errno);
	if (!pair)
		sv[0] = (int)rc;
	close(sv[0]);
	if (pair)
		close(sv[1]);
	return "ok";
}

/* What is said next: families from to last that all came to the same. */
static struct {
	long from, last;
	char result[32];
} same = {-1, -1, ""};

static void
flush(int pair)
{
	if (same.from != -1)
		printf("%s %ld..%ld %s\n", pair ? "pair" : "socket", same.from,
		    same.last, same.result);
	same.from = -1;
}

/* One result for all types, or a line for each. */
static void
family(const char *name, long f, int pair)
{
	char first[32];
	size_t i;
	int all = 1;

	snprintf(first, sizeof(first), "%s", one(f, types[0], pair));
	for (i = 1; i < NTYPES; i++)
		all &= strcmp(one(f, types[i], pair), first) == 0;
	if (all && name == NULL) {
		if (same.from != -1 && strcmp(first, same.result) == 0) {
			same.last = f;
			return;
		}
		flush(pair);
		same.from = same.last = f;
		memcpy(same.result, first, sizeof(first));
		return;
	}
	flush(pair);
	for (i = 0; i < NTYPES; i++)
		if (name == NULL)
			printf("%s %ld:%x %s\n", pair ? "pair" : "socket", f,
			    (unsigned)types[i], one(f, types[i], pair));
		else
			printf("%s %s:%x %s\n", pair ? "pair" : "socket", name,
			    (unsigned)types[i], one(f, types[i], pair));
}

void
try_sockets(void)
{
	long f;
	int pair;

	for (pair = 0; pair < 2; pair++) {
		for (f = 0; f < FAMILIES; f++)
			family(NULL, f, pair);
		flush(pair);
		family("minus-one", -1, pair);
		family("high-unix", 0x100000000L | AF_UNIX, pair);
		family("high-inet", 0x100000000L | AF_INET, pair);
	}
}
