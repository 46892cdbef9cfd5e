/*
 * SPDX-License-Identifier: ISC
 *
 * The table of session workspaces.  A list: it is bounded, and looked at once
 * a command.  A line is believed only when the names in it give the name of
 * its directory.  Pure.
 */
#include "monitor/wstab.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/entry.h"
#include "common/payload.h"
#include "policy/policy.h"

struct ws *
wstab_find(const struct wstab *t, const char *name)
{
	struct ws *w;

	for (w = t->all; w != NULL; w = w->next)
		if (strcmp(w->name, name) == 0)
			return w;
	return NULL;
}

struct ws *
wstab_of(const struct wstab *t, const char *owner, const char *session)
{
	char name[ABX_WORKSPACE_LEN + 1];
	struct ws *w;

	if (workspace_name(owner, session, name) == -1 ||
	    (w = wstab_find(t, name)) == NULL || w->owner == NULL ||
	    strcmp(w->owner, owner) != 0)
		return NULL;
	return w;
}

static void
ws_free(struct ws *w)
{
	free(w->owner);
	free(w->session);
	free(w);
}

struct ws *
wstab_add(
    struct wstab *t, const char *name, const char *owner, const char *session)
{
	struct ws *w;

	if (t->n >= ABX_MAX_WORKSPACES || (w = calloc(1, sizeof(*w))) == NULL)
		return NULL;
	strlcpy(w->name, name, sizeof(w->name));
	if (owner != NULL && ((w->owner = strdup(owner)) == NULL ||
				 (w->session = strdup(session)) == NULL)) {
		ws_free(w);
		return NULL;
	}
	w->next = t->all;
	t->all = w;
	t->n++;
	return w;
}

void
wstab_remove(struct wstab *t, struct ws *w)
{
	struct ws **p;

	for (p = &t->all; *p != w; p = &(*p)->next)
		continue;
	*p = w->next;
	t->n--;
	ws_free(w);
}

size_t
wstab_count(const struct wstab *t, const char *owner)
{
	const struct ws *w;
	size_t n = 0;

	for (w = t->all; w != NULL; w = w->next)
		n += w->owner != NULL && strcmp(w->owner, owner) == 0;
	return n;
}

/* ---- lines ---- */

void
wstab_line(struct wbuf *b, const struct ws *w, int gone)
{
	json_raw_put(b, "{\"name\":\"");
	json_raw_put(b, w->name);
	if (gone) {
		json_raw_put(b, "\",\"gone\":true}\n");
		return;
	}
	json_raw_put(b, "\",\"principal\":");
	json_str_put(b, w->owner, strlen(w->owner));
	json_raw_put(b, ",\"session\":");
	json_str_put(b, w->session, strlen(w->session));
	json_raw_put(b, ",\"used\":");
	json_uint_put(b, w->used < 0 ? 0 : (uint64_t)w->used);
	json_raw_put(b, "}\n");
}

static int
take_used(struct wstab *t, const json_t *o, const char *name)
{
	const char *owner = json_string_value(json_object_get(o, "principal"));
	const char *session = json_string_value(json_object_get(o, "session"));
	const json_t *used = json_object_get(o, "used");
	char want[ABX_WORKSPACE_LEN + 1];
	struct ws *w;

	if (owner == NULL || session == NULL || !json_is_integer(used) ||
	    json_integer_value(used) < 0 || owner[0] == '\0' ||
	    !session_ok(session) ||
	    workspace_name(owner, session, want) == -1 ||
	    strcmp(want, name) != 0)
		return -1;
	w = wstab_find(t, name);
	if (w == NULL && (w = wstab_add(t, name, owner, session)) == NULL)
		return -1;
	w->used = w->saved = json_integer_value(used);
	return 0;
}

static int
take_object(struct wstab *t, const json_t *o)
{
	const char *name = json_string_value(json_object_get(o, "name"));
	struct ws *w;

	if (name == NULL || !workspace_name_ok(name))
		return -1;
	if (!json_is_true(json_object_get(o, "gone")))
		return take_used(t, o, name);
	if ((w = wstab_find(t, name)) != NULL)
		wstab_remove(t, w);
	return 0;
}

int
wstab_take(struct wstab *t, const char *line, size_t len)
{
	json_t *o;
	int rc;

	if (len == 0 || len >= WS_LINE_MAX ||
	    (o = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL)) == NULL)
		return -1;
	rc = json_is_object(o) ? take_object(t, o) : -1;
	json_decref(o);
	return rc;
}
