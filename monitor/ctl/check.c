/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl check-config: every finding of a configuration at once, and what it
 * grants when it could be started.
 */
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "monitor/ctl/ctl.h"
#include "monitor/ctl/show.h"

static int
check_json(const struct confset *cs)
{
	json_t *j, *found;

	found = show_findings_json(&cs->found);
	if (cs->policy == NULL || confset_blocked(cs))
		j = json_pack("{s:b,s:o}", "ok", 0, "findings", found);
	else
		j = json_pack("{s:b,s:o,s:o}", "ok", 1, "findings", found,
		    "ops", show_ops_json(cs));
	return show_json(j);
}

static void
check_text(const struct confset *cs)
{
	show_findings(&cs->found, 0);
	if (cs->policy != NULL && !confset_blocked(cs))
		show_ops(cs);
}

int
check_main(struct ctl *ctl, int argc, char **argv)
{
	struct confset cs;
	int status;

	if (ctl_options(ctl, argc, argv) == -1)
		return CTL_USAGE;
	if (argc - optind > 1)
		return ctl_usage(argv[0]);
	if (optind < argc)
		ctl->opts.file = argv[optind];
	if (confset_load(&cs, &ctl->opts) == -1) {
		log_warnx("out of memory");
		confset_clear(&cs);
		return CTL_USAGE;
	}
	if (confset_blocked(&cs))
		status = CTL_USAGE;
	else
		status = ctl->strict && cs.found.n > 0 ? CTL_NO : CTL_YES;
	if (!ctl->json)
		check_text(&cs);
	else if (check_json(&cs) == -1)
		status = CTL_USAGE;
	confset_clear(&cs);
	return status;
}
