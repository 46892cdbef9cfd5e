/*
 * SPDX-License-Identifier: ISC
 *
 * The policy engine and its configuration: the only header that others see.
 * Everything behind it is pure: no I/O, no clock, no log, no globals that
 * change.  Files are read by the caller and handed over as bytes; facts about
 * paths come from pathd (or, in abxctl, from the same walk code).
 */
#ifndef ABX_POLICY_H
#define ABX_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "common/abx.h"
#include "common/args.h"
#include "common/codes.h"
#include "common/ops.h"
#include "common/payload.h"
#include "policy/filter.h"

/* ---- findings ---- */

enum find_sev { FIND_ERROR, FIND_LINT, FIND_WARN };
/* FIND_ERROR always blocks the start; FIND_LINT is an error of lint class,
 * which allow_lint_errors turns into words. */
struct finding {
	char *file;
	unsigned line, col;
	enum find_sev sev;
	const char *code; /* constant */
	char *msg;
};
struct findings {
	struct finding *v;
	size_t n, cap;
	int nomem; /* one could not be recorded */
};
void findings_clear(struct findings *);
void findings_add(struct findings *, enum find_sev, const char *code,
    const char *file, unsigned line, unsigned col, const char *fmt, ...)
    __attribute__((format(printf, 7, 8)));
/* 1 when the configuration must not be started. */
int findings_block(const struct findings *, int allow_lint_errors);
/* "file:line:column: severity: code: message" as a new string, or NULL. */
char *finding_text(const struct finding *);

/* ---- configuration ---- */

enum conf_layer {
	LAYER_CLI = 1,
	LAYER_FILE = 2,
	LAYER_DROPIN = 3,
	LAYER_ENV = 4,
	LAYER_OPERATOR = 5,
	LAYER_CANON = 9 /* what conf_print wrote */
};
struct conf_source {
	const char *name; /* for messages */
	enum conf_layer layer;
	const char *data;
	size_t len;
};
/* What the caller knows of the world; all strings borrowed. */
struct conf_world {
	const char *preset, *root; /* -p and -r, or NULL */
	const char *listen;	   /* --listen ADDR:PORT or NULL */
	int require_auth;	   /* --require-auth */
	int root_start;		   /* started (or to be started) as root */
	const char *default_state_dir;
	const char *default_workspace_root;
	/* The environment at start, NULL-terminated NAME=VALUE, or NULL. */
	const char *const *env;
	/* Contents of a token_file, new string or NULL; may be NULL itself. */
	char *(*token_file)(const char *path, void *arg);
	void *arg;
	/* kind of a directory: 0 exists, else an errno; NULL: not asked. */
	int (*dir_check)(const char *path, void *arg);
	/* The canonical spelling of a directory, new string or NULL with errno;
	 * NULL: not asked, the text is taken as it is. */
	char *(*canonical)(const char *path, void *arg);
	/* At a reload: "NAME=hex NAME=hex" with the digests of the secrets that
	 * the start found in its environment; NULL: this is a start. */
	const char *digests;
};

enum conf_reload { RELOAD_OFF = 0, RELOAD_SIGHUP };
struct conf_listen {
	int is_unix;
	char *addr;
	uint16_t port;
	unsigned mode;
	char *group;
};
struct conf_token {
	char *id;
	struct strlist roles;
	uint8_t digest[32]; /* SHA-256 of the secret */
};
/* Who calls from that uid over a unix socket. */
struct conf_peer {
	uint32_t uid;
	char *id;
	struct strlist roles;
};
struct conf_rules;
struct conf {
	struct conf_listen *listen;
	size_t nlisten;
	uint64_t header_timeout_ms, head_deadline_ms, idle_timeout_ms;
	uint32_t max_pre_auth, max_connections;
	uint64_t max_header_bytes, max_request_bytes, min_rate;
	struct strlist allowed_hosts, allowed_origins, trusted_proxies;
	int allow_lint_errors, allow_open;
	struct strlist protect_dirs;
	struct conf_token *tokens;
	size_t ntokens;
	struct conf_peer *peers;
	size_t npeers;
	/* NAME=hex of every secret that came from the environment, for a later
	 * load; not printed. */
	struct strlist env_digests;
	size_t id_steps; /* comparisons of principals by the load, for tests */
	int open_mode; /* no credential exists: everybody is anonymous admin */
	int anonymous, anonymous_health;
	struct strlist audit; /* "stderr", "file:/abs/path" */
	char *state_dir, *workspace_root;
	uint32_t umask;
	uint64_t shutdown_grace_ms;
	uint32_t restart_limit;
	int reload;	     /* enum conf_reload */
	char *control_path;  /* NULL: "control" in the run directory */
	char *control_group; /* NULL: that of root */
	char *users[3];	     /* listener, monitor, run */
	int sandbox_enabled;
	uint64_t tmp_size;
	uint32_t require; /* enum exec_layer */
	/* of a command whatever its rule says, and of all together; 0: none */
	uint32_t max_pids, max_memory_mb, cpu_percent;
	uint64_t total_memory;
	uint32_t total_pids, total_cpu;
	struct strlist protect_names; /* sandbox.protect */
	int protect_absent;
	uint64_t output_spool;	 /* bytes a stream of a process */
	uint64_t process_ttl_ms; /* that an ended one is remembered */
	/* workspaces of sessions: how many of one principal, how large
	 * (0: whatever), and how long unused (0: for ever) */
	uint32_t ws_max;
	uint64_t ws_max_bytes, ws_ttl_ms;
	struct filter_conf filter; /* command_policy */
	struct conf_rules *rules;  /* opaque */
};

/*
 * Parse, merge and check all layers; every problem becomes a finding, all at
 * once.  Returns the configuration even when there are blocking findings
 * (so that lints can go on), NULL when nothing usable came out or memory ran
 * out.
 */
struct conf *conf_load(const struct conf_source *, size_t n,
    const struct conf_world *, struct findings *);
void conf_free(struct conf *);
/* Canonical JSON of the effective policy (sorted keys, no white space, token
 * digests in place of secrets, env_pass values of the snapshot, rule origins)
 * as a new string; conf_load of it with LAYER_CANON gives the same
 * configuration.  NULL when out of memory. */
char *conf_print(const struct conf *);
/* SHA-256 in hex over the canonical JSON less the origins. */
int conf_revision(const struct conf *, char out[65]);
/* 1 when rule i has a selector that matches the op. */
int conf_rule_selects(const struct conf *, size_t i, uint16_t op);
/* NAME=VALUE of the env_pass names in use, as the start found them; borrowed.
 */
const struct strlist *conf_env_pass(const struct conf *);
/* Lints of the whole (page "lints" of server.json(5)). */
void conf_lint(
    const struct conf *, const struct conf_world *, struct findings *);
/* The lints of roots that lie in one of these directories, canonical, or in one
 * that the system keeps, config.root_protected; and of token files that lie in
 * a root, config.token_file_reachable. */
void conf_lint_roots(const struct conf *, const struct conf_world *,
    const struct strlist *protect, struct findings *);

/* ---- policy ---- */

struct policy;
/* Compile; keeps its own copies.  NULL with a finding, or out of memory. */
struct policy *policy_new(const struct conf *, struct findings *);
void policy_free(struct policy *);

/* The clock that bounds custom rules of the command policy, see
 * filter_clock(). */
void policy_clock(struct policy *, uint64_t (*us)(void));
/* Why no custom rule of the command policy is in force, or NULL. */
const char *policy_filter_fault(const struct policy *);
/* The command policy alone. */
const struct filter *policy_filter(const struct policy *);

/* Directories that pathd must hold, numbered from 0. */
size_t policy_nroots(const struct policy *);
struct policy_root {
	const char *path; /* as configured, the fixed prefix of a template */
	int writable;	  /* some statement may write there */
	int exec;	  /* a cwd of a command scope */
	int exec_rw;
};
void policy_root(const struct policy *, size_t, struct policy_root *);
/* The canonical spelling that pathd found; both spellings are accepted as a
 * prefix from then on.  0, or -1 when out of memory or no such root. */
int policy_set_root(struct policy *, size_t, const char *canonical);
/* The root below which the workspaces of sessions lie, -1: none is needed. */
long policy_workspaces(const struct policy *);
/* 1 when a name may be that of a session. */
int session_ok(const char *);
/* The name of the directory of a session's workspace: 0, or -1 when one of
 * the two is longer than ABX_ID_MAX. */
int workspace_name(const char *principal, const char *session,
    char out[ABX_WORKSPACE_LEN + 1]);
/* Directories that execd must see besides (exec_dirs outside /usr): new
 * borrowed list. */
const struct strlist *policy_exec_dirs(const struct policy *);
/* 1 when some rule can mount an op with that effect for anybody / for a
 * principal without a credential. */
int policy_has_effect(const struct policy *, unsigned effects);
/* The rule of layers 4 and 5 that took away an op which others allow, or -1. */
long policy_removed_by(const struct policy *, uint16_t op);
/* What every path must lie below besides the roots of its rule (the roots of
 * the operator), borrowed; NULL when nothing was said. */
const struct strlist *policy_ceiling_roots(const struct policy *);
/* Protected directories join the system deny list (state, config, log, run
 * directories).  0 or -1.  Before the first plan. */
int policy_protect(struct policy *, const char *dir);
/* Deny set of the system for a sandbox: protected directories, borrowed. */
const struct strlist *policy_protected(const struct policy *);

struct principal {
	const char *id;
	const char *const *roles;
	size_t nroles;
	int authenticated;
};
int principal_has_role(const struct principal *, const char *);

/* Arguments in the type that their schema gives them; the plan has checked
 * it.  int: 1 and *out when given, else 0.  bool: 0 when not given.  str: NULL
 * when not given; borrowed. */
int policy_arg_int(const struct args *, const char *name, int64_t *out);
int policy_arg_bool(const struct args *, const char *name);
const char *policy_arg_str(const struct args *, const char *name);

/*
 * Parse NAME=VALUE words into the arguments of an operation, as a query would
 * carry them; lists and maps by repeating the name.  0, -1 out of memory, 1
 * with *bad the word that is none.
 */
int policy_args_words(
    struct args *, uint16_t op, char *const *words, size_t n, const char **bad);

/* One call to decide on.  All borrowed. */
struct call {
	uint16_t op; /* OP_NONE: unknown */
	const struct args *args;
	const struct principal *who;
	const char *session; /* where the arguments name none; or NULL */
	int explain;	     /* try every statement, for the trace */
};

/* A path that must be resolved before a decision. */
struct plan_item {
	char *path; /* lexical, absolute, normal */
	int nofollow;
	struct rootref *refs;
	size_t nrefs;
};
/*
 * Everything of a decision that needs no file system.  When code is not C_OK
 * the answer is already known (op.not_enabled, args.*, policy.*) and nothing
 * needs to be resolved; policy_decide then just reports it.
 */
struct plan {
	enum code code;
	struct plan_item *items;
	size_t nitems;
	struct plan_priv *priv; /* opaque */
};
/* 0, or -1 out of memory.  The policy and the call must outlive the plan. */
int policy_plan(const struct policy *, const struct call *, struct plan *);
void plan_clear(struct plan *);
/* A path parameter as the caller spelled it, in base64 or not; borrowed, ""
 * when it was not given.  What an answer may name a path by. */
const char *plan_spelling(const struct plan *, const char *param);

/* A decided path parameter. */
struct dpath {
	const char *param;    /* constant: "path", "src", ... */
	struct target target; /* where to act */
	size_t item;	      /* which facts */
	char *canonical;      /* for the audit */
	uint16_t flags;	      /* PF_CREATE_DIRS, PF_HARDLINKS, PF_NOSYMLINKS */
	int readonly;
};
/* One line of explanation: a statement that was tried. */
struct dtrace {
	size_t rule;	   /* index for policy_rule_* */
	enum code code;	   /* C_OK: admitted */
	const char *param; /* constant or NULL */
};
/*
 * allowed says that policy admits the call, code says what to answer.
 * allowed 0: code is the refusal (op.not_enabled, args.*, policy.*).
 * allowed 1, C_OK: do it.  allowed 1 and another code: admitted, and the
 * facts or limits already tell the answer (fs.*, limit.max_bytes, args.invalid
 * for a directory moved into itself); nothing is to be done, and the winning
 * rule and limits are set as usual, paths as far as they are known.
 */
struct decision {
	int allowed;
	enum code code;
	int mounted;
	long rule; /* winning or denying rule, -1: none */
	const char
	    *reason;	   /* the author's, borrowed from the policy, or NULL */
	const char *param; /* constant or borrowed from the call, or NULL */
	struct dpath *paths; /* one a path parameter that was given */
	size_t npaths;
	struct rootref *refs; /* roots of the winning path scope */
	size_t nrefs;
	struct strlist deny; /* absolute patterns for pathd: the statement's,
				 the deny rules' and the system's */
	/* limits; UINT64_MAX: none */
	uint64_t max_bytes, max_entries, wait_ms;
	/* rate (count 0: none) and concurrency (0: none), and the key that
	 * counts them: selector of the winning statement */
	uint32_t rate_count;
	uint64_t rate_period_ms;
	uint32_t concurrency;
	const char *limit_key;
	/* commands */
	struct spawn spawn; /* progs, argv, env, limits, session; cwd set to
				the canonical cwd or "/" */
	/* what is bound: the cwd, with a session its workspace, which contains
	 * the cwd and is made when its facts say that it is missing */
	long cwd_item;	   /* its facts, -1: none */
	struct target cwd; /* valid when cwd_item >= 0 */
	int cwd_readonly;
	struct strlist rules; /* of the command policy that matched, by name */
	struct dtrace *trace; /* with explain every statement, in order */
	size_t ntrace;
};
/* facts[i] answers plan->items[i]; NULL when nothing was to be resolved.  The
 * plan, the facts, the call and the policy must outlive the decision.  Pure.
 * 0, or -1 out of memory. */
int policy_decide(const struct policy *, const struct call *,
    const struct plan *, const struct facts *facts, struct decision *);
void decision_clear(struct decision *);

/* 1 when a statement could admit the op for this principal. */
int policy_mounted(
    const struct policy *, uint16_t op, const struct principal *);
/* For capabilities: the clamped limits of the first statement that matches. */
struct op_limits {
	uint64_t max_bytes, max_entries, timeout_ms, max_output, memory;
};
int policy_op_limits(const struct policy *, uint16_t op,
    const struct principal *, struct op_limits *);

/*
 * Try the examples of all rules; each that does not hold becomes
 * config.example_failed.  The policy is the one compiled from the
 * configuration, with all its protected directories.  Paths are taken as they
 * are spelled, and as files that exist (server.json(5), "EXAMPLES IN RULES").
 * What only layers 4 and 5 take away does not make an author's example fail.
 */
void policy_examples(
    const struct conf *, const struct policy *, struct findings *);

/* A rule for people: "file:line" and its name or text, borrowed. */
const char *policy_rule_origin(const struct policy *, size_t);
const char *policy_rule_name(const struct policy *, size_t);
size_t policy_nrules(const struct policy *);

/* Lexical normalisation of an absolute path: no empty, "." or ".." segments,
 * new string; NULL with *code C_POL_PATH_INVALID (too long, too many
 * segments, not absolute) or C_OK when out of memory. */
char *path_normal(const char *path, enum code *code);
/* Split like a POSIX shell's word splitting, quotes and backslash only.  0,
 * -1 unterminated quote or too many words, -2 out of memory. */
int shlex_split(const char *, struct strlist *);

#endif
