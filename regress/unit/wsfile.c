/*
 * SPDX-License-Identifier: ISC
 *
 * The index of workspaces: what was written is read again, wherever the writing
 * was interrupted, and it does not grow without end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "monitor/workspace.h"
#include "policy/policy.h"

#define ROUNDS 12000
#define STAY 20

/* A file without a name that holds these bytes. */
static int
file_with(const void *p, size_t n)
{
	int fd = memfd_create("index", MFD_CLOEXEC);

	if (fd == -1 || write(fd, p, n) != (ssize_t)n ||
	    lseek(fd, 0, SEEK_SET) == -1)
		exit(10);
	return fd;
}

/* The workspace of alice's session of that number. */
static void
name_of(int i, char session[16], char name[ABX_WORKSPACE_LEN + 1])
{
	snprintf(session, 16, "s%d", i);
	if (workspace_name("alice", session, name) == -1)
		exit(13);
}

static void
open_with(int old, int cur)
{
	if (wsfile_fd(0, old) == -1 || wsfile_fd(1, cur) == -1)
		exit(11);
	wsfile_open();
}

static struct ws *
add(int i)
{
	char name[ABX_WORKSPACE_LEN + 1], session[16];
	struct ws *w;

	name_of(i, session, name);
	if ((w = wstab_add(&workspaces, name, "alice", session)) == NULL)
		exit(12);
	w->used = 1000 + i;
	return w;
}

/* In a process of its own, since the index is one: its exit status. */
static int
apart(void (*run)(int), int arg)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		run(arg);
		exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* ---- growth ---- */

/* Workspaces come and go, and some stay; fd is the file. */
static void
churn(int fd)
{
	struct ws *w;
	struct stat st;
	off_t most = 0;
	int i;

	open_with(file_with("", 0), fd);
	for (i = 0; i < STAY; i++)
		if (wsfile_save(add(i)) == -1)
			exit(1);
	for (i = STAY; i < ROUNDS; i++) {
		w = add(i);
		if (wsfile_save(w) == -1 || wsfile_gone(w) == -1)
			exit(2);
		wstab_remove(&workspaces, w);
		if (fstat(fd, &st) == -1)
			exit(3);
		if (st.st_size > most)
			most = st.st_size;
	}
	/* 2.5 MiB of lines were written */
	if (most > 1100 * 1024 || most < 1000 * 1024)
		exit(4);
}

/* What is in the file: those that stay and nothing else. */
static void
stays(int fd)
{
	char name[ABX_WORKSPACE_LEN + 1], session[16];
	struct ws *w;
	int i;

	if (lseek(fd, 0, SEEK_SET) == -1)
		exit(1);
	open_with(dup(fd), file_with("", 0));
	for (i = 0; i < STAY; i++) {
		name_of(i, session, name);
		w = wstab_find(&workspaces, name);
		if (w == NULL || w->used != 1000 + i ||
		    strcmp(w->owner, "alice") != 0)
			exit(2);
	}
	if (workspaces.n != STAY)
		exit(3);
}

static void
test_growth(void **state)
{
	int fd = file_with("", 0);

	assert_int_equal(apart(churn, fd), 0);
	assert_int_equal(apart(stays, fd), 0);
	close(fd);
}

/* ---- interruptions ---- */

/* Lines of a history, and of what is true behind it. */
static char history[1 << 20], truth[1 << 16];
static size_t nhistory, ntruth;

static void
keep(char *to, size_t max, size_t *n, const struct ws *w, int gone)
{
	struct wbuf b;

	wbuf_init(&b, WS_LINE_MAX);
	wstab_line(&b, w, gone);
	assert_false(b.err);
	assert_true(*n + b.len <= max);
	memcpy(to + *n, b.p, b.len);
	*n += b.len;
	wbuf_free(&b);
}

static void
make_history(void)
{
	struct ws *w;
	int i, k;

	history[nhistory++] = truth[ntruth++] = '\n';
	for (i = 0; i < 400; i++) {
		/* those that stay are written again and again */
		k = i % 3 == 0 ? i / 3 % STAY : STAY + i;
		w = add(k);
		keep(history, sizeof(history), &nhistory, w, 0);
		if (k >= STAY)
			keep(history, sizeof(history), &nhistory, w, 1);
		wstab_remove(&workspaces, w);
	}
	for (i = 0; i < STAY; i++) {
		w = add(i);
		keep(truth, sizeof(truth), &ntruth, w, 0);
		wstab_remove(&workspaces, w);
	}
}

/* The file as it is when the second writing of what is true came so far. */
static void
interrupted(int cut)
{
	static char file[sizeof(history) + sizeof(truth)];

	memcpy(file, truth, (size_t)cut);
	memcpy(file + cut, history + cut, nhistory - (size_t)cut);
	memcpy(file + nhistory, truth, ntruth);
	stays(file_with(file, nhistory + ntruth));
}

/* Or the first. */
static void
begun(int cut)
{
	static char file[sizeof(history) + sizeof(truth)];

	memcpy(file, history, nhistory);
	memcpy(file + nhistory, truth, (size_t)cut);
	stays(file_with(file, nhistory + (size_t)cut));
}

/* Of a broken line. */
static void
unsaid(enum log_level level, const char *line)
{
}

static void
test_interruptions(void **state)
{
	size_t cut;

	log_set_sink(unsaid);
	make_history();
	assert_true(ntruth < nhistory);
	for (cut = 0; cut <= ntruth; cut += 61) {
		assert_int_equal(apart(interrupted, (int)cut), 0);
		assert_int_equal(apart(begun, (int)cut), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_growth),
	    cmocka_unit_test(test_interruptions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
