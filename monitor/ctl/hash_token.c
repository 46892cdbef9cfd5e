/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl hash-token: a new 256-bit token with the digest that the
 * configuration wants as token_sha256, or the digest of one that exists.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/log.h"
#include "monitor/ctl/ctl.h"
#include "monitor/ctl/show.h"

#define TOKEN_BYTES 32
#define TOKEN_MIN 16 /* characters that the service accepts */

/* The first line of stdin into buf: 0, or -1 after it was said why not. */
static int
read_token(char *buf, size_t size)
{
	size_t n = 0;
	ssize_t r;

	while (n < size - 1 &&
	       (r = read(STDIN_FILENO, buf + n, size - 1 - n)) != 0) {
		if (r == -1 && errno == EINTR)
			continue;
		if (r == -1) {
			log_warn("standard input");
			return -1;
		}
		n += (size_t)r;
	}
	buf[n] = '\0';
	if (n > 0 && buf[n - 1] == '\n')
		buf[--n] = '\0';
	if (strlen(buf) != n) {
		log_warnx("a token holds no NUL byte");
		return -1;
	}
	return 0;
}

/* What the service would refuse as a token: a sentence, or NULL. */
static const char *
token_fault(const char *s)
{
	size_t n = strlen(s), i;

	if (n < TOKEN_MIN)
		return "a token has at least 16 characters";
	if (n > ABX_TOKEN_MAX)
		return "a token has at most 512 characters";
	for (i = 0; i < n; i++)
		if ((unsigned char)s[i] <= 0x20 || (unsigned char)s[i] >= 0x7f)
			return "a token holds visible ASCII characters only";
	return NULL;
}

static int
print_token(const struct ctl *ctl, const char *token, int made)
{
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_LEN * 2 + 1];

	sha256(token, strlen(token), digest);
	hex_encode(digest, sizeof(digest), hex);
	if (ctl->json)
		return show_json(
		    made ? json_pack("{s:s,s:s}", "token", token, "sha256", hex)
			 : json_pack("{s:s}", "sha256", hex));
	if (made)
		printf("token   %s\n", token);
	printf("sha256  %s\n", hex);
	return 0;
}

int
hash_token_main(struct ctl *ctl, int argc, char **argv)
{
	uint8_t raw[TOKEN_BYTES];
	char token[ABX_TOKEN_MAX + 2];
	const char *why = NULL;
	int made = 0, status = CTL_YES;

	if (ctl_options(ctl, argc, argv) == -1)
		return CTL_USAGE;
	if (argc - optind > 1)
		return ctl_usage(argv[0]);
	if (optind == argc) {
		made = 1;
		random_bytes(raw, sizeof(raw));
		base64url_encode(raw, sizeof(raw), token, sizeof(token));
	} else if (strcmp(argv[optind], "-") == 0) {
		if (read_token(token, sizeof(token)) == -1)
			return CTL_USAGE;
	} else {
		strlcpy(token, argv[optind], sizeof(token));
		explicit_bzero(argv[optind], strlen(argv[optind]));
	}
	if ((why = token_fault(token)) != NULL)
		log_warnx("%s", why);
	if (why != NULL || print_token(ctl, token, made) == -1)
		status = CTL_USAGE;
	explicit_bzero(raw, sizeof(raw));
	explicit_bzero(token, sizeof(token));
	return status;
}
