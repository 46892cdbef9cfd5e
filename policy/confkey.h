/*
 * SPDX-License-Identifier: ISC
 *
 * How keys of the configuration are described: one const table an object,
 * each row a key with its type, the place of its value in a struct and its
 * range.  The reader (confkey.c) and the printer (print.c) walk the same rows,
 * so what is printed can be read back.  Private to the configuration side of
 * policy/.
 */
#ifndef ABX_POLICY_CONFKEY_H
#define ABX_POLICY_CONFKEY_H

#include <stdarg.h>

#include "common/wire.h"
#include "policy/confids.h"
#include "policy/model.h"
#include "policy/tree.h"

#define CONF_SOURCES 256 /* files of one configuration */
#define CONF_TOPKEYS 64	 /* rows of the outermost table */

enum ckey_type {
	K_BOOL,	 /* int */
	K_NBOOL, /* int, the opposite of what is written */
	K_U32,	 /* uint32_t, lo to hi */
	K_U64,	 /* uint64_t, lo to hi */
	K_PORT,	 /* uint16_t */
	K_OCTAL, /* 32 bits: permission bits as a string, at most hi */
	K_SIZE,	 /* uint64_t bytes, lo to hi */
	K_MSEC,	 /* uint64_t milliseconds, lo to hi */
	K_SEC,	 /* uint64_t seconds, lo to hi; whole seconds only */
	K_STR,	 /* char * */
	K_DIR,	 /* char *, an absolute directory that is not "/" */
	K_ENUM,	 /* int, index into words */
	K_LIST,	 /* struct strlist; a single string is a list of one */
	K_OBJ,	 /* the rows of sub over the struct at off */
	K_KEEP,	 /* const struct node *: the value as it stands */
	K_FUNC,	 /* get and put below */
	K_LATER	 /* known, and not supported by this version */
};
enum ckey_flag {
	CK_CANON = 1,  /* only in a canonical text */
	CK_ORIGIN = 2, /* where something came from: not in the revision */
	CK_ALIAS = 4,  /* not printed */
	CK_JOIN = 8,   /* may stand in several files and adds up */
	CK_OPT0 = 16,  /* the number 0 means absent */
	CK_NEED = 32,  /* must be there */
	CK_PATHS = 64  /* K_LIST: paths, stored lexically normal */
};

struct cload;
struct out;
struct ckey {
	const char *name;
	enum ckey_type type;
	unsigned flags;
	size_t off;
	uint64_t lo, hi;
	const char *const *words; /* K_ENUM */
	const struct ckey *sub;	  /* K_OBJ */
	/* K_STR, K_LIST: check one string; -1 after a finding. */
	int (*check)(struct cload *, const struct node *);
	/* K_FUNC: read.  Findings are not failures; -1 is out of memory. */
	int (*get)(struct cload *, const struct node *, void *obj);
	/* K_FUNC: print, 0 when there is nothing to print.  NULL: never. */
	int (*put)(struct out *, const void *obj);
};

/* One run of conf_load. */
struct cload {
	const struct conf_world *w; /* may be NULL */
	struct findings *f;
	struct conf *c;
	int canon;
	enum conf_layer layer; /* of the source at hand */
	const char *file;      /* its name */
	struct origin top;     /* for what stands nowhere; file is owned */
	const struct node *seen[CONF_TOPKEYS]; /* top keys, by row */
	/* kept for preset.c */
	const struct node *preset, *presets, *root, *without;
	struct limit_set limits; /* top-level minima */
	const struct node *auth;
	struct confids ids;
	int has_audit;
	struct strlist secret_names; /* variables that hold credentials */
	const struct node *rule_sel; /* "allow" or "deny" of the rule at hand */
	int unix_open; /* a unix listener states no mode or no group */
};

/* confkey.c */
void findings_vadd(struct findings *, enum find_sev, const char *code,
    const char *file, unsigned line, unsigned col, const char *fmt, va_list)
    __attribute__((format(printf, 7, 0)));
/* A finding at a value, and at its key. */
void conf_find(struct cload *, const struct node *, enum find_sev,
    const char *code, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void conf_findkey(struct cload *, const struct node *, enum find_sev,
    const char *code, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* "X is expected here, not Y" as config.type. */
void conf_type(struct cload *, const struct node *, const char *want);
/* How many errors were found so far. */
size_t conf_errors(const struct cload *);
/* Out of memory: sets nomem, returns -1. */
int conf_nomem(struct cload *);
/* A list of n members, made by this alone, with room for one more, all zero:
 * where it is now, or NULL.  It grows in powers of two. */
void *conf_room(void *v, size_t n, size_t size);
/* Read an object by its table; a node of another kind is config.type.  Keys
 * that name no row are config.unknown_key.  0, or -1 out of memory. */
int conf_object(
    struct cload *, const struct node *, const struct ckey *, void *obj);
/* One key of it, already found. */
int conf_value(
    struct cload *, const struct ckey *, const struct node *, void *obj);
/* Report a key that is in no table; more may add names to suggest from. */
void conf_unknown(struct cload *, const struct node *, const struct ckey *,
    const char *const *more);
const struct ckey *ckey_find(const struct ckey *, const char *);
/* Every string of a string or list, in order, into a list. */
int conf_strings(struct cload *, const struct node *, struct strlist *,
    int (*check)(struct cload *, const struct node *));
/* Call a function for each member of a list of objects. */
int conf_each(struct cload *, const struct node *, const char *want,
    int (*fn)(struct cload *, const struct node *));
void origin_set(struct cload *, struct origin *, const struct node *);

/* confcheck.c: checks of single strings, 0 or -1 after a finding. */
int check_name(struct cload *, const struct node *); /* 1..128, printable */
int check_dir(struct cload *, const struct node *);  /* a fixed directory */
int check_root(struct cload *, const struct node *); /* may be a template */
int check_glob(struct cload *, const struct node *);
int check_argv(struct cload *, const struct node *);
int check_argv_deny(struct cload *, const struct node *);
int check_env_name(struct cload *, const struct node *);
int check_env_glob(struct cload *, const struct node *);
int check_signal(struct cload *, const struct node *);
int check_principal(struct cload *, const struct node *);
int check_host(struct cload *, const struct node *);
int check_scheme(struct cload *, const struct node *);
int check_origin(struct cload *, const struct node *);
int check_proxy(struct cload *, const struct node *);
int check_protect(struct cload *, const struct node *);
int check_group(struct cload *, const struct node *);  /* of the system */
int check_socket(struct cload *, const struct node *); /* conflisten.c */
int check_nonempty(struct cload *, const struct node *);
int check_exec_dir(struct cload *, const struct node *); /* must exist */
int check_url_host(struct cload *, const struct node *);
int check_url_pattern(struct cload *, const struct node *);
int check_url_path(struct cload *, const struct node *);
int check_symlinks(struct cload *, const struct node *);

/* suggest.c: the closest of several words within two edits. */
struct suggest {
	const char *word, *best;
	size_t dist;
};
void suggest_init(struct suggest *, const char *word);
void suggest_try(struct suggest *, const char *candidate);

/* confscope.c: the value of "paths" (allow), "commands" (allow), "urls". */
int conf_path_scope(struct cload *, const struct node *, struct path_scope *);
int conf_command_scope(
    struct cload *, const struct node *, struct command_scope *);
int conf_url_scope(struct cload *, const struct node *, struct url_scope *);
int conf_agent_scope(struct cload *, const struct node *, struct agent_scope *);
extern const struct ckey path_keys[], command_keys[], url_keys[], agent_keys[];
extern const struct ckey limit_keys[];
int put_path_scope(struct out *, const struct path_scope *);

/* confrule.c */
extern const struct ckey rule_keys[];
int conf_rules_add(struct cload *, const struct node *list);
/* Append a rule and take what it owns; 0, or -1 out of memory. */
int conf_rule_push(struct cload *, struct rule *);
/* Selectors of a string or list; unknown ones are findings. */
int conf_selectors(
    struct cload *, const struct node *, struct strlist *, int lenient);

/* confexample.c */
int get_examples(struct cload *, const struct node *, void *rule);

/* confauth.c */
extern const struct ckey auth_keys[];
/* A variable of the world's environment, or NULL. */
const char *conf_env(const struct cload *, const char *name);
int conf_auth_finish(struct cload *);
#define TOKEN_VAR "ABX_SERVER_TOKEN" /* the one token without "auth" */

/* confopen.c */
void conf_open_checks(struct cload *);

/* conflisten.c */
extern const struct ckey http_keys[];
int get_listen(struct cload *, const struct node *, void *);
int put_listen(struct out *, const void *);
void conf_listen_clear(struct conf *);
int conf_listen_finish(struct cload *);
int listen_loopback(const struct conf_listen *);

/* conffilter.c: command_policy */
extern const struct ckey filter_keys[];

/* preset.c: expand what the source at hand names. */
int conf_presets(struct cload *);
/* The -p and -r of the command line. */
int conf_preset_cli(struct cload *);

/* confnew.c */
struct conf *conf_new(void); /* with every default, or NULL */

/* conffinish.c */
int conf_finish(struct cload *);

/* confceil.c: what layers 4 and 5 say */
/* 1 for a layer that only restricts. */
int layer_restricts(enum conf_layer);
/* The keys of an operator file, but its rules. */
int conf_operator_top(struct cload *, const struct node *top);
/* What it disables, as rules. */
int conf_operator_disable(struct cload *, const struct node *top);
/* ABX_SERVER_READONLY and its friends. */
int conf_layer_env(struct cload *);
int get_ceiling(struct cload *, const struct node *, void *);
int put_ceiling(struct out *, const void *);

/* config.c: the outermost table, sorted by name as all are. */
extern const struct ckey conf_keys[], sandbox_keys[];

/* print.c */
struct out {
	struct wbuf w;
	int origins; /* print them */
};
void out_lit(struct out *, const char *);
void out_str(struct out *, const char *);
void out_u64(struct out *, uint64_t);
void out_list(struct out *, const struct strlist *);
void out_object(struct out *, const struct ckey *, const void *obj);

#endif
