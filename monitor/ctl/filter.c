/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl filter: what the command policy says of a command, by the filter
 * that the service uses.  Nothing is run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "monitor/conffile.h"
#include "monitor/ctl/ctl.h"
#include "monitor/ctl/show.h"

/* A script on standard input, as long as one can be.  NULL after a message. */
static char *
read_script(size_t *len)
{
	char *s = malloc(FILTER_STDIN_MAX + 1);

	if (s == NULL) {
		log_warnx("out of memory");
		return NULL;
	}
	*len = fread(s, 1, FILTER_STDIN_MAX + 1, stdin);
	if (!ferror(stdin) && *len <= FILTER_STDIN_MAX)
		return s;
	if (ferror(stdin))
		log_warn("standard input");
	else
		log_warnx(
		    "standard input: more than %u bytes", FILTER_STDIN_MAX);
	free(s);
	return NULL;
}

/* 0, or -1 after a message. */
static int
check_words(
    const struct filter *f, char **words, size_t n, struct filter_result *r)
{
	static char sh[] = "sh", c[] = "-c";
	char *line[] = {sh, c, words[0]};
	struct strlist argv = {words, n};

	/* one word is a line for a shell */
	if (n == 1) {
		argv.v = line;
		argv.n = nitems(line);
	}
	if (filter_check(f, &argv, NULL, 0, r) == 0)
		return 0;
	log_warnx("out of memory");
	return -1;
}

static int
check_script(const struct filter *f, struct filter_result *r)
{
	size_t len;
	char *s = read_script(&len);
	int error;

	if (s == NULL)
		return -1;
	if ((error = filter_check_script(f, s, len, r)) == -1)
		log_warnx("out of memory");
	free(s);
	return error;
}

/* ---- output ---- */

static void
text(const struct filter *f, const char *what, const char *const *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		show_line("%s: %s: %s", what, v[i], filter_reason(f, v[i]));
}

static json_t *
list(const struct filter *f, const char *const *v, size_t n)
{
	json_t *a = json_array();
	size_t i;

	for (i = 0; a != NULL && i < n; i++)
		if (json_array_append_new(
			a, json_pack("{s:s,s:o}", "name", v[i], "reason",
			       show_str(filter_reason(f, v[i])))) == -1) {
			json_decref(a);
			return NULL;
		}
	return a;
}

static int
show(const struct ctl *ctl, const struct filter *f,
    const struct filter_result *r)
{
	int blocked = r->nblocked > 0 || r->too_large;

	if (ctl->json) {
		if (show_json(json_pack("{s:b,s:o,s:o}", "allowed", !blocked,
			"blocked", list(f, r->blocked, r->nblocked), "warned",
			list(f, r->warned, r->nwarned))) == -1)
			return CTL_USAGE;
		return blocked ? CTL_NO : CTL_YES;
	}
	text(f, "blocked", r->blocked, r->nblocked);
	text(f, "warned", r->warned, r->nwarned);
	if (r->too_large)
		show_line("blocked: the script is larger than stdin_max");
	if (!blocked && r->nwarned == 0)
		show_line("nothing matches");
	return blocked ? CTL_NO : CTL_YES;
}

/* ---- the verb ---- */

/* Without any configuration the defaults are of use too. */
static int
no_configuration(const struct ctl *ctl)
{
	return ctl->opts.file == NULL && ctl->opts.preset == NULL &&
	       access(CONFFILE_DEFAULT, F_OK) == -1;
}

static int
run(struct ctl *ctl, const struct filter *f, char **words, size_t n)
{
	struct filter_result r;

	if (f == NULL) {
		log_warnx("out of memory");
		return CTL_USAGE;
	}
	if (n == 0 ? check_script(f, &r) == -1
		   : check_words(f, words, n, &r) == -1)
		return CTL_USAGE;
	return show(ctl, f, &r);
}

static int
parse(struct ctl *ctl, int argc, char **argv)
{
	static const struct option longopts[] = {
	    CTL_LONGOPTS, {NULL, 0, NULL, 0}};
	int ch;

	optind = 1;
	while (
	    (ch = getopt_long(argc, argv, "+" CTL_OPTS, longopts, NULL)) != -1)
		if (ctl_option(ctl, ch) == -1)
			return -1;
	return 0;
}

int
filter_main(struct ctl *ctl, int argc, char **argv)
{
	struct confset cs = {0};
	struct filter *own = NULL;
	const struct filter *f = NULL;
	int status = CTL_USAGE, ok = 1;
	char why[8];

	if (parse(ctl, argc, argv) == -1)
		return ctl_usage(argv[0]);
	if (no_configuration(ctl))
		f = own = filter_new(NULL, why, sizeof(why));
	else if ((ok = ctl_load(ctl, &cs) == 0))
		f = policy_filter(cs.policy);
	if (ok)
		status = run(ctl, f, argv + optind, (size_t)(argc - optind));
	filter_free(own);
	confset_clear(&cs);
	return status;
}
