/*
 * SPDX-License-Identifier: ISC
 *
 * Audit sinks: order, one write a turn, a pipe that is full, a file that is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/resource.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/log.h"
#include "monitor/sink.h"

static struct event_base *base;
static unsigned said;

static void
quiet(enum log_level level, const char *line)
{
	said++;
}

static void
turn(void)
{
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
}

static int
temp_file(void)
{
	char name[] = "/tmp/abx-sink-XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd != -1);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0);
	return fd;
}

static char *
text_of(int fd)
{
	static char buf[4096];
	ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);

	assert_true(n >= 0);
	buf[n] = '\0';
	return buf;
}

static void
test_turn(void **state)
{
	int fd = temp_file(), other = temp_file();

	sink_set(0, fcntl(fd, F_DUPFD_CLOEXEC, 3));
	sink_put("one\n", 4);
	sink_put("two\n", 4);
	assert_string_equal(text_of(fd), "");
	turn();
	assert_string_equal(text_of(fd), "one\ntwo\n");
	/* what waits belongs to the file that it was written for */
	sink_put("three\n", 6);
	sink_set(0, fcntl(other, F_DUPFD_CLOEXEC, 3));
	sink_put("four\n", 5);
	turn();
	assert_string_equal(text_of(fd), "one\ntwo\nthree\n");
	assert_string_equal(text_of(other), "four\n");
	assert_int_equal(sink_lost(), 0);
	close(fd);
	close(other);
}

/* Nothing is lost of what fits the queue, whatever the reader does; what does
 * not is counted, and order holds. */
static void
test_full_pipe(void **state)
{
	static char line[1000], got[4096];
	size_t i, sent = 0, lines = 0, bytes = 0;
	uint64_t before = sink_lost();
	ssize_t n;
	int p[2];

	assert_int_equal(pipe(p), 0);
	sink_set(0, p[1]);
	for (i = 0; i < 2000; i++) {
		memset(line, 'a' + (int)(i % 26), sizeof(line));
		line[sizeof(line) - 1] = '\n';
		sink_put(line, sizeof(line));
		sent++;
		if (i % 7 == 0)
			turn();
	}
	turn();
	assert_in_range(sink_lost() - before, 800, 1000);
	sent -= (size_t)(sink_lost() - before);
	assert_int_equal(fcntl(p[0], F_SETFL, O_NONBLOCK), 0);
	for (i = 0; i < 10000 && lines < sent; i++) {
		if ((n = read(p[0], got, sizeof(got))) <= 0) {
			sink_flush();
			continue;
		}
		bytes += (size_t)n;
		while (n > 0)
			lines += got[--n] == '\n';
	}
	assert_int_equal(lines, sent);
	assert_int_equal(bytes, sent * sizeof(line));
	sink_set(0, temp_file());
	close(p[0]);
}

/* A reader that is gone: counted, no signal, no loop. */
static void
test_gone(void **state)
{
	uint64_t before = sink_lost();
	int p[2];

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(p), 0);
	close(p[0]);
	sink_set(0, p[1]);
	sink_put("a\n", 2);
	sink_put("b\n", 2);
	turn();
	assert_int_equal(sink_lost() - before, 2);
	assert_true(said > 0);
}

/* A disk that fills in the middle of a line: what is lost is counted, and the
 * next line that fits begins a line. */
static void
test_torn(void **state)
{
	struct rlimit old, few = {10, 0};
	uint64_t before = sink_lost();
	int fd = temp_file();

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	sink_set(0, fcntl(fd, F_DUPFD_CLOEXEC, 3));
	sink_put("12345\n", 6);
	sink_put("67890\n", 6);
	sink_put("never\n", 6);
	few.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	turn();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(sink_lost() - before, 2);
	sink_put("again\n", 6);
	turn();
	assert_string_equal(text_of(fd), "12345\n6789\nagain\n");
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_turn),
	    cmocka_unit_test(test_full_pipe),
	    cmocka_unit_test(test_gone),
	    cmocka_unit_test(test_torn),
	};

	log_set_sink(quiet);
	if ((base = event_base_new()) == NULL)
		return 1;
	sink_init(base, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
