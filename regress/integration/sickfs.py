# SPDX-License-Identifier: ISC
"""A file system that fails: FUSE spoken by hand, kept in memory.

    sickfs.py DIRECTORY UID PROGRAM [ARGUMENT ...]

mounts it in the mount namespace that it was started in, and becomes PROGRAM;
it ends with it.  What a name begins with says what ails the file:

    bad     reading gives EIO
    half    reading gives EIO behind the first 128 KiB
    full    writing gives EIO
    sync    fsync gives EIO
    hang    looking at it never ends, but for who is killed
"""
import ctypes
import errno
import os
import select
import stat
import struct
import sys

LOOKUP, FORGET, GETATTR, SETATTR, READLINK = 1, 2, 3, 4, 5
MKDIR, UNLINK, RMDIR, RENAME, LINK, OPEN, READ, WRITE, STATFS = range(9, 18)
RELEASE, FSYNC, FLUSH, INIT, OPENDIR, READDIR = 18, 20, 25, 26, 27, 28
RELEASEDIR, CREATE, INTERRUPT, DESTROY, BATCH_FORGET = 29, 35, 36, 38, 42
RENAME2 = 45
HALF = 128 * 1024


class Node:
    def __init__(self, mode, name="", data=b""):
        self.mode, self.name, self.data = mode, name, bytearray(data)
        self.kids, self.nlink, self.mtime = {}, 1, 1_700_000_000

    @property
    def isdir(self):
        return stat.S_ISDIR(self.mode)


class Sick:
    def __init__(self, fd, uid):
        self.fd, self.uid = fd, uid
        self.nodes, self.ids = {}, {}
        root = self.add(Node(stat.S_IFDIR | 0o755))
        assert root == 1
        stuck = Node(stat.S_IFDIR | 0o755, "stuck")
        self.link(self.nodes[1], "stuck", stuck)
        self.link(stuck, "hang", Node(stat.S_IFREG | 0o644, "hang"))
        for name, size in (("good", 100), ("bad", 100), ("half", 3 * HALF),
                           ("full", 10), ("sync", 10)):
            self.link(self.nodes[1], name, Node(
                stat.S_IFREG | 0o644, name, b"x" * size))

    def add(self, node):
        if node not in self.ids:
            self.ids[node] = len(self.ids) + 1
            self.nodes[self.ids[node]] = node
        return self.ids[node]

    def link(self, parent, name, node):
        parent.kids[name] = node
        self.add(node)

    def attr(self, n):
        size = 0 if n.isdir else len(n.data)
        return struct.pack(
            "<6Q10I", self.ids[n], size, (size + 511) // 512, n.mtime,
            n.mtime, n.mtime, 0, 0, 0, n.mode, n.nlink, self.uid, self.uid, 0,
            4096, 0)

    def entry(self, n):
        return struct.pack("<4Q2I", self.add(n), 0, 0, 0, 0, 0) + self.attr(n)

    def child(self, n, name):
        if name not in n.kids:
            raise OSError(errno.ENOENT, name)
        return n.kids[name]

    def answer(self, op, n, body):
        """The answer's bytes; None: there is none."""
        names = body.split(b"\0")
        if op == INIT:
            return struct.pack("<4I2H2I2H8I", 7, 31, 65536, 0, 16, 12, 65536,
                               1, 0, 0, *[0] * 8)
        if op in (FORGET, BATCH_FORGET):
            return None
        if op == INTERRUPT:
            self.reply(struct.unpack_from("<Q", body)[0], -errno.EINTR)
            return None
        if op == LOOKUP:
            name = names[0].decode(errors="surrogateescape")
            if name.startswith("hang"):
                return None
            return self.entry(self.child(n, name))
        if op in (GETATTR, SETATTR):
            if op == SETATTR:
                valid, _, _, size = struct.unpack_from("<IIQQ", body)
                if valid & 8:
                    del n.data[size:]
                    n.data.extend(bytes(size - len(n.data)))
                if valid & 1:
                    mode = struct.unpack_from("<I", body, 68)[0]
                    n.mode = stat.S_IFMT(n.mode) | mode & 0o7777
            return struct.pack("<Q2I", 0, 0, 0) + self.attr(n)
        if op in (OPEN, OPENDIR):
            return struct.pack("<Q2I", 0, 1, 0)  # direct I/O
        if op == READ:
            _, off, size = struct.unpack_from("<QQI", body)
            if n.name.startswith("bad") or (
                    n.name.startswith("half") and off >= HALF):
                raise OSError(errno.EIO, n.name)
            if n.name.startswith("half"):
                size = min(size, HALF - off)
            return bytes(n.data[off:off + size])
        if op == READDIR:
            return self.readdir(n, *struct.unpack_from("<QQI", body))
        if op == CREATE:
            mode = struct.unpack_from("<2I", body)[1]
            name = body[16:].split(b"\0")[0].decode(errors="surrogateescape")
            # what is made in place of a file ails like it
            new = Node(stat.S_IFREG | mode & 0o7777, n.name)
            self.link(n, name, new)
            return self.entry(new) + struct.pack("<Q2I", 0, 1, 0)
        if op == MKDIR:
            mode = struct.unpack_from("<2I", body)[0]
            name = body[8:].split(b"\0")[0].decode(errors="surrogateescape")
            new = Node(stat.S_IFDIR | mode & 0o7777, name)
            self.link(n, name, new)
            return self.entry(new)
        if op == WRITE:
            _, off, size = struct.unpack_from("<QQI", body)
            if n.name.startswith("full"):
                raise OSError(errno.EIO, n.name)
            data = body[40:40 + size]
            n.data.extend(bytes(max(0, off + size - len(n.data))))
            n.data[off:off + size] = data
            return struct.pack("<2I", size, 0)
        if op == FSYNC:
            if n.name.startswith("sync"):
                raise OSError(errno.EIO, n.name)
            return b""
        return self.change(op, n, body)

    def change(self, op, n, body):
        text = [t.decode(errors="surrogateescape")
                for t in body.split(b"\0")]
        if op in (UNLINK, RMDIR):
            if self.child(n, text[0]).kids:
                raise OSError(errno.ENOTEMPTY, text[0])
            del n.kids[text[0]]
            return b""
        if op in (RENAME, RENAME2):
            head = 8 if op == RENAME else 16
            to = self.nodes[struct.unpack_from("<Q", body)[0]]
            flags = struct.unpack_from("<I", body, 8)[0] if head == 16 else 0
            old, new = [t.decode(errors="surrogateescape")
                        for t in body[head:].split(b"\0")[:2]]
            if flags & ~1:
                raise OSError(errno.EINVAL, new)
            if flags & 1 and new in to.kids:
                raise OSError(errno.EEXIST, new)
            to.kids[new] = n.kids.pop(old)
            return b""
        if op == LINK:
            raise OSError(errno.EPERM, "link")
        if op == STATFS:
            return struct.pack("<5Q4I6I", 1000, 900, 900, 1000, 900, 4096,
                               255, 4096, 0, *[0] * 6)
        if op in (RELEASE, RELEASEDIR, FLUSH, DESTROY):
            return b""
        raise OSError(errno.ENOSYS, str(op))

    def readdir(self, n, _, off, size):
        out = b""
        for i, (name, kid) in enumerate(sorted(n.kids.items())):
            if i < off:
                continue
            raw = name.encode(errors="surrogateescape")
            one = struct.pack("<QQII", self.add(kid), i + 1, len(raw),
                              kid.mode >> 12) + raw
            one += bytes(-len(one) % 8)
            if len(out) + len(one) > size:
                break
            out += one
        return out

    def reply(self, unique, err, out=b""):
        try:
            os.write(self.fd, struct.pack("<IiQ", 16 + len(out), err,
                                          unique) + out)
        except OSError as e:
            if e.errno != errno.ENOENT:  # who asked is gone
                raise

    def serve(self, pid):
        """Until the process with that number ends."""
        end = os.pidfd_open(pid)
        while True:
            if end in select.select([self.fd, end], [], [])[0]:
                return
            try:
                req = os.read(self.fd, 1 << 18)
            except OSError as e:
                if e.errno in (errno.ENOENT, errno.EINTR):
                    continue
                return
            if not req:
                return
            _, op, unique, node = struct.unpack_from("<IIQQ", req)
            try:
                out, err = self.answer(op, self.nodes.get(node), req[40:]), 0
            except OSError as e:
                out, err = b"", -e.errno
            if out is not None:
                self.reply(unique, err, out)


def main():
    target, uid = sys.argv[1], int(sys.argv[2])
    fd = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    opts = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other"
    if libc.mount(b"sick", target.encode(), b"fuse", 6, opts.encode()):
        raise OSError(ctypes.get_errno(), "mount")
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        # no child of the program, which would wait for it
        if os.fork() == 0:
            os.setsid()
            Sick(fd, uid).serve(parent)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(fd)
    os.execvp(sys.argv[3], sys.argv[3:])


if __name__ == "__main__":
    main()
