/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl top: what the service is doing right now, again and again on a
 * terminal, else once.  abxctl sessions: the workspaces that it keeps.
 */
#include <sys/ioctl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "monitor/ctl/ctl.h"
#include "monitor/ctl/show.h"

#define EVERY_S 1
#define HEAD 3 /* lines that are no rows */

static const char *
member(const json_t *j, const char *name)
{
	const char *s = json_string_value(json_object_get(j, name));

	return s == NULL ? "" : s;
}

/* "3.2 s", "4:05", "2:03:04" */
static void
age_text(char b[32], json_int_t ms)
{
	unsigned long long s = ms < 0 ? 0 : (unsigned long long)ms / 1000;

	if (s < 60)
		snprintf(b, 32, "%llu.%llu s", s,
		    ms < 0 ? 0 : (unsigned long long)ms / 100 % 10);
	else if (s < 3600)
		snprintf(b, 32, "%llu:%02llu", s / 60, s % 60);
	else
		snprintf(
		    b, 32, "%llu:%02llu:%02llu", s / 3600, s / 60 % 60, s % 60);
}

static void
show_rows(const json_t *j, size_t max)
{
	const json_t *rows = json_object_get(j, "rows"), *r;
	json_int_t more = json_integer_value(json_object_get(j, "more"));
	size_t i, n = json_array_size(rows);
	char age[32];

	show_line("%zu running", n + (size_t)more);
	show_line("%s", "");
	show_line("%-16s %-8s %-7s %-20s %10s  %s", "PRINCIPAL", "KIND", "ID",
	    "OPERATION", "AGE", "PROGRAM");
	json_array_foreach(rows, i, r) {
		if (i == max)
			break;
		age_text(age, json_integer_value(json_object_get(r, "age_ms")));
		show_line("%-16s %-8s %-7s %-20s %10s  %s",
		    member(r, "principal"), member(r, "kind"), member(r, "id"),
		    member(r, "op"), age, member(r, "argv0"));
	}
	if (i < n || more > 0)
		show_line("... and %zu more", n - i + (size_t)more);
}

/* How many rows the terminal has room for. */
static size_t
room(void)
{
	struct winsize ws;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == -1 ||
	    ws.ws_row <= HEAD + 2)
		return 20;
	return (size_t)ws.ws_row - HEAD - 2;
}

static int
live(struct ctl *ctl)
{
	json_t *j;
	int ok, status;

	for (;;) {
		j = NULL;
		if ((status = control_ask(ctl, "top", &j, &ok)) != CTL_YES)
			return status;
		fputs("\033[H\033[2J", stdout);
		show_rows(j, room());
		json_decref(j);
		if (fflush(stdout) == EOF)
			return CTL_USAGE;
		sleep(EVERY_S);
	}
}

int
top_main(struct ctl *ctl, int argc, char **argv)
{
	static const struct option longopts[] = {
	    CTL_LONGOPTS, {"once", no_argument, NULL, '1'}, {NULL, 0, NULL, 0}};
	int ch, ok, status, once = !isatty(STDOUT_FILENO);
	json_t *j = NULL;

	optind = 1;
	while ((ch = getopt_long(argc, argv, CTL_OPTS "1", longopts, NULL)) !=
	       -1) {
		if (ch == '1')
			once = 1;
		else if (ctl_option(ctl, ch) == -1)
			return ctl_usage(argv[0]);
	}
	if (optind < argc)
		return ctl_usage(argv[0]);
	if (!once && !ctl->json)
		return live(ctl);
	if ((status = control_ask(ctl, "top", &j, &ok)) != CTL_YES)
		return status;
	if (ctl->json)
		return show_json(j) == -1 ? CTL_USAGE : CTL_YES;
	show_rows(j, SIZE_MAX);
	json_decref(j);
	return CTL_YES;
}

static void
show_sessions(const json_t *j)
{
	const json_t *rows = json_object_get(j, "sessions"), *r;
	json_int_t more = json_integer_value(json_object_get(j, "more"));
	size_t i;

	show_line("%-16s %-24s %-7s %7s  %s", "PRINCIPAL", "SESSION", "STATE",
	    "RUNNING", "LAST USED");
	json_array_foreach(rows, i, r) {
		show_line("%-16s %-24s %-7s %7lld  %s", member(r, "principal"),
		    member(r, "session"), member(r, "state"),
		    (long long)json_integer_value(
			json_object_get(r, "running")),
		    member(r, "last_used"));
	}
	if (more > 0)
		show_line("... and %lld more", (long long)more);
}

int
sessions_main(struct ctl *ctl, int argc, char **argv)
{
	json_t *j = NULL;
	int ok, status;

	if (ctl_options(ctl, argc, argv) == -1)
		return CTL_USAGE;
	if (optind < argc)
		return ctl_usage(argv[0]);
	if ((status = control_ask(ctl, "sessions", &j, &ok)) != CTL_YES)
		return status;
	if (ctl->json)
		return show_json(j) == -1 ? CTL_USAGE : CTL_YES;
	show_sessions(j);
	json_decref(j);
	return CTL_YES;
}
