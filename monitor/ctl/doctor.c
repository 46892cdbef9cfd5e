/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl doctor: what this machine and this configuration lack, each with its
 * remedy.  It changes nothing.  A check is a row of the table below.
 */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cg.h"
#include "common/jail.h"
#include "common/log.h"
#include "monitor/ctl/ctl.h"
#include "monitor/ctl/probe.h"
#include "monitor/ctl/show.h"

#define BWRAP "/usr/bin/bwrap"

enum grade { GOOD, WARN, BAD };

struct doctor {
	const struct ctl *ctl;
	struct confset cs;
	int loaded;
	int bad;      /* a row was BAD */
	json_t *list; /* NULL for text */
};

/* Report one row; what follows a ';' is the remedy. */
static void report(struct doctor *, enum grade, const char *what,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void
report(struct doctor *d, enum grade g, const char *what, const char *fmt, ...)
{
	static const char *const word[] = {"ok", "warning", "failed"};
	va_list ap;
	char *text;
	int n;

	d->bad |= g == BAD;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n == -1)
		return;
	if (d->list != NULL) {
		json_array_append_new(
		    d->list, json_pack("{s:s,s:s,s:o}", "check", what, "result",
				 word[g], "text", show_str(text)));
	} else {
		printf("%s%-8s%s", show_colour((enum show_colour)g), word[g],
		    show_plain());
		show_line("%-12s %s", what, text);
	}
	free(text);
}

/* ---- the kernel ---- */

static void
check_landlock(struct doctor *d)
{
	int abi = jail_landlock_abi();
	char lsm[256];

	if (abi == 0 && probe_landlock_off()) {
		/* without a list the kernel's own one is not known */
		(void)probe_line("/sys/kernel/security/lsm", lsm, sizeof(lsm));
		report(d, BAD, "landlock",
		    "the kernel has it, switched off; boot with "
		    "lsm=landlock,%s",
		    lsm[0] != '\0' ? lsm : "and what is on now");
	} else if (abi == 0)
		report(d, BAD, "landlock",
		    "the kernel has none; use Linux 5.13 or newer with "
		    "CONFIG_SECURITY_LANDLOCK and landlock in its lsm= list, "
		    "or do without: sandbox.require [\"namespaces\", "
		    "\"seccomp\"]");
	else if (abi < 6)
		report(d, WARN, "landlock",
		    "ABI %d; from ABI 6 (Linux 6.12) "
		    "commands cannot signal across sandboxes either",
		    abi);
	else
		report(d, GOOD, "landlock", "ABI %d", abi);
}

static void
check_seccomp(struct doctor *d)
{
	if (probe_seccomp())
		report(d, GOOD, "seccomp", "filters can kill");
	else
		report(d, BAD, "seccomp",
		    "%s; use a kernel with "
		    "CONFIG_SECCOMP_FILTER",
		    strerror(errno));
}

static void
check_openat2(struct doctor *d)
{
	if (probe_openat2())
		report(d, GOOD, "openat2", "works");
	else
		report(d, WARN, "openat2",
		    "%s; paths are walked one component "
		    "at a time, which is slower (RestrictSUIDSGID= in a unit "
		    "causes this)",
		    strerror(errno));
}

/* Does the kernel count what a group is to hold?  0 after a report. */
static int
controllers(struct doctor *d, enum grade g)
{
	static const char *const need[] = {"memory", "pids", "cpu"};
	char list[256];
	size_t i;

	(void)probe_line(
	    "/sys/fs/cgroup/cgroup.controllers", list, sizeof(list));
	for (i = 0; i < nitems(need); i++)
		if (!cg_has(list, need[i])) {
			report(d, g, "cgroup",
			    "version 2 has no controller \"%s\"; boot with "
			    "cgroup_enable=%s and without "
			    "systemd.unified_cgroup_hierarchy=0",
			    need[i], need[i]);
			return 0;
		}
	return 1;
}

/* Whether the running service has groups, else whether it could. */
static void
check_cgroup(struct doctor *d)
{
	enum grade g = WARN;
	json_t *status = NULL, *has;

	if (d->cs.conf != NULL) {
		if ((d->cs.conf->require & LAYER_CGROUP) != 0)
			g = BAD;
		status = control_status(d->ctl);
	}
	has = json_object_get(json_object_get(status, "sandbox"), "cgroup");
	if (json_is_true(has))
		report(d, GOOD, "cgroup", "the service counts each command");
	else if (!probe_cgroup2())
		report(d, g, "cgroup",
		    "no version 2 at /sys/fs/cgroup, so that memory limits "
		    "hold a process and not a command; boot with "
		    "systemd.unified_cgroup_hierarchy=1, in a container mount "
		    "it writable");
	else if (controllers(d, g)) {
		if (has != NULL)
			report(d, g, "cgroup",
			    "the running service was delegated no group; set "
			    "Delegate=yes in its unit and restart it "
			    "(systemd-run -p Delegate=yes --scope without "
			    "one)");
		else
			report(d, GOOD, "cgroup",
			    "version 2 with all controllers; a unit needs "
			    "Delegate=yes");
	}
	json_decref(status);
}

/* The user that commands run as: 0, or -1 when it does not exist. */
static int
run_user(const struct doctor *d, uid_t *uid, gid_t *gid)
{
	const char *name = "abx";
	struct passwd *pw;

	*uid = geteuid();
	*gid = getegid();
	if (*uid != 0)
		return 0;
	if (d->cs.conf != NULL && d->cs.conf->users[2] != NULL)
		name = d->cs.conf->users[2];
	if ((pw = getpwnam(name)) == NULL)
		return -1;
	*uid = pw->pw_uid;
	*gid = pw->pw_gid;
	return 0;
}

/* Which of the switches is off. */
static const char *
userns_remedy(void)
{
	if (probe_sysctl("user/max_user_namespaces") == 0)
		return "sysctl user.max_user_namespaces=10000";
	if (probe_sysctl("kernel/unprivileged_userns_clone") == 0)
		return "sysctl kernel.unprivileged_userns_clone=1";
	if (probe_sysctl("kernel/apparmor_restrict_unprivileged_userns") == 1)
		return "sysctl kernel.apparmor_restrict_unprivileged_userns=0, "
		       "or an AppArmor profile for /usr/bin/bwrap and abxd "
		       "with \"userns,\"";
	return "in a container or unit the system call filter may refuse "
	       "them (RestrictNamespaces=, seccomp profiles)";
}

static void
check_userns(struct doctor *d)
{
	uid_t uid;
	gid_t gid;
	int r;

	if (run_user(d, &uid, &gid) == -1)
		return; /* check_users says it */
	if ((r = probe_as(uid, gid, probe_userns, NULL)) == 0)
		report(d, GOOD, "namespaces", "uid %u can make them", uid);
	else
		report(d, BAD, "namespaces",
		    "uid %u cannot make user namespaces: %s; %s", uid,
		    r == -1 ? "the probe died" : strerror(r), userns_remedy());
}

/* A new /proc, which every sandbox mounts, is refused where the old one is
 * covered in part; what root starts makes a whole one first. */
static void
check_proc(struct doctor *d)
{
	char path[512];

	if (geteuid() != 0 && probe_proc_covered(path, sizeof(path)))
		report(d, BAD, "proc",
		    "%s is covered, as in a container; run it with "
		    "systempaths=unconfined (Docker), procMount: Unmasked "
		    "(Kubernetes), or start as root",
		    path);
}

/* ---- bubblewrap ---- */

static void
check_bwrap(struct doctor *d)
{
	static const char *const want[] = {"--args", "--as-pid-1", "--bind-fd",
	    "--disable-userns", "--ro-bind-fd"};
	char *version, *help;
	size_t i;
	int bad = 0;

	version = probe_output(BWRAP, "--version");
	help = probe_output(BWRAP, "--help");
	if (version == NULL || help == NULL) {
		report(d, BAD, "bubblewrap",
		    "%s cannot be run; install the "
		    "package bubblewrap",
		    BWRAP);
		free(version);
		free(help);
		return;
	}
	version[strcspn(version, "\n")] = '\0';
	for (i = 0; i < nitems(want); i++)
		if (strstr(help, want[i]) == NULL) {
			bad = 1;
			report(d, BAD, "bubblewrap",
			    "%s has no %s; install "
			    "0.8.0 with Debian's fixes or newer",
			    version, want[i]);
		}
	if (!bad)
		report(d, GOOD, "bubblewrap", "%s", version);
	free(version);
	free(help);
}

/* ---- users, configuration, roots ---- */

static void
check_users(struct doctor *d)
{
	static const char *const fallback[] = {"_abxl", "_abxm", "abx"};
	const char *name;
	size_t i;
	int bad = 0;

	if (geteuid() != 0) {
		report(d, WARN, "users",
		    "not root: every process runs as uid "
		    "%u, so they are apart by sandbox only; a start as root "
		    "gives each a user of its own",
		    geteuid());
		return;
	}
	for (i = 0; i < nitems(fallback); i++) {
		name = fallback[i];
		if (d->cs.conf != NULL && d->cs.conf->users[i] != NULL)
			name = d->cs.conf->users[i];
		if (getpwnam(name) != NULL)
			continue;
		bad = 1;
		report(d, BAD, "users",
		    "there is no user %s; make users adds "
		    "the default ones",
		    name);
	}
	if (!bad)
		report(d, GOOD, "users", "all there");
}

static void
check_config(struct doctor *d)
{
	const struct findings *f = &d->cs.found;
	size_t i, warn = 0;

	if (!d->loaded) {
		report(d, BAD, "config", "out of memory");
		return;
	}
	for (i = 0; i < f->n; i++)
		warn += f->v[i].sev == FIND_WARN;
	if (confset_blocked(&d->cs))
		report(d, BAD, "config",
		    "%s: %zu error%s; abxctl check-config "
		    "says which",
		    d->cs.files.file, f->n - warn, f->n - warn == 1 ? "" : "s");
	else if (f->n > 0)
		report(d, WARN, "config",
		    "%s: %zu warning%s; abxctl "
		    "check-config says which",
		    d->cs.files.file, f->n, f->n == 1 ? "" : "s");
	else
		report(d, GOOD, "config", "%s", d->cs.files.file);
}

static void
check_open(struct doctor *d)
{
	const struct conf *c = d->cs.conf;

	if (c == NULL)
		return;
	if (c->open_mode)
		report(d, BAD, "open mode",
		    "no credential exists, everybody "
		    "who reaches the socket is an admin; add auth.tokens "
		    "(abxctl hash-token makes one)");
	else
		report(d, GOOD, "open mode", "off, %zu tokens", c->ntokens);
	if (c->allow_lint_errors)
		report(d, WARN, "lints",
		    "allow_lint_errors lets the service "
		    "start with lint errors");
}

/* A file is made at a start, its directory is not. */
static void
check_audit(struct doctor *d)
{
	const struct conf *c = d->cs.conf;
	char dir[PATH_MAX];
	size_t i, n;

	for (i = 0; c != NULL && i < c->audit.n; i++) {
		if (strncmp(c->audit.v[i], "file:", 5) != 0) {
			report(d, GOOD, "audit", "%s", c->audit.v[i]);
			continue;
		}
		n = strlcpy(dir, c->audit.v[i] + 5, sizeof(dir));
		if (n >= sizeof(dir))
			continue; /* no path; a start says so */
		if (strrchr(dir, '/') > dir)
			*strrchr(dir, '/') = '\0';
		if (access(dir, W_OK | X_OK) == 0)
			report(d, GOOD, "audit", "%s", c->audit.v[i] + 5);
		else
			report(d, WARN, "audit",
			    "%s: %s; a start from here needs a directory that "
			    "it can write (the unit makes the one of "
			    "LogsDirectory by itself)",
			    dir, strerror(errno));
	}
	if (c != NULL && c->audit.n == 0)
		report(d, WARN, "audit",
		    "nobody is told what was asked and refused; add "
		    "audit.sink");
}

static void
check_roots(struct doctor *d)
{
	struct policy_root root;
	uid_t uid;
	gid_t gid;
	size_t i;
	int r;

	if (d->cs.policy == NULL || run_user(d, &uid, &gid) == -1)
		return;
	for (i = 0; i < policy_nroots(d->cs.policy); i++) {
		policy_root(d->cs.policy, i, &root);
		r = probe_as(uid, gid, probe_directory, root.path);
		if (r == 0)
			report(d, GOOD, "root", "%s", root.path);
		else if (r == ENOENT &&
			 (long)i == policy_workspaces(d->cs.policy))
			report(d, GOOD, "root", "%s: the next start makes it",
			    root.path);
		else
			report(d, BAD, "root",
			    "%s: uid %u cannot read it: %s; "
			    "give the run user the rights that the policy "
			    "grants",
			    root.path, uid,
			    r == -1 ? "the probe died" : strerror(r));
	}
}

static void (*const checks[])(struct doctor *) = {
    check_landlock,
    check_seccomp,
    check_openat2,
    check_userns,
    check_proc,
    check_cgroup,
    check_bwrap,
    check_users,
    check_config,
    check_open,
    check_audit,
    check_roots,
};

int
doctor_main(struct ctl *ctl, int argc, char **argv)
{
	struct doctor d = {.ctl = ctl};
	size_t i;

	if (ctl_options(ctl, argc, argv) == -1)
		return CTL_USAGE;
	if (optind < argc)
		return ctl_usage(argv[0]);
	if (ctl->json && (d.list = json_array()) == NULL) {
		log_warnx("out of memory");
		return CTL_NO;
	}
	d.loaded = confset_load(&d.cs, &ctl->opts) == 0;
	for (i = 0; i < nitems(checks); i++)
		checks[i](&d);
	if (d.list != NULL && show_json(json_pack("{s:b,s:o}", "ok", !d.bad,
				  "checks", d.list)) == -1)
		d.bad = 1;
	confset_clear(&d.cs);
	return d.bad ? CTL_NO : CTL_YES;
}
