/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl put: a file from here, or standard input, to the service, which
 * takes it whole or not at all.  Of a file the digest goes before the bytes,
 * so that the service compares before it commits; of a stream it is compared
 * when the answer names it.
 */
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
#include "monitor/ctl/show.h"

struct sent {
	struct ctl *ctl;
	struct client *client;
	const char *file; /* here; "-": standard input */
	char *path;	  /* there */
	const char *mode, *if_match;
	int durable, only_new, quiet;
	int fd;
	int64_t size; /* or TALK_CHUNKED */
	uint8_t digest[SHA256_LEN];
};

/* An entity tag, or a star: what a header field can hold. */
static int
tag_ok(const char *s)
{
	const char *p;

	if (strcmp(s, "*") == 0)
		return 1;
	for (p = s; *p != '\0'; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f)
			return 0;
	return p - s >= 2 && s[0] == '"' && p[-1] == '"';
}

/* /files/upload-stream with what the options say, a new string or NULL. */
static char *
make_target(const struct sent *p)
{
	char *name = client_target("", p->path, strlen(p->path)), *out;
	int r;

	if (name == NULL)
		return NULL;
	r = asprintf(&out, "/files/upload-stream?path=%s&checksum=true%s%s%s",
	    name, p->durable ? "&durable=true" : "",
	    p->mode == NULL ? "" : "&mode=", p->mode == NULL ? "" : p->mode);
	free(name);
	return r == -1 ? NULL : out;
}

static char *
make_fields(const struct sent *p)
{
	char b[4 * ((SHA256_LEN + 2) / 3) + 1], *out;
	int known = p->size >= 0;

	if (base64_encode(p->digest, SHA256_LEN, b, sizeof(b)) == -1 ||
	    asprintf(&out, "%s%s%s%s%s%s%s",
		known ? "Content-Digest: sha-256=:" : "", known ? b : "",
		known ? ":\r\n" : "", p->if_match == NULL ? "" : "If-Match: ",
		p->if_match == NULL ? "" : p->if_match,
		p->if_match == NULL ? "" : "\r\n",
		p->only_new ? "If-None-Match: *\r\n" : "") == -1)
		return NULL;
	return out;
}

/* Read a file once for its digest. */
static int
digest_file(struct sent *p)
{
	struct sha256_ctx *ctx;
	char b[64 * 1024];
	int64_t total = 0;
	ssize_t n;

	if ((ctx = sha256_new()) == NULL)
		return -1;
	while ((n = read(p->fd, b, sizeof(b))) > 0) {
		sha256_add(ctx, b, (size_t)n);
		total += n;
	}
	sha256_end(ctx, p->digest);
	p->size = total;
	return n == -1 || lseek(p->fd, 0, SEEK_SET) == -1 ? -1 : 0;
}

static int
open_file(struct sent *p)
{
	struct stat st;

	p->fd = STDIN_FILENO;
	p->size = TALK_CHUNKED;
	if (strcmp(p->file, "-") == 0)
		return 0;
	p->fd = open(p->file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (p->fd == -1 || fstat(p->fd, &st) == -1) {
		log_warn("%s", p->file);
		return -1;
	}
	if (S_ISDIR(st.st_mode)) {
		log_warnx("%s: a directory", p->file);
		return -1;
	}
	if (S_ISREG(st.st_mode) && digest_file(p) == -1) {
		log_warn("%s", p->file);
		return -1;
	}
	return 0;
}

/* Send the bytes: 0, 1 when the service takes no more, -1 when they cannot be
 * read or are not as many as before. */
static int
send_bytes(struct sent *p, struct talk *c, struct sha256_ctx *ctx)
{
	char b[64 * 1024];
	struct bar bar;
	uint64_t done = 0, total = p->size < 0 ? 0 : (uint64_t)p->size;
	ssize_t n;
	int r = 0;

	bar_begin(&bar, p->path, 0, total, p->quiet);
	while ((n = read(p->fd, b, sizeof(b))) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1) {
			log_warn("%s", p->file);
			return -1;
		}
		if (p->size >= 0 && (uint64_t)n > total - done)
			break;
		sha256_add(ctx, b, (size_t)n);
		if ((r = talk_send(c, b, (size_t)n)) == -1)
			break;
		done += (uint64_t)n;
		bar_at(&bar, done);
	}
	bar_end(&bar, done);
	if (r == -1 || (p->size < 0 && talk_send(c, "", 0) == -1))
		return 1;
	if (p->size >= 0 && (n > 0 || done != total)) {
		log_warnx("%s: changes while it is sent", p->file);
		return -1;
	}
	return 0;
}

/* The answer to a whole upload. */
static int
judge(struct sent *p, struct talk *c)
{
	char hex[2 * SHA256_LEN + 1];
	const char *said;
	int http = talk_answer(c), status = CTL_YES;
	json_t *j;

	if (http == -1)
		return CTL_UNREACHED;
	if (http >= 400)
		return talk_error(c);
	if ((j = talk_json(c)) == NULL)
		return CTL_UNREACHED;
	hex_encode(p->digest, SHA256_LEN, hex);
	said = json_string_value(json_object_get(j, "sha256"));
	if (said == NULL || strcmp(said, hex) != 0) {
		show_complaint(
		    "%s: what arrived is not what was sent", p->path);
		status = CTL_NO;
	}
	if (p->ctl->json)
		return show_json(j) == -1 ? CTL_USAGE : status;
	json_decref(j);
	return status;
}

static int
transfer(struct sent *p, const char *target, const char *fields)
{
	struct talk_ask a = {.method = "PUT",
	    .target = target,
	    .type = "application/octet-stream",
	    .fields = fields,
	    .length = p->size,
	    .expect = 1};
	struct sha256_ctx *ctx;
	struct talk *c;
	int r = 1, status;

	if ((c = talk_new(p->client, &a)) == NULL)
		return CTL_UNREACHED;
	if ((ctx = sha256_new()) == NULL) {
		talk_free(c);
		return CTL_USAGE;
	}
	if (!talk_refused(c))
		r = send_bytes(p, c, ctx);
	sha256_end(ctx, p->digest);
	status = r == -1 ? CTL_USAGE : judge(p, c);
	talk_free(c);
	return status;
}

/* PATH, or below it when it ends with a slash: the name of the file here. */
static int
choose_path(struct sent *p, const char *path)
{
	const char *slash = strrchr(p->file, '/');
	const char *name = slash == NULL ? p->file : slash + 1;
	size_t n = strlen(path);

	if (n == 0 || path[n - 1] != '/')
		p->path = strdup(path);
	else if (strcmp(p->file, "-") == 0 || name[0] == '\0')
		return -1;
	else if (asprintf(&p->path, "%s%s", path, name) == -1)
		p->path = NULL;
	return p->path == NULL ? -1 : 0;
}

static int
put(struct sent *p, const char *path)
{
	char *target = NULL, *fields = NULL;
	int status = CTL_USAGE;

	if (choose_path(p, path) == -1)
		show_complaint("%s: name the file that it shall become", path);
	else if (open_file(p) == 0) {
		target = make_target(p);
		fields = make_fields(p);
		if (target == NULL || fields == NULL)
			log_warnx("out of memory");
		else
			status = transfer(p, target, fields);
	}
	free(target);
	free(fields);
	free(p->path);
	if (p->fd > STDIN_FILENO)
		close(p->fd);
	return status;
}

enum { PUT_IF_MATCH = CLIENT_OWN, PUT_MODE, PUT_NEW, PUT_DURABLE };

static int
put_option(struct sent *p, int ch)
{
	switch (ch) {
	case 'q':
		p->quiet = 1;
		return 0;
	case PUT_IF_MATCH:
		p->if_match = optarg;
		return tag_ok(optarg) ? 0 : -1;
	case PUT_MODE:
		p->mode = optarg;
		return optarg[0] != '\0' &&
			       strspn(optarg, "01234567") == strlen(optarg)
			   ? 0
			   : -1;
	case PUT_NEW:
		p->only_new = 1;
		return 0;
	case PUT_DURABLE:
		p->durable = 1;
		return 0;
	default:
		return 1;
	}
}

int
put_main(struct ctl *ctl, int argc, char **argv)
{
	static const struct option longopts[] = {CTL_LONGOPTS, CLIENT_LONGOPTS,
	    {"quiet", no_argument, NULL, 'q'},
	    {"if-match", required_argument, NULL, PUT_IF_MATCH},
	    {"mode", required_argument, NULL, PUT_MODE},
	    {"new", no_argument, NULL, PUT_NEW},
	    {"durable", no_argument, NULL, PUT_DURABLE}, {NULL, 0, NULL, 0}};
	struct client_opts o = {0};
	struct sent p = {.ctl = ctl, .fd = -1};
	int ch, r, status;

	optind = 1;
	while (
	    (ch = getopt_long(argc, argv, CTL_OPTS "q", longopts, NULL)) != -1)
		if ((r = put_option(&p, ch)) == -1 ||
		    (r == 1 && client_option(ctl, &o, ch) == -1))
			return ctl_usage(argv[0]);
	if (argc - optind != 2)
		return ctl_usage(argv[0]);
	if ((p.client = client_new(ctl, &o, &status)) == NULL)
		return status;
	p.file = argv[optind];
	status = put(&p, argv[optind + 1]);
	client_free(p.client);
	return status;
}
