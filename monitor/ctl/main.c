/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl: the operator's tool.  This file only finds the verb; each verb is a
 * file of its own.  The tool runs with its caller's rights and changes
 * nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "common/log.h"
#include "monitor/ctl/ctl.h"
#include "monitor/ctl/show.h"

extern char **environ;

const struct ctl_verb ctl_verbs[] = {
    {"cat", "path ...", "print files of the service", cat_main},
    {"check-config", "[--strict] [file]", "say everything that is wrong",
	check_main},
    {"describe", "[--preset name [--root dir]]",
	"print the effective policy, or what a preset is", describe_main},
    {"doctor", "", "say what this machine lacks, and the remedy", doctor_main},
    {"explain",
	"--op op [--arg name=value ...] --principal id [--role role ...] "
	"[--session name]",
	"say what a call would be answered, and why", explain_main},
    {"filter", "[--] [command ...]",
	"say what the command policy says of a command", filter_main},
    {"get", "[-q] [--sha256 hex] path [file]", "fetch a file of the service",
	get_main},
    {"hash-token", "[token | -]", "make a token, or hash one", hash_token_main},
    {"ls", "[-0lRU] [-n max] [path ...]", "list directories of the service",
	ls_main},
    {"mv", "[--overwrite] from to", "rename a file of the service", mv_main},
    {"ops", "", "say who may use which operation", ops_main},
    {"panic", "", "kill every command, and let none start", panic_main},
    {"put",
	"[-q] [--durable] [--if-match etag | --new] [--mode mode] "
	"file|- path",
	"send a file to the service", put_main},
    {"reload", "", "have the service read its configuration again",
	reload_main},
    {"resume", "", "let commands start again", panic_main},
    {"rm", "[-r] path ...", "remove files of the service", rm_main},
    {"run",
	"[--cwd dir] [--env name=value ...] [--timeout seconds] "
	"[--session name] [--signals] [--stdin] [--] word ...",
	"run a command on the service", run_main},
    {"sessions", "", "list the sessions whose workspaces are kept",
	sessions_main},
    {"status", "", "say how the running service is", status_main},
    {"top", "[-1]", "watch what the service is doing", top_main},
    {NULL, NULL, NULL, NULL},
};

static const struct ctl_verb *
verb_find(const char *name)
{
	const struct ctl_verb *v;

	for (v = ctl_verbs; v->name != NULL; v++)
		if (strcmp(v->name, name) == 0)
			return v;
	return NULL;
}

static int
usage(void)
{
	const struct ctl_verb *v;

	fprintf(stderr, "usage: abxctl [-f file] [--json] verb ...\nverbs:\n");
	for (v = ctl_verbs; v->name != NULL; v++)
		fprintf(stderr, "  %-14s%s\n", v->name, v->help);
	return CTL_USAGE;
}

int
ctl_usage(const char *verb)
{
	const struct ctl_verb *v = verb_find(verb);

	fprintf(stderr, "usage: abxctl [-f file] [--json] %s%s%s\n", v->name,
	    v->args[0] != '\0' ? " " : "", v->args);
	return CTL_USAGE;
}

int
ctl_option(struct ctl *ctl, int ch)
{
	switch (ch) {
	case 'f':
		ctl->opts.file = optarg;
		return 0;
	case 'p':
		ctl->opts.preset = optarg;
		return 0;
	case 'r':
		ctl->opts.root = optarg;
		return 0;
	case 'J':
		ctl->json = 1;
		return 0;
	case 'S':
		ctl->strict = 1;
		return 0;
	default:
		return -1;
	}
}

int
ctl_options(struct ctl *ctl, int argc, char **argv)
{
	static const struct option longopts[] = {
	    CTL_LONGOPTS, {NULL, 0, NULL, 0}};
	int ch;

	optind = 1;
	while ((ch = getopt_long(argc, argv, CTL_OPTS, longopts, NULL)) != -1)
		if (ctl_option(ctl, ch) == -1) {
			ctl_usage(argv[0]);
			return -1;
		}
	return 0;
}

int
ctl_load(struct ctl *ctl, struct confset *cs)
{
	if (confset_load(cs, &ctl->opts) == -1) {
		log_warnx("out of memory");
		return -1;
	}
	if (!confset_blocked(cs) && cs->policy != NULL)
		return 0;
	if (ctl->json)
		show_json(json_pack(
		    "{s:o}", "findings", show_findings_json(&cs->found)));
	else
		show_findings(&cs->found, 1);
	return -1;
}

int
main(int argc, char **argv)
{
	static const struct option longopts[] = {CTL_LONGOPTS,
	    {"version", no_argument, NULL, 'V'}, {NULL, 0, NULL, 0}};
	const struct ctl_verb *v;
	struct ctl ctl = {.opts.env = (const char *const *)environ};
	int ch, status;

	log_init("abxctl", 0);
	while ((ch = getopt_long(argc, argv, "+" CTL_OPTS, longopts, NULL)) !=
	       -1) {
		if (ch == 'V') {
			printf("abxctl %s\n", ABX_VERSION);
			return CTL_YES;
		}
		if (ctl_option(&ctl, ch) == -1)
			return usage();
	}
	if (optind == argc)
		return usage();
	if ((v = verb_find(argv[optind])) == NULL) {
		fprintf(stderr, "abxctl: there is no verb %s\n", argv[optind]);
		return usage();
	}
	argc -= optind;
	argv += optind;
	status = v->run(&ctl, argc, argv);
	if (fflush(stdout) == EOF) {
		log_warn("standard output");
		return CTL_USAGE;
	}
	return status;
}
