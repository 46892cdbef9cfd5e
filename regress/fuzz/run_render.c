/*
 * SPDX-License-Identifier: ISC
 *
 * Results of runs: always one JSON object, whose output is the bytes that
 * came or a base64 of them; events never break out of their line.  Input: the
 * end of a run as on the wire, 2 bytes (flags, bytes of stdout), output.
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/hash.h"
#include "common/run_render.h"
#include "regress/fuzz/fuzz.h"

/* Its integers have a bit less than ours, and output may hold anything. */
#define WAY (JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL)

/* What a member says of some bytes: the bytes, or those of a base64. */
static void
check_text(const json_t *o, const char *key, const char *encoding_key,
    const struct run_text *t)
{
	const json_t *v = json_object_get(o, key);
	const char *enc = json_string_value(json_object_get(o, encoding_key));
	size_t cut = t->truncated ? run_cut(t->p, t->len) : 0, n;
	uint8_t *out;

	CHECK(json_is_string(v) && enc != NULL && cut <= 3 && cut <= t->len);
	n = json_string_length(v);
	if (strcmp(enc, "utf-8") == 0) {
		CHECK(n == t->len - cut);
		CHECK(n == 0 || memcmp(json_string_value(v), t->p, n) == 0);
		return;
	}
	CHECK(strcmp(enc, "base64") == 0);
	CHECK(!utf8_valid(t->p, t->len - cut));
	out = fuzz_alloc(n + 1);
	CHECK(base64_decode(json_string_value(v), n, out, n) == (int)t->len);
	CHECK(memcmp(out, t->p, t->len) == 0);
	free(out);
}

static void
check_end(const json_t *o, const struct run_end *e)
{
	const json_t *code = json_object_get(o, "exit_code"),
		     *sig = json_object_get(o, "signal");

	CHECK(json_is_number(code) || json_is_null(code));
	CHECK(json_is_string(sig) || json_is_null(sig));
	CHECK(json_is_null(code) || json_is_null(sig));
	if ((e->flags & END_LOST) != 0)
		CHECK(json_is_null(code) && json_is_null(sig));
	CHECK(json_is_true(json_object_get(o, "timed_out")) ==
	      ((e->flags & END_TIMED_OUT) != 0));
	CHECK(json_is_true(json_object_get(o, "lost")) ==
	      ((e->flags & END_LOST) != 0));
	CHECK(json_is_object(json_object_get(o, "usage")));
	CHECK(json_is_array(
	    json_object_get(json_object_get(o, "sandbox"), "layers")));
}

/* The object behind "event: NAME\nid: ID\ndata: ", and nothing else. */
static json_t *
event_data(const struct wbuf *w, const char *name, const char *id)
{
	char head[128];
	int n =
	    snprintf(head, sizeof(head), "event: %s\nid: %s\ndata: ", name, id);
	size_t len = w->len - (size_t)n;
	const char *p = (const char *)w->p + n;
	json_t *o;

	CHECK(!w->err && w->len > (size_t)n + 2);
	CHECK(memcmp(w->p, head, (size_t)n) == 0);
	CHECK(memcmp(p + len - 2, "\n\n", 2) == 0);
	CHECK(memchr(p, '\n', len - 2) == NULL);
	CHECK(memchr(p, '\r', len - 2) == NULL);
	o = json_loadb(p, len - 2, WAY, NULL);
	CHECK(o != NULL);
	return o;
}

static void
events(const struct run_end *e, const struct run_text *t, uint64_t offset)
{
	struct run_text whole = *t;
	struct wbuf w;
	json_t *o;

	whole.truncated = 0;
	wbuf_init(&w, SIZE_MAX);
	run_output_event_put(&w, "stdout", "o-12", offset, t->p, t->len);
	o = event_data(&w, "stdout", "o-12");
	check_text(o, "data", "encoding", &whole);
	json_decref(o);
	wbuf_reset(&w);
	run_exit_event_put(&w, "x", e);
	o = event_data(&w, "exit", "x");
	check_end(o, e);
	CHECK(json_object_get(o, "stdout") == NULL);
	json_decref(o);
	wbuf_free(&w);
}

static void
signals(int status)
{
	char name[16];

	memset(name, 'x', sizeof(name));
	run_signal_name(status, name);
	CHECK(memchr(name, '\0', sizeof(name)) != NULL && name[0] != '\0');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run_text out = {0}, err = {0};
	struct run_end e;
	struct rbuf r;
	struct feed f;
	struct wbuf w;
	uint8_t *a, *b, flags;
	json_t *o;

	rbuf_init(&r, data, size);
	if (run_end_get(&r, &e) == -1)
		return 0;
	f = (struct feed){r.p, r.len};
	flags = feed_u8(&f);
	out.truncated = flags & 1;
	err.truncated = flags & 2;
	out.len = feed_u8(&f);
	if (out.len > f.n)
		out.len = f.n;
	err.len = f.n - out.len;
	out.p = a = fuzz_copy(f.p, out.len);
	err.p = b = fuzz_copy(f.p + out.len, err.len);
	if ((flags & 4) != 0 && out.len == 0)
		out.p = NULL; /* nothing was ever kept */
	wbuf_init(&w, SIZE_MAX);
	run_result_put(&w, &e, &out, &err);
	CHECK(!w.err);
	o = json_loadb((char *)w.p, w.len, WAY, NULL);
	CHECK(o != NULL);
	check_end(o, &e);
	check_text(o, "stdout", "stdout_encoding", &out);
	check_text(o, "stderr", "stderr_encoding", &err);
	json_decref(o);
	wbuf_free(&w);
	events(&e, &err, e.us);
	signals((int)e.status);
	free(a);
	free(b);
	return 0;
}
