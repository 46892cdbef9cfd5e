/*
 * SPDX-License-Identifier: ISC
 *
 * A laboratory: one real abx-monitor, confined, and everything around it
 * played by the test, which is its parent, its listener, its pathd and its
 * execd.  There is no back-off here, so thousands of broken siblings can be
 * tried in the time that a service takes for one.
 *
 * Whatever the monitor says to a sibling is checked as that sibling would, so
 * that one broken sibling cannot make the monitor break another.
 */
#ifndef ABX_LAB_H
#define ABX_LAB_H

#include "common/imsg.h"
#include "common/msg.h"
#include "common/payload.h"
#include "regress/privsep/stage.h"

/* Alice's session that has a workspace, and its name: the SHA-256 of "alice",
 * a zero byte and "s". */
#define LAB_SESSION "s"
#define LAB_WORKSPACE "0388c2253552b5ccfe44dee233159177"

struct side {
	uint32_t generation;
	struct imsgbuf *im; /* our end of its channel */
	unsigned broken;    /* PC_BROKEN for this generation */
	struct imsg held;   /* last message taken, payload copied */
	uint8_t buf[IMSG_MAX_PAYLOAD];
};

struct lab {
	struct stage st;
	pid_t pid; /* of the monitor, or -1 */
	struct imsgbuf *up;
	struct boot boot;
	int policy;
	struct side side[PROC_COUNT];
	uint64_t lid;	 /* last request number of the listener */
	size_t lines;	 /* "breaks the protocol" since lab_fresh */
	size_t others;	 /* other lines since then */
	char line[512];	 /* the last of either */
	size_t fds;	 /* descriptors of the monitor when nothing happens */
	uint32_t root_w; /* id of the root w */
	int reported;	 /* MON_READY came */
	int listed;	 /* it was told which workspaces there are */
	uint32_t epoch;	 /* of its configuration */
	int asked;	 /* PC_RELOAD came, and with this ticket */
	uint32_t ticket;
};

/* Start it with these members of the configuration; '@' is its directory. */
void lab_new(struct lab *, const char *build, const char *members);
void lab_free(struct lab *);
/* New siblings, all three; nothing of the old ones is left in the monitor. */
void lab_fresh(struct lab *);
/* A new one of that kind. */
void lab_renew(struct lab *, enum proc_kind);

/* Hand it its configuration once more, as a reload with that ticket. */
void lab_reload(struct lab *, uint32_t ticket);
/* Say that a reload failed: epoch as in PC_RELOAD_FAIL. */
void lab_refuse(struct lab *, uint32_t epoch, uint32_t ticket);
/* The next PC_RELOAD; dies when none comes. */
void lab_asked(struct lab *);

/* Send as that sibling; w is freed (NULL: no payload), fd is taken. */
void lab_send(struct lab *, enum proc_kind, uint16_t type, uint64_t id, int fd,
    struct wbuf *);
/* The same with these bytes. */
void lab_bytes(struct lab *, enum proc_kind, uint16_t type, uint64_t id, int fd,
    const void *, size_t);
/* A packet as it is, with these descriptors, which stay ours.  0, or -1 when
 * the kernel does not take it. */
int lab_raw(struct lab *, enum proc_kind, const void *, size_t, const int *fds,
    size_t nfds);
/* The next message to that sibling, which must be of that type (0: any).  Its
 * descriptor is the caller's; dies when none comes. */
struct imsg *lab_next(struct lab *, enum proc_kind, uint16_t type);
/* Take everything that waits for that sibling, checking it. */
void lab_drain(struct lab *, enum proc_kind);

/* Wait until the monitor has seen all that was sent: 0, or -1 when it does not
 * talk to our listener any more. */
int lab_sync(struct lab *);
/* Whether the sibling was declared broken, waiting for it up to ms. */
int lab_broken(struct lab *, enum proc_kind, int ms);
/* Take what the monitor says to its parent. */
void lab_listen(struct lab *);

/* ---- requests ---- */

/* An ASK of alice for that operation, with these arguments (name, value, ...,
 * NULL); its number. */
uint64_t lab_ask(struct lab *, uint16_t op, ...);
/* The same as a payload; id of ask.reqid fixed. */
void lab_ask_put(struct wbuf *, uint16_t op, const char *const *args);
/* Answer the RESOLVE that must have come: every item is of that kind; fd goes
 * along.  The request's number towards pathd. */
uint64_t lab_facts(struct lab *, enum facts_kind, int fd);
/* Facts of one item below w. */
void lab_fact(const struct lab *, const struct resolve_item *, enum facts_kind,
    struct facts *);

/* ---- descriptors of every kind; the caller closes ---- */

enum odd_fd {
	ODD_FILE_R,
	ODD_FILE_W,
	ODD_FILE_RW,
	ODD_DIR,
	ODD_PATH, /* O_PATH of a file */
	ODD_SOCKET,
	ODD_STREAM,
	ODD_LISTENING,
	ODD_PIPE_R,
	ODD_PIPE_W,
	ODD_FIFO_RW,
	ODD_NULL, /* a character device */
	ODD_EVENT,
	ODD_MEMFD,    /* sealed */
	ODD_UNSEALED, /* memfd without seals */
	ODD_GROWABLE, /* one seal is missing */
	ODD_SHRINKABLE,
	ODD_WRITABLE,
	ODD_SEALABLE,
	ODD_COUNT
};
extern const char *const odd_names[ODD_COUNT];
/* text is what a file or memfd holds. */
int odd_fd(const struct lab *, enum odd_fd, const void *text, size_t);

#endif
