/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl run while the command runs: its output is written, our input and our
 * signals go to it.  Nothing here waits but poll(2), so that a service that
 * stalls does not keep a signal from us.
 */
#include "monitor/ctl/run.h"

#include <sys/signalfd.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/log.h"
#include "monitor/ctl/show.h"
#include "monitor/ctl/sse.h"

#define PIECE (48 * 1024) /* of input in one call */
#define GONE 141	  /* as a shell says of SIGPIPE */

struct follow {
	struct run *r;
	struct sse sse;
	struct talk *in; /* a piece of input that waits for its answer */
	int in_open;	 /* there may be more of it */
	int sigfd;
	int left;    /* a signal could not be passed on; the next leaves */
	int deaf;    /* our own output is closed */
	int starved; /* a piece of input was refused: it would wait for ever */
};

/* ---- towards us ---- */

static int
put_out(struct follow *f, int fd, const char *p, size_t n)
{
	ssize_t done;

	while (n > 0) {
		done = write(fd, p, n);
		if (done == -1 && errno == EINTR)
			continue;
		if (done == -1) {
			f->deaf = 1;
			return -1;
		}
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* {"offset","data","encoding"} */
static int
on_output(struct follow *f, int fd, const json_t *j)
{
	const json_t *data = json_object_get(j, "data");
	const char *enc = json_string_value(json_object_get(j, "encoding"));
	size_t n = json_string_length(data);
	char *raw;
	int len, r;

	if (!json_is_string(data) || enc == NULL)
		return -1;
	if (strcmp(enc, "base64") != 0)
		return put_out(f, fd, json_string_value(data), n);
	if ((raw = malloc(n + 1)) == NULL)
		return -1;
	len = base64_decode(json_string_value(data), n, (uint8_t *)raw, n + 1);
	r = len == -1 ? -1 : put_out(f, fd, raw, (size_t)len);
	free(raw);
	return r;
}

static int
on_event_cb(const char *event, const char *data, void *arg)
{
	struct follow *f = arg;
	json_t *j =
	    json_loads(data, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
	int r = 0;

	if (!json_is_object(j))
		r = -1;
	else if (strcmp(event, "stdout") == 0)
		r = on_output(f, STDOUT_FILENO, j);
	else if (strcmp(event, "stderr") == 0)
		r = on_output(f, STDERR_FILENO, j);
	else if (strcmp(event, "gap") == 0)
		show_complaint("%lld bytes of the output were not kept",
		    (long long)json_integer_value(json_object_get(j, "bytes")));
	else if (strcmp(event, "exit") == 0)
		f->r->status = run_exit_status(j);
	json_decref(j);
	return r;
}

/* What the service said: 0, or -1 when nothing more is to be expected. */
static int
on_stream(struct follow *f)
{
	char b[32 * 1024];
	ssize_t n = talk_read(f->r->out, b, sizeof(b));

	if (n == TALK_WAIT)
		return 0;
	if (n <= 0)
		return -1;
	if (sse_take(&f->sse, b, (size_t)n, on_event_cb, f) == 0)
		return 0;
	if (!f->deaf)
		log_warnx("the answer is not a stream of events");
	return -1;
}

/* ---- towards it ---- */

/* The path of what can be done to the process, a new string or NULL. */
static char *
target_of(const struct run *r, const char *what)
{
	char *at = client_target("/process/", r->id, strlen(r->id));
	char *out = NULL;

	if (at != NULL && asprintf(&out, "%s/%s", at, what) == -1)
		out = NULL;
	free(at);
	return out;
}

/* Tell it a signal: 0 or -1. */
static int
pass_signal(struct run *r, const char *name)
{
	json_t *body = json_pack("{s:s}", "signal", name), *j = NULL;
	char *target = target_of(r, "signal");
	int status = CTL_USAGE;

	if (target != NULL && body != NULL)
		status = client_json(r->client, "POST", target, body, &j);
	else
		json_decref(body);
	json_decref(j);
	free(target);
	return status == CTL_YES ? 0 : -1;
}

void
run_abandon(struct run *r)
{
	/* the service may not have seen yet that we hung up */
	static const struct timespec pause = {0, 200000000};

	(void)nanosleep(&pause, NULL);
	if (pass_signal(r, "TERM") == -1)
		show_complaint("process %s runs on", r->id);
}

/* 0, or the exit status. */
static int
on_signal(struct follow *f)
{
	struct signalfd_siginfo si;
	const char *name;
	int sig;

	if (read(f->sigfd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return 0;
	sig = (int)si.ssi_signo;
	if (f->r->id == NULL)
		return 128 + sig; /* hanging up ends it */
	name = sig == SIGINT	? "INT"
	       : sig == SIGHUP	? "HUP"
	       : sig == SIGQUIT ? "QUIT"
				: "TERM";
	if (!f->left && pass_signal(f->r, name) == 0)
		return 0;
	if (f->left || sig == SIGHUP) {
		show_complaint("process %s runs on", f->r->id);
		return 128 + sig;
	}
	f->left = 1;
	show_complaint("it was not told; once more leaves it running");
	return 0;
}

/* A piece of our input, or its end, to the process. */
static int
send_input(struct follow *f, const char *p, size_t n)
{
	char b[4 * ((PIECE + 2) / 3) + 1], *target, *text = NULL;
	struct talk_ask a = {.method = "POST", .type = "application/json"};
	json_t *body = NULL;

	f->in_open = n > 0;
	target = target_of(f->r, "stdin");
	if (target != NULL && base64_encode(p, n, b, sizeof(b)) != -1 &&
	    (body = json_pack("{s:s, s:s, s:b}", "data", b, "encoding",
		 "base64", "eof", n == 0)) != NULL &&
	    (text = json_dumps(body, JSON_COMPACT)) != NULL) {
		a.target = target;
		a.length = (int64_t)strlen(text);
		if ((f->in = talk_new(f->r->client, &a)) != NULL)
			(void)talk_send(f->in, text, strlen(text));
	}
	json_decref(body);
	free(text);
	free(target);
	return f->in == NULL ? -1 : 0;
}

static void
on_input(struct follow *f)
{
	char b[PIECE];
	ssize_t n = read(STDIN_FILENO, b, sizeof(b));

	if (n == -1 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n == -1) {
		log_warn("standard input");
		n = 0;
	}
	if (send_input(f, b, (size_t)n) == -1)
		f->in_open = 0;
}

/* The process took the piece, or will take no more. */
static void
on_taken(struct follow *f)
{
	int http = talk_answer(f->in);

	if (http != 200)
		f->in_open = 0;
	/* 409: it has ended, or closed its input; its right */
	f->starved = http != 200 && http != 409;
	if (f->starved && http >= 400)
		(void)talk_error(f->in);
	talk_free(f->in);
	f->in = NULL;
}

/* ---- the loop ---- */

static void
turn(struct follow *f, int *status)
{
	struct pollfd p[4] = {
	    {.fd = talk_fd(f->r->out), .events = POLLIN},
	    {.fd = f->sigfd, .events = POLLIN},
	    {.fd = -1, .events = POLLIN},
	    {.fd = -1, .events = POLLIN},
	};

	if (f->in != NULL)
		p[2].fd = talk_fd(f->in);
	else if (f->in_open)
		p[3].fd = STDIN_FILENO;
	if (poll(p, 4, talk_ready(f->r->out) ? 0 : -1) == -1) {
		if (errno != EINTR)
			*status = CTL_USAGE;
		return;
	}
	if (p[1].revents != 0 && (*status = on_signal(f)) != 0)
		return;
	*status = -1;
	if (p[2].revents != 0) {
		on_taken(f);
		if (f->starved) {
			*status = CTL_NO;
			return;
		}
	} else if (p[3].revents != 0)
		on_input(f);
	if ((p[0].revents != 0 || talk_ready(f->r->out)) &&
	    on_stream(f) == -1) {
		if (f->deaf)
			*status = GONE;
		else
			*status =
			    f->r->status == -1 ? CTL_UNREACHED : f->r->status;
	}
}

int
run_follow(struct run *r)
{
	struct follow f = {.r = r, .in_open = r->feed, .sigfd = -1};
	sigset_t set;
	int status = -1;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	if ((f.sigfd = signalfd(-1, &set, SFD_CLOEXEC)) == -1) {
		log_warn("signalfd");
		return CTL_USAGE;
	}
	talk_nowait(r->out);
	while (status == -1)
		turn(&f, &status);
	if ((f.deaf || f.starved) && r->id != NULL) {
		/* the stream is one of our calls at once */
		talk_free(r->out);
		r->out = NULL;
		run_abandon(r);
	}
	close(f.sigfd);
	talk_free(f.in);
	sse_clear(&f.sse);
	return status;
}
