#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A file system of another user whose server stops to answer.

stalling_fs.py FILE FOLDER REQUEST SINCE COMMAND...

Run by root in a mount namespace of its own.  FILE is the only file of a FUSE
file system on FOLDER, whose server is a process of user 65534 (nobody).  From
the moment on at which the file SINCE is there, REQUEST ("getattr", "open",
"read" or "flush") gets no answer.  The exit status is that of COMMAND; then the
server is killed, which answers all requests.
"""
import ctypes
import os
import signal
import stat
import struct
import subprocess
import sys

NOBODY = 65534
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS = 1, 2, 3, 14, 15, 17
RELEASE, FLUSH, INIT, OPENDIR, RELEASEDIR, ACCESS = 18, 25, 26, 27, 29, 34
INTERRUPT, BATCH_FORGET = 36, 42
NAMES = {"getattr": GETATTR, "open": OPEN, "read": READ, "flush": FLUSH}
ROOT, FILE = 1, 2
ENOENT, ENOSYS = 2, 38
REQUEST = struct.Struct("<IIQQIIII")	# of linux/fuse.h, as all below


def attributes(node, size):
    mode, links = ((stat.S_IFDIR | 0o755, 2) if node == ROOT else
                   (stat.S_IFREG | 0o755, 1))
    return struct.pack("<6Q3I7I", node, size, (size + 511) // 512, 1, 1, 1,
                       0, 0, 0, mode, links, NOBODY, NOBODY, 0, 4096, 0)


def answer(kind, node, body, content):
    """The bytes of a reply, or an errno."""
    size = 0 if node == ROOT else len(content)
    if kind == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 8, 8, 1 << 16, 1, 16,
                           0, *[0] * 8)
    if kind == LOOKUP:
        if body.rstrip(b"\0") != b"file":
            return ENOENT
        return (struct.pack("<4Q2I", FILE, 0, 0, 0, 0, 0) +
                attributes(FILE, len(content)))
    if kind == GETATTR:
        return struct.pack("<Q2I", 0, 0, 0) + attributes(node, size)
    if kind in (OPEN, OPENDIR):
        return struct.pack("<Q2I", 0, 0, 0)
    if kind == READ:
        _, at, n = struct.unpack_from("<QQI", body)
        return content[at:at + n]
    if kind == STATFS:
        return bytes(80)
    return b"" if kind in (RELEASE, FLUSH, RELEASEDIR, ACCESS) else ENOSYS


def serve(fd, content, stalled, since):
    while True:
        try:
            request = os.read(fd, 1 << 18)
        except InterruptedError:
            continue
        _, kind, serial, node, *_ = REQUEST.unpack_from(request)
        if kind in (FORGET, BATCH_FORGET, INTERRUPT) or (
                kind == stalled and node == FILE and os.path.exists(since)):
            continue
        reply = answer(kind, node, request[REQUEST.size:], content)
        code, reply = (-reply, b"") if isinstance(reply, int) else (0, reply)
        try:
            os.write(fd, struct.pack("<IiQ", 16 + len(reply), code, serial) +
                     reply)
        except FileNotFoundError:
            pass		# it was interrupted meanwhile


def main(path, folder, request, since, *command):
    with open(path, "rb") as file:
        content = file.read()
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = (f"fd={fd},rootmode=40000,user_id={NOBODY},group_id={NOBODY},"
               "allow_other")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"stalling", os.fsencode(folder), b"fuse", 0,
                  options.encode()):
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    server = os.fork()
    if server == 0:
        signal.alarm(120)
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        os.closerange(0, 3)
        serve(fd, content, NAMES[request], since)
    os.close(fd)
    status = subprocess.call(command)
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
