/*
 * SPDX-License-Identifier: ISC
 *
 * What cppcheck must know of the macros of headers that it does not read.
 */
#define TAILQ_ENTRY(t)       \
	struct {             \
		struct t *n; \
	}
#define TAILQ_HEAD(name, t)  \
	struct name {        \
		struct t *n; \
	}
#define TAILQ_FOREACH(v, h, f) for ((v) = (h)->n; (v); (v) = (v)->f.n)
#define TAILQ_FOREACH_SAFE(v, h, f, next) \
	for ((v) = (h)->n; (v) && ((next) = (v)->f.n, 1); (v) = (next))
#define json_array_foreach(a, i, v) \
	for ((i) = 0; ((v) = json_array_get(a, i)); (i)++)
#define json_object_foreach(o, k, v) \
	for ((k) = ""; ((v) = json_object_get(o, k));)
#define nitems(a) (sizeof(a) / sizeof((a)[0]))
