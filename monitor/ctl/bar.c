/*
 * SPDX-License-Identifier: ISC
 *
 * The progress of a transfer on stderr, at most five times a second.
 */
#include "monitor/ctl/bar.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/abx.h"
#include "monitor/ctl/show.h"

#define STEP_US 200000

static uint64_t
now_us(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC, &ts) == -1)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

void
bar_size(char b[24], uint64_t bytes)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double v = (double)bytes;
	size_t i;

	for (i = 0; i + 1 < nitems(unit) && v >= 1024; i++)
		v /= 1024;
	snprintf(b, 24, i == 0 ? "%.0f %s" : "%.1f %s", v, unit[i]);
}

static void
draw(struct bar *b, uint64_t done, int last)
{
	uint64_t us = now_us() - b->began_us, left;
	double rate = us == 0 ? 0 : (double)(done - b->from) * 1e6 / (double)us;
	char size[24], speed[24], name[32];
	size_t n = strlen(b->name);

	snprintf(name, sizeof(name), "%s",
	    n < sizeof(name) ? b->name : b->name + n - sizeof(name) + 1);
	bar_size(size, done);
	bar_size(speed, (uint64_t)rate);
	fputc('\r', stderr);
	show_name(stderr, name, strlen(name));
	if (b->total > 0)
		fprintf(stderr, " %3u%%",
		    (unsigned)((double)done * 100 / (double)b->total));
	fprintf(stderr, "  %s  %s/s", size, speed);
	if (!last && b->total > done && rate > 0) {
		left = (uint64_t)((double)(b->total - done) / rate);
		fprintf(stderr, "  %02u:%02u left", (unsigned)(left / 60),
		    (unsigned)(left % 60));
	}
	fputs(last ? "\033[K\n" : "\033[K", stderr);
	fflush(stderr);
}

void
bar_begin(
    struct bar *b, const char *name, uint64_t from, uint64_t total, int quiet)
{
	memset(b, 0, sizeof(*b));
	b->name = name;
	b->from = from;
	b->total = total;
	b->on = !quiet && isatty(STDERR_FILENO);
	b->began_us = b->shown_us = now_us();
}

void
bar_at(struct bar *b, uint64_t done)
{
	uint64_t now;

	if (!b->on || (now = now_us()) - b->shown_us < STEP_US)
		return;
	b->shown_us = now;
	draw(b, done, 0);
}

void
bar_end(struct bar *b, uint64_t done)
{
	if (b->on)
		draw(b, done, 1);
	b->on = 0;
}
