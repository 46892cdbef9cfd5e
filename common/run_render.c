/*
 * SPDX-License-Identifier: ISC
 *
 * Rendering of runs.  Pure.  Output that is UTF-8 is text, anything else is
 * base64; a character that only the cut broke is dropped (design: results).
 */
#include "common/run_render.h"

#include <sys/wait.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/entry.h"
#include "common/hash.h"

size_t
run_cut(const uint8_t *p, size_t len)
{
	size_t back, want;
	uint8_t c;

	for (back = 1; back <= 3 && back <= len; back++) {
		c = p[len - back];
		if ((c & 0xc0) == 0x80)
			continue;
		want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		return want > back ? back : 0;
	}
	return 0;
}

void
run_signal_name(int sig, char out[16])
{
	static const char *const names[] = {"0", "HUP", "INT", "QUIT", "ILL",
	    "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
	    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP",
	    "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH",
	    "IO", "PWR", "SYS"};

	if (sig > 0 && sig < (int)nitems(names))
		strlcpy(out, names[sig], 16);
	else if (sig >= 34 && sig <= 64)
		snprintf(out, 16, "RTMIN+%d", (sig - 34) % 100);
	else
		snprintf(out, 16, "%d", sig % 1000);
}

static void
put_base64(struct wbuf *w, const uint8_t *p, size_t n)
{
	size_t size = 4 * ((n + 2) / 3) + 1;
	char *b;

	if ((b = malloc(size)) == NULL || base64_encode(p, n, b, size) == -1)
		w->err = 1;
	else {
		json_raw_put(w, "\"");
		json_raw_put(w, b);
		json_raw_put(w, "\"");
	}
	free(b);
}

/* The bytes as a JSON string; returns the name of their encoding. */
static const char *
put_text(struct wbuf *w, const uint8_t *p, size_t len, int truncated)
{
	size_t cut = truncated ? run_cut(p, len) : 0;

	if (utf8_valid(p, len - cut)) {
		json_str_put(w, p, len - cut);
		return "utf-8";
	}
	put_base64(w, p, len);
	return "base64";
}

static void
put_flag(struct wbuf *w, const char *name, int on)
{
	json_raw_put(w, name);
	json_raw_put(w, on ? "true" : "false");
}

static void
put_num(struct wbuf *w, const char *name, uint64_t v)
{
	json_raw_put(w, name);
	json_uint_put(w, v);
}

/* How it ended; what was not seen is null (design: truthful process life). */
static void
put_status(struct wbuf *w, const struct run_end *e)
{
	int lost = (e->flags & END_LOST) != 0;
	char name[16];

	json_raw_put(w, "{\"exit_code\":");
	if (!lost && WIFEXITED(e->status))
		json_uint_put(w, (uint64_t)WEXITSTATUS(e->status));
	else
		json_raw_put(w, "null");
	json_raw_put(w, ",\"signal\":");
	if (!lost && WIFSIGNALED(e->status)) {
		run_signal_name(WTERMSIG(e->status), name);
		json_str_put(w, name, strlen(name));
	} else
		json_raw_put(w, "null");
}

static void
put_output(
    struct wbuf *w, const struct run_text *out, const struct run_text *err)
{
	const char *oe, *ee;

	json_raw_put(w, ",\"stdout\":");
	oe = put_text(w, out->p, out->len, out->truncated);
	json_raw_put(w, ",\"stderr\":");
	ee = put_text(w, err->p, err->len, err->truncated);
	json_raw_put(w, ",\"stdout_encoding\":\"");
	json_raw_put(w, oe);
	json_raw_put(w, "\",\"stderr_encoding\":\"");
	json_raw_put(w, ee);
	json_raw_put(w, "\"");
}

/* What was read and not kept; a stream that was cut says so. */
static void
put_cut(struct wbuf *w, const struct run_end *e, int out, int err)
{
	put_flag(w, ",\"truncated\":{\"stdout\":", out);
	put_flag(w, ",\"stderr\":", err);
	put_num(w, "},\"dropped\":{\"stdout\":", e->dropped_out);
	put_num(w, ",\"stderr\":", e->dropped_err);
	json_raw_put(w, "}");
}

static void
put_layers(struct wbuf *w, uint32_t layers)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} t[] = {
	    {LAYER_NAMESPACES, "\"namespaces\""},
	    {LAYER_SECCOMP, "\"seccomp\""},
	    {LAYER_LANDLOCK, "\"landlock\""},
	    {LAYER_CGROUP, "\"cgroup\""},
	};
	const char *sep = "";
	size_t i;

	json_raw_put(w, ",\"sandbox\":{\"layers\":[");
	for (i = 0; i < nitems(t); i++)
		if (layers & t[i].bit) {
			json_raw_put(w, sep);
			json_raw_put(w, t[i].name);
			sep = ",";
		}
	json_raw_put(w, "]");
}

static void
put_appeared(struct wbuf *w, const struct run_end *e)
{
	const char *sep = "", *p;
	size_t at = 0, n;

	json_raw_put(w, ",\"appeared\":[");
	while (at < e->nappeared) {
		p = e->appeared + at;
		n = strlen(p); /* the last byte is a NUL */
		json_raw_put(w, sep);
		json_str_put(w, p, n);
		at += n + 1;
		sep = ",";
	}
	json_raw_put(w, "]");
	if ((e->flags & END_MORE_APPEARED) != 0)
		json_raw_put(w, ",\"more_appeared\":true");
	if ((e->flags & END_PARTIAL) != 0)
		json_raw_put(w, ",\"protect_partial\":true");
}

void
run_result_put(struct wbuf *w, const struct run_end *e,
    const struct run_text *out, const struct run_text *err)
{
	put_status(w, e);
	if (out != NULL && err != NULL) {
		put_output(w, out, err);
		put_cut(w, e, out->truncated, err->truncated);
	} else
		put_cut(w, e, (e->flags & END_TRUNC_OUT) != 0,
		    (e->flags & END_TRUNC_ERR) != 0);
	put_flag(w, ",\"timed_out\":", e->flags & END_TIMED_OUT);
	put_flag(w, ",\"idle_timed_out\":", e->flags & END_IDLE);
	put_flag(w, ",\"oom_killed\":", e->flags & END_OOM);
	put_flag(w, ",\"cancelled\":", e->flags & END_CANCELLED);
	put_flag(w, ",\"lost\":", e->flags & END_LOST);
	put_num(w, ",\"duration_ms\":", e->us / 1000);
	put_num(w, ",\"usage\":{\"cpu_user_ms\":", e->utime_us / 1000);
	put_num(w, ",\"cpu_system_ms\":", e->stime_us / 1000);
	put_num(w, ",\"max_rss_kb\":", e->maxrss_kb);
	json_raw_put(w, ",\"memory_enforced\":\"");
	json_raw_put(w, e->flags & END_MEM_CGROUP ? "cgroup" : "rlimit");
	json_raw_put(w, "\"}");
	put_layers(w, e->layers);
	put_appeared(w, e);
	json_raw_put(w, "}");
	json_raw_put(w, "}");
}

static void
put_event(struct wbuf *w, const char *name, const char *id)
{
	json_raw_put(w, "event: ");
	json_raw_put(w, name);
	json_raw_put(w, "\nid: ");
	json_raw_put(w, id);
	json_raw_put(w, "\ndata: ");
}

void
run_output_event_put(struct wbuf *w, const char *name, const char *id,
    uint64_t offset, const uint8_t *p, size_t len)
{
	const char *encoding;

	put_event(w, name, id);
	put_num(w, "{\"offset\":", offset);
	json_raw_put(w, ",\"data\":");
	encoding = put_text(w, p, len, 0);
	json_raw_put(w, ",\"encoding\":\"");
	json_raw_put(w, encoding);
	json_raw_put(w, "\"}\n\n");
}

void
run_gap_event_put(struct wbuf *w, const char *stream, const char *id,
    uint64_t offset, uint64_t bytes)
{
	put_event(w, "gap", id);
	json_raw_put(w, "{\"stream\":\"");
	json_raw_put(w, stream);
	put_num(w, "\",\"offset\":", offset);
	put_num(w, ",\"bytes\":", bytes);
	json_raw_put(w, "}\n\n");
}

void
run_exit_event_put(struct wbuf *w, const char *id, const struct run_end *e)
{
	put_event(w, "exit", id);
	run_result_put(w, e, NULL, NULL);
	json_raw_put(w, "\n\n");
}
