/*
 * SPDX-License-Identifier: ISC
 *
 * What the tests of execd share: one execd, its directories, and a way to say
 * what went wrong.
 */
#ifndef ABX_EXECD_DRIVE_H
#define ABX_EXECD_DRIVE_H

#include <stdio.h>

#include "regress/privsep/execd_peer.h"

extern struct peer peer;
extern struct peer_conf conf;
extern char work[64];	/* bound, writable */
extern char other[64];	/* not bound */
extern char secret[96]; /* in work, protected */
extern const char *test_name;
extern int failures;

#define CHECK(cond, ...)                                                       \
	do {                                                                   \
		if (!(cond)) {                                                 \
			failures++;                                            \
			printf("FAIL %s:%d %s: ", test_name, __LINE__, #cond); \
			printf(__VA_ARGS__);                                   \
			printf("\n");                                          \
		}                                                              \
	} while (0)

/* Run a script in work; the result is valid until the next. */
struct run *sh(const char *script);
/* What a script prints. */
const char *out(const char *script);
/* Seconds of the monotonic clock. */
#define COMES_S 10 /* what must come has that long, on any machine */
double now(void);
/* How many processes of the machine have this word in their arguments. */
int marked(const char *mark);
/* Wait for that many of them: 1, or 0 when they do not come. */
int run_marked(const char *mark, int n);
/* Wait for that name in work: 1, or 0 when it does not come. */
int appears(const char *name);
/* A process of that name that descends from pid, 0 when there is none. */
pid_t below(pid_t pid, const char *name);
/* The number behind a word of a file of /proc like status; -1.  text holds the
 * beginning of the file. */
long field(
    pid_t pid, const char *file, const char *word, char *text, size_t size);
/* How many sandboxes execd has. */
int sandboxes(void);

/* drive_run.c: how programs end, output, input, limits */
void test_ends(void);
void test_failures(void);
void test_timeout(void);
void test_grandchildren(void);
void test_cancel(void);
void test_output(void);
void test_environment(void);
void test_limits(void);
/* The list of one entry of work, as pathd would make it, or with another
 * inode. */
void cover_add(struct covers *, const char *rel, int wrong);
/* Run a script with covers ("" or a session's name), and ask between set-up
 * and program; valid until the next. */
struct run *covered(const struct covers *, const char *session,
    const char *script, int (*between)(uint64_t));
int covered_yes(uint64_t id);
/* drive_many.c: many in a row, many at once, and nothing is left */
void test_many(void);
void test_many_session(void);
/* drive_launch.c: an execd that went wrong */
void test_launcher(void);
/* and a launcher that did */
void test_rogue(void);
/* drive_session.c: commands that share a sandbox */
#define ONE "0123456789abcdef0123456789abcdef"
#define TWO "fedcba9876543210fedcba9876543210"
/* Make it a run in a session, in work. */
void session_script(
    struct run *, const char *const argv[], const char *session);
/* End a session; the code of the answer.  Ends of runs are kept. */
int end_session(const char *name);
/* One script in session ONE to its end; the result is valid until the next. */
struct run *in(const char *script);
/* What it prints. */
const char *in_out(const char *script);
/* The repository in work, from outside: no command may. */
void remove_git(void);
void test_session(void);
void test_session_confined(void);
/* drive_joint.c: what they find there */
void test_session_covers(void);
void test_session_remade(void);
void test_session_cwd(void);
void test_session_apart(void);
/* drive_groups.c: instead of the others when there is a control group */
void test_groups(void);
void test_session_trees(void);
void test_session_ends(void);
void test_session_lost(void);
void test_session_profiles(void);
void test_session_idle(void);
void test_session_end(void);
/* drive_box.c: what can be seen and done inside */
void test_status(void);
void test_processes(void);
void test_files(void);
void test_readonly(void);
void test_namespaces(void);
void test_sockets(void);
void test_strict(void);
void test_protected(void);
void test_swapped(void);
void test_covers(void);
void test_denied(void);
void test_appeared(void);

#endif
