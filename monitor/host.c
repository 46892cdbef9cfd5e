/*
 * SPDX-License-Identifier: ISC
 *
 * Facts about the host that are nobody's secret, and the posture: what each
 * process's confinement really is, as the kernel reported it to that process
 * and the process told the parent.
 */
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "monitor/mon.h"

/* The newest report of each kind of process. */
static struct {
	uint32_t generation;
	char text[256];
} notes[PROC_COUNT];

int
host_note(const struct imsg *m)
{
	struct rbuf r;
	uint8_t kind;
	uint32_t gen;

	rbuf_init(&r, m->payload, m->len);
	kind = rget_u8(&r);
	gen = rget_u32(&r);
	if (r.err || kind >= PROC_COUNT || r.len >= sizeof(notes[0].text))
		return -1;
	notes[kind].generation = gen;
	memcpy(notes[kind].text, r.p, r.len);
	notes[kind].text[r.len] = '\0';
	return 0;
}

static void
answer(struct req *r, json_t *j)
{
	answer_json(r, 200, core_json_text(j));
}

void
host_info(struct req *r)
{
	struct utsname u;
	struct sysinfo si;
	cpu_set_t cpus;
	int n = 0;

	if (uname(&u) == -1 || sysinfo(&si) == -1) {
		answer_error(r, C_SRV_INTERNAL, NULL, NULL, 0);
		return;
	}
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		n = CPU_COUNT(&cpus);
	answer(r, json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:I}", "system",
		      u.sysname, "kernel", u.release, "architecture", u.machine,
		      "cpus", n, "memory_total",
		      (json_int_t)si.totalram * si.mem_unit, "memory_free",
		      (json_int_t)si.freeram * si.mem_unit, "uptime_s",
		      (json_int_t)si.uptime));
}

/* "uid 995 capeff 0 seccomp 2 ... empty-root" as an object: names with the
 * word behind them, a lone word as true. */
static json_t *
note_json(const char *text, uint32_t generation)
{
	json_t *o = json_object();
	char buf[256], *save = NULL, *word, *value;

	json_object_set_new(o, "generation", json_integer(generation));
	strlcpy(buf, text, sizeof(buf));
	for (word = strtok_r(buf, " ", &save); word != NULL;
	     word = strtok_r(NULL, " ", &save)) {
		if (strcmp(word, "empty-root") == 0)
			json_object_set_new(o, "empty_root", json_true());
		else if ((value = strtok_r(NULL, " ", &save)) != NULL)
			json_object_set_new(o, word, json_string(value));
	}
	return o;
}

static json_t *
layers_json(uint32_t bits)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} names[] = {{LAYER_NAMESPACES, "namespaces"},
	    {LAYER_SECCOMP, "seccomp"}, {LAYER_LANDLOCK, "landlock"},
	    {LAYER_CGROUP, "cgroup"}};
	json_t *a = json_array();
	size_t i;

	for (i = 0; i < nitems(names); i++)
		if ((bits & names[i].bit) != 0)
			json_array_append_new(a, json_string(names[i].name));
	return a;
}

void
host_posture(struct req *r)
{
	const struct snap *s = r->snap;
	json_t *procs = json_object();
	int k;

	for (k = 0; k < PROC_COUNT; k++)
		if (notes[k].text[0] != '\0')
			json_object_set_new(procs, proc_name((enum proc_kind)k),
			    note_json(notes[k].text, notes[k].generation));
	answer(r, json_pack("{s:s, s:s, s:b, s:b, s:o, s:{s:b, s:o, s:o}}",
		      "version", ABX_VERSION, "revision", s->revision,
		      "started_as_root", mon.starter == 0, "open_mode",
		      s->conf->open_mode != 0, "processes", procs, "sandbox",
		      "enabled", s->conf->sandbox_enabled != 0, "layers",
		      layers_json(s->execd == NULL ? 0 : s->execd->layers),
		      "required", layers_json(s->conf->require)));
}
