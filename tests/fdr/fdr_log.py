# SPDX-License-Identifier: MIT
"""FDR logs of version 5, read without Seam: the oracle of its tests."""
import collections
import glob
import json
import os
import struct
import subprocess
import time

ENTRY, EXIT, TAIL, ENTRY_ARGS = range(4)
(NEW_BUFFER, END, CPU, WRAP, WALL, CUSTOM, ARGUMENT, EXTENTS, TYPED,
 PID) = range(10)

# argument: the first, or None
Call = collections.namedtuple("Call", "kind function tsc argument")
Thread = collections.namedtuple("Thread", "pid tid calls")


class Log:
    """threads: by tid, all calls in order of the blocks' wall times.

    events: (custom or typed, type, payload) in the order of the file.
    """

    def __init__(self, path):
        with open(path, "rb") as log:
            self.bytes = log.read()
        version, kind, self.flags, self.hz = struct.unpack_from("<HHIQ",
                                                                self.bytes)
        if (version, kind) != (5, 1):
            raise AssertionError(f"version {version}, type {kind}")
        self.threads = {}
        self.n_blocks = collections.Counter()
        self.blocks = []
        self.events = []
        at = 32
        while at < len(self.bytes):
            at = self.read_block(at)
        for _, thread, calls in sorted(self.blocks, key=lambda b: b[0]):
            thread.calls.extend(calls)

    def metadata(self, at, wanted=None):
        kind = self.bytes[at] >> 1
        if self.bytes[at] & 1 == 0 or wanted not in (None, kind):
            raise AssertionError(f"byte {at}: not metadata {wanted}")
        return kind

    def read_block(self, at):
        self.metadata(at, EXTENTS)
        end = at + 16 + struct.unpack_from("<Q", self.bytes, at + 1)[0]
        self.metadata(at + 16, NEW_BUFFER)
        tid = struct.unpack_from("<i", self.bytes, at + 17)[0]
        self.metadata(at + 32, WALL)
        wall = struct.unpack_from("<qi", self.bytes, at + 33)
        self.metadata(at + 48, PID)
        pid = struct.unpack_from("<i", self.bytes, at + 49)[0]
        thread = self.threads.setdefault(tid, Thread(pid, tid, []))
        self.n_blocks[tid] += 1
        if at + 64 < end:       # compiler-rt writes buffers without records
            calls = []
            self.read_records(calls, at + 64, end)
            self.blocks.append((wall, thread, calls))
        return end

    def read_records(self, calls, at, end):
        self.metadata(at, CPU)
        tsc, bytes_ = 0, self.bytes
        while at < end:
            if bytes_[at] & 1 == 0:
                word, delta = struct.unpack_from("<II", bytes_, at)
                tsc += delta
                calls.append(Call(word >> 1 & 7, word >> 4, tsc, None))
                at += 8
                continue
            kind = self.metadata(at)
            if kind == CPU:
                tsc = struct.unpack_from("<Q", bytes_, at + 3)[0]
            elif kind == WRAP:
                tsc = struct.unpack_from("<Q", bytes_, at + 1)[0]
            elif kind == ARGUMENT:
                if calls[-1].argument is None:
                    value = struct.unpack_from("<Q", bytes_, at + 1)[0]
                    calls[-1] = calls[-1]._replace(argument=value)
            elif kind in (CUSTOM, TYPED):
                size, delta = struct.unpack_from("<ii", bytes_, at + 1)
                tsc += delta
                kind_type = (struct.unpack_from("<H", bytes_, at + 9)[0]
                             if kind == TYPED else 0)
                self.events.append((kind, kind_type,
                                    bytes_[at + 16:at + 16 + size]))
                at += size
            else:
                raise AssertionError(f"byte {at}: metadata {kind} in a block")
            at += 16
        if at != end:
            raise AssertionError(f"a record goes over the block's end {end}")


def symbols(path):
    """{address: name} of the functions of a binary, by nm."""
    found = {}
    shown = subprocess.run(["nm", "-C", "--defined-only", path],
                           capture_output=True, text=True, check=False)
    for line in shown.stdout.splitlines():
        address, kind, name = line.split(" ", 2)
        if kind in "tTwW":
            found.setdefault(int(address, 16), name)
    return found


def names(path):
    """{id: name} of an instrumentation map as YAML, each sled on a line.

    Those that the map has not are of the binary that it names.
    """
    found, binaries = {}, []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# image "):
                first, binary = line[8:].split(" ", 1)
                binary = json.loads(binary[:binary.rindex('"') + 1])
                binaries.append((int(first), symbols(binary)))
            if not line.startswith("- {"):
                continue
            fields = dict(field.strip(" {}\n-").split(": ", 1)
                          for field in line.split(", ") if ": " in field)
            number = int(fields["id"])
            name = fields.get("function-name", "").strip("'\"")
            for first, of_binary in binaries:
                if not name and first <= number:
                    found[number] = of_binary.get(int(fields["address"], 16),
                                                  "")
            if name or number not in found:
                found[number] = name
    return found


def logs(bundle):
    """{name: (Log, {id: name})} of its logs, in order."""
    found = {}
    for path in sorted(glob.glob(f"{bundle}/xray/*.xray")):
        yaml = path[:-4] + "yaml"
        found[os.path.basename(path)[:-5]] = (
            Log(path), names(yaml) if os.path.exists(yaml) else {})
    return found


def entries(bundle):
    """Entries of each function, by (log, id)."""
    return collections.Counter(
        (name, call.function) for name, (log, _) in logs(bundle).items()
        for thread in log.threads.values() for call in thread.calls
        if call.kind in (ENTRY, ENTRY_ARGS))


def manifest(bundle):
    with open(f"{bundle}/meta.json", encoding="utf-8") as meta:
        return json.load(meta)


def wait_until_complete(bundle):
    """By its recorder, which may go on after the program."""
    for _ in range(500):
        if manifest(bundle)["complete"]:
            return
        time.sleep(0.02)
    raise AssertionError("the bundle is not complete after 10 s")


def program_of(recorder, program):
    """The process of a running recorder that is @program."""
    def is_program(pid):
        try:
            return os.path.samefile(f"/proc/{pid}/exe", program)
        # the recorder's own, without rights; those that have ended
        except (PermissionError, FileNotFoundError, ProcessLookupError):
            return False

    with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children",
              encoding="ascii") as children:
        return next(int(pid) for pid in children.read().split()
                    if is_program(pid))
