/*
 * SPDX-License-Identifier: ISC
 *
 * Compromised processes against the real ones.
 *
 *	evil [-b directory of the programs] [-s stand-in] [-k pattern] [group]
 *
 * Groups: lab (one monitor, everything around it played), solo (one listener,
 * pathd or execd with a monitor that is played), service (a running service
 * with one process taken over).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "regress/privsep/cells.h"
#include "regress/privsep/evil.h"

const char *evil_build = "build";
const char *evil_standin = "build/regress/standin";
const char *evil_user;
static struct lab lab;

static int
lab_begin(void **state)
{
	lab_new(&lab, evil_build, cells_conf);
	*state = &lab;
	return 0;
}

static int
lab_finish(void **state)
{
	lab_free(&lab);
	return 0;
}

/* A test that failed shall not spoil the next one. */
static int
lab_each(void **state)
{
	lab_fresh(&lab);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup(f, lab_each)

int
main(int argc, char **argv)
{
	const struct CMUnitTest matrix[] = {
	    TEST(matrix_listener),
	    TEST(matrix_pathd),
	    TEST(matrix_execd),
	    TEST(matrix_numbers),
	    TEST(matrix_orphan),
	    TEST(matrix_lengths),
	    TEST(matrix_bytes),
	    TEST(packets_odd),
	    TEST(packets_end),
	    TEST(descriptors_odd),
	    TEST(descriptors_facts),
	    TEST(descriptors_args),
	    TEST(descriptors_bulk),
	    TEST(descriptors_peer),
	    TEST(lies_facts),
	    TEST(lies_success),
	    TEST(lies_late),
	    TEST(lies_slow),
	    TEST(control_words),
	    TEST(control_deaf),
	    TEST(control_crowd),
	    TEST(control_stranger),
	    TEST(control_reload),
	    TEST(silence_execd),
	    TEST(silence_others),
	    TEST(flood_polite),
	    TEST(flood_listener),
	    TEST(flood_deaf_pathd),
	};
	const struct CMUnitTest services[] = {
	    cmocka_unit_test_teardown(service_listener, service_end),
	    cmocka_unit_test_teardown(service_pathd, service_end),
	    cmocka_unit_test_teardown(service_execd, service_end),
	    cmocka_unit_test_teardown(service_limit, service_end),
	    cmocka_unit_test_teardown(service_log_flood, service_end),
	};
	const struct CMUnitTest solos[] = {
	    cmocka_unit_test(solo_types_listener),
	    cmocka_unit_test(solo_types_pathd),
	    cmocka_unit_test(solo_types_execd),
	    cmocka_unit_test(solo_lengths),
	    cmocka_unit_test(solo_listener),
	    cmocka_unit_test(solo_late),
	    cmocka_unit_test(solo_blocking),
	    cmocka_unit_test(solo_pathd),
	    cmocka_unit_test(solo_execd),
	};
	int c, bad = 0;

	log_init("evil", 0);
	while ((c = getopt(argc, argv, "b:k:s:u:")) != -1)
		switch (c) {
		case 'b':
			evil_build = optarg;
			break;
		case 'k':
			cmocka_set_test_filter(optarg);
			break;
		case 'u':
			evil_user = optarg;
			break;
		case 's':
			evil_standin = optarg;
			break;
		default:
			fprintf(stderr,
			    "usage: evil [-b dir] [-s stand-in] [-u user] "
			    "[-k pattern] [group]\n");
			return 2;
		}
	if (optind == argc || strcmp(argv[optind], "lab") == 0)
		bad += cmocka_run_group_tests_name(
		    "lab", matrix, lab_begin, lab_finish);
	if (optind == argc || strcmp(argv[optind], "solo") == 0)
		bad += cmocka_run_group_tests_name(
		    "solo", solos, solo_begin, solo_finish);
	if (optind == argc || strcmp(argv[optind], "service") == 0)
		bad += cmocka_run_group_tests_name(
		    "service", services, NULL, NULL);
	return bad == 0 ? 0 : 1;
}
