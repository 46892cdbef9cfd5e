/*
 * SPDX-License-Identifier: ISC
 *
 * What a tar stream says of a member in front of it: names that do not fit a
 * head, the attributes of pax (tar(5)), and where the holes of a file are, in
 * each of the four forms that GNU tar has had.  Pure, and all of it hostile.
 */
#include <stdlib.h>
#include <string.h>

#include "common/abx.h"
#include "common/size.h"
#include "pathd/tar_int.h"

/* Of what precedes a member; of its pieces. */
#define EXT_MAX (1024 * 1024)
#define MAP_MAX (256 * 1024)

void
tar_ext_clear(struct tar_ext *e)
{
	free(e->path);
	free(e->link);
	free(e->pax_path);
	free(e->pax_link);
	free(e->hole_path);
	memset(e, 0, sizeof(*e));
}

/* ---- what comes before a member ---- */

static int
map_add(struct tar_in *t, uint64_t off, uint64_t len)
{
	struct tar_piece *map = t->map;
	size_t n = t->nmap;

	if (n == MAP_MAX || off > INT64_MAX || len > INT64_MAX)
		return tar_broken(t);
	if ((n & (n - 1)) == 0) { /* twice as many whenever it is full */
		map = reallocarray(map, n == 0 ? 1 : 2 * n, sizeof(*map));
		if (map == NULL)
			return tar_no_memory(t);
		t->map = map;
	}
	map[n].off = off;
	map[n].len = len;
	t->nmap++;
	t->holes = 1;
	return 0;
}

/* "offset,length,offset,length" */
static int
map_text(struct tar_in *t, const char *s, size_t n)
{
	uint64_t v[2];
	size_t i = 0, k;
	const char *comma;

	while (n > 0) {
		comma = memchr(s, ',', n);
		k = comma == NULL ? n : (size_t)(comma - s);
		if (uint_parse(s, k, INT64_MAX, &v[i++ % 2]) == -1)
			return tar_broken(t);
		if (i % 2 == 0 && map_add(t, v[0], v[1]) == -1)
			return -1;
		k += comma != NULL;
		s += k;
		n -= k;
	}
	return i % 2 == 0 ? 0 : tar_broken(t);
}

static int
set_text(struct tar_in *t, char **to, const char *s, size_t n)
{
	char *copy;

	if (memchr(s, '\0', n) != NULL)
		return tar_broken(t);
	if ((copy = strndup(s, n)) == NULL)
		return tar_no_memory(t);
	free(*to);
	*to = copy;
	return 0;
}

struct pax_number {
	const char *key;
	uint64_t *to;
	int *has;
};

/* One attribute of a pax head.  Those that say nothing of content or name are
 * passed over. */
static int
pax_apply(struct tar_in *t, const char *key, const char *s, size_t n)
{
	struct tar_ext *e = &t->ext;
	uint64_t len;
	int none = 0;
	const struct pax_number numbers[] = {{"size", &e->size, &e->has_size},
	    {"GNU.sparse.size", &e->real, &e->has_real},
	    {"GNU.sparse.realsize", &e->real, &e->has_real},
	    {"GNU.sparse.major", &e->major, &none},
	    {"GNU.sparse.offset", &e->off, &none},
	    {"GNU.sparse.numbytes", &len, &none}};
	size_t i;

	if (strcmp(key, "path") == 0)
		return set_text(t, &e->pax_path, s, n);
	if (strcmp(key, "linkpath") == 0)
		return set_text(t, &e->pax_link, s, n);
	if (strcmp(key, "GNU.sparse.name") == 0)
		return set_text(t, &e->hole_path, s, n);
	if (strcmp(key, "GNU.sparse.map") == 0)
		return map_text(t, s, n);
	for (i = 0; i < nitems(numbers); i++)
		if (strcmp(key, numbers[i].key) == 0) {
			if (uint_parse(s, n, INT64_MAX, numbers[i].to) == -1)
				return tar_broken(t);
			*numbers[i].has = 1;
			return numbers[i].to == &len ? map_add(t, e->off, len)
						     : 0;
		}
	return 0;
}

/* "25 path=some/name\n", the number being that of all its bytes. */
static int
pax_record(struct tar_in *t, char **p, size_t *n)
{
	char *blank = memchr(*p, ' ', *n), *eq;
	uint64_t len;
	size_t head;

	if (blank == NULL)
		return tar_broken(t);
	head = (size_t)(blank + 1 - *p);
	if (uint_parse(*p, head - 1, INT64_MAX, &len) == -1 || len > *n ||
	    len < head + 2 || (*p)[len - 1] != '\n' ||
	    (eq = memchr(blank + 1, '=', (size_t)len - head - 1)) == NULL)
		return tar_broken(t);
	*eq++ = '\0';
	if (pax_apply(t, blank + 1, eq, (size_t)(*p + len - 1 - eq)) == -1)
		return -1;
	*p += len;
	*n -= (size_t)len;
	return 0;
}

static int
ext_use(struct tar_in *t, char type, char *text, size_t n)
{
	struct tar_ext *e = &t->ext;

	if (type == 'L')
		return set_text(t, &e->path, text, strnlen(text, n));
	if (type == 'K')
		return set_text(t, &e->link, text, strnlen(text, n));
	e->pax = 1;
	while (n > 0)
		if (pax_record(t, &text, &n) == -1)
			return -1;
	return 0;
}

int
tar_ext_type(char type)
{
	return type != '\0' && strchr("LKxXgVA", type) != NULL;
}

int
tar_ext_read(struct tar_in *t, const struct tar_block *b)
{
	uint64_t size;
	char *text;
	int rc;

	if (tar_number(b->size, sizeof(b->size), &size) == -1)
		return tar_broken(t);
	/* of the whole archive, a label, or who else may read it */
	if (strchr("gVA", b->type) != NULL)
		return tar_need(t, NULL, size + tar_pad(size));
	if (size > EXT_MAX)
		return tar_broken(t);
	if ((text = malloc((size_t)size + 1)) == NULL)
		return tar_no_memory(t);
	rc = tar_need(t, text, size);
	if (rc == 0)
		rc = tar_need(t, NULL, tar_pad(size));
	text[size] = '\0';
	if (rc == 0)
		rc = ext_use(t, b->type, text, (size_t)size);
	free(text);
	return rc;
}

/* ---- holes ---- */

/* Pieces of GNU's old form, until one that is not there. */
static int
map_old(struct tar_in *t, const char (*f)[24], size_t n)
{
	uint64_t off, len;

	for (; n > 0 && (*f)[0] != '\0'; n--, f++)
		if (tar_number(*f, 12, &off) == -1 ||
		    tar_number(*f + 12, 12, &len) == -1)
			return tar_broken(t);
		else if (map_add(t, off, len) == -1)
			return -1;
	return 0;
}

static int
holes_old(struct tar_in *t, const struct tar_block *b)
{
	struct {
		char map[21][24], more, rest[7];
	} next;
	char more = b->u.gnu.more;

	_Static_assert(sizeof(next) == TAR_BLOCK, "a block of pieces");
	if (tar_number(b->u.gnu.real, sizeof(b->u.gnu.real), &t->ext.real) ==
		-1 ||
	    map_old(t, b->u.gnu.map, nitems(b->u.gnu.map)) == -1)
		return tar_broken(t);
	t->ext.has_real = t->holes = 1;
	for (; more != '\0'; more = next.more)
		if (tar_need(t, &next, sizeof(next)) == -1 ||
		    map_old(t, next.map, nitems(next.map)) == -1)
			return -1;
	return 0;
}

/* One more decimal digit: 0 or -1. */
static int
add_digit(uint64_t *v, int c)
{
	if (c < '0' || c > '9' || *v > (uint64_t)INT64_MAX / 10 ||
	    (*v = *v * 10 + (uint64_t)(c - '0')) > (uint64_t)INT64_MAX)
		return -1;
	return 0;
}

struct map_lines {
	char block[TAR_BLOCK];
	size_t at; /* TAR_BLOCK: it is used up */
};

/* A number of its own line, from blocks that are part of the content. */
static int
map_line(struct tar_in *t, struct map_lines *l, uint64_t *v)
{
	size_t digits;
	char c;

	*v = 0;
	for (digits = 0;; digits++) {
		if (l->at == TAR_BLOCK) {
			if (t->left < TAR_BLOCK ||
			    tar_need(t, l->block, TAR_BLOCK) == -1)
				return tar_broken(t);
			t->left -= TAR_BLOCK;
			l->at = 0;
		}
		if ((c = l->block[l->at++]) == '\n')
			return digits > 0 ? 0 : tar_broken(t);
		if (add_digit(v, c) == -1)
			return tar_broken(t);
	}
}

/* pax, form 1: how many pieces, and each, in front of the content. */
static int
holes_lines(struct tar_in *t)
{
	struct map_lines l = {.at = TAR_BLOCK};
	uint64_t n, off, len;

	if (map_line(t, &l, &n) == -1)
		return -1;
	t->holes = 1;
	for (; n > 0; n--)
		if (map_line(t, &l, &off) == -1 ||
		    map_line(t, &l, &len) == -1 || map_add(t, off, len) == -1)
			return -1;
	return 0;
}

/* The pieces lie within the file, and are all that is there. */
static int
holes_check(struct tar_in *t)
{
	uint64_t end, sum = 0;
	size_t i;

	for (i = 0; i < t->nmap; i++)
		if (__builtin_add_overflow(
			t->map[i].off, t->map[i].len, &end) ||
		    end > t->ext.real ||
		    __builtin_add_overflow(sum, t->map[i].len, &sum))
			return tar_broken(t);
	return sum == t->left && sum <= t->ext.real ? 0 : tar_broken(t);
}

int
tar_holes_read(struct tar_in *t, const struct tar_block *b)
{
	/* others have had that type for holes that are told otherwise */
	if (b->type == 'S' &&
	    (memcmp(b->magic, "ustar  ", 8) != 0 || holes_old(t, b) == -1))
		return tar_broken(t);
	if (t->ext.major > 1)
		return tar_broken(t);
	if (t->ext.major == 1 && holes_lines(t) == -1)
		return -1;
	if (t->ext.has_real)
		t->holes = 1;
	if (!t->holes)
		return 0;
	return t->ext.has_real ? holes_check(t) : tar_broken(t);
}
