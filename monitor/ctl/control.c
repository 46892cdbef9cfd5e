/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl status, reload, panic and resume: one word over the control socket
 * of the running service, and its JSON answer.
 */
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/imsg.h"
#include "common/log.h"
#include "common/msg.h"
#include "common/wire.h"
#include "monitor/confdirs.h"
#include "monitor/conffile.h"
#include "monitor/ctl/ctl.h"
#include "monitor/ctl/show.h"

#define WAIT_S 60 /* a reload waits for new workers */

/* The socket in the run directory of a service that root or we started. */
static char *
run_socket(const struct ctl *ctl, const struct confset *cs, int root)
{
	char *dir, *path = NULL, *state = NULL, *work = NULL;
	const char *of = cs->conf == NULL ? NULL : cs->conf->state_dir;

	/* what no file says is another's default for another starter */
	if (of == NULL ||
	    (root != cs->world.root_start && cs->state_dir != NULL &&
		strcmp(of, cs->state_dir) == 0)) {
		(void)confdirs_default(root, NULL, &state, &work);
		of = state;
	}
	dir = of == NULL
		  ? NULL
		  : confdirs_run(root,
			root == cs->world.root_start ? ctl->opts.env : NULL,
			ctl->opts.file, of);
	if (dir != NULL && asprintf(&path, "%s/control", dir) == -1)
		path = NULL;
	free(dir);
	free(state);
	free(work);
	return path;
}

/* Whether the service can be asked although FILE cannot be read as a
 * configuration: it may run with what FILE was before.  Of another file than
 * the default one nothing but the file says which service is meant. */
static int
ask_anyway(const struct ctl *ctl, const struct confset *cs)
{
	const char *file = ctl->opts.file;

	if (file == NULL || strcmp(file, CONFFILE_DEFAULT) == 0)
		return 1;
	if (cs->files.n == 0)
		return 0; /* it is not there */
	log_warnx("%s does not say where the service is; -f with a copy that "
		  "can be read reaches it",
	    file);
	return 0;
}

/* Where the service with that FILE listens for us: one or two new strings,
 * none when the file says nothing usable.  Who is not root may have started
 * it, or be let in by a service of root's.  The file need not be sound: the
 * tokens of the service are not in our environment. */
static void
socket_paths(const struct ctl *ctl, char *path[2])
{
	struct confset cs;
	int r = confset_load(&cs, &ctl->opts), usable = r == 0;

	path[0] = path[1] = NULL;
	if (r == -1 || cs.conf == NULL) {
		usable = r == 0 && ask_anyway(ctl, &cs);
		if (!usable)
			show_findings(&cs.found, 1);
		else if (cs.files.n > 0) /* a preset needs no file */
			log_warnx(
			    "%s cannot be read as it is now", cs.files.file);
	}
	if (usable && cs.conf != NULL && cs.conf->control_path != NULL)
		path[0] = strdup(cs.conf->control_path);
	else if (usable) {
		path[0] = run_socket(ctl, &cs, cs.world.root_start);
		if (!cs.world.root_start)
			path[path[0] != NULL] = run_socket(ctl, &cs, 1);
	}
	confset_clear(&cs);
}

static struct imsgbuf *
dial(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct timeval tv = {WAIT_S, 0};
	struct imsgbuf *b;
	int fd;

	if (strlcpy(sa.sun_path, path, sizeof(sa.sun_path)) >=
	    sizeof(sa.sun_path)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return NULL;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == -1 ||
	    connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == -1 ||
	    (b = imsg_new(fd)) == NULL) {
		close(fd);
		return NULL;
	}
	return b;
}

/* The answer's JSON, NULL when none came; *ok as the service said. */
static json_t *
converse(struct imsgbuf *b, const char *verb, int *ok)
{
	struct imsg m;
	struct rbuf r;
	const char *why;
	json_t *j = NULL;

	if (imsg_compose(b, CT_ASK, 1, -1, verb, strlen(verb)) == -1 ||
	    imsg_flush(b) != 0 || imsg_read(b) != 1 || !imsg_get(b, &m))
		return NULL;
	if (msg_check(&m, &why) == 0 && m.type == CT_ANS && m.id == 1) {
		rbuf_init(&r, m.payload, m.len);
		*ok = rget_bool(&r);
		j = json_loadb((const char *)r.p, r.len, 0, NULL);
	}
	if (m.fd != -1)
		close(m.fd);
	return j;
}

static int
none_there(int error)
{
	return error == ENOENT || error == ECONNREFUSED;
}

/* The service, and where it was found or looked for first; NULL with errno.
 * *at is NULL when there is nowhere to look. */
static struct imsgbuf *
find(const struct ctl *ctl, char **at)
{
	struct imsgbuf *b = NULL;
	char *path[2];
	int error;

	socket_paths(ctl, path);
	if (path[0] != NULL && (b = dial(path[0])) == NULL &&
	    none_there(error = errno) && path[1] != NULL) {
		b = dial(path[1]);
		if (b != NULL || !none_there(errno)) {
			/* it is that one that there is something to say of */
			error = errno;
			free(path[0]);
			path[0] = path[1];
			path[1] = NULL;
		}
		errno = error;
	}
	free(path[1]);
	*at = path[0];
	return b;
}

int
control_ask(const struct ctl *ctl, const char *verb, json_t **answer, int *ok)
{
	struct imsgbuf *b;
	char *path;

	*ok = 0;
	b = find(ctl, &path);
	if (path == NULL)
		return CTL_USAGE;
	if (b == NULL) {
		if (none_there(errno))
			log_warn("%s: no service with this configuration runs",
			    path);
		else if (errno == EACCES)
			log_warn(
			    "%s: only root, who started the service and "
			    "the group of \"control\" in its configuration "
			    "may use it",
			    path);
		else
			log_warn("%s", path);
		free(path);
		return CTL_UNREACHED;
	}
	*answer = converse(b, verb, ok);
	imsg_free(b);
	if (*answer == NULL)
		log_warnx(
		    "%s: the service did not answer (not admitted?)", path);
	free(path);
	return *answer == NULL ? CTL_UNREACHED : CTL_YES;
}

json_t *
control_status(const struct ctl *ctl)
{
	struct imsgbuf *b;
	json_t *j;
	char *path;
	int ok;

	b = find(ctl, &path);
	free(path);
	if (b == NULL)
		return NULL;
	j = converse(b, "status", &ok);
	imsg_free(b);
	return j;
}

static const char *
member(const json_t *j, const char *name)
{
	const char *s = json_string_value(json_object_get(j, name));

	return s == NULL ? "" : s;
}

static void
show_status(const json_t *j)
{
	json_t *procs = json_object_get(j, "processes"), *p;
	char layers[128] = "";
	const char *name;

	show_line("version   %s", member(j, "version"));
	show_line("revision  %s", member(j, "revision"));
	show_line("up        %lld s",
	    (long long)json_integer_value(json_object_get(j, "uptime_s")));
	show_line("requests  %lld",
	    (long long)json_integer_value(json_object_get(j, "requests")));
	show_line("audit     %lld records lost",
	    (long long)json_integer_value(json_object_get(j, "audit_lost")));
	if (json_is_true(json_object_get(j, "panic")))
		show_line("panic     no command may start");
	json_object_foreach(procs, name, p) {
		show_line("%-10s%s, generation %lld", name,
		    json_is_true(json_object_get(p, "ready")) ? "ready"
							      : "not ready",
		    (long long)json_integer_value(
			json_object_get(p, "generation")));
	}
	json_object_foreach(json_object_get(j, "sandbox"), name, p) {
		if (!json_is_true(p))
			continue;
		strlcat(layers, " ", sizeof(layers));
		strlcat(layers, name, sizeof(layers));
	}
	show_line("sandbox  %s", layers[0] == '\0' ? " none" : layers);
}

static int
simple(struct ctl *ctl, int argc, char **argv, json_t **answer, int *ok)
{
	if (ctl_options(ctl, argc, argv) == -1)
		return CTL_USAGE;
	if (optind < argc)
		return ctl_usage(argv[0]);
	return control_ask(ctl, argv[0], answer, ok);
}

int
status_main(struct ctl *ctl, int argc, char **argv)
{
	json_t *j = NULL;
	int ok, status = simple(ctl, argc, argv, &j, &ok);

	if (status != CTL_YES)
		return status;
	if (ctl->json)
		return show_json(j) == -1 ? CTL_USAGE : CTL_YES;
	show_status(j);
	json_decref(j);
	return CTL_YES;
}

int
reload_main(struct ctl *ctl, int argc, char **argv)
{
	json_t *j = NULL;
	int ok, status = simple(ctl, argc, argv, &j, &ok);

	if (status != CTL_YES)
		return status;
	if (ctl->json)
		show_json(json_incref(j));
	else if (ok)
		show_line("revision %s", member(j, "revision"));
	else
		show_line("%s", member(j, "error"));
	json_decref(j);
	return ok ? CTL_YES : CTL_USAGE;
}

int
panic_main(struct ctl *ctl, int argc, char **argv)
{
	json_t *j = NULL;
	int ok, status = simple(ctl, argc, argv, &j, &ok);

	if (status != CTL_YES)
		return status;
	if (ctl->json)
		show_json(json_incref(j));
	else
		show_line(json_is_true(json_object_get(j, "panic"))
			      ? "no command may start until abxctl resume"
			      : "commands may start");
	json_decref(j);
	return ok ? CTL_YES : CTL_NO;
}
