/*
 * SPDX-License-Identifier: ISC
 *
 * The payloads of the messages of msg.def as structs, each with one encoder
 * and one decoder, so that both ends of a wire cannot disagree.
 *
 * x_put never fails at once: errors stick in the writer.  x_get returns 0, or
 * -1 for anything malformed, over a bound, or out of memory; it leaves the
 * struct cleared then, and it does not check for trailing bytes (the caller
 * ends with rget_end).  x_clear frees what the struct owns and zeroes it; on a
 * zeroed struct it does nothing.  Strings are owned unless said otherwise.
 */
#ifndef ABX_PAYLOAD_H
#define ABX_PAYLOAD_H

#include <sys/types.h>

#include "common/abx.h"
#include "common/args.h"
#include "common/strlist.h"
#include "common/wire.h"

/* ---- small pieces ---- */

/* A directory beneath which something may be done: a root that pathd holds,
 * and one more component below it for {principal.id} and {session} roots. */
struct rootref {
	uint32_t root;
	char sub[ABX_ID_MAX + 1]; /* "" or one safe component */
};

/* What pathd found out about one path (design: facts). */
enum facts_status { FS_OK = 0, FS_OUTSIDE, FS_INVALID, FS_ERRNO };
enum facts_kind { FK_MISSING = 0, FK_FILE, FK_DIR, FK_LINK, FK_OTHER };
struct facts {
	uint8_t status;	    /* enum facts_status; the rest only with FS_OK,
			     * path and symlink where they are known */
	int32_t err;	    /* errno with FS_ERRNO; with FS_OK that of
			     * an open that RESOLVE_OPEN wanted, else 0 */
	char *path;	    /* canonical absolute path; where the walk ended
			     * when it could not go on, else "" */
	uint8_t ref;	    /* index into the asking rootrefs: where it lies */
	uint16_t rel;	    /* bytes of path that spell that root (and sub) */
	uint8_t kind;	    /* enum facts_kind of the last component */
	uint16_t missing;   /* trailing components that do not exist */
	uint8_t symlink;    /* a component below the root was a link */
	struct strlist via; /* canonical places that only links led to and
			     * that the walk left again; of one below another
			     * the lower one */
	uint32_t mode;	    /* permission bits, 07777 */
	uint32_t nlink;
	uint64_t size;
	int64_t mtime; /* seconds */
	uint32_t mtime_ns;
	uint64_t dev, ino;
};
#define FACTS_VIA_MAX 64 /* places that one walk may leave */
void facts_clear(struct facts *);
void facts_put(struct wbuf *, const struct facts *);
int facts_get(struct rbuf *, struct facts *);

/* One thing to act on: canonical components below a root reference, and what
 * it was when it was decided (kind FK_MISSING: dev and ino are 0). */
struct target {
	struct rootref ref;
	char *rel; /* "" for the root itself, never starts or ends with '/' */
	uint8_t kind;
	uint64_t dev, ino;
};
void target_clear(struct target *);
void target_put(struct wbuf *, const struct target *);
int target_get(struct rbuf *, struct target *);

/* ---- listener and monitor ---- */

enum ask_body {
	ASK_BODY_NONE,	  /* no body, or a JSON body that is the args */
	ASK_BODY_STREAM,  /* bytes will come through the pipe */
	ASK_BODY_CONTENT, /* JSON "content", already decoded, same pipe */
	ASK_BODY_BAD	  /* JSON "content" or "encoding" cannot be decoded */
};
enum ask_flag {
	ASK_HEAD = 1,	/* HEAD request */
	ASK_SSE = 2,	/* Accept: text/event-stream */
	ASK_EXPECT = 4, /* waits for 100 Continue */
	ASK_RPC = 8,	/* came by /rpc/, not by a REST route */
	ASK_RANGE = 16	/* has a Range header */
};
struct ask {
	char reqid[ABX_REQID_LEN + 1];
	uint16_t op;		     /* ops.def index or OP_NONE */
	char opname[ABX_ID_MAX + 1]; /* as asked, for the audit; may be "" */
	uint8_t has_cred;
	char token[ABX_TOKEN_MAX + 1]; /* wiped by ask_clear */
	uint8_t has_peer;
	uint8_t peer[16];  /* handle from PEER_ANS */
	char remote[64];   /* numeric address, or "unix" */
	uint16_t flags;	   /* enum ask_flag */
	uint8_t body;	   /* enum ask_body */
	uint64_t length;   /* body bytes, UINT64_MAX when not known */
	char if_match[80]; /* header value or "" */
	char if_none_match[80];
	char last_event[48];	   /* Last-Event-ID or "" */
	char idem[ABX_ID_MAX + 1]; /* Idempotency-Key or "" */
	uint8_t bad_idem;	   /* the key was malformed */
	uint8_t has_digest; /* sha-256 of Content-Digest, or of content */
	uint8_t bad_digest; /* the field was malformed */
	uint8_t digest[32];
	uint8_t args_in_fd; /* args are not inline but in the memfd */
	uint8_t unread;	    /* never sent: no memory to read the args */
	struct args args;
};
void ask_clear(struct ask *);
/* Put everything; args are put inline when args_in_fd is 0. */
void ask_put(struct wbuf *, const struct ask *);
int ask_get(struct rbuf *, struct ask *);

enum ans_kind {
	ANS_JSON,  /* body is the whole answer, no descriptor */
	ANS_FILE,  /* regular file: send size bytes from its start */
	ANS_PUT,   /* pipe write end: splice the body in, then PUT_END */
	ANS_LIST,  /* pipe read end: entry frames */
	ANS_WATCH, /* pipe read end: event frames */
	ANS_BYTES, /* pipe read end: output frames are the body; body = its type
		    */
	ANS_RUN /* pipe read end: run frames; RUN_IN follows with RUN_STDIN */
};
enum ans_flag {
	ANS_STDIN = 1,	 /* RUN: a RUN_IN with the stdin pipe comes next */
	ANS_STREAM = 2,	 /* RUN: render as SSE */
	ANS_RETRY = 4,	 /* retry_after is set */
	ANS_NO_RETRY = 8 /* say x-should-retry: false */
};
struct ans {
	uint8_t kind;
	uint16_t status; /* HTTP status */
	uint16_t code;	 /* enum code; C_OK on success */
	uint16_t flags;
	uint32_t retry_after; /* seconds */
	uint64_t size;	      /* FILE: bytes; RUN: max bytes a stream */
	int64_t mtime;
	uint32_t mtime_ns;
	uint64_t dev, ino; /* FILE: for the ETag */
	char *body; /* JSON text; LIST: the caller's spelling of the path */
};
void ans_clear(struct ans *);
void ans_put(struct wbuf *, const struct ans *);
int ans_get(struct rbuf *, struct ans *);

enum fin_outcome {
	FIN_OK,
	FIN_CLIENT_GONE, /* or it takes nothing more */
	FIN_ERROR,
	FIN_CANCELLED /* by us: its principal is gone, or the service ends */
};
struct fin {
	uint64_t bytes_in, bytes_out; /* body bytes */
	uint8_t outcome;
	uint64_t us; /* from the whole head to the last byte */
};
void fin_put(struct wbuf *, const struct fin *);
int fin_get(struct rbuf *, struct fin *);

/* Refusals that the monitor was not asked about: one that is named, or how
 * many that are not. */
struct reject {
	uint16_t code; /* enum code, not C_OK */
	uint32_t count;
	char reqid[ABX_REQID_LEN + 1]; /* of a named one, count is 1; or "" */
	char remote[64];	       /* likewise, as in struct ask */
};
#define REJECTS_NAMED 10 /* in one message */
void reject_put(struct wbuf *, const struct reject *);
int reject_get(struct rbuf *, struct reject *);

/* What the listener must know of the configuration. */
struct lconf {
	uint8_t hmac_key[32];
	uint32_t
	    *tokens; /* first 32 bits of HMAC(key, SHA-256(token)), owned */
	size_t ntokens;
	uint8_t open;	   /* open mode: no credential is fine everywhere */
	uint8_t anonymous; /* auth.anonymous */
	uint8_t anonymous_health;
	uint8_t has_auth_exec;
	uint8_t has_peers; /* unix sockets: the peer may be a principal */
	uint64_t header_timeout_ms, head_deadline_ms, idle_timeout_ms;
	uint64_t shutdown_grace_ms; /* how long the last requests may take */
	uint32_t max_pre_auth, max_connections;
	uint64_t max_header_bytes, max_request_bytes;
	uint64_t min_rate; /* bytes a second of bodies and answers, 0: any */
	struct strlist allowed_hosts, allowed_origins, trusted_proxies;
};
void lconf_clear(struct lconf *);
void lconf_put(struct wbuf *, const struct lconf *);
int lconf_get(struct rbuf *, struct lconf *);

/* ---- monitor and pathd ---- */

struct root_ok {
	uint32_t id;
	int32_t err; /* 0, or errno of opening it */
	char *path;  /* canonical spelling */
	uint64_t dev, ino;
};
void root_ok_clear(struct root_ok *);
void root_ok_put(struct wbuf *, const struct root_ok *);
int root_ok_get(struct rbuf *, struct root_ok *);

enum resolve_flag {
	RESOLVE_OPEN = 1,   /* item 0: pass it opened for reading if regular */
	RESOLVE_OPENDIR = 2 /* item 0: pass it as O_PATH if a directory */
};
struct resolve_item {
	char *path;	      /* lexically normal absolute path */
	uint8_t nofollow;     /* do not follow the last component */
	struct rootref *refs; /* owned; the roots of the asking statement */
	size_t nrefs;
};
struct resolve {
	uint8_t flags;
	struct resolve_item *v; /* owned */
	size_t n;
};
void resolve_clear(struct resolve *);
void resolve_put(struct wbuf *, const struct resolve *);
int resolve_get(struct rbuf *, struct resolve *);

enum path_flag {
	PF_CREATE_DIRS = 1, /* make missing parents */
	PF_DURABLE = 2,	    /* fsync before the commit */
	PF_NOREPLACE = 4,   /* the name must be new */
	PF_RECURSIVE = 8,
	PF_HARDLINKS = 16,  /* files with nlink > 1 are fine */
	PF_NOSYMLINKS = 32, /* symlinks: deny */
	PF_EXACT = 64,	    /* replace that very file (If-Match) or none */
	PF_CHECKSUM = 128,  /* PUT: the SHA-256 is wanted */
	PF_GZIP = 512,	    /* EXPORT, ARCHIVE, IMPORT */
	PF_NAMES = 1024,    /* SEARCH: for names, else in contents */
	PF_REGEX = 2048,    /* SEARCH: the pattern is one */
	PF_DRY = 8192,	    /* EDIT: only say what would change */
	PF_NOCASE = 4096,   /* SEARCH */
	PF_DIGEST = 256	    /* PUT: it must be this one */
};
struct put {
	struct target target;
	uint16_t flags;
	uint64_t max_bytes; /* UINT64_MAX: no limit */
	uint32_t mode;	    /* permission bits, UINT32_MAX: default */
	uint8_t digest[32]; /* PF_DIGEST */
};
void put_clear(struct put *);
void put_put(struct wbuf *, const struct put *);
int put_get(struct rbuf *, struct put *);

struct put_fin {
	uint16_t code; /* enum code */
	uint8_t created;
	uint64_t bytes;
	int64_t mtime;
	uint32_t mtime_ns;
	uint64_t dev, ino;
	uint64_t entries; /* IMPORT: that were unpacked */
	uint8_t has_digest;
	uint8_t digest[32]; /* SHA-256 of the bytes */
};
void put_fin_put(struct wbuf *, const struct put_fin *);
int put_fin_get(struct rbuf *, struct put_fin *);

struct list {
	struct target target;
	uint16_t flags;
	uint32_t max_entries;
	uint16_t depth;	      /* levels below, at least 1 */
	struct rootref *refs; /* roots that a link may lead into, owned */
	size_t nrefs;
	struct strlist deny; /* absolute patterns over canonical paths */
};
void list_clear(struct list *);
void list_put(struct wbuf *, const struct list *);
int list_get(struct rbuf *, struct list *);

/* Entries below a directory that a command must not see: rel is relative to
 * that directory and never "", ref says nothing. */
struct covers {
	struct target *v; /* owned, room for ABX_MAX_COVERS */
	size_t n;
};
void covers_clear(struct covers *);
/* Copies rel: 0, or -1 when out of memory or of room. */
int covers_add(
    struct covers *, const char *rel, uint8_t kind, uint64_t dev, uint64_t ino);
void covers_put(struct wbuf *, const struct covers *);
int covers_get(struct rbuf *, struct covers *);
/* 1 when both are the same entries, in whatever order. */
int covers_equal(const struct covers *, const struct covers *);

/* The question for those of a directory. */
struct denied {
	struct target target;
	struct strlist deny; /* absolute patterns over canonical paths */
	struct strlist skip; /* directories that are hidden already */
};
void denied_clear(struct denied *);
void denied_put(struct wbuf *, const struct denied *);
int denied_get(struct rbuf *, struct denied *);

/* MKDIR (src is the directory to make), UNLINK (src), RENAME (src, dst). */
struct mutate {
	struct target src, dst;
	uint16_t flags;
	uint32_t mode;	     /* MKDIR: permission bits, UINT32_MAX: default */
	struct strlist deny; /* checked below a directory before it goes */
};
void mutate_clear(struct mutate *);
void mutate_put(struct wbuf *, const struct mutate *);
int mutate_get(struct rbuf *, struct mutate *);

/* Work on whole trees: COPY (a source, dst), ARCHIVE (sources, dst), SEARCH,
 * EXPORT, WATCH (a source), IMPORT (dst). */
struct bulk {
	uint8_t has_dst;
	struct target dst;
	struct target *src; /* owned */
	size_t nsrc;
	struct strlist names; /* one a source: what it is called */
	char *pattern;	      /* SEARCH */
	uint16_t flags;
	uint64_t max_bytes;   /* UINT64_MAX: no limit */
	uint64_t max_entries; /* likewise */
	struct rootref *refs; /* roots that a link may lead into, owned */
	size_t nrefs;
	struct strlist deny; /* absolute patterns over canonical paths */
	uint8_t has_digest;  /* IMPORT: what must come */
	uint8_t digest[32];
};
void bulk_clear(struct bulk *);
void bulk_put(struct wbuf *, const struct bulk *);
int bulk_get(struct rbuf *, struct bulk *);

/* Replace find by replace in a file, count times exactly. */
struct edit_row {
	char *find, *replace;
	uint32_t count;
};
struct edit {
	struct target target;
	uint16_t flags;	    /* PF_HARDLINKS, PF_EXACT, PF_DRY */
	uint64_t max_bytes; /* UINT64_MAX: no limit */
	/* PF_EXACT: as it was when it was decided on */
	uint64_t size;
	int64_t mtime;
	uint32_t mtime_ns;
	struct edit_row *row; /* owned; applied one behind the other */
	size_t nrow;
};
void edit_clear(struct edit *);
void edit_put(struct wbuf *, const struct edit *);
int edit_get(struct rbuf *, struct edit *);

struct edit_fin {
	uint64_t count; /* replacements */
	uint64_t size;	/* of the file as it now is */
	int64_t mtime;
	uint32_t mtime_ns;
	uint64_t dev, ino;
	uint8_t truncated; /* the diff is */
	uint8_t *diff;	   /* owned; hunks of a unified diff, PF_DRY only */
	size_t difflen;
};
void edit_fin_clear(struct edit_fin *);
void edit_fin_put(struct wbuf *, const struct edit_fin *);
int edit_fin_get(struct rbuf *, struct edit_fin *);

/* What an archive was made of. */
struct pack_skip {
	char *path; /* as it would be called in the archive */
	uint16_t code;
};
struct pack_fin {
	uint64_t entries;
	struct pack_skip *skip; /* owned; the first ones */
	size_t nskip;
};
void pack_fin_clear(struct pack_fin *);
void pack_fin_put(struct wbuf *, const struct pack_fin *);
int pack_fin_get(struct rbuf *, struct pack_fin *);

/* About the workspaces below a root; answered by SPACE_ANS. */
enum space_verb {
	SPACE_LIST, /* which there are */
	SPACE_SIZE, /* how large those are */
	SPACE_DROP  /* remove that one */
};
struct space {
	uint8_t verb;
	uint32_t root;
	uint64_t max_entries; /* SIZE: to look at in all of them */
	struct strlist names; /* LIST: none, DROP: one */
};
void space_clear(struct space *);
void space_put(struct wbuf *, const struct space *);
int space_get(struct rbuf *, struct space *);

struct space_row {
	char name[ABX_WORKSPACE_LEN + 1];
	uint64_t bytes; /* SIZE: on disk */
	uint8_t more;	/* SIZE: at least, and nobody knows how many */
};
struct space_ans {
	uint16_t code;	     /* enum code */
	uint8_t more;	     /* LIST: there are more than fit */
	struct space_row *v; /* owned */
	size_t n;
};
void space_ans_clear(struct space_ans *);
/* 0, or -1 when out of memory or of room (ABX_MAX_WORKSPACES). */
int space_ans_add(
    struct space_ans *, const char *name, uint64_t bytes, uint8_t more);
void space_ans_put(struct wbuf *, const struct space_ans *);
int space_ans_get(struct rbuf *, struct space_ans *);

struct done {
	uint16_t code;	/* enum code */
	uint64_t count; /* entries removed */
};
void done_put(struct wbuf *, const struct done *);
int done_get(struct rbuf *, struct done *);

/* ---- monitor and execd ---- */

enum exec_layer {
	LAYER_NAMESPACES = 1,
	LAYER_SECCOMP = 2,
	LAYER_LANDLOCK = 4,
	LAYER_CGROUP = 8
};
struct exec_hello {
	uint32_t layers; /* enum exec_layer that the probe sandbox had */
	uint32_t landlock_abi;
	char text[256]; /* "" or what is missing: layer and errno */
};
void exec_hello_put(struct wbuf *, const struct exec_hello *);
int exec_hello_get(struct rbuf *, struct exec_hello *);

struct spawn_bind {
	uint8_t rw;
	char *inner; /* absolute path inside the sandbox */
};
void spawn_bind_clear(struct spawn_bind *);
void spawn_bind_put(struct wbuf *, const struct spawn_bind *);
int spawn_bind_get(struct rbuf *, struct spawn_bind *);

enum spawn_flag {
	SPAWN_STDIN = 1,     /* give a stdin pipe (ME_IN), else /dev/null */
	SPAWN_NO_FORK = 2,   /* the "strict" profile */
	SPAWN_HEAD_TAIL = 4, /* keep 40 % head and 60 % tail of output */
	SPAWN_STREAM = 8,    /* output is followed live, not captured */
	SPAWN_HOLD = 16, /* say HELD before the program starts, wait for GO */
	SPAWN_KEEP = 32	 /* a process: its output is kept for followers */
};
struct spawn {
	uint16_t flags;
	struct strlist progs; /* absolute paths to try in order */
	struct strlist argv;
	struct strlist env;  /* NAME=VALUE */
	char *cwd;	     /* inside; the inner path of a bind, or "/" */
	uint64_t timeout_ms; /* 0: none */
	uint64_t idle_ms;    /* 0: none */
	uint64_t grace_ms;
	uint64_t max_output;	       /* bytes kept of each stream */
	uint64_t cpu_s, memory, procs; /* 0: none */
	/* name of the workspace whose session sandbox it runs in, 32 hex
	 * digits; "" for a sandbox of its own */
	char session[ABX_WORKSPACE_LEN + 1];
};
void spawn_clear(struct spawn *);
/* 1 when s is the name of a workspace: 32 lower-case hex digits. */
int workspace_name_ok(const char *s);
void spawn_put(struct wbuf *, const struct spawn *);
int spawn_get(struct rbuf *, struct spawn *);

struct spawn_failed {
	uint16_t code; /* POL_EXEC_NOT_FOUND, SBX_UNAVAILABLE, ARGS_TOO_LARGE */
	int32_t err;
	char layer[64];
};
void spawn_failed_put(struct wbuf *, const struct spawn_failed *);
int spawn_failed_get(struct rbuf *, struct spawn_failed *);

enum end_flag {
	END_TIMED_OUT = 1,
	END_IDLE = 2,
	END_OOM = 4,
	END_CANCELLED = 8,
	END_LOST = 16, /* the end was not seen; status says nothing */
	END_TRUNC_OUT = 32,
	END_TRUNC_ERR = 64,
	END_MEM_CGROUP = 128,	 /* memory enforced by cgroup, else by rlimit */
	END_EMPTY = 256,	 /* the tree was seen to be empty */
	END_MORE_APPEARED = 512, /* more protected names than fit */
	END_PARTIAL = 1024 /* not all repositories below were looked for */
};
/* The end of a run: ME_END, and the payload of the exit frame. */
struct run_end {
	int32_t status; /* as of wait(2) */
	uint32_t flags;
	uint64_t us; /* wall time */
	uint64_t utime_us, stime_us;
	uint64_t maxrss_kb;
	uint64_t dropped_out, dropped_err; /* bytes read and not kept */
	uint32_t layers;		   /* enum exec_layer */
	/* protected names that appeared during the run: paths inside the
	 * sandbox, each with its NUL, and the bytes of all */
	char appeared[1024];
	size_t nappeared;
};
void run_end_put(struct wbuf *, const struct run_end *);
int run_end_get(struct rbuf *, struct run_end *);

/* ---- parent and children ---- */

/* Head of PC_CONF for every child; the program's own part follows. */
struct proc_conf {
	uint8_t root; /* the service was started as root */
	uint8_t debug;
	uint32_t uid, gid; /* to run as */
	uint32_t generation;
	int32_t ppid; /* the parent's pid, 0 in a pid namespace of its own */
};
void proc_conf_put(struct wbuf *, const struct proc_conf *);
int proc_conf_get(struct rbuf *, struct proc_conf *);

struct boot_listen {
	uint8_t is_unix;
	char *addr; /* numeric address, or path */
	uint16_t port;
	uint32_t mode; /* unix */
	char *group;   /* unix; "" for none */
};
struct boot_path {
	uint32_t id; /* root id; 0 for exec paths */
	char *path;
	uint8_t rw;
};
#define BOOT_NAMES_MAX 256 /* names of sandbox.protect */
/* What the parent must know of the configuration. */
struct boot {
	char *users[3]; /* listener, monitor, run */
	struct boot_listen *listen;
	size_t nlisten;
	char *state_dir;
	char *workspace_root;
	struct strlist audit;	 /* "stderr", "file:PATH" */
	struct boot_path *roots; /* for pathd */
	size_t nroots;
	struct boot_path *binds; /* for execd's mount namespace */
	size_t nbinds;
	struct strlist protect; /* directories no command may see */
	/* entries of writable directories that commands see read-only */
	struct strlist protect_names;
	uint32_t umask;	   /* of files that pathd makes */
	uint64_t tmp_size; /* bytes */
	uint32_t require;  /* enum exec_layer */
	/* of each command, and of all together; 0: none */
	uint32_t cpu_percent;
	uint64_t total_memory; /* bytes */
	uint32_t total_pids, total_cpu;
	uint8_t protect_absent;
	uint8_t exec_used; /* some rule can run a command */
	uint64_t shutdown_grace_ms;
	uint32_t restart_limit;
	uint8_t reload; /* SIGHUP and abxctl reload are allowed */
	char *control_path, *control_group; /* "" for none */
	/* what a later load may know of the environment at start:
	 * "E:NAME=VALUE", and "D:NAME=hex" for the digest of a secret */
	struct strlist start_env;
	char revision[65];
};
void boot_clear(struct boot *);
void boot_put(struct wbuf *, const struct boot *);
int boot_get(struct rbuf *, struct boot *);
void boot_path_put(struct wbuf *, const struct boot_path *);
int boot_path_get(struct rbuf *, struct boot_path *);

#endif
