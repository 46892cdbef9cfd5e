/*
 * SPDX-License-Identifier: ISC
 *
 * Well-formed questions and facts, and descriptors of every kind, for the
 * laboratory.  See lab.h.
 */
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/ops.h"
#include "regress/privsep/lab.h"

/* ---- questions ---- */

static void
add_arg(struct args *as, const char *name, const char *value)
{
	struct arg *a;

	/* a name with a star is a list of one word */
	if (name[0] == '*') {
		if ((a = args_add(as, name + 1, A_LIST)) == NULL ||
		    arg_push(a, value, NULL) == -1)
			die("args");
		return;
	}
	if ((a = args_add(as, name, A_STR)) == NULL ||
	    arg_set_str(a, value, strlen(value)) == -1)
		die("args");
}

void
lab_ask_put(struct wbuf *w, uint16_t op, const char *const *args)
{
	struct ask a = {0};

	strlcpy(a.reqid, "r-AAAAAAAAAAAAAAAAAAAAAA", sizeof(a.reqid));
	a.op = op;
	if (op != OP_NONE)
		strlcpy(a.opname, ops[op].id, sizeof(a.opname));
	a.has_cred = 1;
	strlcpy(a.token, TOKEN_A, sizeof(a.token));
	strlcpy(a.remote, "127.0.0.1", sizeof(a.remote));
	if (op != OP_NONE && ops[op].stream == S_PUT) {
		a.body = ASK_BODY_STREAM;
		a.length = 5;
	}
	for (; *args != NULL; args += 2)
		add_arg(&a.args, args[0], args[1]);
	wbuf_init(w, IMSG_MAX_PAYLOAD);
	ask_put(w, &a);
	ask_clear(&a);
}

uint64_t
lab_ask(struct lab *l, uint16_t op, ...)
{
	const char *args[16] = {NULL};
	struct wbuf w;
	size_t n = 0;
	va_list ap;

	va_start(ap, op);
	while (n < nitems(args) - 1 &&
	       (args[n] = va_arg(ap, const char *)) != NULL)
		n++;
	va_end(ap);
	lab_ask_put(&w, op, args);
	lab_send(l, PROC_LISTENER, LM_ASK, ++l->lid, -1, &w);
	return l->lid;
}

/* ---- facts ---- */

void
lab_fact(const struct lab *l, const struct resolve_item *it,
    enum facts_kind kind, struct facts *f)
{
	size_t i;

	memset(f, 0, sizeof(*f));
	f->status = FS_OK;
	f->path = strdup(it->path);
	for (i = 0; i < it->nrefs; i++)
		if (it->refs[i].root == l->root_w)
			f->ref = (uint8_t)i;
	f->rel = (uint16_t)strlen(stage_path(&l->st, "w"));
	f->kind = (uint8_t)kind;
	f->missing = kind == FK_MISSING;
	if (kind != FK_MISSING) {
		f->mode = 0644;
		f->nlink = 1;
		f->size = 5;
		f->dev = 1;
		f->ino = 7;
	}
}

uint64_t
lab_facts(struct lab *l, enum facts_kind kind, int fd)
{
	struct imsg *m = lab_next(l, PROC_PATHD, MP_RESOLVE);
	struct resolve v;
	struct facts f;
	struct rbuf r;
	struct wbuf w;
	uint64_t id = m->id;
	size_t i;

	rbuf_init(&r, m->payload, m->len);
	if (resolve_get(&r, &v) == -1)
		die("RESOLVE");
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	wput_u32(&w, (uint32_t)v.n);
	for (i = 0; i < v.n; i++) {
		lab_fact(l, &v.v[i], kind, &f);
		facts_put(&w, &f);
		facts_clear(&f);
	}
	resolve_clear(&v);
	lab_send(l, PROC_PATHD, MP_FACTS, id, fd, &w);
	return id;
}

/* ---- descriptors ---- */

const char *const odd_names[ODD_COUNT] = {
    [ODD_FILE_R] = "a file opened for reading",
    [ODD_FILE_W] = "a file opened for writing",
    [ODD_FILE_RW] = "a file opened for both",
    [ODD_DIR] = "a directory",
    [ODD_PATH] = "a path",
    [ODD_SOCKET] = "a packet socket",
    [ODD_STREAM] = "a stream socket without a name",
    [ODD_LISTENING] = "a listening socket",
    [ODD_PIPE_R] = "the read end of a pipe",
    [ODD_PIPE_W] = "the write end of a pipe",
    [ODD_FIFO_RW] = "a fifo opened for both",
    [ODD_NULL] = "a device",
    [ODD_EVENT] = "an eventfd",
    [ODD_MEMFD] = "a sealed memfd",
    [ODD_UNSEALED] = "a memfd without seals",
    [ODD_GROWABLE] = "a memfd that may grow",
    [ODD_SHRINKABLE] = "a memfd that may shrink",
    [ODD_WRITABLE] = "a memfd that may be written",
    [ODD_SEALABLE] = "a memfd that may be sealed",
};

static int
memory(const void *text, size_t n, int seals)
{
	int fd = memfd_create("evil", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd == -1 || write(fd, text, n) != (ssize_t)n ||
	    (seals != 0 && fcntl(fd, F_ADD_SEALS, seals) == -1))
		die("memfd");
	return fd;
}

static int
file(const struct lab *l, const void *text, size_t n, int flags)
{
	const char *path = stage_path(&l->st, "w/odd");
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd == -1 || write(fd, text, n) != (ssize_t)n)
		die("%s", path);
	close(fd);
	return open(path, flags | O_CLOEXEC);
}

static int
one_of(int sv[2], int keep)
{
	close(sv[!keep]);
	return sv[keep];
}

static int
sock(const struct lab *l, enum odd_fd kind)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int sv[2], fd;

	if (kind != ODD_LISTENING) {
		if (socketpair(AF_UNIX,
			(kind == ODD_SOCKET ? SOCK_SEQPACKET : SOCK_STREAM) |
			    SOCK_CLOEXEC,
			0, sv) == -1)
			die("socketpair");
		return one_of(sv, 0);
	}
	strlcpy(sa.sun_path, stage_path(&l->st, "door"), sizeof(sa.sun_path));
	(void)unlink(sa.sun_path);
	if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) == -1 ||
	    bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == -1 ||
	    listen(fd, 1) == -1)
		die("%s", sa.sun_path);
	return fd;
}

static int
fifo(const struct lab *l)
{
	const char *path = stage_path(&l->st, "w/fifo");

	if (mkfifo(path, 0600) == -1 && errno != EEXIST)
		die("%s", path);
	return open(path, O_RDWR | O_CLOEXEC);
}

int
odd_fd(const struct lab *l, enum odd_fd kind, const void *text, size_t n)
{
	enum {
		S = F_SEAL_SHRINK,
		G = F_SEAL_GROW,
		W = F_SEAL_WRITE,
		E = F_SEAL_SEAL
	};
	int fd = -1, p[2];

	switch (kind) {
	case ODD_FILE_R:
		fd = file(l, text, n, O_RDONLY);
		break;
	case ODD_FILE_W:
		fd = file(l, text, n, O_WRONLY);
		break;
	case ODD_FILE_RW:
		fd = file(l, text, n, O_RDWR);
		break;
	case ODD_PATH:
		fd = file(l, text, n, O_PATH);
		break;
	case ODD_DIR:
		fd = open(stage_path(&l->st, "w"),
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		break;
	case ODD_SOCKET:
	case ODD_STREAM:
	case ODD_LISTENING:
		fd = sock(l, kind);
		break;
	case ODD_PIPE_R:
	case ODD_PIPE_W:
		if (pipe2(p, O_CLOEXEC) == -1)
			die("pipe");
		fd = one_of(p, kind == ODD_PIPE_W);
		break;
	case ODD_FIFO_RW:
		fd = fifo(l);
		break;
	case ODD_NULL:
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		break;
	case ODD_EVENT:
		fd = eventfd(0, EFD_CLOEXEC);
		break;
	case ODD_MEMFD:
		fd = memory(text, n, S | G | W | E);
		break;
	case ODD_UNSEALED:
		fd = memory(text, n, 0);
		break;
	case ODD_GROWABLE:
		fd = memory(text, n, S | W | E);
		break;
	case ODD_SHRINKABLE:
		fd = memory(text, n, G | W | E);
		break;
	case ODD_WRITABLE:
		fd = memory(text, n, S | G | E);
		break;
	case ODD_SEALABLE:
		fd = memory(text, n, S | G | W);
		break;
	case ODD_COUNT:
		break;
	}
	if (fd == -1)
		die("%s", odd_names[kind]);
	return fd;
}
