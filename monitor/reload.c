/*
 * SPDX-License-Identifier: ISC
 *
 * Reading the configuration again, for the parent: one run of the loader, new
 * workers beside the old ones when roots or directories changed, and the
 * change-over when the monitor says so.  Any error keeps what is in force.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "monitor/parent.h"

/* There is nothing to go over to: the monitor tells whoever asked, and the
 * audit.  epoch: of what it was sent, 0 when that was nothing. */
static void
refuse(struct parent *p, uint32_t epoch, const char *why)
{
	struct child *m = p->kids[PROC_MONITOR];
	size_t n = strlen(why);
	struct wbuf w;

	if (n > 1000)
		n = 1000;
	wbuf_init(&w, 1024);
	wput_u32(&w, epoch);
	wput_u32(&w, p->next_ticket);
	wput_raw(&w, why, n);
	if (w.err || m == NULL || m->chan == NULL ||
	    chan_send(m->chan, PC_RELOAD_FAIL, 0, -1, w.p, w.len) == -1)
		log_warnx("reload refused: %s", why);
	wbuf_free(&w);
}

/* ---- what may not change without a restart ---- */

static int
lists_equal(const struct strlist *a, const struct strlist *b)
{
	size_t i;

	if (a->n != b->n)
		return 0;
	for (i = 0; i < a->n; i++)
		if (strcmp(a->v[i], b->v[i]) != 0)
			return 0;
	return 1;
}

static int
paths_equal(
    const struct boot_path *a, size_t na, const struct boot_path *b, size_t nb)
{
	size_t i;

	if (na != nb)
		return 0;
	for (i = 0; i < na; i++)
		if (strcmp(a[i].path, b[i].path) != 0 || a[i].rw != b[i].rw ||
		    a[i].id != b[i].id)
			return 0;
	return 1;
}

static int
listens_equal(const struct boot *a, const struct boot *b)
{
	size_t i;

	if (a->nlisten != b->nlisten)
		return 0;
	for (i = 0; i < a->nlisten; i++)
		if (a->listen[i].is_unix != b->listen[i].is_unix ||
		    strcmp(a->listen[i].addr, b->listen[i].addr) != 0 ||
		    a->listen[i].port != b->listen[i].port ||
		    a->listen[i].mode != b->listen[i].mode ||
		    strcmp(a->listen[i].group, b->listen[i].group) != 0)
			return 0;
	return 1;
}

/* The first key that changed and needs a restart, or NULL. */
static const char *
needs_restart(const struct boot *a, const struct boot *b)
{
	size_t i;

	if (!listens_equal(a, b))
		return "listen";
	for (i = 0; i < nitems(a->users); i++)
		if (strcmp(a->users[i], b->users[i]) != 0)
			return "users";
	if (strcmp(a->state_dir, b->state_dir) != 0)
		return "state_dir";
	if (a->workspace_root[0] != '\0' && b->workspace_root[0] != '\0' &&
	    strcmp(a->workspace_root, b->workspace_root) != 0)
		return "sandbox.workspace_root";
	if (a->require != b->require)
		return "sandbox.require";
	if (!lists_equal(&a->audit, &b->audit))
		return "audit";
	if (strcmp(a->control_path, b->control_path) != 0 ||
	    strcmp(a->control_group, b->control_group) != 0)
		return "control";
	return NULL;
}

static int
roots_changed(const struct boot *a, const struct boot *b)
{
	return a->umask != b->umask ||
	       !paths_equal(a->roots, a->nroots, b->roots, b->nroots);
}

static int
binds_changed(const struct boot *a, const struct boot *b)
{
	return a->tmp_size != b->tmp_size || a->cpu_percent != b->cpu_percent ||
	       a->protect_absent != b->protect_absent ||
	       !lists_equal(&a->protect, &b->protect) ||
	       !lists_equal(&a->protect_names, &b->protect_names) ||
	       !paths_equal(a->binds, a->nbinds, b->binds, b->nbinds);
}

/* ---- the loader's environment ---- */

static void
free_env(char **env)
{
	size_t i;

	for (i = 0; env != NULL && env[i] != NULL; i++)
		free(env[i]);
	free(env);
}

/* Names and values of the start, and the digests of its secrets in one
 * variable; NULL when out of memory. */
static char **
start_env(const struct boot *b)
{
	const struct strlist *l = &b->start_env;
	char **env = calloc(l->n + 2, sizeof(*env));
	char *digests = NULL;
	size_t i, n = 0, len;
	int failed = 0;
	FILE *f;

	if (env == NULL || (f = open_memstream(&digests, &len)) == NULL) {
		free(env);
		return NULL;
	}
	fputs("ABX_START_DIGESTS=", f);
	for (i = 0; i < l->n; i++)
		if (strncmp(l->v[i], "D:", 2) == 0)
			fprintf(f, "%s ", l->v[i] + 2);
		else if (strncmp(l->v[i], "E:", 2) == 0) {
			if ((env[n] = strdup(l->v[i] + 2)) == NULL)
				failed = 1;
			else
				n++;
		}
	failed |= ferror(f) | fclose(f);
	if (failed || digests == NULL) {
		free(digests);
		free_env(env);
		return NULL;
	}
	env[n] = digests;
	return env;
}

/* ---- begin ---- */

static int
send_snapshot(struct parent *p, unsigned need)
{
	struct child *m = p->kids[PROC_MONITOR];
	struct wbuf w;
	int rc;

	wbuf_init(&w, 16);
	wput_u32(&w, p->next_epoch);
	wput_u32(&w, p->next_ticket);
	wput_u8(&w, (uint8_t)need);
	rc = w.err ? -1
		   : chan_send(
			 m->chan, PC_SNAPSHOT, 0, p->next->policy, w.p, w.len);
	if (!w.err)
		p->next->policy = -1; /* taken, sent or not */
	wbuf_free(&w);
	return rc;
}

static void
next_free(struct parent *p)
{
	if (p->next == NULL)
		return;
	if (p->next->policy != -1)
		close(p->next->policy);
	boot_clear(&p->next->boot);
	free(p->next);
	p->next = NULL;
}

static int
load_next(struct parent *p)
{
	const char *key;
	char **env, why[128];
	int rc;

	if ((p->next = calloc(1, sizeof(*p->next))) == NULL ||
	    (env = start_env(&p->boot)) == NULL) {
		refuse(p, 0, "no memory");
		return -1;
	}
	p->next->policy = -1;
	rc = boot_load(p, p->next, env);
	free_env(env);
	if (rc == -1) {
		refuse(p, 0, p->next->text);
		return -1;
	}
	if ((key = needs_restart(&p->boot, &p->next->boot)) != NULL) {
		snprintf(
		    why, sizeof(why), "config.needs_restart: %s changed", key);
		refuse(p, 0, why);
		return -1;
	}
	if (boot_workspaces(p, &p->next->boot) == -1) {
		refuse(p, 0, "config.root_invalid: sandbox.workspace_root");
		return -1;
	}
	return 0;
}

static void
start_next(struct parent *p, enum proc_kind kind)
{
	p->next->need |= 1U << kind;
	p->next_kids[kind] =
	    child_start(p, kind, &p->next->boot, p->next_epoch);
	if (p->next_kids[kind] == NULL)
		reload_child_died(p, kind);
}

void
reload_begin(struct parent *p)
{
	unsigned need = 0;

	if (p->stopping)
		return;
	if (p->next != NULL || !p->announced) {
		/* the file may have changed since it was read */
		log_info("a reload follows when what is under way is done");
		p->again = 1;
		return;
	}
	p->again = 0;
	p->next_ticket = p->asked;
	if (!p->boot.reload) {
		refuse(p, 0,
		    "config.reload_disabled: the configuration in force does "
		    "not say reload: sighup; restart the service");
		return;
	}
	if (load_next(p) == -1) {
		next_free(p);
		return;
	}
	p->next_epoch++;
	if (p->next_epoch <= p->epoch)
		p->next_epoch = p->epoch + 1;
	if (roots_changed(&p->boot, &p->next->boot))
		need |= 1;
	if (binds_changed(&p->boot, &p->next->boot))
		need |= 2;
	if (send_snapshot(p, need) == -1) {
		refuse(p, 0, "the policy cannot be handed on");
		next_free(p);
		return;
	}
	if (need & 1)
		start_next(p, PROC_PATHD);
	if (need & 2)
		start_next(p, PROC_EXECD);
}

/* ---- end ---- */

/* The new worker takes the place of the old, which serves its requests to
 * their end. */
static void
change_over(struct parent *p, enum proc_kind kind)
{
	struct child *old = p->kids[kind];

	if ((p->next->need & 1U << kind) == 0) {
		/* it serves the new configuration as well */
		return;
	}
	p->kids[kind] = p->next_kids[kind];
	p->next_kids[kind] = NULL;
	p->kid_epoch[kind] = p->next_epoch;
	if (p->kids[kind] == NULL)
		/* it died when the monitor had taken it already */
		parent_restart(p, kind);
	if (old == NULL)
		return;
	old->next = p->drain;
	p->drain = old;
}

static void
give_up(struct parent *p, enum proc_kind kind)
{
	struct child *c = p->next_kids[kind];

	if (c == NULL)
		return;
	p->next_kids[kind] = NULL;
	c->next = p->drain; /* waited for there */
	p->drain = c;
	(void)kill(c->pid, SIGKILL);
}

static void
took_over(struct parent *p, uint32_t epoch)
{
	change_over(p, PROC_PATHD);
	change_over(p, PROC_EXECD);
	boot_clear(&p->boot);
	p->boot = p->next->boot;
	memset(&p->next->boot, 0, sizeof(p->next->boot));
	p->epoch = epoch;
	groups_bound(&p->boot);
}

void
reload_done(struct parent *p, uint32_t epoch, int ok)
{
	if (p->next == NULL || epoch != p->next_epoch)
		return;
	if (ok)
		took_over(p, epoch);
	else {
		give_up(p, PROC_PATHD);
		give_up(p, PROC_EXECD);
	}
	next_free(p);
	if (p->again)
		reload_begin(p);
}

void
reload_child_died(struct parent *p, enum proc_kind kind)
{
	char why[64];

	snprintf(
	    why, sizeof(why), "the new %s did not come up", proc_name(kind));
	/* when the monitor went over to it already it is just started again */
	refuse(p, p->next_epoch, why);
}

void
reload_drained(struct parent *p, enum proc_kind kind, uint32_t gen)
{
	struct child *c;

	for (c = p->drain; c != NULL; c = c->next)
		if (c->kind == kind && c->generation == gen)
			child_shut(c);
}
