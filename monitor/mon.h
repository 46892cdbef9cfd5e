/*
 * SPDX-License-Identifier: ISC
 *
 * What the files of the monitor share: its peers, the live requests, and the
 * steps of a request.  The monitor alone decides; it opens nothing, executes
 * nothing and creates no socket.
 */
#ifndef ABX_MON_H
#define ABX_MON_H

#include "common/chan.h"
#include "common/jail.h"
#include "common/msg.h"
#include "common/payload.h"
#include "monitor/gate.h"
#include "policy/policy.h"

struct event;
struct event_base;
struct proc;
struct ws;

/* A sibling process as the monitor sees it.  Snapshots and requests hold
 * references; a lost one stays until nobody does. */
struct peer {
	struct peer *next;
	enum proc_kind kind;
	struct chan *chan; /* NULL: lost */
	uint32_t generation;
	uint32_t epoch; /* the configuration it was started for */
	unsigned refs;
	unsigned snaps; /* snapshots that it serves, old ones too */
	int ready;	/* pathd: ROOTS_OK; execd: HELLO; listener: CONF sent */
	int broken;	/* it broke the protocol and is about to be killed */
	uint32_t layers;  /* execd: of its sandboxes, from HELLO */
	char lacks[32];	  /* execd: the layer that keeps it from building any */
	uint64_t last_id; /* listener: greatest request number seen */
};

/* One whole configuration: requests finish on the one they began with. */
struct snap {
	unsigned refs;
	uint32_t epoch;
	uint32_t ticket; /* of the last who asked before it was read */
	struct conf *conf;
	struct policy *policy;
	char revision[65];
	/* the workers that serve it, and the epoch that those were made for */
	struct peer *pathd, *execd; /* NULL: not there now */
	uint32_t pathd_epoch, execd_epoch;
};

/* One live request, from ASK to FIN (and END of a run). */
struct req {
	struct req *lnext, *rnext; /* hash chains */
	uint64_t lid;		   /* the listener's number */
	uint64_t rid;		   /* ours, towards pathd and execd */
	enum gate_state state;	   /* written only in req_enter */
	struct snap *snap;	   /* a reference */
	struct ask ask;
	uint64_t start_us;
	/* who */
	struct principal who;
	const char *roles[ABX_MAX_ROLES];
	/* what */
	struct args *check_args; /* core.check: the inner call */
	int checking;		 /* the plan below is that of the inner call */
	struct call call;
	struct plan plan;
	int planned;
	struct facts *facts; /* one a plan item, NULL before FACTS */
	struct decision dec;
	int decided;
	int dirfd;		 /* cwd of a run while pathd looks, -1 */
	struct covers covers;	 /* what that run must not see */
	struct peer *peer;	 /* who owes an answer (a reference), or NULL */
	struct peer *holder;	 /* execd that holds the run (a reference) */
	enum fd_kind wanted;	 /* what pathd was to open, or FDK_NONE */
	int started;		 /* ME_STARTED came */
	uint64_t body_bytes;	 /* of a memfd with arguments */
	int frame_fd;		 /* ME_RUN before the answer can go, -1 */
	int stdin_fd;		 /* ME_IN, -1 */
	int early_fin;		 /* PUT_FIN went out before PUT_END came */
	int put_whole;		 /* a whole body may have been committed */
	struct limit_slot *slot; /* concurrency taken, NULL */
	struct idem *idem;	 /* the key it works for, or NULL */
	struct idem *idem_wait;	 /* the key whose answer it waits for */
	struct req *idem_next;
	struct proc *proc;   /* that it starts, until STARTED */
	struct proc *waited; /* whose end it waits for, or NULL */
	struct req *wait_next;
	struct event *wait_timer;
	struct ws *ws;	    /* that it runs in, or is about to; NULL */
	int making;	    /* its directory, and pathd owes DONE */
	struct ws *ws_wait; /* whose removal it waits for, or NULL */
	char proc_mark[7];  /* how the id of its process begins, or "" */
	/* how it went, for the audit */
	uint16_t status; /* HTTP status answered, 0: none yet */
	enum code code;
	int is_run; /* ended by FIN and END */
	int fin_seen, end_seen;
	int orphan; /* its listener died before FIN */
	struct fin fin;
	struct run_end end;
};

struct mon {
	struct event_base *base;
	struct snap *cur;      /* what new requests begin with */
	struct snap *next;     /* being loaded, or NULL */
	struct peer *listener; /* NULL: not there */
	uint8_t hmac_key[32];  /* of the listener's pre-check, this start */
	uint8_t argv_key[32];  /* of argv_hash in the audit, this start */
	int announced;	       /* the parent was told that we are ready */
	int panic;	       /* no command may start */
	uint64_t start_us;
	uid_t starter;	   /* who started the service */
	gid_t control_gid; /* whose members may use abxctl, -1: nobody's */
	struct strlist protect, sinks;
};
extern struct mon mon;

/* main.c */
/* Declare a peer broken: log, tell the parent to kill it. */
void mon_broken(struct peer *, const char *what);
/* Something was lost between it and us for want of memory, so that what each
 * knows of the other cannot be true any more: it begins anew. */
void mon_anew(struct peer *, const char *what);
/* A message to the parent that consists of a kind and a generation. */
void mon_tell_child(uint16_t type, const struct peer *);

/* snap.c */
/* Read and compile a sealed policy: 0 and mon.next (at start mon.cur) is set,
 * or -1 with *why, a constant.  ticket: see control_reloaded; need: bits of
 * enum snap_need. */
enum snap_need { NEED_PATHD = 1, NEED_EXECD = 2 };
int snap_load(
    int fd, uint32_t epoch, uint32_t ticket, unsigned need, const char **why);
struct snap *snap_ref(struct snap *);
void snap_unref(struct snap *);
/* A principal that this configuration does not know. */
int snap_vanished(const struct snap *, const struct principal *);
/* A worker for that epoch came up. */
void snap_connect(struct peer *);
/* A worker answered: announce the start, or go over to the next snapshot. */
void snap_worker_ready(void);
/* The snapshot with that epoch cannot be used (0: there is none): tell why and
 * keep the present one. */
void snap_fail(uint32_t epoch, uint32_t ticket, const char *why);
/* Send the listener its part of the present configuration. */
void snap_configure_listener(void);

/* peers.c: the list of siblings, messages that belong to no request, and the
 * loss of a sibling. */
int peer_roots_ok(struct peer *, const struct imsg *);
int peer_hello(struct peer *, const struct imsg *);
int peer_rejects(struct peer *, const struct imsg *);
/* NULL out of memory. */
struct peer *peer_new(enum proc_kind, uint32_t generation, uint32_t epoch);
struct peer *peer_find(enum proc_kind, uint32_t generation);
/* Call f for each of that kind that is there. */
void peer_each(enum proc_kind, void (*f)(struct peer *, void *), void *arg);
struct peer *peer_ref(struct peer *);
void peer_unref(struct peer *);
void peer_gone(struct peer *);
/* Send; fd is taken.  0, or -1 when it is not there or the message could not
 * be queued.  NULL is a peer that is not there. */
int peer_send(
    struct peer *, uint16_t type, uint64_t id, int fd, const struct wbuf *);
int listener_send(uint16_t type, uint64_t id, int fd, const struct wbuf *);
/* Likewise what must not be lost: without it that peer begins anew. */
void peer_must(
    struct peer *, uint16_t type, uint64_t id, int fd, const struct wbuf *);
/* The answer to a request.  When there is no memory for it, its connection is
 * closed without one: nobody waits for ever. */
void listener_answer(
    const struct req *, uint16_t type, int fd, const struct wbuf *);
/* The answer that this worker owed to the request will not come. */
void peer_owes_nothing(struct req *, struct peer *);
/* Whether a worker can be asked: it is there, and takes what it is sent. */
int peer_can_take(const struct peer *);
/* Whether the listener has read so little of what it was sent that it cannot
 * be one of ours. */
int listener_is_deaf(void);

/* req.c */
/* A new request of the listener, or NULL out of memory. */
struct req *req_new(uint64_t lid);
struct req *req_by_lid(uint64_t lid);
struct req *req_by_rid(uint64_t rid);
/* The caller is known: its number says from now on whose it is, so that pathd
 * can be fair.  Before anybody was asked anything. */
void req_own(struct req *);
size_t req_count(void);
/* A number towards the workers that no request has. */
uint64_t req_number(void);
/* Those of them that only wait for execd's END. */
size_t req_ending(void);
#define REQ_ENDING_MAX 1024
/* Account for a body of that many bytes: 0, or -1 when those of all requests
 * that the listener has not ended would be too much. */
int req_take_body(struct req *, uint64_t bytes);
/* Whether one more may come to wait for END. */
int req_room_to_end(const struct req *);
/* The only place that writes state. */
void req_enter(struct req *, enum gate_state);
/* Write the audit line and free. */
void req_finish(struct req *, const char *outcome);
/* Forget the listener's number: that listener is gone. */
void req_orphan(struct req *);
/* Who owes an answer from now on; NULL: nobody. */
void req_owed(struct req *, struct peer *);
int req_owed_by(const struct req *, enum proc_kind);
/* Call f for every live request; f may finish the one it is given. */
void req_each(void (*f)(struct req *, void *), void *);
/* 1 for an id whose request was withdrawn while that kind of worker still owed
 * an answer: the late answer is dropped, not a breach.  last: no other one
 * follows, and the id is forgotten. */
int req_was_cancelled(uint64_t rid, enum proc_kind by, int last);
void req_remember_cancelled(uint64_t rid, enum proc_kind owed);

/* principal.c: fill in who; C_OK or an auth code. */
enum code principal_of(struct req *);

/* peerid.c: PEER and PEER_GONE of the listener: 0, or -1 for a breach. */
int peerid_new(const struct imsg *);
int peerid_gone(const struct imsg *);
/* The listener is gone, and its connections with it. */
void peerid_clear(void);
/* The uid at the other end of the connection with that handle: 0 or -1. */
int peerid_uid(const uint8_t handle[16], uid_t *);

/* answer.c: towards the listener. */
int answer_ask(struct req *, struct imsg *);
int answer_cancel(struct req *, struct imsg *);
int answer_fin(struct req *, struct imsg *);
int answer_put_end(struct req *, struct imsg *);
int answer_result(struct req *, struct imsg *);
/* How it went, in the audit's words. */
const char *answer_outcome(const struct req *);
/* The one answer of a request.  fd is taken. */
void answer_send(struct req *, struct ans *, int fd);
/* JSON body (owned by the call) with a status. */
void answer_json(struct req *, uint16_t status, char *body);
/* An error; param and reason may be NULL. */
void answer_error(struct req *, enum code, const char *param,
    const char *reason, uint32_t retry_after);

/* step.c: from facts to a decision to work. */
void step_plan(struct req *);
/* fd is what pathd opened or -1; whoever keeps it sets it to -1. */
void step_facts(struct req *, int *fd);

/* worker.c: answers of pathd and execd. */
int worker_facts(struct req *, struct imsg *);
int worker_put_ans(struct req *, struct imsg *);
int worker_put_fin(struct req *, struct imsg *);
int worker_list_ans(struct req *, struct imsg *);
int worker_done(struct req *, struct imsg *);
int worker_edit_ans(struct req *, struct imsg *);
int worker_archive_ans(struct req *, struct imsg *);
/* worker_files.c: the answer to an import, NULL out of memory. */
char *worker_import_body(const struct req *, const struct put_fin *);
int worker_started(struct req *, struct imsg *);
int worker_run(struct req *, struct imsg *);
int worker_in(struct req *, struct imsg *);
int worker_failed(struct req *, struct imsg *);
int worker_end(struct req *, struct imsg *);

/* core.c: the operations that need no worker. */
void core_init(void);
/* The text of a JSON value, which is released; NULL when there was no memory
 * for it or for anything in it. */
struct json_t;
char *core_json_text(struct json_t *);
void core_health(struct req *);
void core_capabilities(struct req *);
/* host.c */
void host_info(struct req *);
void host_posture(struct req *);
/* What the parent says of a process's confinement (PC_POSTURE).  0 or -1. */
int host_note(const struct imsg *);
/* core.check after the outer call was admitted: plan the inner one. */
void core_check(struct req *);
void core_check_answer(struct req *);

/* limits.c */
struct limit_slot;
/* Take a rate token and a slot for a decided request: C_OK, or the limit's
 * code with *retry in seconds. */
enum code limit_take(struct req *, uint32_t *retry);
void limit_release(struct limit_slot *);

/* idem.c */
struct idem;
/* 0: go on; 1: the key decided, the answer was sent or will be. */
int idem_begin(struct req *);
/* The answer of a request that may have a key. */
void idem_done(struct req *, uint16_t status, uint16_t code, const char *body);
/* It waits for no answer any more. */
void idem_leave(struct req *);
/* The request ends. */
void idem_end(struct req *);

/* control.c: abxctl's socket. */
/* Take the listening control socket. */
void control_init(int fd);
/* A reload ended: answer those who asked before it began, whose tickets are
 * not above its own. */
void control_reloaded(uint32_t ticket, int ok, const char *text);
/* top.c: what is going on, as JSON in a new string; NULL out of memory. */
char *top_text(void);
/* Likewise the sessions whose workspaces are kept. */
char *sessions_text(void);

/* audit.c */
void audit_init(void);
void audit_request(const struct req *, const char *outcome);
/* The end of a process. */
void audit_process(const struct proc *);
/* One that showed no valid credential, or how many; the caller bounds how
 * often. */
void audit_reject(const struct reject *);
/* One core.reload record; new is NULL and why says it when it failed. */
void audit_reload(const char *old, const char *new, const char *why);

/* filter.c */
extern const struct jail_call monitor_calls[];

/* ask arguments: a boolean's value (false when absent), a path's or string's
 * text as the caller spelled it ("" when absent). */
int ask_bool(const struct req *, const char *name);
const char *ask_text(const struct req *, const char *name);
int ask_has(const struct req *, const char *name);

#endif
