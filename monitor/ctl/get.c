/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl get and cat: a file of the service to a file here or to standard
 * output.  What was transferred before something went wrong stays in a partial
 * file whose name tells the version, and is gone on from by the next get; the
 * file itself appears whole or not at all.
 */
#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/log.h"
#include "monitor/ctl/bar.h"
#include "monitor/ctl/client.h"
#include "monitor/ctl/resp.h"
#include "monitor/ctl/show.h"

#define VERSIONS 3 /* of a file that changes while it is fetched */

struct get {
	struct ctl *ctl;
	struct client *client;
	const char *path; /* there */
	char *target;
	char *dest;		      /* here */
	char *part;		      /* the partial file */
	const char *sum;	      /* --sha256, or NULL */
	char etag[RESP_ETAG_MAX + 1]; /* of the version that is fetched */
	uint64_t size;		      /* of it */
	int fd;			      /* of the partial file, -1 */
	int quiet;
};

/* ---- cat ---- */

static int
write_all(int fd, const char *p, size_t n)
{
	ssize_t done;

	while (n > 0) {
		done = write(fd, p, n);
		if (done == -1 && errno == EINTR)
			continue;
		if (done == -1)
			return -1;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

static int
cat(struct client *client, const char *path)
{
	char *target =
	    client_target("/files/download-stream?path=", path, strlen(path));
	struct talk_ask a = {
	    .method = "GET", .target = target, .length = TALK_NO_BODY};
	struct talk *c = NULL;
	int status = CTL_UNREACHED, http;
	char b[64 * 1024];
	ssize_t n = 0;

	if (target == NULL) {
		log_warnx("out of memory");
		return CTL_USAGE;
	}
	if ((c = talk_new(client, &a)) != NULL &&
	    (http = talk_answer(c)) != -1) {
		if (http != 200)
			status = talk_error(c);
		else {
			while ((n = talk_read(c, b, sizeof(b))) > 0)
				if (write_all(STDOUT_FILENO, b, (size_t)n) ==
				    -1)
					break;
			if (n > 0)
				log_warn("standard output");
			status = n == 0	 ? CTL_YES
				 : n > 0 ? CTL_USAGE
					 : CTL_UNREACHED;
		}
	}
	talk_free(c);
	free(target);
	return status;
}

int
cat_main(struct ctl *ctl, int argc, char **argv)
{
	static const struct option longopts[] = {
	    CTL_LONGOPTS, CLIENT_LONGOPTS, {NULL, 0, NULL, 0}};
	struct client_opts o = {0};
	struct client *c;
	int ch, status, one;

	optind = 1;
	while ((ch = getopt_long(argc, argv, CTL_OPTS, longopts, NULL)) != -1)
		if (client_option(ctl, &o, ch) == -1)
			return ctl_usage(argv[0]);
	if (optind == argc)
		return ctl_usage(argv[0]);
	if ((c = client_new(ctl, &o, &status)) == NULL)
		return status;
	for (; optind < argc; optind++)
		if ((one = cat(c, argv[optind])) > status)
			status = one;
	client_free(c);
	return status;
}

/* ---- get: where to ---- */

/* The last component of a path, NULL when it is no file's name. */
static const char *
last_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash == NULL ? path : slash + 1;

	return name[0] == '\0' || strcmp(name, ".") == 0 ||
		       strcmp(name, "..") == 0
		   ? NULL
		   : name;
}

static int
choose_dest(struct get *g, const char *file)
{
	const char *name = last_name(g->path);
	struct stat st;
	int r;

	if (file != NULL && (stat(file, &st) == -1 || !S_ISDIR(st.st_mode))) {
		g->dest = strdup(file);
		return g->dest == NULL || last_name(file) == NULL ? -1 : 0;
	}
	if (name == NULL)
		return -1;
	r = file == NULL ? asprintf(&g->dest, "%s", name)
			 : asprintf(&g->dest, "%s/%s", file, name);
	if (r == -1)
		g->dest = NULL;
	return r == -1 ? -1 : 0;
}

/* A device or a pipe would be replaced, and not written to. */
static int
is_special(const char *dest)
{
	struct stat st;

	if (stat(dest, &st) == -1 || S_ISREG(st.st_mode))
		return 0;
	show_complaint("%s: not a regular file; cat writes to one", dest);
	return 1;
}

/* The partial file of this version: beside the file, so that it can become
 * it, and of another name for every version and path. */
static int
choose_part(struct get *g)
{
	const char *name = last_name(g->dest);
	size_t dir = (size_t)(name - g->dest), keep = strlen(name);
	struct sha256_ctx *ctx = sha256_new();
	uint8_t digest[SHA256_LEN];
	char hex[17];

	if (ctx == NULL)
		return -1;
	sha256_add(ctx, g->path, strlen(g->path) + 1);
	sha256_add(ctx, g->etag, strlen(g->etag));
	sha256_end(ctx, digest);
	hex_encode(digest, 8, hex);
	if (keep > 200)
		keep = 200; /* a name has room for 255 bytes */
	free(g->part);
	if (asprintf(&g->part, "%.*s.%.*s.%s.part", (int)dir, g->dest,
		(int)keep, name, hex) == -1) {
		g->part = NULL;
		return -1;
	}
	return 0;
}

/* Open it, and nothing else that somebody put there: what it holds, or -1. */
static int64_t
open_part(struct get *g)
{
	struct stat st;

	g->fd = open(g->part,
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
	if (g->fd == -1 || fstat(g->fd, &st) == -1) {
		log_warn("%s", g->part);
		return -1;
	}
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_nlink != 1) {
		log_warnx("%s: in the way", g->part);
		return -1;
	}
	if (flock(g->fd, LOCK_EX | LOCK_NB) == -1) {
		log_warn("%s: another get is at it", g->part);
		return -1;
	}
	if ((uint64_t)st.st_size > g->size) {
		if (ftruncate(g->fd, 0) == -1) {
			log_warn("%s", g->part);
			return -1;
		}
		return 0;
	}
	return st.st_size;
}

/* ---- get: the transfer ---- */

/* The version that is there now: the exit status.  A refusal of HEAD has no
 * body, so that the same question is put again for its answer. */
static int
look(struct get *g)
{
	struct talk_ask a = {
	    .method = "HEAD", .target = g->target, .length = TALK_NO_BODY};
	const struct resp *h;
	struct talk *c;
	int http, status = CTL_UNREACHED;

	if ((c = talk_new(g->client, &a)) == NULL)
		return CTL_UNREACHED;
	if ((http = talk_answer(c)) >= 400) {
		talk_free(c);
		a.method = "GET";
		if ((c = talk_new(g->client, &a)) == NULL)
			return CTL_UNREACHED;
		http = talk_answer(c);
		if (http >= 400) {
			status = talk_error(c);
			talk_free(c);
			return status;
		}
	}
	h = talk_head(c);
	if (http == 200 && h->etag[0] != '\0' && h->has_length) {
		strlcpy(g->etag, h->etag, sizeof(g->etag));
		g->size = h->length;
		status = CTL_YES;
	} else if (http != -1)
		log_warnx("the answer does not say which version it is");
	talk_free(c);
	return status;
}

/* Write what comes from offset at on: 0, 1 when the service broke off, -1. */
static int
receive(struct get *g, struct talk *c, uint64_t at)
{
	char b[64 * 1024];
	struct bar bar;
	ssize_t n;
	int r = -1;

	bar_begin(&bar, g->dest, at, g->size, g->quiet);
	if (lseek(g->fd, (off_t)at, SEEK_SET) == -1) {
		log_warn("%s", g->part);
		return -1;
	}
	while ((n = talk_read(c, b, sizeof(b))) > 0) {
		if ((uint64_t)n > g->size - at) {
			log_warnx("more bytes came than were announced");
			return 1;
		}
		if (write_all(g->fd, b, (size_t)n) == -1) {
			log_warn("%s", g->part);
			return -1;
		}
		at += (uint64_t)n;
		bar_at(&bar, at);
	}
	bar_end(&bar, at);
	r = n == -1 || at != g->size ? 1 : 0;
	if (r == 1)
		show_complaint("%s keeps %llu of %llu bytes; get goes on there",
		    g->part, (unsigned long long)at,
		    (unsigned long long)g->size);
	return r;
}

/* Whether the answer goes on where the partial file ends (1), is the whole
 * (0), is of another version (2), or is none (-1). */
static int
judge(const struct get *g, const struct resp *h, uint64_t have)
{
	if (strcmp(h->etag, g->etag) != 0)
		return h->status == 200 ? 2 : -1;
	if (h->status == 200)
		return h->has_length && h->length == g->size ? 0 : -1;
	return h->status == 206 && h->has_range && h->first == have &&
		       h->total == g->size && h->last == g->size - 1
		   ? 1
		   : -1;
}

/* Fetch what the partial file lacks.  The exit status, or -1 when there is
 * another version now. */
static int
fetch(struct get *g, uint64_t have)
{
	char fields[RESP_ETAG_MAX + 96] = "";
	struct talk_ask a = {.method = "GET",
	    .target = g->target,
	    .length = TALK_NO_BODY,
	    .fields = fields};
	struct talk *c;
	int status = CTL_UNREACHED, what, http;

	if (have > 0)
		snprintf(fields, sizeof(fields),
		    "Range: bytes=%llu-\r\nIf-Range: %s\r\n",
		    (unsigned long long)have, g->etag);
	if ((c = talk_new(g->client, &a)) == NULL)
		return CTL_UNREACHED;
	if ((http = talk_answer(c)) >= 400)
		status = talk_error(c);
	else if (http != -1) {
		what = judge(g, talk_head(c), have);
		if (what == 2)
			status = -1;
		else if (what == -1)
			log_warnx("the answer is not that file");
		else if (what == 0 && ftruncate(g->fd, 0) == -1)
			log_warn("%s", g->part);
		else
			switch (receive(g, c, what == 1 ? have : 0)) {
			case 0:
				status = CTL_YES;
				break;
			case -1:
				status = CTL_USAGE;
			}
	}
	talk_free(c);
	return status;
}

/* ---- get: the end ---- */

/* The digest of the whole partial file as hex: 0 or -1. */
static int
digest_part(struct get *g, char hex[2 * SHA256_LEN + 1])
{
	struct sha256_ctx *ctx;
	uint8_t digest[SHA256_LEN];
	char b[64 * 1024];
	ssize_t n;

	if (lseek(g->fd, 0, SEEK_SET) == -1 || (ctx = sha256_new()) == NULL)
		return -1;
	while ((n = read(g->fd, b, sizeof(b))) > 0)
		sha256_add(ctx, b, (size_t)n);
	sha256_end(ctx, digest);
	hex_encode(digest, SHA256_LEN, hex);
	return n == 0 ? 0 : -1;
}

/* The partial file is whole: it becomes the file. */
static int
finish(struct get *g)
{
	char hex[2 * SHA256_LEN + 1] = "";

	if (g->sum != NULL && digest_part(g, hex) == -1) {
		log_warn("%s", g->part);
		return CTL_USAGE;
	}
	if (g->sum != NULL && strcasecmp(hex, g->sum) != 0) {
		show_complaint("%s: its sha256 is %s", g->path, hex);
		if (unlink(g->part) == -1)
			log_warn("%s", g->part);
		return CTL_NO;
	}
	if (fsync(g->fd) == -1 || rename(g->part, g->dest) == -1) {
		log_warn("%s", g->dest);
		return CTL_USAGE;
	}
	if (g->ctl->json)
		return show_json(json_pack("{s:o, s:o, s:I, s:s, s:o}", "path",
			   show_str(g->path), "file", show_str(g->dest),
			   "bytes", (json_int_t)g->size, "etag", g->etag,
			   "sha256", show_str(hex[0] == '\0' ? NULL : hex))) ==
			       -1
			   ? CTL_USAGE
			   : CTL_YES;
	return CTL_YES;
}

static int
get(struct get *g)
{
	int status = -1, i;
	int64_t have;

	for (i = 0; status == -1 && i < VERSIONS; i++) {
		if ((status = look(g)) != CTL_YES)
			return status;
		if (g->fd != -1) {
			/* of a version that is gone */
			(void)unlink(g->part);
			close(g->fd);
			g->fd = -1;
		}
		if (choose_part(g) == -1) {
			log_warnx("out of memory");
			return CTL_USAGE;
		}
		if ((have = open_part(g)) == -1)
			return CTL_USAGE;
		if ((uint64_t)have < g->size)
			status = fetch(g, (uint64_t)have);
	}
	if (status == -1) {
		show_complaint("%s changes all the time", g->path);
		return CTL_NO;
	}
	return status == CTL_YES ? finish(g) : status;
}

static int
sum_ok(const char *s)
{
	return strlen(s) == 2 * SHA256_LEN &&
	       strspn(s, "0123456789abcdefABCDEF") == 2 * SHA256_LEN;
}

int
get_main(struct ctl *ctl, int argc, char **argv)
{
	static const struct option longopts[] = {CTL_LONGOPTS, CLIENT_LONGOPTS,
	    {"quiet", no_argument, NULL, 'q'},
	    {"sha256", required_argument, NULL, CLIENT_OWN},
	    {NULL, 0, NULL, 0}};
	struct client_opts o = {0};
	struct get g = {.ctl = ctl, .fd = -1};
	int ch, status = CTL_USAGE;

	optind = 1;
	while ((ch = getopt_long(argc, argv, CTL_OPTS "q", longopts, NULL)) !=
	       -1) {
		if (ch == 'q')
			g.quiet = 1;
		else if (ch == CLIENT_OWN && sum_ok(optarg))
			g.sum = optarg;
		else if (ch == CLIENT_OWN || client_option(ctl, &o, ch) == -1)
			return ctl_usage(argv[0]);
	}
	if (argc - optind < 1 || argc - optind > 2)
		return ctl_usage(argv[0]);
	g.path = argv[optind];
	g.target = client_target(
	    "/files/download-stream?path=", g.path, strlen(g.path));
	if (choose_dest(&g, argv[optind + 1]) == -1 || g.target == NULL)
		show_complaint(
		    "%s: name the file that it shall become", g.path);
	else if (!is_special(g.dest) &&
		 (g.client = client_new(ctl, &o, &status)) != NULL)
		status = get(&g);
	if (g.fd != -1)
		close(g.fd);
	client_free(g.client);
	free(g.target);
	free(g.dest);
	free(g.part);
	return status;
}
