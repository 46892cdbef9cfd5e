/*
 * SPDX-License-Identifier: ISC
 *
 * What the files of the command policy share.  A text is read once, by a
 * scanner without recursion (filter_lex.c), into simple commands; each is
 * peeled (filter_cmd.c) and held against the rules of its program
 * (filter_rules.c).  Scripts inside of commands wait as jobs of the next
 * level, of which there is a fixed number.  Private to policy/filter*.c.
 */
#ifndef ABX_POLICY_FILTER_INT_H
#define ABX_POLICY_FILTER_INT_H

#include "common/abx.h"
#include "policy/filter.h"

#define FILTER_LEVELS 5		 /* argv, its script, and three nested ones */
#define LEX_FRAMES 1024		 /* open brackets of one script */
#define LEX_WORDS (1U << 20)	 /* words of one command and those around it */
#define LEX_REDIRS (1U << 16)	 /* redirections, likewise */
#define VALUE_MAX 256		 /* bytes of a variable that is kept */
#define SUBST_MAX (64U * 1024)	 /* bytes of output that become words */
#define EXPAND_BUDGET (8U << 20) /* bytes that expansions may add in all */
#define VIEW_SIZE (64U * 1024)	 /* what custom rules see at once */

/* Bytes that stand for something in a word; those of the input are mapped
 * away. */
enum {
	CH_DYN = 1, /* a part that only the shell knows */
	CH_OPEN,    /* { , and } outside of quotes */
	CH_COMMA,
	CH_CLOSE,
	CH_LAST = CH_CLOSE
};

enum word_flag {
	W_QUOTED = 1,  /* some part was quoted */
	W_DYN = 2,     /* some part is unknown */
	W_BRACE = 4,   /* holds CH_OPEN */
	W_BRROOT = 8,  /* one of a set of names below the root: /{a,b} */
	W_LOADED = 16, /* holds the output of a download */
	W_PROC = 32,   /* a process substitution */
	W_PARAMS = 64  /* holds $@ or $*, which are nothing or words */
};
struct word {
	uint32_t off, len; /* in the text of the scanner, NUL-terminated */
	uint32_t flags;
};

enum redir_op { R_NONE, R_IN, R_OUT, R_RDWR, R_STRING, R_HERE };
struct redir {
	enum redir_op op;
	int fd;		  /* which descriptor; 9: some other */
	struct word w;	  /* not of R_HERE */
	const char *here; /* of a here-document; borrowed from the script */
	size_t herelen;
	int expand; /* its text has substitutions */
};

/* Text that a command writes or reads, when that is known. */
enum lit_kind { LIT_NONE, LIT_TEXT, LIT_STDIN };
struct lit {
	enum lit_kind kind; /* LIT_STDIN: the standard input of all */
	const char *p;
	size_t len;
	char *own; /* what p points into, when it is ours to free */
};

enum sep { SEP_END, SEP_AMP, SEP_PIPE };

enum frame_kind {
	FR_TOP,
	FR_PAREN,
	FR_BRACE,
	FR_SUBST,
	FR_PROC,
	FR_TICK,
	FR_PARAM /* within a word: ${...}, $[...], !(...) */
};
enum case_state { CASE_NONE, CASE_WORD, CASE_PATTERN };

/* One open bracket and the command that is being read in it. */
struct frame {
	enum frame_kind kind;
	char dq;	     /* inside of "..." */
	char inword;	     /* a word has begun */
	char arith;	     /* ((: no here-document begins here */
	char body;	     /* of a function */
	char naming;	     /* "function" was read */
	char close;	     /* FR_PARAM: what ends it */
	char keep;	     /* FR_PARAM: 'k' keep the text, 'd' it is unknown,
			      * 's' it separates words, '*' it is a glob */
	char loaded;	     /* a download runs in it */
	char piped;	     /* a stage came before */
	char piped_dl;	     /* and one before was a download */
	char in_dl;	     /* as the command around them has it */
	char stage_dl;	     /* this stage is one */
	char compound;	     /* ( ) or { } was the command */
	char at_root;	     /* the working directory is the root */
	unsigned char cases; /* open case commands */
	enum case_state cstate;
	enum redir_op redir; /* waits for its word */
	int redirfd;
	uint32_t word0, redir0; /* where this command begins */
	uint32_t text0, wstart; /* bytes; wstart: of the word */
	uint32_t wflags;
	uint32_t selfcalls, background, ncmds;
	uint64_t func;	  /* hash of the name of the function around */
	uint64_t pending; /* of the one whose body must follow */
	size_t opened;	  /* where in the script the quote or ${ began */
	struct lit in;	  /* what commands here read */
	struct lit pipe;  /* what the stage before wrote */
	struct lit out;	  /* what the list wrote, when it was one command */
	struct lit proc;  /* what the last <(...) of this command writes */
	struct lit whole; /* what ( ) or { } wrote */
};

struct job {
	const char *p;
	size_t len;
	char *own;
	int heredoc;	       /* it is the body of one */
	int nested;	       /* CH_DYN in it means what it says */
	int inner;	       /* the shell around runs it itself: eval */
	struct lit in;	       /* what the script reads */
	struct params *params; /* those of its shell, or NULL: unknown */
};

struct fctx;
/* A scanner over one script. */
struct lex {
	struct fctx *x;
	struct job job;	       /* what it reads; borrowed */
	struct params *params; /* at this place of it; owned */
	int doubtful; /* << stood where some shells take it for a shift: 1,
		       * and the script is read again as if it were none: 2 */
	const char *base, *p, *end;
	int nested;	   /* CH_DYN in the script means what it says */
	int heredoc;	   /* it is the body of a here-document */
	int retries;	   /* quotes without an end that were read over */
	int parens, ticks; /* open frames of these kinds */
	const char *here_nl, *here_next; /* here-documents of this line */
	size_t herebudget;		 /* bytes to look for their ends in */
	int openhere;			 /* one had no end */
	struct frame *fr;
	size_t nfr, capfr;
	struct word *w;
	size_t nw, capw;
	struct redir *r;
	size_t nr, capr;
	char *text;
	size_t len, cap;
};

struct level {
	struct lex lex;
	int active;
	struct job *jobs;
	size_t njobs, cap, next;
};

struct var {
	uint64_t name;
	char value[VALUE_MAX];
	size_t len;
};
#define NVARS 32
#define NLOADED 8

/* One check. */
struct fctx {
	const struct filter *f;
	struct lit in; /* the standard input */
	int in_read;   /* 1: scanned as a script, 2: as another program's */
	int too_large;
	int nomem;
	uint64_t hits;	 /* built-in rules, by enum rule_id */
	uint64_t custom; /* custom rules, by index */
	size_t budget;	 /* bytes that expansions may still add */
	size_t again;	 /* bytes of doubtful scripts to read again */
	size_t depth;
	struct level lv[FILTER_LEVELS];
	struct lex flat; /* words of flat_scan */
	struct var vars[NVARS];
	size_t nvars, nextvar;
	uint64_t loaded[NLOADED]; /* files that a download wrote */
	size_t nloaded;
	char *path; /* scratch of path_fold */
	size_t pathcap;
	char *view; /* commands as words, for custom rules */
	size_t viewlen, viewcap;
};

/* A simple command: words first to first + n of its scanner. */
struct cmd {
	struct fctx *x;
	struct lex *lx;
	struct frame *fr;
	size_t first, n;
	size_t redir, nredir;
	enum sep sep;
	struct lit in;	/* what it reads; borrowed */
	struct lit out; /* what it writes; owned */
	int shelled;	/* a layer had its words run by a shell */
	int fed;	/* a program came in by standard input */
};

static inline const struct word *
cmd_w(const struct cmd *c, size_t i)
{
	return &c->lx->w[c->first + i];
}
static inline const char *
cmd_s(const struct cmd *c, size_t i)
{
	return c->lx->text + c->lx->w[c->first + i].off;
}
static inline const char *
redir_s(const struct cmd *c, size_t i)
{
	return c->lx->text + c->lx->r[c->redir + i].w.off;
}

/* ---- rules ---- */

enum rule_id {
#define RULE(id, ...) RULE_##id,
#define YES(...)
#define NO(...)
#include "policy/filter_rules.def"
#undef RULE
#undef YES
#undef NO
	RULE_COUNT
};
_Static_assert(RULE_COUNT <= 64, "hits is a mask of 64 bits");
#define HIT(id) (1ULL << RULE_##id)

struct rule_row {
	const char *name;
	int floor;
	const char *progs; /* names that the match is asked for, or NULL */
	int (*match)(const struct cmd *);
	const char *reason;
	const char *const *yes, *const *no;
};
extern const struct rule_row rule_rows[RULE_COUNT];
/* Rules about targets of redirections and any words. */
uint64_t rules_write(struct fctx *, const char *path);
uint64_t rules_word(const char *word);

/* ---- programs ---- */

enum prog_kind {
	PROG_PLAIN,
	PROG_SHELL,
	PROG_CODE, /* another interpreter */
	PROG_EVAL, /* its words are a script */
	PROG_TRAP, /* its first word is one */
	PROG_SOURCE,
	PROG_FIND,
	PROG_CD,
	PROG_SET, /* export NAME=VALUE */
	PROG_PARAMS,
	PROG_SHIFT,
	PROG_FOR,
	PROG_LOAD, /* a download */
	PROG_LIT,  /* its output can be known */
	PROG_WRAP
};
struct wrap {
	const char *name;
	const char *opts;  /* letters; ':' an argument follows */
	const char *longs; /* names of those with an argument, spaces around */
	unsigned skip;	   /* operands before the command */
	char assigns;	   /* NAME=VALUE words come before it */
	char script;	   /* letter whose argument is a script, or 0; '*':
			    * the operands are one */
	const char *shell; /* letters that have the words run by a shell */
	const char *none;  /* letters that have nothing run */
};
struct code_prog {
	const char *name;  /* a prefix: versions follow */
	const char *opts;  /* letters with an argument, ':' behind them */
	const char *codes; /* of these the ones that take code */
	const char *longs; /* long options that take code */
	const char *files; /* letters after which no code of ours comes */
	char first;	   /* 1: the first operand is code */
};
struct prog {
	const char *name; /* len bytes of it */
	size_t len;
	enum prog_kind kind;
	const struct wrap *wrap;
	const struct code_prog *code;
	uint64_t rules;
};
/* Programs with rules or a kind, as a table by hash. */
#define NO_COMMAND 255 /* of wrap.skip: operands are no command */
#define PROG_SLOTS 1024
struct progs {
	struct prog slot[PROG_SLOTS];
};
void progs_init(struct progs *);
/* The row of a base name; NULL when it has none. */
const struct prog *prog_find(const struct progs *, const char *name);

struct rx;
struct filter {
	struct progs progs;
	uint64_t
	    floor;    /* rules that other interpreters' code is held against */
	int rules_on; /* built-in warnings */
	int custom_on;
	int warn_only; /* enforcement warn */
	struct rx *custom[FILTER_CUSTOM_MAX];
	char *custom_name[FILTER_CUSTOM_MAX];
	char *custom_reason[FILTER_CUSTOM_MAX];
	int custom_warn[FILTER_CUSTOM_MAX];
	size_t ncustom;
	uint64_t stdin_max;
	uint64_t (*us)(void); /* processor time, or NULL */
};

/* ---- filter.c ---- */
/* Grow an array so that n elements fit: 0, or -1 with nomem set. */
int fctx_realloc(
    struct fctx *, void *arrayp, size_t *cap, size_t n, size_t size);
static inline int
fctx_grow(struct fctx *x, void *arrayp, size_t *cap, size_t n, size_t size)
{
	return n <= *cap ? 0 : fctx_realloc(x, arrayp, cap, n, size);
}
void lit_clear(struct lit *);

/* ---- filter_frame.c ---- */
int lex_init(struct lex *, struct fctx *);
void lex_free(struct lex *);
void lex_start(struct lex *, const struct job *);
/* A new innermost frame; NULL when there are too many. */
struct frame *lex_push(struct lex *, enum frame_kind);
/* Close the innermost frame; what it made goes to the one around it. */
void lex_pop(struct lex *);
/* Forget it with all that it holds. */
void lex_drop(struct lex *);
/* Free what a frame owns that is no longer in the stack. */
void frame_clear(struct frame *);
/* A command ends here. */
void lex_end(struct lex *, enum sep);
/* Forget the words of the command at hand. */
void lex_drop_words(struct lex *);
/* The word just added is a reserved one, and gone: 1. */
int lex_reserved(struct lex *);
static inline struct frame *
lex_top(struct lex *lx)
{
	return &lx->fr[lx->nfr - 1];
}

/* ---- filter_lex.c ---- */
/* Read until a command left jobs on the next level (1) or to the end (0). */
int lex_run(struct lex *);
/* One step at a quote, backslash, backquote. */
void lex_single(struct lex *);
void lex_backslash(struct lex *);
void lex_tick(struct lex *);

/* ---- filter_redir.c ---- */
/* At < or > or &>: read the operator, and a here-document's word. */
void lex_redir(struct lex *);
/* One more redirection of the command, empty; NULL when there are too many. */
struct redir *redir_add(struct lex *);

/* ---- filter_word.c: the word that a scanner is in ---- */
uint64_t name_hash(const char *, size_t);
static inline int
name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_';
}
/* Append bytes as they are. */
int word_put(struct lex *, const char *, size_t n);
/* Append text of the input: without what cannot be seen, bytes that mean
 * something to us mapped away. */
void word_text(struct lex *, const char *, size_t n);
void word_open(struct lex *);
/* Put text from an expansion: split into words outside of quotes. */
void word_expand(struct lex *, const char *, size_t n);
void word_dyn(struct lex *);
/* End it and add it (or what its braces make of it) to the command; 0 when
 * there was none. */
int word_close(struct lex *);
/* A word outside of any text: of argv, or of what xargs reads. */
int word_add(struct lex *, const char *, size_t n, uint32_t flags);
/* $'...': p is behind the quote.  Returns what follows the closing one, or
 * NULL when there is none. */
const char *word_ansi(struct lex *, const char *p, const char *end);
/* Bytes of an escape sequence at p (behind the backslash) into out; *n of
 * them were used. */
size_t ansi_escape(const char *p, const char *end, char out[4], size_t *n);
/* Length of an invisible character at p, or 0. */
size_t invisible(const char *p, const char *end);

/* ---- filter_brace.c ---- */
/* Add what the braces of a word make to the command; 0 when they make
 * nothing. */
int brace_expand(struct lex *, const struct word *);

/* ---- filter_dollar.c: what follows a dollar sign ---- */
void lex_dollar(struct lex *);
/* Begin ${...} or its kin; p stays.  keep as in struct frame. */
void lex_within(struct lex *, char close, char keep);
/* One step within ${...} and its kin. */
void lex_param(struct lex *);
void lex_param_pop(struct lex *);
/* NAME=VALUE of a word: remember it, or forget NAME. */
void var_assign(struct fctx *, const char *word, const struct word *);
void var_set(struct fctx *, uint64_t name, const char *value, size_t n);
/* Length of NAME= or NAME+= at the beginning, or 0. */
size_t assign_len(const char *);

/* ---- filter_cmd.c ---- */
void cmd_check(struct cmd *);
/* The command's own name: base name without unknown parts.  Into buf. */
const char *cmd_name(const char *word, char *buf, size_t size);
/* What a command reads: its last here-document or string, else c->in. */
struct lit cmd_input(const struct cmd *);
void job_add(struct fctx *, const struct job *, int copy);

/* ---- filter_opt.c ---- */
struct optw {
	const struct cmd *c;
	const char *opts;  /* letters; ':' an argument follows */
	const char *longs; /* " name name= name:x ", x: as that letter */
	size_t i;	   /* next word */
	const char *rest;  /* letters left in this one */
	int stop;	   /* "+": the first operand ends the options */
	int ended;	   /* "--" was seen */
	int ch;		   /* a letter, 0: an operand, '?': unknown long */
	const char *arg;   /* of the option, or the operand; may be NULL */
	size_t at;	   /* its word */
};
void optw_init(
    struct optw *, const struct cmd *, const char *opts, const char *longs);
/* The next option or operand, as GNU getopt permutes them; 0 at the end. */
int optw_next(struct optw *);

/* ---- filter_run.c: programs that run what they are given ---- */
void run_shell(struct cmd *);
void run_code(struct cmd *, const struct code_prog *);
/* Words from to before to are a script.  job: what is known of it besides;
 * params are borrowed. */
void run_words(struct cmd *, size_t from, size_t to, const struct job *);
/* Those of eval and trap. */
void run_eval(struct cmd *, size_t from, size_t to);
void run_source(struct cmd *);
void run_load(struct cmd *);
/* A file of that name was written by a download before. */
int loaded_has(const struct fctx *, const char *path);
/* Peel a wrapper off: 1 when a command is left, else 0. */
int wrap_peel(struct cmd *, const struct wrap *);

/* ---- filter_param.c: positional parameters ---- */
/* Those of a shell that c starts: $0 is the word zero, if there is one, the
 * others the words from "from" on.  NULL when they are too long to be known or
 * memory is short. */
struct params *params_new(struct cmd *c, size_t zero, size_t from);
struct params *params_ref(struct params *);
void params_unref(struct params *);
/* The value of $NAME, of digits, or NULL when it is not known. */
const char *params_get(const struct lex *, const char *name, size_t n);
/* Put all of them, as $@ or, star, $*: 1, or 0 when they are not known or
 * there is none. */
int params_all(struct lex *, int star);
/* Call fn for each until it returns 1. */
void params_each(struct cmd *, int (*fn)(struct cmd *, const char *));
void run_set_params(struct cmd *);
void run_shift(struct cmd *);

/* ---- filter_lit.c ---- */
/* What the command writes, when that can be known; *out owned. */
void lit_output(const struct cmd *, const char *name, struct lit *out);
/* Decoded base64 as a new string, NULL when it is none or out of memory. */
char *base64_text(const char *, size_t n, size_t *len);
/* UTF-16 becomes UTF-8 in place; 0 when it is neither or holds control
 * characters. */
int payload_text(char *, size_t *len);

/* ---- filter_path.c ---- */
/* The path without //, /./ and what /../ takes back; borrowed scratch. */
const char *path_fold(struct fctx *, const char *);
/* The same for a command that may run in the root directory. */
const char *path_fold_at(const struct cmd *, const char *);
/* All of these take a folded path. */
int path_root(const char *, uint32_t flags); /* the root, or all in it */
int path_device(const char *);		     /* a disk, memory, ports */
int path_dev(const char *);	 /* anything in /dev but the harmless */
int path_system(const char *);	 /* below a directory of the system */
int path_chmod(const char *);	 /* the same, but few of them */
int path_accounts(const char *); /* passwd and its kin */
int path_sshkeys(const char *);	 /* .ssh/authorized_keys */

/* ---- filter_flat.c ---- */
/* Hold the code of another interpreter against the floor. */
void flat_scan(struct fctx *, const char *, size_t n);

/* ---- filter_rx.c ---- */
/* NULL with *why (out of memory: "out of memory"). */
struct rx *rx_new(const char *regex, char *why, size_t size);
void rx_free(struct rx *);
/* 1 when it matches or would take too long, 0 when not. */
int rx_match(const struct rx *, const char *, size_t n, uint64_t (*us)(void));

/* ---- filter_view.c ---- */
void view_cmd(const struct cmd *);
void view_flush(struct fctx *);
void custom_scan(struct fctx *, const char *, size_t n);

#endif
