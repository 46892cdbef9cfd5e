/*
 * SPDX-License-Identifier: ISC
 *
 * What the job table says to the monitor and to launchers.  Owns no state of
 * a job.
 */
#include "execd/job_int.h"

#include <sys/wait.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memfd.h"
#include "common/msg.h"
#include "execd/etc.h"

#define WORDS_MAX 2048
#define INLINE_MAX (40 * 1024) /* larger payloads go by memfd */

/* ---- the monitor ---- */

struct wbuf *
job_words(void)
{
	static struct wbuf w;
	static const uint8_t room[WORDS_MAX];

	if (w.max == 0) {
		wbuf_init(&w, WORDS_MAX);
		wput_raw(&w, room, sizeof(room));
		if (w.err)
			fatalx("out of memory");
	}
	wbuf_reset(&w);
	return &w;
}

void
job_tell(uint16_t type, uint64_t id, int fd, const struct wbuf *w)
{
	if (w != NULL && w->err)
		fatalx("%s is too large", msg_name(type));
	if (chan_send(jobs.conf.mon, type, id, fd, w == NULL ? NULL : w->p,
		w == NULL ? 0 : w->len) == -1 &&
	    errno != EPIPE)
		fatal("cannot tell the monitor %s", msg_name(type));
}

void
job_refuse(uint64_t id, uint16_t code, int err, const char *layer)
{
	struct spawn_failed f = {code, err, ""};
	struct wbuf *w = job_words();

	strlcpy(f.layer, layer, sizeof(f.layer));
	spawn_failed_put(w, &f);
	job_tell(ME_FAILED, id, -1, w);
}

void
job_hello(uint32_t layers, uint32_t abi, const char *text)
{
	char missing[sizeof(jobs.hello.text)];
	struct wbuf *w = job_words();

	/* the tools are looked at while the probe runs; what they lack is the
	 * better reason when it failed */
	if (jobs.conf.driver->check(missing, sizeof(missing)) == -1) {
		layers = abi = 0;
		text = missing;
	}
	etc_wait();
	jobs.hello.layers = layers;
	jobs.hello.landlock_abi = abi;
	strlcpy(jobs.hello.text, text, sizeof(jobs.hello.text));
	exec_hello_put(w, &jobs.hello);
	job_tell(ME_HELLO, 0, -1, w);
	jobs.conf.probed(&jobs.hello);
}

void
job_probe_over(const struct job *j)
{
	uint32_t layers = j->ready.layers;
	const char *text = "";

	if (cgroup_layer(j->group))
		layers |= LAYER_CGROUP;
	if (!j->ended || !WIFEXITED(j->end.status) ||
	    WEXITSTATUS(j->end.status) != 0) {
		text = "namespaces: the probe did not end well";
		layers = 0;
	} else if ((layers & LAYER_LANDLOCK) == 0)
		text = "landlock: this kernel has none";
	job_hello(layers, j->ready.abi, text);
}

/* ---- the launcher ---- */

static int
say(struct chan *c, uint16_t type, uint64_t id, int fd, const void *p, size_t n)
{
	if (c == NULL) {
		if (fd != -1)
			close(fd);
		return 0; /* its end is seen */
	}
	if (chan_send(c, type, id, fd, p, n) == 0 || errno == EPIPE)
		return 0;
	log_warn("run %llu: %s", (unsigned long long)id, msg_name(type));
	return -1;
}

int
job_order(struct job *j, uint16_t type, int fd, const void *p, size_t n)
{
	return say(j->chan, type, j->id, fd, p, n);
}

void
job_order_signal(struct job *j, int sig)
{
	uint8_t b = (uint8_t)sig;

	(void)job_order(j, XL_SIGNAL, -1, &b, 1);
}

int
job_say_large(struct chan *c, uint16_t type, uint64_t id, struct wbuf *w)
{
	uint8_t none = 0;
	int fd = -1, rc;

	if (w->err) {
		errno = E2BIG;
		rc = -1;
	} else if (w->len <= INLINE_MAX)
		rc = say(c, type, id, -1, w->p, w->len);
	else if ((fd = memfd_sealed("payload", w->p, w->len)) == -1)
		rc = -1;
	else
		rc = say(c, type, id, fd, &none, 1);
	wbuf_free(w);
	return rc;
}
