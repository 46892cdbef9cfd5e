/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl ops: the effective table of operations and principals.
 */
#include <unistd.h>

#include "monitor/ctl/ctl.h"
#include "monitor/ctl/show.h"

int
ops_main(struct ctl *ctl, int argc, char **argv)
{
	struct confset cs;
	int status = CTL_YES;

	if (ctl_options(ctl, argc, argv) == -1)
		return CTL_USAGE;
	if (optind < argc)
		return ctl_usage(argv[0]);
	if (ctl_load(ctl, &cs) == -1)
		status = CTL_USAGE;
	else if (!ctl->json)
		show_ops(&cs);
	else if (show_json(json_pack("{s:o}", "ops", show_ops_json(&cs))) == -1)
		status = CTL_USAGE;
	confset_clear(&cs);
	return status;
}
