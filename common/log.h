/*
 * SPDX-License-Identifier: ISC
 *
 * One way to log for all processes: to stderr in the parent and the tools, to
 * the parent over fd 3 in children.  Lower case, no full stop, name the
 * object.  Never a secret, an argument value, file content or a query.
 */
#ifndef ABX_LOG_H
#define ABX_LOG_H

#include <stdarg.h>

enum log_level { LOGL_ERR = 0, LOGL_WARN, LOGL_INFO, LOGL_DEBUG };

/* Where lines go.  The default writes "name: level: text" to stderr. */
typedef void (*log_sink)(enum log_level, const char *line);

/* name is borrowed for the life of the process; debug also lets LOGL_DEBUG
 * through. */
void log_init(const char *name, int debug);
void log_set_sink(log_sink);
const char *log_name(void);
int log_debugging(void);
/* Write one line to stderr (used by the parent for its children's lines);
 * control bytes are escaped. */
void log_write(enum log_level, const char *name, const char *line);

void log_warn(const char *, ...) __attribute__((format(printf, 1, 2)));
void log_warnx(const char *, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *, ...) __attribute__((format(printf, 1, 2)));
/* Log, tell the parent when there is one, and exit 1.  Start-up and broken
 * invariants only; a request's failure is a status for the client. */
void fatal(const char *, ...) __attribute__((format(printf, 1, 2), noreturn));
void fatalx(const char *, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
