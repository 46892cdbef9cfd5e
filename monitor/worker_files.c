/*
 * SPDX-License-Identifier: ISC
 *
 * Answers of pathd to edits and to operations on whole trees.
 */
#include <stdlib.h>
#include <string.h>

#include "common/entry.h"
#include "monitor/mon.h"

/* ---- edit ---- */

static void
diff_put(struct wbuf *w, const char *path, const struct edit_fin *f, size_t n)
{
	struct wbuf text;

	wbuf_init(&text, ABX_DIFF_MAX + 2 * ABX_PATH_MAX + 64);
	if (f->difflen > 0) {
		wput_raw(&text, "--- ", 4);
		wput_raw(&text, path, strlen(path));
		wput_raw(&text, "\n+++ ", 5);
		wput_raw(&text, path, strlen(path));
		wput_raw(&text, "\n", 1);
		wput_raw(&text, f->diff, n);
	}
	json_raw_put(w, ",\"dry_run\":true,\"diff\":");
	json_str_put(w, text.p == NULL ? "" : (char *)text.p, text.len);
	json_raw_put(w, ",\"diff_truncated\":");
	json_raw_put(w, f->truncated || n < f->difflen ? "true" : "false");
	w->err |= text.err;
	wbuf_free(&text);
}

/* With at most n bytes of the diff; NULL when that is too much. */
static char *
edit_body(const struct req *r, const struct edit_fin *f, size_t n)
{
	const char *path = plan_spelling(&r->plan, "path");
	char etag[ETAG_SIZE];
	struct wbuf w;

	etag_make(etag, f->dev, f->ino, f->size, f->mtime, f->mtime_ns);
	wbuf_init(&w, 80 * 1024);
	json_raw_put(&w, "{\"path\":");
	json_str_put(&w, path, strlen(path));
	json_raw_put(&w, ",\"replacements\":");
	json_uint_put(&w, f->count);
	json_raw_put(&w, ",\"etag\":");
	json_str_put(&w, etag, strlen(etag));
	if (ask_bool(r, "dry_run"))
		diff_put(&w, path, f, n);
	json_raw_put(&w, "}");
	return wbuf_text(&w);
}

int
worker_edit_ans(struct req *r, struct imsg *m)
{
	struct edit_fin f;
	struct rbuf b;
	char *body;
	size_t n;

	rbuf_init(&b, m->payload, m->len);
	if (edit_fin_get(&b, &f) == -1)
		return -1;
	if (r->call.op != OP_files_edit || rget_end(&b) == -1) {
		edit_fin_clear(&f);
		return -1;
	}
	req_owed(r, NULL);
	/* what grows most in JSON may not fit as a whole */
	n = f.difflen;
	while ((body = edit_body(r, &f, n)) == NULL && n > 0)
		n /= 2;
	answer_json(r, 200, body);
	edit_fin_clear(&f);
	return 0;
}

/* ---- archives ---- */

static char *
pack_body(const struct req *r, const char *param, const struct pack_fin *f)
{
	const char *path = plan_spelling(&r->plan, param);
	struct wbuf w;
	size_t i;

	wbuf_init(&w, 88 * 1024);
	json_raw_put(&w, "{\"path\":");
	json_str_put(&w, path, strlen(path));
	json_raw_put(&w, ",\"entries\":");
	json_uint_put(&w, f->entries);
	json_raw_put(&w, ",\"skipped\":[");
	/* the first ones, as far as they fit */
	for (i = 0; i < f->nskip && w.len < 48 * 1024; i++) {
		json_raw_put(&w, i > 0 ? ",{" : "{");
		entry_path_put(&w, "path", f->skip[i].path, "", 0);
		json_raw_put(&w, ",\"code\":\"");
		json_raw_put(&w, codes[f->skip[i].code].code);
		json_raw_put(&w, "\"}");
	}
	json_raw_put(&w, "]}");
	return wbuf_text(&w);
}

char *
worker_import_body(const struct req *r, const struct put_fin *f)
{
	struct pack_fin p = {.entries = f->entries};

	return pack_body(r, "path", &p);
}

int
worker_archive_ans(struct req *r, struct imsg *m)
{
	struct pack_fin f;
	struct rbuf b;

	rbuf_init(&b, m->payload, m->len);
	if (pack_fin_get(&b, &f) == -1)
		return -1;
	if (r->call.op != OP_files_archive || rget_end(&b) == -1) {
		pack_fin_clear(&f);
		return -1;
	}
	req_owed(r, NULL);
	answer_json(r, 200, pack_body(r, "dest", &f));
	pack_fin_clear(&f);
	return 0;
}
