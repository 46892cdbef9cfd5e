/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl run: a command on the service as if it ran here.  Without --stdin and
 * --signals it is a streamed commands.run, which ends when we hang up.  With
 * one of them it is a process of its own, since only those can be fed and
 * signalled.
 */
#include "monitor/ctl/run.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/run_render.h"
#include "common/size.h"
#include "monitor/ctl/resp.h"
#include "monitor/ctl/show.h"

struct asked {
	const char *cwd, *session;
	uint64_t timeout; /* seconds, 0: not said */
	json_t *env;
	int in, signals;
};

int
run_exit_status(const json_t *r)
{
	const json_t *code = json_object_get(r, "exit_code");
	const char *sig = json_string_value(json_object_get(r, "signal"));
	const json_t *dropped = json_object_get(r, "dropped");
	json_int_t lost;
	char name[16];
	int i;

	lost = json_integer_value(json_object_get(dropped, "stdout")) +
	       json_integer_value(json_object_get(dropped, "stderr"));
	if (lost > 0)
		show_complaint("%lld bytes of the output are beyond its limit",
		    (long long)lost);

	if (json_is_true(json_object_get(r, "timed_out")) ||
	    json_is_true(json_object_get(r, "idle_timed_out")))
		show_complaint("the command was stopped: time-out");
	if (json_is_true(json_object_get(r, "oom_killed")))
		show_complaint("the command was stopped: out of memory");
	if (json_is_integer(code) && json_integer_value(code) >= 0 &&
	    json_integer_value(code) <= 255)
		return (int)json_integer_value(code);
	for (i = 1; sig != NULL && i <= 64; i++) {
		run_signal_name(i, name);
		if (strcmp(name, sig) == 0)
			return 128 + i;
	}
	show_complaint("nobody saw how the command ended");
	return CTL_UNREACHED;
}

static json_t *
make_argv(int argc, char **argv)
{
	json_t *a = json_array();
	int i;

	for (i = 0; a != NULL && i < argc; i++)
		if (json_array_append_new(a, json_string(argv[i])) == -1) {
			log_warnx("word %d of the command is not UTF-8", i + 1);
			json_decref(a);
			return NULL;
		}
	return a;
}

/* The arguments of the call, NULL after the reason was printed. */
static json_t *
make_body(const struct asked *q, int argc, char **argv)
{
	json_t *body = json_object(), *words = make_argv(argc, argv);

	if (words == NULL || body == NULL) {
		json_decref(words);
		json_decref(body);
		return NULL;
	}
	if (json_object_set_new(body, "argv", words) == -1 ||
	    (q->cwd != NULL && client_put_path(body, "cwd", q->cwd) == -1) ||
	    (q->timeout > 0 &&
		json_object_set_new(body, "timeout",
		    json_integer((json_int_t)q->timeout)) == -1) ||
	    (q->session != NULL && json_object_set_new(body, "session",
				       json_string(q->session)) == -1) ||
	    (json_object_size(q->env) > 0 &&
		json_object_set(body, "env", q->env) == -1)) {
		log_warnx("an option is not UTF-8, or out of memory");
		json_decref(body);
		return NULL;
	}
	return body;
}

/* NAME=VALUE into the map: 0 or -1. */
static int
take_env(struct asked *q, const char *text)
{
	const char *eq = strchr(text, '=');
	char *name;
	int r = -1;

	if (eq == NULL || eq == text ||
	    (name = strndup(text, (size_t)(eq - text))) == NULL)
		return -1;
	if (q->env == NULL)
		q->env = json_object();
	r = json_object_set_new(q->env, name, json_string(eq + 1));
	free(name);
	return r;
}

/* ---- the two ways ---- */

static int
hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	signal(SIGPIPE, SIG_IGN);
	return sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Open the stream of events that the call answers: 0, or the exit status. */
static int
open_stream(struct run *r, const struct talk_ask *a, const char *body)
{
	int http;

	if ((r->out = talk_new(r->client, a)) == NULL)
		return CTL_UNREACHED;
	if (body != NULL)
		(void)talk_send(r->out, body, strlen(body));
	if ((http = talk_answer(r->out)) == -1)
		return CTL_UNREACHED;
	if (http >= 400)
		return talk_error(r->out);
	if (!talk_head(r->out)->events) {
		log_warnx("the answer is not a stream of events");
		return CTL_UNREACHED;
	}
	return 0;
}

/* A run that lives as long as its connection. */
static int
run_streamed(struct run *r, json_t *body)
{
	struct talk_ask a = {.method = "POST",
	    .target = "/commands/run",
	    .type = "application/json"};
	char *text = NULL;
	int status = CTL_USAGE;

	if (json_object_set_new(body, "stream", json_true()) == -1 ||
	    (text = json_dumps(body, JSON_COMPACT)) == NULL)
		log_warnx("out of memory");
	else {
		a.length = (int64_t)strlen(text);
		status = open_stream(r, &a, text);
	}
	json_decref(body);
	free(text);
	if (status != 0)
		return status;
	if (hold_signals() == -1) {
		log_warn("signals");
		return CTL_USAGE;
	}
	return run_follow(r);
}

/* A process, whose output is followed. */
static int
run_process(struct run *r, json_t *body)
{
	struct talk_ask a = {.method = "GET", .length = TALK_NO_BODY};
	char *target = NULL, *safe = NULL;
	json_t *j = NULL;
	size_t n;
	int status;

	if (hold_signals() == -1 ||
	    (r->feed &&
		json_object_set_new(body, "stdin_open", json_true()) == -1)) {
		log_warn("run");
		json_decref(body);
		return CTL_USAGE;
	}
	status = client_json(r->client, "POST", "/process", body, &j);
	if (status != CTL_YES)
		return status;
	r->id = client_bytes(j, "id", &n);
	json_decref(j);
	if (r->id == NULL ||
	    (safe = client_target("/process/", r->id, strlen(r->id))) == NULL ||
	    asprintf(&target, "%s/output?follow=true", safe) == -1) {
		log_warnx("the answer does not name the process");
		status = CTL_UNREACHED;
	} else {
		a.target = target;
		status = open_stream(r, &a, NULL);
	}
	free(safe);
	free(target);
	if (status == 0)
		return run_follow(r);
	if (r->id != NULL)
		run_abandon(r);
	return status;
}

/* The whole result as JSON, once it is there. */
static int
run_whole(struct run *r, json_t *body)
{
	json_t *j = NULL;
	int status = client_json(r->client, "POST", "/commands/run", body, &j);

	if (status != CTL_YES)
		return status;
	status = run_exit_status(j);
	return show_json(j) == -1 ? CTL_USAGE : status;
}

enum {
	RUN_CWD = CLIENT_OWN,
	RUN_ENV,
	RUN_TIMEOUT,
	RUN_SESSION,
	RUN_STDIN,
	RUN_SIGNALS
};

static int
run_option(struct asked *q, int ch)
{
	switch (ch) {
	case RUN_CWD:
		q->cwd = optarg;
		return 0;
	case RUN_ENV:
		return take_env(q, optarg);
	case RUN_TIMEOUT:
		if (uint_parse(
			optarg, strlen(optarg), INT32_MAX, &q->timeout) == -1)
			return -1;
		return q->timeout > 0 ? 0 : -1;
	case RUN_SESSION:
		q->session = optarg;
		return 0;
	case RUN_STDIN:
		q->in = 1;
		return 0;
	case RUN_SIGNALS:
		q->signals = 1;
		return 0;
	default:
		return 1;
	}
}

static int
run(struct run *r, const struct asked *q, int argc, char **argv)
{
	json_t *body = make_body(q, argc, argv);

	if (body == NULL)
		return CTL_USAGE;
	r->feed = q->in;
	if (r->ctl->json)
		return run_whole(r, body);
	return q->in || q->signals ? run_process(r, body)
				   : run_streamed(r, body);
}

int
run_main(struct ctl *ctl, int argc, char **argv)
{
	static const struct option longopts[] = {CTL_LONGOPTS, CLIENT_LONGOPTS,
	    {"cwd", required_argument, NULL, RUN_CWD},
	    {"env", required_argument, NULL, RUN_ENV},
	    {"timeout", required_argument, NULL, RUN_TIMEOUT},
	    {"session", required_argument, NULL, RUN_SESSION},
	    {"stdin", no_argument, NULL, RUN_STDIN},
	    {"signals", no_argument, NULL, RUN_SIGNALS}, {NULL, 0, NULL, 0}};
	struct client_opts o = {0};
	struct asked q = {0};
	struct run r = {.ctl = ctl, .status = -1};
	int ch, one, status = CTL_YES;

	optind = 1;
	/* the first word that is no option begins the command */
	while (status == CTL_YES && (ch = getopt_long(argc, argv, "+" CTL_OPTS,
					 longopts, NULL)) != -1)
		if ((one = run_option(&q, ch)) == -1 ||
		    (one == 1 && client_option(ctl, &o, ch) == -1))
			status = ctl_usage(argv[0]);
	if (status == CTL_YES &&
	    (optind == argc || (ctl->json && (q.in || q.signals))))
		status = ctl_usage(argv[0]);
	if (status == CTL_YES &&
	    (r.client = client_new(ctl, &o, &status)) != NULL)
		status = run(&r, &q, argc - optind, argv + optind);
	json_decref(q.env);
	talk_free(r.out);
	client_free(r.client);
	free(r.id);
	return status;
}
