/*
 * SPDX-License-Identifier: ISC
 *
 * The clients of a race: they call every operation that touches a path, on
 * what is under attack, and look at every answer for what lies outside.
 */
#include "regress/race/race.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define WATCH_MS 60 /* of events that are looked at */

enum {
	LIST,
	STAT,
	DOWNLOAD,
	JSON_GET,
	UPLOAD,
	JSON_PUT,
	MKDIR,
	COPY,
	MOVE,
	DELETE,
	SEARCH,
	NAMES,
	ARCHIVE,
	EXPORT,
	IMPORT,
	EDIT,
	WATCH,
	RUN
};
const char *const client_ops[] = {[LIST] = "list",
    [STAT] = "stat",
    [DOWNLOAD] = "download",
    [JSON_GET] = "download as JSON",
    [UPLOAD] = "upload",
    [JSON_PUT] = "upload as JSON",
    [MKDIR] = "mkdir",
    [COPY] = "copy",
    [MOVE] = "move",
    [DELETE] = "delete",
    [SEARCH] = "search of contents",
    [NAMES] = "search of names",
    [ARCHIVE] = "archive",
    [EXPORT] = "export",
    [IMPORT] = "import",
    [EDIT] = "edit",
    [WATCH] = "watch",
    [RUN] = "run"};
const size_t client_nops = COUNT(client_ops);
_Static_assert(COUNT(client_ops) <= CLIENT_OPS_MAX, "tally");

/* Whom it calls, and where it counts. */
static const struct stage *st;
static struct tally *tally;

static void
add(uint64_t *n)
{
	__atomic_add_fetch(n, 1, __ATOMIC_RELAXED);
}

static void
count(int op, const struct reply *r)
{
	if (r->status >= 500)
		add(&tally->faults);
	else if (r->status >= 400) {
		add(&tally->refused);
		add(&tally->op_refused[op]);
	} else {
		add(&tally->done);
		add(&tally->op_done[op]);
	}
	if (r->body != NULL &&
	    memmem(r->body, r->len, MARKER, strlen(MARKER)) != NULL) {
		add(&tally->leaks);
		fprintf(stderr, "leak: %s %d %.300s\n", client_ops[op],
		    r->status, r->body);
	}
	if (r->status == 500 || r->status == 0) {
		add(&tally->internal);
		fprintf(stderr, "fault: %s %d %.300s\n", client_ops[op],
		    r->status, r->body == NULL ? "no answer" : r->body);
	}
	if (r->status == 400) {
		add(&tally->wrong);
		fprintf(stderr, "wrong: %s %.300s\n", client_ops[op],
		    r->body == NULL ? "" : r->body);
	}
}

static void
call_bytes(int op, const char *method, const char *target, const char *body,
    size_t len)
{
	struct reply r = {0};
	int fd = http_connect(st);

	if (fd != -1 && http_send(fd, TOKEN_A, method, target, body, len) == 0)
		(void)http_read(fd, &r, 20000);
	if (fd != -1)
		close(fd);
	count(op, &r);
	reply_clear(&r);
}

static void
call(int op, const char *method, const char *target, const char *body)
{
	call_bytes(op, method, target, body, body == NULL ? 0 : strlen(body));
}

static void __attribute__((format(printf, 3, 4)))
rpc(int op, const char *name, const char *fmt, ...)
{
	char target[64], body[1024];
	va_list ap;

	snprintf(target, sizeof(target), "/rpc/%s", name);
	va_start(ap, fmt);
	vsnprintf(body, sizeof(body), fmt, ap);
	va_end(ap);
	call(op, "POST", target, body);
}

static void __attribute__((format(printf, 4, 5)))
at(int op, const char *method, const char *body, const char *fmt, ...)
{
	char target[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(target, sizeof(target), fmt, ap);
	va_end(ap);
	call(op, method, target, body);
}

/* ---- operations that need more than a line ---- */

/* A ustar header of a file or directory, behind what is there. */
static size_t
tar_head(char *tar, size_t n, const char *name, char type, size_t size)
{
	char *h = tar + n;
	unsigned sum = 0, i;

	memset(h, 0, 512);
	snprintf(h, 100, "%s", name);
	snprintf(h + 100, 8, "%07o", type == '5' ? 0755U : 0644U);
	snprintf(h + 108, 8, "%07o", 0U);
	snprintf(h + 116, 8, "%07o", 0U);
	snprintf(h + 124, 12, "%011o", (unsigned)size);
	snprintf(h + 136, 12, "%011o", 0U);
	memset(h + 148, ' ', 8);
	h[156] = type;
	memcpy(h + 257, "ustar\00000", 8);
	for (i = 0; i < 512; i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	return n + 512;
}

static void
import(const struct attack *a, int which)
{
	char tar[8 * 512], name[64], target[512];
	size_t n = 0;

	memset(tar, 0, sizeof(tar));
	snprintf(name, sizeof(name), "i%d/", which);
	n = tar_head(tar, n, name, '5', 0);
	snprintf(name, sizeof(name), "i%d/f", which);
	n = tar_head(tar, n, name, '0', 6);
	memcpy(tar + n, "inside", 6);
	n += 512;
	n = tar_head(tar, n, "i", '0', 6);
	memcpy(tar + n, "inside", 6);
	n += 512 + 1024; /* two empty blocks end it */
	snprintf(target, sizeof(target), "/files/import?path=%s", a->dir);
	call_bytes(IMPORT, "PUT", target, tar, n);
}

/* Some events; there is no end of them. */
static void
watch(const struct attack *a)
{
	char target[512], buf[64 * 1024];
	struct reply r = {0};
	struct pollfd p = {.events = POLLIN};
	size_t n = 0;
	ssize_t got;
	double end;

	snprintf(target, sizeof(target), "/files/watch?path=%s&recursive=true",
	    a->dir);
	if ((p.fd = http_connect(st)) != -1 &&
	    http_send(p.fd, TOKEN_A, "GET", target, NULL, 0) == 0 &&
	    poll(&p, 1, 20000) == 1) {
		for (end = now() + WATCH_MS / 1000.0;
		     n < sizeof(buf) - 1 && now() < end;) {
			if (poll(&p, 1, 10) != 1)
				continue;
			got = read(p.fd, buf + n, sizeof(buf) - 1 - n);
			if (got <= 0)
				break;
			n += (size_t)got;
		}
		buf[n] = '\0';
		if (strncmp(buf, "HTTP/1.1 ", 9) == 0)
			r.status = (int)strtol(buf + 9, NULL, 10);
		r.body = buf;
		r.len = n;
	}
	if (p.fd != -1)
		close(p.fd);
	count(WATCH, &r);
}

/* ---- a round ---- */

/* Whole trees: read, copied, packed. */
static void
trees(const struct attack *a, int which)
{
	rpc(COPY, "files.copy", "{\"src\":\"%s\",\"dst\":\"c%d\"}", a->dir,
	    which);
	rpc(DELETE, "files.delete", "{\"path\":\"c%d\",\"recursive\":true}",
	    which);
	rpc(COPY, "files.copy",
	    "{\"src\":\"%s\",\"dst\":\"g%d\",\"overwrite\":true}", a->file,
	    which);
	rpc(COPY, "files.copy",
	    "{\"src\":\"g%d\",\"dst\":\"%s/g%d\",\"overwrite\":true}", which,
	    a->dir, which);
	rpc(SEARCH, "files.search",
	    "{\"root\":\"%s\",\"pattern\":\"" MARKER "\"}", a->dir);
	rpc(SEARCH, "files.search",
	    "{\"root\":\"%s\",\"pattern\":\"i\",\"kind\":\"content\"}", a->dir);
	rpc(NAMES, "files.search",
	    "{\"root\":\"%s\",\"pattern\":\"*\",\"kind\":\"name\"}", a->dir);
	at(LIST, "GET", NULL, "/files/list?path=%s&recursive=true", a->dir);
	at(EXPORT, "GET", NULL, "/files/export?path=%s", a->dir);
	rpc(ARCHIVE, "files.archive",
	    "{\"sources\":[\"%s\"],\"dest\":\"a%d.tar\"}", a->dir, which);
	rpc(ARCHIVE, "files.archive",
	    "{\"sources\":[\"%s\"],\"dest\":\"%s/a%d.tar\"}", a->file, a->dir,
	    which);
	rpc(DELETE, "files.delete", "{\"path\":\"a%d.tar\"}", which);
	rpc(DELETE, "files.delete", "{\"path\":\"%s/a%d.tar\"}", a->dir, which);
	import(a, which);
}

static void
edits(const struct attack *a)
{
	static unsigned turn;
	int there = turn++ % 2 == 0;

	rpc(EDIT, "files.edit",
	    "{\"path\":\"%s\",\"edits\":[{\"find\":\"%s\",\"replace\":"
	    "\"%s\"}]}",
	    a->file, there ? "in" : "by", there ? "by" : "in");
}

static void
moves(const struct attack *a, int which)
{
	rpc(MOVE, "files.move",
	    "{\"src\":\"%s/u%d\",\"dst\":\"%s/v%d\",\"overwrite\":true}",
	    a->dir, which, a->dir, which);
	/* into and out of what is swapped */
	rpc(MOVE, "files.move",
	    "{\"src\":\"%s/v%d\",\"dst\":\"s%d\",\"overwrite\":true}", a->dir,
	    which, which);
	rpc(MOVE, "files.move",
	    "{\"src\":\"s%d\",\"dst\":\"%s/v%d\",\"overwrite\":true}", which,
	    a->dir, which);
}

void
client_round(const struct stage *stage, struct tally *t, const struct attack *a,
    int which, unsigned n)
{
	st = stage;
	tally = t;
	at(DOWNLOAD, "GET", NULL, "/files/download-stream?path=%s", a->file);
	at(JSON_GET, "GET", NULL, "/files/download?path=%s", a->file);
	at(LIST, "GET", NULL, "/files/list?path=%s", a->dir);
	at(STAT, "GET", NULL, "/files/stat?path=%s", a->file);
	edits(a);
	at(UPLOAD, "PUT", "inside, by a client\n",
	    "/files/upload-stream?path=%s", a->file);
	at(UPLOAD, "PUT", "by a client\n", "/files/upload-stream?path=%s/u%d",
	    a->dir, which);
	rpc(JSON_PUT, "files.upload",
	    "{\"path\":\"%s/j%d\",\"content\":\"inside\"}", a->dir, which);
	edits(a);
	rpc(MKDIR, "files.mkdir", "{\"path\":\"%s/k%d/k\",\"parents\":true}",
	    a->dir, which);
	moves(a, which);
	at(DOWNLOAD, "GET", NULL, "/files/download-stream?path=%s", a->file);
	rpc(DELETE, "files.delete", "{\"path\":\"%s/k%d\",\"recursive\":true}",
	    a->dir, which);
	trees(a, which);
	rpc(DELETE, "files.delete", "{\"path\":\"%s\"}", a->file);
	if (n % 4 == 0)
		rpc(DELETE, "files.delete",
		    "{\"path\":\"%s\",\"recursive\":true}", a->dir);
	if (n % 4 == 1) {
		rpc(RUN, "commands.run",
		    "{\"argv\":[\"cat\",\"f\"],\"cwd\":\"%s\"}", a->dir);
		rpc(RUN, "commands.run", "{\"argv\":[\"ls\"],\"cwd\":\"%s\"}",
		    a->dir);
	}
	if (n % 4 == 2)
		watch(a);
}
