/*
 * SPDX-License-Identifier: ISC
 *
 * An import whose reader was taken over: whatever it says, or does not, the
 * worker comes to an end, and nothing of it is left.
 */
#include "pathd_tree.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>

#include "common/jail.h"

#define unpack_start taken_over
#include "pathd/drain.c"
#include "pathd/pack_job.c"
#include "pathd/put_job.c"

/* ---- its worker ---- */

/* Of the true reader, which is not started. */
void
jail_compile(
    const struct jail_call *calls, int deny_list, uint8_t **code, size_t *len)
{
}

static struct wbuf answer;
static struct put_fin fin;
static int writer; /* the client's end */

int
job_stop(void *arg)
{
	return 0;
}

/* The client has sent its three bytes and gone; a minute is soon over. */
int
job_wait(struct job *j, int fd, short events)
{
	struct pollfd p = {fd, events, 0};

	j->ended = j->whole = 1;
	j->total = 3;
	if (poll(&p, 1, 100) == 1) {
		j->silent_ms = 0;
		return 1;
	}
	j->silent_ms += JOB_SILENCE_MS / 10;
	return 0;
}

void
job_send(struct job *j, uint16_t type, int fd, const struct wbuf *w)
{
	assert_int_equal(type, MP_PUT_ANS);
	writer = fd;
}

struct wbuf *
job_answer(void)
{
	wbuf_reset(&answer);
	return &answer;
}

int
job_reserve(const struct job *j)
{
	return 0;
}

void
job_said(struct job *j, uint16_t type)
{
	struct rbuf r;

	assert_int_equal(type, MP_PUT_FIN);
	rbuf_init(&r, answer.p, answer.len);
	assert_int_equal(put_fin_get(&r, &fin), 0);
}

void
job_done(struct job *j, uint16_t code, uint64_t count)
{
	fail_msg("refused before it began: %u", code);
}

void
job_quit(void)
{
	fail_msg("the order is broken");
	abort();
}

/* ---- what it says ---- */

static int out;

static void
say(uint8_t kind, const struct wbuf *w)
{
	uint8_t head[FRAME_HDR];

	frame_head(head, kind, (uint32_t)w->len);
	if (write(out, head, sizeof(head)) == -1 ||
	    (w->len > 0 && write(out, w->p, w->len) == -1))
		_exit(0); /* nobody listens any more */
}

static void
say_member(uint8_t type, uint32_t mode, uint64_t size, const char *path)
{
	struct member m = {.type = type, .mode = mode, .size = size};
	char name[64], none[] = "";
	struct wbuf w;

	snprintf(name, sizeof(name), "%s", path);
	m.path = name;
	m.link = none;
	wbuf_init(&w, FRAME_MAX);
	member_put(&w, &m);
	say(UNPACK_MEMBER, &w);
	wbuf_free(&w);
}

static void
say_data(uint64_t off, const char *text)
{
	struct wbuf w;

	wbuf_init(&w, FRAME_MAX);
	wput_u64(&w, off);
	wput_raw(&w, text, strlen(text));
	say(UNPACK_DATA, &w);
	wbuf_free(&w);
}

static void
say_end(uint16_t code, uint64_t bytes)
{
	struct unpack_end end = {.code = code, .bytes = bytes};
	struct wbuf w;

	wbuf_init(&w, FRAME_MAX);
	unpack_end_put(&w, &end);
	say(UNPACK_END, &w);
	wbuf_free(&w);
}

static void
say_raw(const void *p, size_t n)
{
	if (write(out, p, n) == -1)
		_exit(0);
}

static void
hang(void)
{
	for (;;)
		pause();
}

static void
nothing(void)
{
	hang();
}

static void
gone(void)
{
}

static void
crashed(void)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

static void
all_and_hang(void)
{
	say_member(ME_FILE, 0644, 3, "f");
	say_data(0, "new");
	say_end(C_OK, 3);
	hang();
}

static void
itself(void)
{
	for (;;)
		say_member(ME_DIR, 0755, 0, "./");
}

static void
same_name(void)
{
	for (;;)
		say_member(ME_DIR, 0755, 0, "d");
}

static void
empty_data(void)
{
	say_member(ME_FILE, 0644, 3, "f");
	for (;;)
		say_data(0, "");
}

static void
same_data(void)
{
	say_member(ME_FILE, 0644, 3, "f");
	for (;;)
		say_data(0, "new");
}

static void
data_of_nothing(void)
{
	say_data(0, "new");
}

static void
data_of_dir(void)
{
	say_member(ME_DIR, 0755, 3, "d");
	say_data(0, "new");
}

static void
data_beyond(void)
{
	say_member(ME_FILE, 0644, 3, "f");
	say_data(UINT64_MAX, "new");
}

static void
size_beyond(void)
{
	say_member(ME_FILE, 0644, UINT64_MAX, "f");
}

static void
sizes_beyond(void)
{
	say_member(ME_FILE, 0644, 1ULL << 35, "f");
	say_member(ME_FILE, 0644, UINT64_MAX - (1ULL << 35) + 1, "g");
}

static void
type_beyond(void)
{
	say_member(ME_OTHER + 1, 0644, 0, "f");
}

static void
mode_beyond(void)
{
	say_member(ME_FILE, 04755, 0, "f");
}

static void
name_with_nul(void)
{
	static const char frame[] = "\5\27\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0"
				    "\2\0\0\0\0x\0\0\0\0";

	say_raw(frame, sizeof(frame) - 1);
}

static void
kind_beyond(void)
{
	say_raw("\12\0\0\0\0", 5);
}

static void
kind_of_others(void)
{
	say_raw("\2\0\0\0\0", 5);
}

static void
length_beyond(void)
{
	say_raw("\5\377\377\377\377", 5);
	hang();
}

static void
cut(void)
{
	say_raw("\5\100\0\0\0\1", 6);
}

static void
end_twice(void)
{
	static const char frame[] = "\6\52\0\0\0\0\0\3";
	char both[2 * 47] = "";

	memcpy(both, frame, sizeof(frame) - 1);
	memcpy(both + 47, frame, sizeof(frame) - 1);
	say_raw(both, sizeof(both));
}

static void
end_of_others(void)
{
	say_end(C_AUTH_INVALID, 3);
}

static void
end_beyond(void)
{
	say_end(C_COUNT, 3);
}

static void
end_of_less(void)
{
	say_end(C_OK, 2);
}

static void
our_name(void)
{
	say_member(
	    ME_FILE, 0644, 0, "d/.abx-0123456789abcdef0123456789abcdef/x");
}

static const struct row {
	const char *name;
	void (*act)(void);
	enum code code;
} rows[] = {
    {"nothing", nothing, C_FS_TIMEOUT},
    {"gone", gone, C_SRV_UNAVAILABLE},
    {"crashed", crashed, C_SRV_INTERNAL},
    {"all and hang", all_and_hang, C_OK},
    {"itself", itself, C_LIM_MAX_ENTRIES},
    {"same name", same_name, C_LIM_MAX_ENTRIES},
    {"empty data", empty_data, C_ARGS_INVALID},
    {"same data", same_data, C_ARGS_INVALID},
    {"data of nothing", data_of_nothing, C_ARGS_INVALID},
    {"data of a directory", data_of_dir, C_ARGS_INVALID},
    {"data beyond", data_beyond, C_ARGS_INVALID},
    {"size beyond", size_beyond, C_LIM_MAX_BYTES},
    {"sizes beyond", sizes_beyond, C_LIM_MAX_BYTES},
    {"type beyond", type_beyond, C_SRV_INTERNAL},
    {"mode beyond", mode_beyond, C_SRV_INTERNAL},
    {"name with NUL", name_with_nul, C_SRV_INTERNAL},
    {"kind beyond", kind_beyond, C_SRV_INTERNAL},
    {"kind of others", kind_of_others, C_SRV_INTERNAL},
    {"length beyond", length_beyond, C_SRV_INTERNAL},
    {"cut", cut, C_SRV_UNAVAILABLE},
    {"end twice", end_twice, C_SRV_INTERNAL},
    {"end of others", end_of_others, C_SRV_INTERNAL},
    {"end beyond", end_beyond, C_SRV_INTERNAL},
    {"end of less", end_of_less, C_SRV_INTERNAL},
    {"our name", our_name, C_POL_PATH_INVALID},
};
static const struct row *row;

pid_t
taken_over(int pipe, int gzip, uint64_t max, int *frames)
{
	pid_t pid;
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(fcntl(p[0], F_SETFL, O_NONBLOCK), 0);
	if ((pid = fork()) == 0) {
		close(p[0]);
		out = p[1];
		row->act();
		_exit(0);
	}
	assert_int_not_equal(pid, -1);
	close(p[1]);
	*frames = p[0];
	return pid;
}

/* ---- */

static void
import_by_it(const struct tmp *t)
{
	volatile uint64_t beat = 0;
	struct job j = {.pd = &t->pd, .beat = &beat};
	struct rootref ref = {0};
	struct bulk b = {.has_dst = 1,
	    .max_bytes = UINT64_MAX,
	    .max_entries = 1000,
	    .refs = &ref,
	    .nrefs = 1};
	struct wbuf w;
	struct rbuf r;

	b.dst = target_of(t, "d");
	wbuf_init(&w, 4096);
	bulk_put(&w, &b);
	assert_false(w.err);
	target_clear(&b.dst);
	rbuf_init(&r, w.p, w.len);
	do_import(&j, &r);
	wbuf_free(&w);
	close(writer);
}

static unsigned
count(const char *dir)
{
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	assert_non_null(d = opendir(dir));
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
	closedir(d);
	return n;
}

static void
test_taken_over(void **state)
{
	struct tmp t;
	size_t i;

	for (i = 0; i < nitems(rows); i++) {
		row = &rows[i];
		tmp_new(&t);
		roots_open(&t.pd.roots);
		make_dir(&t, "w/d");
		make_file(&t, "w/d/f", "old");
		alarm(60);
		import_by_it(&t);
		alarm(0);
		if (fin.code != row->code)
			fail_msg("%s: %s", row->name, codes[fin.code].code);
		assert_string_equal(
		    text_of(&t, "w/d/f"), row->code == C_OK ? "new" : "old");
		assert_int_equal(count(at(&t, "w/d")), 1);
		tmp_free(&t);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_taken_over),
	};

	signal(SIGPIPE, SIG_IGN);
	wbuf_init(&answer, IMSG_MAX_PAYLOAD);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
