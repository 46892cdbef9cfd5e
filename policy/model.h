/*
 * SPDX-License-Identifier: ISC
 *
 * What the configuration means, between its reader (config.c, preset.c) and
 * the engine (selector.c, argv.c, plan.c, decide.c): rules with their scopes,
 * still as texts.  Private to policy/.  Everything is owned by struct conf.
 */
#ifndef ABX_POLICY_MODEL_H
#define ABX_POLICY_MODEL_H

#include "policy/policy.h"

#define LIMIT_NONE UINT64_MAX

struct origin {
	char *file; /* owned; for an expanded preset: where it was named */
	unsigned line, col;
};

/* paths: one scope.  max_bytes LIMIT_NONE when absent. */
struct path_scope {
	struct strlist roots;
	struct strlist deny; /* globs */
	int readonly;
	int symlinks_deny;
	int create_dirs; /* default 1 */
	int allow_hardlinks;
	int anywhere; /* with unsafe: true; lint error */
	uint64_t max_bytes;
};
struct param_scope {
	char *param;
	struct path_scope scope;
};

struct command_scope {
	struct strlist allow, deny; /* pattern texts */
	int shell;
	struct strlist exec_dirs; /* filled with the default when absent */
	int has_cwd;
	struct path_scope cwd;
	struct strlist env_pass; /* default PATH LANG HOME */
	struct strlist env_set, env_deny;
	struct strlist env_fixed; /* NAME=VALUE */
	uint64_t timeout_ms;	  /* default 60 s */
	uint64_t idle_ms;	  /* 0: none */
	int head_tail;		  /* output_keep */
	uint64_t max_output;	  /* default 1 MB */
	uint64_t cpu_s;		  /* default 30 */
	uint64_t memory;	  /* default 512 MB */
	uint64_t processes;	  /* default 64 */
	struct strlist signals;	  /* default TERM INT KILL HUP */
	char *sandbox;	  /* profile name or NULL: "default" or "strict" */
	int unrestricted; /* with unsafe: true */
};

struct url_scope {
	struct strlist hosts, schemes, paths;
	uint32_t ports[32];
	size_t nports;
	int block_private; /* default 1 */
};

enum agent_permissions { AGENT_READ_ONLY, AGENT_WRITE, AGENT_FULL };
struct agent_scope {
	struct path_scope workdir;
	int permissions; /* enum agent_permissions */
	int unconfined_ok;
	struct strlist commands, models;
	uint32_t max_turns; /* 0: none */
};

/* limits: LIMIT_NONE / 0 when absent */
struct limit_set {
	uint64_t max_bytes, max_entries, timeout_ms, max_output, cpu_s, memory,
	    processes;
	uint32_t rate_count;
	uint64_t rate_period_ms;
	uint32_t concurrency;
	/* of a rule that names no concurrency: what the default may be at most
	 */
	uint32_t concurrency_ceiling;
};

/* A call and what must come of it.  op and id NULL: see confexample.c. */
struct example {
	int allow;
	uint16_t op;
	struct args args;
	char *id; /* of the caller, or NULL: one that the rule speaks to */
	int roles_given;
	struct strlist roles;
	char *session;
	char *code; /* expected of a refusal, or NULL */
	struct origin at;
};

struct rule {
	int deny; /* else allow */
	enum conf_layer layer;
	struct strlist sel;	   /* selector texts, at least one */
	struct strlist principals; /* id:X role:X * */
	/* allow rules */
	int has_paths;
	struct path_scope paths;
	struct param_scope *params; /* per-parameter scopes, used when n > 0 */
	size_t nparams;
	int has_commands;
	struct command_scope commands;
	int has_urls;
	struct url_scope urls;
	int has_agent;
	struct agent_scope agent;
	struct limit_set limits;
	/* deny rules: globs, argv patterns, URL patterns */
	struct strlist deny_paths, deny_commands, deny_urls;
	char *reason;
	char *name;
	struct example *examples;
	size_t nexamples;
	int lenient;  /* strict: false */
	int unmount;  /* layers 4 and 5: a deny that removes its ops */
	int flawed;   /* something in it was an error: what it lacks may be that
		       */
	char *preset; /* name of the preset it came from, or NULL */
	struct origin at;
};

/* Layers 4 and 5 beyond their rules: what holds for every path scope. */
struct ceiling {
	int readonly;
	int has_roots;
	struct strlist roots; /* canonical; paths lie below one of them */
};

/* A file that a secret was read from. */
struct secret_file {
	char *path;
	struct origin at;
};

struct conf_rules {
	struct rule *v;
	size_t n;
	struct ceiling ceiling;
	struct strlist env; /* NAME=VALUE of the env_pass names at start */
	struct origin sandbox_at, listen_at, auth_at; /* for lints */
	/* and for who looks at the system; the users as in struct conf */
	struct origin state_at, users_at[3], control_at;
	struct secret_file *secrets; /* for a lint; not printed */
	size_t nsecrets;
};

/* model.c: constructors and destructors. */
void path_scope_init(struct path_scope *);
void path_scope_clear(struct path_scope *);
int path_scope_copy(
    struct path_scope *dst, const struct path_scope *src); /* 0 or -1 */
/* The documented defaults, lists included; 0, or -1 out of memory. */
int command_scope_init(struct command_scope *);
void command_scope_clear(struct command_scope *);
int url_scope_init(struct url_scope *); /* 0 or -1 */
void url_scope_clear(struct url_scope *);
int url_scope_copy(struct url_scope *dst, const struct url_scope *src);
void agent_scope_init(struct agent_scope *);
void agent_scope_clear(struct agent_scope *);
int agent_scope_copy(struct agent_scope *dst, const struct agent_scope *src);
void limit_set_init(struct limit_set *);
/* The lower of each pair, into the first. */
void limit_set_least(struct limit_set *, const struct limit_set *);
void rule_init(struct rule *);
void rule_clear(struct rule *);
/* 0 or -1.  Examples stay behind: they are tried where they were read. */
int rule_copy(struct rule *dst, const struct rule *src);
void example_clear(struct example *);

/* selector.c: pure look-ups on ops.def. */
enum sel_rank {
	SEL_BAD = 0,
	SEL_STAR,
	SEL_EFFECT,
	SEL_GROUP,
	SEL_DEEP,
	SEL_LEVEL,
	SEL_EXACT
};
/* Rank of a selector text by its form, SEL_BAD when it has none. */
enum sel_rank selector_rank(const char *);
/* 1 when the selector matches the op on the allow or the deny side. */
int selector_matches(const char *, uint16_t op, int deny_side);
/* 1 when it matches any op at all on the deny side. */
int selector_known(const char *);
/* A close known op id or selector for a did-you-mean, or NULL; constant. */
const char *selector_suggest(const char *);

/* argv.c: one compiled command pattern. */
struct argv_pat;
/* Compile the text of a pattern; NULL with *why (constant), *why NULL when
 * out of memory.  deny_side: bundled short flags are split in the pattern. */
struct argv_pat *argv_pat_new(const char *, int deny_side, const char **why);
void argv_pat_free(struct argv_pat *);
/* Facts about a pattern for the lints: first word, and whether "...", a glob
 * or {word} stands in argument position. */
const char *argv_pat_prog(const struct argv_pat *);
int argv_pat_open(const struct argv_pat *);

/* lists.c: classes of programs for the lints, as data. */
int prog_escape_capable(const char *basename);
int prog_project_file(const char *basename);
int prog_writer(const char *basename);
int prog_network(const char *basename);

/* model.c: 1 when there is an ASCII control character in it. */
int text_has_control(const char *);

#endif
