/*
 * SPDX-License-Identifier: ISC
 *
 * What the engine makes of a configuration (compile.c, scope.c) and of one
 * call (plan.c), for the files that decide.  Private to policy/; everything
 * behind it is pure.
 */
#ifndef ABX_POLICY_ENGINE_H
#define ABX_POLICY_ENGINE_H

#include "common/glob.h"
#include "policy/model.h"
#include "policy/url.h"

/* ---- path.c: paths as text ---- */

/* What is left of path below dir by whole components ("" for dir itself), or
 * NULL when it lies elsewhere.  Both absolute and normal. */
const char *path_below(const char *dir, const char *path);
/* Lexical normalisation of an absolute path: 0, or -1 when it is not absolute
 * or the result is over the caps. */
int path_normal_into(const char *path, char out[ABX_PATH_MAX + 1]);
/* The same of dir/rel. */
int path_join_into(
    const char *dir, const char *rel, char out[ABX_PATH_MAX + 1]);
size_t path_segments(const char *path);
/* 1 when a path as given is not empty and within the caps. */
int path_acceptable(const char *path);
int path_is_normal(const char *path);
/* 1 when it may stand for {principal.id} or {session}. */
int safe_component(const char *);

/* ---- principal.c ---- */

uint64_t principal_bits(const struct principal *);
uint64_t principals_bits(const struct strlist *);
/* 1 when a rule's list means this principal; an empty list means all. */
int principals_match(const struct strlist *, uint64_t bits,
    const struct principal *, uint64_t who_bits);

/* ---- envrule.c ---- */

int env_is_never(const char *name);
int env_is_base(const char *name); /* set by abx itself */
/* 1 when a caller may set that name. */
int env_may_set(
    const struct strlist *set, const struct strlist *deny, const char *name);
/* Set or replace in a list of NAME=VALUE: 0 or -1. */
int env_put(struct strlist *, const char *name, const char *value);
int env_put_pair(struct strlist *, const char *pair);
/* Append what the snapshot has of those names, less the base: 0 or -1. */
int env_snapshot(struct strlist *out, const struct strlist *names,
    const struct strlist *snapshot);

/* ---- argv.c: patterns against one normalised argument vector ---- */

/* One element to match: a word, or one flag of a bundle. */
struct argv_elem {
	uint32_t word;
	uint32_t span; /* elements of this word from here on */
	char flag;     /* 0: the whole word, else the letter of "-x" */
	uint8_t first; /* the word begins here */
};
struct argv_norm {
	char *const *words; /* borrowed */
	size_t nwords;
	struct argv_elem *v; /* owned */
	size_t n;
};
/* 0, -1 out of memory, 1 too large for any program. */
int argv_norm_init(struct argv_norm *, char *const *words, size_t n);
void argv_norm_clear(struct argv_norm *);
/* 1 when the word at that index is good for {path}. */
typedef int (*argv_path_cb)(void *arg, size_t word);
/* 1 when the pattern matches; dirs are the exec_dirs in which a first word
 * may lie.  A NULL callback takes every word for {path}. */
int argv_pat_match(const struct argv_pat *, const struct argv_norm *,
    const struct strlist *dirs, argv_path_cb, void *arg);
/* Mark in want[nwords] the words whose facts decide whether it matches: 1
 * when it may match, 0 when it cannot, -1 out of memory. */
int argv_pat_paths(const struct argv_pat *, const struct argv_norm *,
    const struct strlist *dirs, uint8_t *want);
int argv_pat_has_path(const struct argv_pat *);
/* 1 when a first word can name a program in one of the directories. */
int argv_prog_inside(const char *argv0, const struct strlist *dirs);
/* Append the absolute paths to try for a first word that the pattern
 * matches (NULL: any pattern); none when it lies outside dirs.  0 or -1. */
int argv_pat_progs(const struct argv_pat *, const char *argv0,
    const struct strlist *dirs, struct strlist *progs);

/* ---- scope.c: compiled path scopes ---- */

/* TMPL_WORKSPACE: a session below sandbox.workspace_root */
enum root_tmpl { TMPL_NONE, TMPL_ID, TMPL_SESSION, TMPL_WORKSPACE };
struct scope_root {
	uint32_t root;
	enum root_tmpl tmpl;
};
/* A deny glob.  A relative one is matched below a root. */
struct pglob {
	struct glob *g;
	char *text;
	int relative;
};
struct pglobs {
	struct pglob *v;
	size_t n;
};
struct pscope {
	struct scope_root *roots;
	size_t nroots;
	struct pglobs deny;
	uint64_t max_bytes;
	int readonly, nosymlinks, create_dirs, hardlinks;
	int makes; /* the call makes its workspace when it is not there */
};
/* Values of the templates for one call; NULL when absent or unsafe. */
struct subs {
	const char *id, *session, *workspace;
};

struct policy;
int pscope_compile(struct policy *, struct pscope *, const struct path_scope *,
    const struct origin *, struct findings *);
void pscope_clear(struct pscope *);
int pglobs_compile(struct pglobs *, const struct strlist *,
    const struct origin *, struct findings *);
void pglobs_clear(struct pglobs *);
/* Repeat patterns that reach into one spelling of a directory with the other:
 * 0 or -1. */
int pglobs_respell(struct pglobs *, const char *from, const char *to);
/* 1 when a glob covers the path or, for relative ones, the path below one of
 * the roots. */
int pglobs_cover(const struct policy *, const struct pglobs *,
    const struct scope_root *, size_t nroots, const char *path);
/* What is left below a root, in either spelling, or NULL.  sub NULL takes any
 * component for a template. */
const char *root_tail(const struct policy *, const struct scope_root *,
    const char *sub, const char *path);
/* The template's value: "" when there is none, NULL when it cannot be. */
const char *root_sub(const struct scope_root *, const struct subs *);
/* The canonical spelling of a path that lies lexically in the scope: 0, or
 * -1 when it does not. */
int pscope_spell(const struct policy *, const struct pscope *,
    const struct subs *, const char *path, char out[ABX_PATH_MAX + 1]);
/* Anchor a path as given at root number i and normalise; 0, C_POL_*. */
enum code pscope_anchor(const struct policy *, const struct pscope *,
    const struct subs *, size_t i, const char *given,
    char out[ABX_PATH_MAX + 1]);
/* All roots of the scope that can be asked for: 0 or -1. */
int pscope_refs(const struct pscope *, const struct subs *,
    struct rootref **refs, size_t *n);
/* Append the globs as absolute or floating texts: 0, -1 out of memory, 1 when
 * one became too long. */
int pglobs_texts(const struct policy *, const struct pglobs *,
    const struct scope_root *, size_t nroots, const struct subs *,
    struct strlist *out);

/* ---- compile.c, index.c ---- */

struct proot {
	char *path;  /* as configured */
	char *canon; /* as pathd spells it */
	int writable, exec, exec_rw;
};
struct cscope {
	struct argv_pat **allow, **deny;
	size_t nallow, ndeny;
	int shell, unrestricted, has_cwd, head_tail, no_fork;
	struct strlist exec_dirs, env_pass, env_set, env_deny, env_fixed;
	struct strlist signals;
	char *path_env; /* exec_dirs joined */
	struct pscope cwd;
	uint64_t timeout_ms, idle_ms, max_output, cpu_s, memory, procs;
};
struct prule {
	size_t index;
	int deny, scoped; /* scoped: a deny with paths, commands or urls */
	int unmount;	  /* takes its ops away */
	struct strlist sel, principals;
	uint64_t bits;
	int has_paths, has_commands;
	struct pscope paths;
	struct pparam {
		char *param;
		struct pscope scope;
	} * params;
	size_t nparams;
	struct cscope commands;
	int has_urls;
	struct url_scope urls;
	struct limit_set limits;
	struct pglobs deny_paths;
	struct argv_pat **deny_commands;
	size_t ndeny_commands;
	struct strlist deny_urls;
	char *reason, *name, *origin;
};
/* A rule as it applies to one op. */
struct stmt {
	const struct prule *rule;
	const char *sel; /* the selector of highest rank that matches */
	uint64_t bits;	 /* of the rule's principals */
	int all;	 /* the rule speaks to everybody */
	enum sel_rank rank;
};
struct opidx {
	struct stmt *allow; /* in the order of the allow pass */
	size_t nallow;
	struct stmt *deny; /* in declaration order */
	size_t ndeny;
	/* Of each statement the bits of its principals, all of them for one
	 * that speaks to everybody: what cannot match is passed over eight at
	 * once. */
	uint64_t *allow_bits, *deny_bits;
	/* And of its roots, for ops with one path; NULL for others. */
	uint64_t *allow_roots;
	struct scope_root *roots; /* every allow anchor, once */
	size_t nroots;
	struct strlist exec_dirs;    /* of all allow statements */
	const struct prule *removed; /* the rule of layer 4 or 5 that did it */
};
struct policy {
	struct proot *roots;
	size_t nroots;
	struct prule *rules;
	size_t nrules;
	struct opidx ops[OP_COUNT];
	struct strlist protect;	  /* directories */
	struct strlist exec_dirs; /* outside what every sandbox shows */
	struct ceiling ceiling;
	struct filter *filter;	/* command_policy */
	char filter_fault[400]; /* why its custom rules are left out, or "" */
	char *ws_dir;		/* sandbox.workspace_root, or NULL */
	long ws_root;		/* the root that it is, -1: none is needed */
};
/* Number of a root directory, a new one when it is not there; -1 when out of
 * memory, -2 when there are too many. */
long policy_root_add(struct policy *, const char *path);
int policy_index(struct policy *);
/* The scope that a path parameter goes through, or NULL. */
const struct pscope *rule_scope(const struct prule *, const struct op_param *);
int stmt_matches(
    const struct stmt *, const struct principal *, uint64_t who_bits);
/* The first of n bit sets, from i on, that has one of the caller's; n when
 * there is none. */
size_t stmt_next(const uint64_t *bits, size_t i, size_t n, uint64_t who_bits);
/* The directory of the system itself that no call may touch and that covers
 * the path, constant, or NULL. */
const char *system_dir_over(const char *path);
/* 1 when a directory that no call may touch covers the path. */
int system_denies(const struct policy *, const char *path);
/* Its patterns as texts: 0, -1 or 1 as pglobs_texts. */
int system_texts(const struct policy *, struct strlist *out);
/* 1 when some statement admits the op for everybody or this principal
 * (core.health: unless denied by name). */
int op_mounted(const struct policy *, uint16_t op, const struct principal *,
    uint64_t who_bits);
/* Append to a growing array of fixed-size elements: the new one, zeroed, or
 * NULL.  *n counts; the array grows by powers of two. */
void *grow(void **v, size_t *n, size_t size);

/* ---- schema.c ---- */

/* Check against ops.def: C_OK or args.*, *param then names the argument. */
enum code schema_check(uint16_t op, const struct args *, const char **param);
/* The argument, or NAME_base64 when that was given; *base64 tells. */
const struct arg *schema_path_arg(
    const struct args *, const char *name, int *base64);

/* ---- plan.c ---- */

/* A path argument that was given. */
struct pvalue {
	const struct op_param *param;
	char *text; /* owned, bytes as decoded */
	char *norm; /* owned, normal form; NULL when relative */
};
/* Where one path of one statement went. */
struct pslot {
	int item; /* index, -1: none, code tells */
	enum code code;
};
struct pcand {
	const struct stmt *st;
	struct pslot *slots; /* one a value, borrowed */
	/* implicit cwd, and with a session its workspace in any case; item -1
	 * and C_OK: none needed */
	struct pslot cwd;
	/* with a session: the scope of cwd over the workspace, borrowed;
	 * nroots 0: none */
	struct pscope ws;
	struct pslot *words; /* one a word, NULL: no {path} may match */
	int words_full;	     /* too many words to resolve */
};
struct cmdline {
	int given, shell;
	struct strlist words; /* argv as it runs, or the words of the line */
	char *line;	      /* "command" as given, borrowed, or NULL */
	struct argv_norm norm;
	char *sh[3]; /* shell: sh -c LINE, borrowed */
	struct argv_norm sh_norm;
};
struct plan_priv {
	uint64_t who_bits;
	struct subs subs;
	char workspace[ABX_WORKSPACE_LEN + 1]; /* "": no session */
	struct scope_root ws_root;
	struct pvalue *values;
	size_t nvalues;
	struct cmdline cmd;
	struct url *url; /* owned; NULL: none given */
	struct pcand *cands;
	size_t ncands;
	int passed_first; /* a statement before them has no root for the path */
	struct pslot *slots; /* of all candidates */
	uint64_t *uses;	     /* per item: bit i: value i resolves to it */
	const struct stmt **denies;  /* deny rules that matter here */
	size_t ndenies, path_denies; /* path_denies: globs in them */
	/* with a code that is not C_OK */
	long rule;
	const char *reason, *param;
	int mounted;
};

/* ---- session.c ---- */

/* Take the session of a call, when its operation knows one, and work out the
 * workspace.  C_OK or C_ARGS_INVALID. */
enum code session_take(
    const struct policy *, const struct call *, struct plan_priv *);
/* The workspace in the place of a candidate's cwd scope. */
void session_scope(const struct policy *, struct plan_priv *, struct pcand *);
/* The root for workspaces, when some rule needs one: 0, -1 out of memory, 1
 * when there are too many. */
int session_root(struct policy *, int exec);

/* The scope of a candidate's working directory, or NULL; and that which a path
 * parameter goes through. */
const struct pscope *cand_cwd(const struct pcand *);
const struct pscope *cand_scope(const struct pcand *, const struct op_param *);

/* ---- cands.c ---- */

/* What the roots of an op's statements are; again when one got another
 * spelling.  0 or -1. */
int cands_index(const struct policy *, uint16_t op, struct opidx *);
/* 1 when an allow statement of the op speaks to the caller. */
int cands_any(const struct policy *, uint16_t op, const struct principal *,
    uint64_t who_bits);
/* The statements to try, but those that cannot admit the path (with explain
 * all of them): 0 or -1. */
int cands_collect(
    const struct policy *, const struct call *, struct plan_priv *);

/* ---- denypass.c ---- */

/* Find the deny rules that match op and principal: 0 or -1. */
int deny_collect(
    const struct policy *, const struct call *, struct plan_priv *);
/* What is denied before anything is resolved; rule, reason and param of priv
 * are set with a code that is not C_OK. */
enum code deny_static(
    const struct policy *, const struct call *, struct plan_priv *);
/* 1 when the system or a collected rule denies an absolute, normal path;
 * *rule is the rule or -1. */
int deny_path(const struct policy *, uint16_t op, const struct plan_priv *,
    const char *path, long *rule);
/* The same for all places that facts speak of: where the path lies, or where
 * its walk ended, and what that went through. */
int deny_found(const struct policy *, uint16_t op, const struct plan_priv *,
    const struct facts *, long *rule);
/* Path arguments as they really lie. */
enum code deny_facts(const struct policy *, const struct call *,
    const struct plan *, const struct facts *, long *rule, const char **param);
/* The globs of all of them and the system's list: 0, -1 or 1. */
int deny_texts(const struct policy *, uint16_t op, const struct plan_priv *,
    struct strlist *out);

/* ---- bound.c ---- */

/* Limits of a run; args NULL: as if the caller asked for nothing. */
void bound_spawn(const struct args *, const struct prule *, struct spawn *);
/* Limits of the winning statement into a decision. */
void bound_call(const struct call *, const struct stmt *, struct decision *);

/* ---- command.c ---- */

/* 0, -1 out of memory; *code C_OK or args.*. */
int cmdline_build(
    struct cmdline *, const struct args *, enum code *code, const char **param);
void cmdline_clear(struct cmdline *);
/* 1 when one of the patterns matches the line in any of its forms. */
int cmdline_denied(const struct cmdline *, struct argv_pat *const *, size_t n,
    const struct strlist *dirs);
/* What the command scope of a candidate says; *win is the pattern that
 * admitted it, or NULL (shell, unrestricted). */
enum code command_admit(const struct policy *, const struct call *,
    const struct plan *, const struct pcand *, const struct facts *,
    const struct argv_pat **win, const char **param);
/* Fill the spawn of a decision: 0 or -1.  cwd and home NULL: none. */
int command_spawn(const struct call *, const struct plan_priv *,
    const struct pcand *, const struct argv_pat *win, const char *cwd,
    const char *home, struct decision *);
/* Hold what is to be run against the command policy: 0, or -1 out of
 * memory. */
int command_filter(
    const struct policy *, const struct call *, struct decision *);

/* ---- caps.c ---- */

/* The form of the argument "capabilities", when there is one: 0 with *code, or
 * -1 out of memory. */
int caps_check(const struct args *, enum code *);
/* Hold it against what the sandbox of the winning statement gives: its
 * directory (canonical, NULL: none) and the spawn, which it may narrow.  0 with
 * *code, C_CAP_DENIED when it asks for more; -1 out of memory. */
int caps_admit(const struct args *, const char *dir, int readonly,
    struct spawn *, enum code *);

/* ---- admit.c ---- */

/* 1 unless the operator keeps every call away from that canonical path. */
int ceiling_admits(const struct policy *, const char *path);
/* What a statement says about one resolved path; C_OK also when the file
 * system had an error, which fs_outcome tells. */
enum code path_admit(const struct policy *, const struct pscope *,
    const struct plan_item *, const struct facts *, uint16_t op,
    unsigned roles);
/* The part of the canonical path below its root, "" for the root. */
const char *facts_tail(const struct facts *);
/* Facts that agree with the item that asked for them. */
int facts_sound(
    const struct policy *, const struct plan_item *, const struct facts *);
/* The answer that the file system would force once the policy admits. */
enum code fs_outcome(const struct policy *, const struct call *,
    const struct plan *, const struct pcand *, const struct facts *,
    const char **param);

#endif
