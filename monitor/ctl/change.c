/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl rm and mv: files of the service are removed and renamed.
 */
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "monitor/ctl/client.h"
#include "monitor/ctl/show.h"

static int
done(struct ctl *ctl, int status, json_t *j)
{
	if (status == CTL_YES && ctl->json)
		return show_json(j) == -1 ? CTL_USAGE : CTL_YES;
	json_decref(j);
	return status;
}

static int
rm(struct client *c, struct ctl *ctl, const char *path, int recursive)
{
	char *target = client_target(
	    recursive ? "/files?recursive=true&path=" : "/files?path=", path,
	    strlen(path));
	json_t *j = NULL;
	int status = CTL_USAGE;

	if (target == NULL)
		log_warnx("out of memory");
	else
		status = client_json(c, "DELETE", target, NULL, &j);
	free(target);
	return done(ctl, status, j);
}

int
rm_main(struct ctl *ctl, int argc, char **argv)
{
	/* -r is the root of a preset elsewhere; there is none to name here */
	static const struct option longopts[] = {CTL_LONGOPTS, CLIENT_LONGOPTS,
	    {"recursive", no_argument, NULL, 'R'}, {NULL, 0, NULL, 0}};
	struct client_opts o = {0};
	struct client *c;
	int ch, status, one, recursive = 0;

	optind = 1;
	while ((ch = getopt_long(argc, argv, "f:p:rR", longopts, NULL)) != -1) {
		if (ch == 'R' || (ch == 'r' && optarg == NULL))
			recursive = 1;
		else if (client_option(ctl, &o, ch) == -1)
			return ctl_usage(argv[0]);
	}
	if (optind == argc)
		return ctl_usage(argv[0]);
	if ((c = client_new(ctl, &o, &status)) == NULL)
		return status;
	for (; optind < argc; optind++)
		if ((one = rm(c, ctl, argv[optind], recursive)) > status)
			status = one;
	client_free(c);
	return status;
}

static int
mv(struct client *c, struct ctl *ctl, const char *src, const char *dst,
    int overwrite)
{
	json_t *body = json_object(), *j = NULL;
	int status;

	if (body == NULL || client_put_path(body, "src", src) == -1 ||
	    client_put_path(body, "dst", dst) == -1 ||
	    (overwrite &&
		json_object_set_new(body, "overwrite", json_true()) == -1)) {
		log_warnx("out of memory");
		json_decref(body);
		return CTL_USAGE;
	}
	status = client_json(c, "POST", "/files/move", body, &j);
	return done(ctl, status, j);
}

int
mv_main(struct ctl *ctl, int argc, char **argv)
{
	static const struct option longopts[] = {CTL_LONGOPTS, CLIENT_LONGOPTS,
	    {"overwrite", no_argument, NULL, 'o'}, {NULL, 0, NULL, 0}};
	struct client_opts o = {0};
	struct client *c;
	int ch, status, overwrite = 0;

	optind = 1;
	while ((ch = getopt_long(argc, argv, CTL_OPTS "o", longopts, NULL)) !=
	       -1) {
		if (ch == 'o')
			overwrite = 1;
		else if (client_option(ctl, &o, ch) == -1)
			return ctl_usage(argv[0]);
	}
	if (argc - optind != 2)
		return ctl_usage(argv[0]);
	if ((c = client_new(ctl, &o, &status)) == NULL)
		return status;
	status = mv(c, ctl, argv[optind], argv[optind + 1], overwrite);
	client_free(c);
	return status;
}
