/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl ls: the entries of a directory of the service.
 */
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "monitor/ctl/client.h"
#include "monitor/ctl/show.h"

struct ls {
	int all_long, recursive, unsorted, nul;
	const char *max;
};

static const char *
member(const json_t *e, const char *name)
{
	const char *s = json_string_value(json_object_get(e, name));

	return s == NULL ? "" : s;
}

/* "drwxr-x---" of an entry's type and octal mode. */
static void
mode_text(const json_t *e, char out[11])
{
	static const char rwx[] = "rwxrwxrwx";
	const char *type = member(e, "type");
	long mode = strtol(member(e, "mode"), NULL, 8);
	int i;

	out[0] = '-';
	if (strcmp(type, "directory") == 0)
		out[0] = 'd';
	else if (strcmp(type, "symlink") == 0)
		out[0] = 'l';
	else if (strcmp(type, "file") != 0)
		out[0] = '?';
	for (i = 0; i < 9; i++)
		out[i + 1] = (mode >> (8 - i)) & 1 ? rwx[i] : '-';
	out[10] = '\0';
}

static void
show_long(const json_t *e)
{
	const char *when = member(e, "mtime");
	char mode[11], date[17];

	mode_text(e, mode);
	strlcpy(date, when, sizeof(date)); /* to the minute, UTC */
	if (strlen(date) == 16 && date[10] == 'T')
		date[10] = ' ';
	printf("%s %12lld ", mode,
	    (long long)json_integer_value(json_object_get(e, "size")));
	show_name(stdout, date, strlen(date));
	putchar(' ');
}

/* In a recursive listing an entry is named by its path below the directory. */
static const char *
shorten(const char *path, size_t *n, const char *top)
{
	size_t len = strlen(top);

	while (len > 0 && top[len - 1] == '/')
		len--;
	if (*n > len + 1 && memcmp(path, top, len) == 0 && path[len] == '/') {
		*n -= len + 1;
		return path + len + 1;
	}
	return path;
}

static int
show_entry(const struct ls *ls, const json_t *e, const char *top)
{
	size_t n;
	char *name = client_bytes(e, ls->recursive ? "path" : "name", &n);
	const char *p;

	if (name == NULL) {
		log_warnx("an entry of the answer has no name");
		return -1;
	}
	p = ls->recursive ? shorten(name, &n, top) : name;
	if (ls->all_long)
		show_long(e);
	show_name(stdout, p, n);
	putchar(ls->nul ? '\0' : '\n');
	free(name);
	return 0;
}

static int
show_all(const struct ls *ls, json_t *j, const char *top)
{
	const json_t *e;
	size_t i;

	json_array_foreach(json_object_get(j, "entries"), i, e) {
		if (show_entry(ls, e, top) == -1)
			return CTL_UNREACHED;
	}
	if (json_is_true(json_object_get(j, "truncated")))
		show_complaint("the listing was cut short: there is more");
	return CTL_YES;
}

static int
list(struct client *c, struct ctl *ctl, const struct ls *ls, const char *path)
{
	char *target = client_target("/files/list?path=", path, strlen(path));
	char *whole = NULL;
	json_t *j = NULL;
	int status = CTL_USAGE;

	if (target == NULL || asprintf(&whole, "%s%s%s%s%s", target,
				  ls->recursive ? "&recursive=true" : "",
				  ls->unsorted ? "" : "&sort=name",
				  ls->max == NULL ? "" : "&max_entries=",
				  ls->max == NULL ? "" : ls->max) == -1)
		log_warnx("out of memory");
	else
		status = client_json(c, "GET", whole, NULL, &j);
	if (status == CTL_YES && ctl->json)
		status = show_json(json_incref(j)) == -1 ? CTL_USAGE : CTL_YES;
	else if (status == CTL_YES)
		status = show_all(ls, j, path);
	json_decref(j);
	free(whole);
	free(target);
	return status;
}

int
ls_main(struct ctl *ctl, int argc, char **argv)
{
	static const struct option longopts[] = {CTL_LONGOPTS, CLIENT_LONGOPTS,
	    {"long", no_argument, NULL, 'l'},
	    {"recursive", no_argument, NULL, 'R'},
	    {"max", required_argument, NULL, 'n'},
	    {"null", no_argument, NULL, '0'},
	    {"unsorted", no_argument, NULL, 'U'}, {NULL, 0, NULL, 0}};
	struct client_opts o = {0};
	struct ls ls = {0};
	struct client *c;
	int ch, status, one;

	optind = 1;
	while ((ch = getopt_long(
		    argc, argv, CTL_OPTS "lRU0n:", longopts, NULL)) != -1) {
		if (ch == 'l')
			ls.all_long = 1;
		else if (ch == 'R')
			ls.recursive = 1;
		else if (ch == 'U')
			ls.unsorted = 1;
		else if (ch == '0')
			ls.nul = 1;
		else if (ch == 'n' &&
			 strspn(optarg, "0123456789") == strlen(optarg))
			ls.max = optarg;
		else if (client_option(ctl, &o, ch) == -1)
			return ctl_usage(argv[0]);
	}
	if ((c = client_new(ctl, &o, &status)) == NULL)
		return status;
	if (optind == argc)
		status = list(c, ctl, &ls, ".");
	for (; optind < argc; optind++)
		if ((one = list(c, ctl, &ls, argv[optind])) > status)
			status = one;
	client_free(c);
	return status;
}
