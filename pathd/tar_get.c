/*
 * SPDX-License-Identifier: ISC
 *
 * Reads tar streams of every form in use (tar(5)): the old one, ustar, GNU's
 * and pax; what precedes a member and its holes are of tar_ext.c.  Pure: all of
 * the stream is hostile, and what it says is handed on, not judged.
 */
#include <stdlib.h>
#include <string.h>

#include "common/abx.h"
#include "pathd/tar_int.h"

int
tar_broken(struct tar_in *t)
{
	if (t->code == C_OK)
		t->code = C_ARGS_INVALID;
	return -1;
}

int
tar_no_memory(struct tar_in *t)
{
	t->code = C_SRV_UNAVAILABLE;
	return -1;
}

void
member_clear(struct member *m)
{
	free(m->path);
	free(m->link);
	memset(m, 0, sizeof(*m));
}

void
tar_in_init(struct tar_in *t, tar_more_cb more, void *arg)
{
	memset(t, 0, sizeof(*t));
	t->more = more;
	t->arg = arg;
}

void
tar_in_clear(struct tar_in *t)
{
	tar_ext_clear(&t->ext);
	free(t->map);
	memset(t, 0, sizeof(*t));
}

/* ---- bytes ---- */

/* Have some at hand: 1, 0 at the end, -1. */
static int
fill(struct tar_in *t)
{
	int rc = 1;

	while (t->n == 0 && rc == 1)
		rc = t->more(t->arg, &t->p, &t->n);
	return rc == -1 ? tar_broken(t) : rc;
}

/* The next n bytes, into buf or (NULL) nowhere: 1, 0 when the stream ends
 * before them, -1 when it ends among them or cannot be read. */
static int
take(struct tar_in *t, void *buf, uint64_t n)
{
	uint8_t *to = buf;
	uint64_t k;
	int rc, some = 0;

	for (; n > 0; n -= k, some = 1) {
		if ((rc = fill(t)) == -1 || (rc == 0 && some))
			return tar_broken(t);
		if (rc == 0)
			return 0;
		k = n < t->n ? n : t->n;
		if (to != NULL) {
			memcpy(to, t->p, (size_t)k);
			to += k;
		}
		t->p += k;
		t->n -= (size_t)k;
	}
	return 1;
}

int
tar_need(struct tar_in *t, void *buf, uint64_t n)
{
	return take(t, buf, n) == 1 ? 0 : tar_broken(t);
}

/* ---- numbers ---- */

int
tar_number(const char *f, size_t n, uint64_t *v)
{
	size_t i;

	*v = 0;
	if (((uint8_t)f[0] & 0x80) != 0) {
		if (((uint8_t)f[0] & 0x7f) != 0)
			return -1;
		for (i = 1; i < n; i++) {
			if (*v >> 55 != 0)
				return -1;
			*v = *v << 8 | (uint8_t)f[i];
		}
		return 0;
	}
	/* the NUL of a field before it that was full */
	i = f[0] == '\0';
	while (i < n && (f[i] == ' ' || f[i] == '\t'))
		i++;
	for (; i < n && f[i] >= '0' && f[i] <= '7'; i++)
		*v = *v << 3 | (uint64_t)(f[i] - '0');
	return i == n || f[i] == '\0' || f[i] == ' ' ? 0 : -1;
}

/* ---- the member itself ---- */

static uint8_t
type_of(char type, const char *path)
{
	size_t n = strlen(path);

	switch (type) {
	case '1':
		return ME_HARD;
	case '2':
		return ME_LINK;
	case '3':
	case '4':
	case '6':
	case 'M': /* the rest of a file that began in another archive */
		return ME_OTHER;
	case '5':
	case 'D':
		return ME_DIR;
	default: /* POSIX: any other is a file; and of old, a directory */
		return n > 0 && path[n - 1] == '/' ? ME_DIR : ME_FILE;
	}
}

/* A text of the head, or the one that came before it; owned by the caller. */
static int
get_text(struct tar_in *t, char **ext, const char *prefix, size_t np,
    const char *s, size_t n, char **out)
{
	if (*ext != NULL) {
		*out = *ext;
		*ext = NULL;
	} else {
		n = strnlen(s, n);
		np = strnlen(prefix, np);
		if ((*out = malloc(np + 1 + n + 1)) == NULL)
			return tar_no_memory(t);
		memcpy(*out, prefix, np);
		if (np > 0 && prefix[np - 1] != '/')
			(*out)[np++] = '/';
		memcpy(*out + np, s, n);
		(*out)[np + n] = '\0';
	}
	if (strlen(*out) <= ABX_PATH_MAX)
		return 0;
	t->code = C_FS_NAME_TOO_LONG;
	return -1;
}

static int
get_names(struct tar_in *t, const struct tar_block *b, struct member *m)
{
	struct tar_ext *e = &t->ext;
	int ustar = memcmp(b->magic, "ustar", 6) == 0;

	char **path = e->hole_path != NULL  ? &e->hole_path
		      : e->pax_path != NULL ? &e->pax_path
					    : &e->path;
	char **link = e->pax_link != NULL ? &e->pax_link : &e->link;

	if (get_text(t, path, b->u.ustar.prefix,
		ustar ? sizeof(b->u.ustar.prefix) : 0, b->name, sizeof(b->name),
		&m->path) == -1)
		return -1;
	return get_text(t, link, "", 0, b->link, sizeof(b->link), &m->link);
}

static int
get_member(struct tar_in *t, const struct tar_block *b, struct member *m)
{
	struct tar_ext *e = &t->ext;
	uint64_t mode;

	if (get_names(t, b, m) == -1)
		return -1;
	m->type = type_of(b->type, m->path);
	if (tar_number(b->mode, sizeof(b->mode), &mode) == -1 ||
	    tar_number(b->size, sizeof(b->size), &t->left) == -1)
		return tar_broken(t);
	m->mode = (uint32_t)(mode & 0777);
	if (e->has_size)
		t->left = e->size;
	/* before pax, others' size for a second name said nothing */
	if (b->type == '5' || m->type == ME_LINK || m->type == ME_OTHER ||
	    (m->type == ME_HARD && !e->pax))
		t->left = 0;
	t->pad = tar_pad(t->left);
	if (m->type != ME_FILE)
		return t->holes || e->major != 0 ? tar_broken(t) : 0;
	if (tar_holes_read(t, b) == -1)
		return -1;
	m->size = t->holes ? e->real : t->left;
	return 0;
}

static int
is_zero(const struct tar_block *b)
{
	static const struct tar_block zero;

	return memcmp(b, &zero, sizeof(zero)) == 0;
}

/* The next block that is a head: 1, 0 at the end, -1. */
static int
get_block(struct tar_in *t, struct tar_block *b)
{
	unsigned long sum;
	uint64_t said;
	int rc;

	if ((rc = take(t, b, sizeof(*b))) != 1)
		return rc == 0 && t->begun ? 0 : tar_broken(t);
	t->begun = 1;
	if (is_zero(b))
		return 0;
	if (tar_number(b->sum, sizeof(b->sum), &said) == -1)
		return tar_broken(t);
	sum = (unsigned long)said;
	return sum == tar_sum(b, 0) || sum == tar_sum(b, 1) ? 1 : tar_broken(t);
}

int
tar_next(struct tar_in *t, struct member *m)
{
	struct tar_block b;
	int rc;

	memset(m, 0, sizeof(*m));
	if (tar_need(t, NULL, t->left + t->pad) == -1)
		return -1;
	t->left = t->pos = 0;
	t->pad = t->at = t->nmap = 0;
	t->holes = 0;
	tar_ext_clear(&t->ext);
	while ((rc = get_block(t, &b)) == 1 && tar_ext_type(b.type))
		if (tar_ext_read(t, &b) == -1)
			return -1;
	if (rc == 0 &&
	    (t->ext.pax || t->ext.path != NULL || t->ext.link != NULL))
		return tar_broken(t); /* it was of a member that is not there */
	if (rc == 1 && get_member(t, &b, m) == -1) {
		member_clear(m);
		rc = -1;
	}
	return rc;
}

int
tar_data(struct tar_in *t, uint64_t *off, const uint8_t **p, size_t *n)
{
	uint64_t room = t->left, done = t->pos;

	*off = t->pos;
	if (t->holes) {
		while (t->at < t->nmap && t->map[t->at].len == t->pos) {
			t->at++;
			t->pos = 0;
		}
		done = t->pos;
		if (t->at == t->nmap)
			return 0;
		*off = t->map[t->at].off + done;
		room = t->map[t->at].len - done;
	}
	if (room == 0)
		return 0;
	if (fill(t) != 1)
		return tar_broken(t);
	*p = t->p;
	*n = room < t->n ? (size_t)room : t->n;
	t->p += *n;
	t->n -= *n;
	t->left -= *n;
	t->pos += *n;
	return 1;
}
