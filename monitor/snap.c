/*
 * SPDX-License-Identifier: ISC
 *
 * Snapshots: one whole configuration each, with the workers that serve it.
 * A new one is loaded beside the present one and takes its place when its
 * workers have answered; requests in flight finish on what they began with.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/proc.h"
#include "monitor/confwire.h"
#include "monitor/mon.h"
#include "monitor/proc.h"
#include "monitor/workspace.h"

#define POLICY_MAX (32 * 1024 * 1024)

struct snap *
snap_ref(struct snap *s)
{
	s->refs++;
	return s;
}

static struct peer *
hold(struct peer *p)
{
	p->snaps++;
	return peer_ref(p);
}

/* A worker that no snapshot uses any more may go.  One that several reloads
 * kept serves several, and the requests of the oldest may be the last to
 * end. */
static void
let_go(struct peer *p)
{
	if (p == NULL)
		return;
	if (--p->snaps == 0 && p->chan != NULL)
		mon_tell_child(PC_DRAINED, p);
	peer_unref(p);
}

void
snap_unref(struct snap *s)
{
	if (s == NULL || --s->refs > 0)
		return;
	let_go(s->pathd);
	let_go(s->execd);
	policy_free(s->policy);
	conf_free(s->conf);
	free(s);
}

/* ---- loading ---- */

/* Processor time, so that a busy machine makes no rule slow. */
static uint64_t
cpu_us(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) == -1)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static int
compile(struct snap *s, const char *text, size_t len, const char **why)
{
	struct conf_source src = {"policy", LAYER_CANON, text, len};
	struct findings found = {0};
	const char *fault;
	size_t i;
	int rc = -1;

	*why = "the policy cannot be read";
	s->conf = conf_load(&src, 1, NULL, &found);
	if (s->conf == NULL || findings_block(&found, 1))
		goto out;
	*why = "the policy cannot be compiled";
	if ((s->policy = policy_new(s->conf, &found)) == NULL ||
	    conf_revision(s->conf, s->revision) == -1)
		goto out;
	for (i = 0; i < mon.protect.n; i++)
		if (policy_protect(s->policy, mon.protect.v[i]) == -1)
			goto out;
	policy_clock(s->policy, cpu_us);
	if ((fault = policy_filter_fault(s->policy)) != NULL)
		log_warnx(
		    "command policy: %s: no custom rule is in force", fault);
	rc = 0;
out:
	if (rc == -1 && found.n > 0)
		log_warnx("policy: %s", found.v[0].msg);
	findings_clear(&found);
	return rc;
}

static int
read_policy(struct snap *s, int fd, const char **why)
{
	struct stat st;
	void *text;
	int rc;

	*why = "the policy has no text";
	if (fstat(fd, &st) == -1 || st.st_size <= 0 || st.st_size > POLICY_MAX)
		return -1;
	text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return -1;
	rc = compile(s, text, (size_t)st.st_size, why);
	munmap(text, (size_t)st.st_size);
	return rc;
}

int
snap_load(
    int fd, uint32_t epoch, uint32_t ticket, unsigned need, const char **why)
{
	struct snap *s;

	*why = "no memory";
	if ((s = calloc(1, sizeof(*s))) == NULL)
		return -1;
	s->refs = 1;
	s->epoch = s->pathd_epoch = s->execd_epoch = epoch;
	s->ticket = ticket;
	if (read_policy(s, fd, why) == -1) {
		snap_unref(s);
		return -1;
	}
	if (mon.cur == NULL) {
		mon.cur = s;
		return 0;
	}
	if (mon.next != NULL) {
		*why = "another reload is under way";
		snap_unref(s);
		return -1;
	}
	if ((need & NEED_PATHD) == 0) {
		s->pathd_epoch = mon.cur->pathd_epoch;
		if (mon.cur->pathd != NULL)
			s->pathd = hold(mon.cur->pathd);
	}
	if ((need & NEED_EXECD) == 0) {
		s->execd_epoch = mon.cur->execd_epoch;
		if (mon.cur->execd != NULL)
			s->execd = hold(mon.cur->execd);
	}
	mon.next = s;
	return 0;
}

/* ---- workers ---- */

static void
attach(struct snap *s, struct peer *p)
{
	struct peer **slot;
	uint32_t epoch;

	if (s == NULL)
		return;
	slot = p->kind == PROC_PATHD ? &s->pathd : &s->execd;
	epoch = p->kind == PROC_PATHD ? s->pathd_epoch : s->execd_epoch;
	if (epoch != p->epoch)
		return;
	if (*slot != NULL) {
		(*slot)->snaps--;
		peer_unref(*slot);
	}
	*slot = hold(p);
}

void
snap_connect(struct peer *p)
{
	attach(mon.cur, p);
	attach(mon.next, p);
}

static int
workers_ready(const struct snap *s)
{
	return s->pathd != NULL && s->pathd->ready && s->execd != NULL &&
	       s->execd->ready;
}

static void
tell_reloaded(uint32_t epoch, int ok, const char *text)
{
	struct wbuf w;

	wbuf_init(&w, 512);
	wput_u32(&w, epoch);
	wput_u8(&w, (uint8_t)ok);
	wput_raw(&w, text, strlen(text));
	if (w.err || proc_tell(PC_RELOADED, -1, w.p, w.len) == -1)
		fatalx("cannot tell the parent");
	wbuf_free(&w);
}

int
snap_vanished(const struct snap *s, const struct principal *who)
{
	size_t i;

	if (!who->authenticated)
		return !s->conf->open_mode && !s->conf->anonymous;
	for (i = 0; i < s->conf->ntokens; i++)
		if (strcmp(s->conf->tokens[i].id, who->id) == 0)
			return 0;
	for (i = 0; i < s->conf->npeers; i++)
		if (strcmp(s->conf->peers[i].id, who->id) == 0)
			return 0;
	return 1;
}

static void
revoke_req(struct req *r, void *arg)
{
	if (r->ask.op == OP_core_health || !snap_vanished(mon.cur, &r->who))
		return;
	if (req_owed_by(r, PROC_EXECD))
		(void)peer_send(r->peer, ME_CANCEL, r->rid, -1, NULL);
	if (r->state != RS_ENDING && r->state != RS_CANCELLED)
		peer_must(mon.listener, LM_DROP, r->lid, -1, NULL);
}

static void
swap(void)
{
	struct snap *old = mon.cur;

	mon.cur = mon.next;
	mon.next = NULL;
	log_info("reloaded, revision %s", mon.cur->revision);
	audit_reload(old->revision, mon.cur->revision, NULL);
	snap_configure_listener();
	req_each(revoke_req, NULL);
	proc_revoke();
	workspace_reloaded();
	tell_reloaded(mon.cur->epoch, 1, mon.cur->revision);
	control_reloaded(mon.cur->ticket, 1, mon.cur->revision);
	snap_unref(old);
}

void
snap_worker_ready(void)
{
	if (mon.next != NULL && workers_ready(mon.next))
		swap();
	if (mon.announced || mon.cur == NULL || !workers_ready(mon.cur) ||
	    !workspace_ready())
		return;
	mon.announced = 1;
	if (proc_tell(PC_MON_READY, -1, mon.cur->revision, 64) == -1)
		fatalx("cannot tell the parent");
}

void
snap_fail(uint32_t epoch, uint32_t ticket, const char *why)
{
	log_warnx("reload refused, the old policy stays: %s", why);
	audit_reload(mon.cur->revision, NULL, why);
	if (mon.next != NULL && mon.next->epoch == epoch) {
		snap_unref(mon.next);
		mon.next = NULL;
	}
	/* it waits for this before it begins with another one */
	if (epoch != 0)
		tell_reloaded(epoch, 0, why);
	control_reloaded(ticket, 0, why);
}

void
snap_configure_listener(void)
{
	struct lconf l;
	struct wbuf w;

	if (confwire_listener(&l, mon.cur->conf, mon.hmac_key) == -1) {
		/* it may not go on with the old one */
		if (mon.listener != NULL)
			mon_anew(mon.listener, msg_name(LM_CONF));
		return;
	}
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	lconf_put(&w, &l);
	peer_must(mon.listener, LM_CONF, 0, -1, &w);
	wbuf_free(&w);
	free(l.tokens);
	explicit_bzero(&l, sizeof(l));
}
