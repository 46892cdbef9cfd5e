/*
 * SPDX-License-Identifier: ISC
 *
 * Walks into every wire: each filter call by call, and the confinement of a
 * running service, from /proc and by trying.  Only the hardened programs are
 * confined for good, so it is not built with sanitizers.
 *
 *	trip [directory of the programs]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pwd.h>
#include <unistd.h>

#include "common/log.h"
#include "regress/privsep/trip.h"

const char *trip_build = "build", *trip_user = "abxtest";

int
main(int argc, char **argv)
{
	const struct CMUnitTest filters[] = {
	    cmocka_unit_test(trip_listener),
	    cmocka_unit_test(trip_monitor),
	    cmocka_unit_test(trip_unpack),
	    cmocka_unit_test(trip_pathd),
	    cmocka_unit_test(trip_execd),
	    cmocka_unit_test(trip_machine),
	    cmocka_unit_test(trip_libc),
	};
	const struct CMUnitTest live[] = {
	    cmocka_unit_test(live_ids),
	    cmocka_unit_test(live_namespaces),
	    cmocka_unit_test(live_descriptors),
	    cmocka_unit_test(live_untraceable),
	    cmocka_unit_test(live_landlock),
	    cmocka_unit_test(live_refused),
	};
	int bad;

	if (argc > 1)
		trip_build = argv[1];
	log_init("trip", 0);
	bad = cmocka_run_group_tests(filters, NULL, NULL);
	bad += cmocka_run_group_tests(live, live_start, live_end);
	if (geteuid() == 0 && getpwnam(trip_user) != NULL)
		bad += cmocka_run_group_tests_name(
		    "live_user", live, live_start_user, live_end);
	return bad == 0 ? 0 : 1;
}
