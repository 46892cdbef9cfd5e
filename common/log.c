/*
 * SPDX-License-Identifier: ISC
 *
 * Log lines: formatted here, sent where log_set_sink says.  Never fails a
 * caller; a line over the buffer is cut.
 */
#include "common/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *progname = "abx";
static int debugging;
static log_sink sink;

void
log_init(const char *name, int debug)
{
	progname = name;
	debugging = debug;
}

void
log_set_sink(log_sink s)
{
	sink = s;
}

const char *
log_name(void)
{
	return progname;
}

int
log_debugging(void)
{
	return debugging;
}

void
log_write(enum log_level level, const char *name, const char *line)
{
	static const char *const words[] = {
	    "error", "warning", "info", "debug"};
	char out[2300];
	size_t n, i;
	int len;

	len = snprintf(out, sizeof(out) - 1, "%s: %s: %s", name,
	    words[level <= LOGL_DEBUG ? level : LOGL_DEBUG], line);
	if (len < 0)
		return;
	n = (size_t)len >= sizeof(out) - 1 ? sizeof(out) - 2 : (size_t)len;
	/* one physical line a record, whatever a child sent */
	for (i = 0; i < n; i++)
		if ((unsigned char)out[i] < 0x20 || out[i] == 0x7f)
			out[i] = '?';
	out[n++] = '\n';
	if (write(STDERR_FILENO, out, n) == -1)
		return;
}

static void
vlog(enum log_level level, int err, const char *fmt, va_list ap)
{
	char line[2048];
	int n;

	n = vsnprintf(line, sizeof(line), fmt, ap);
	if (n < 0)
		return;
	if (err != 0 && (size_t)n < sizeof(line))
		snprintf(
		    line + n, sizeof(line) - (size_t)n, ": %s", strerror(err));
	if (sink != NULL)
		sink(level, line);
	else
		log_write(level, progname, line);
}

void
log_warn(const char *fmt, ...)
{
	int save = errno;
	va_list ap;

	va_start(ap, fmt);
	vlog(LOGL_WARN, save, fmt, ap);
	va_end(ap);
	errno = save;
}

void
log_warnx(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog(LOGL_WARN, 0, fmt, ap);
	va_end(ap);
}

void
log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog(LOGL_INFO, 0, fmt, ap);
	va_end(ap);
}

void
log_debug(const char *fmt, ...)
{
	va_list ap;

	if (!debugging)
		return;
	va_start(ap, fmt);
	vlog(LOGL_DEBUG, 0, fmt, ap);
	va_end(ap);
}

void
fatal(const char *fmt, ...)
{
	int save = errno;
	va_list ap;

	va_start(ap, fmt);
	vlog(LOGL_ERR, save, fmt, ap);
	va_end(ap);
	exit(1);
}

void
fatalx(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog(LOGL_ERR, 0, fmt, ap);
	va_end(ap);
	exit(1);
}
