# SPDX-License-Identifier: MIT
"""Batches as rows: made from a seed, as files, as blocks, and added up.

An encoder and a decoder of their own (doc/formats/batch.md), so that they are
an oracle for Seam's and for the engine's.
"""
import collections
import json
import random
import struct
import subprocess

TABLES = {
    "frames": [("agent", "UInt64"), ("frame_id", "UInt64"), ("layer", "UInt8"),
               ("is_named", "UInt8"), ("is_inlined", "UInt8"),
               ("func", "String"), ("file", "String"), ("line", "UInt32"),
               ("module", "String"), ("build_id", "String"),
               ("offset", "UInt64")],
    "stacks": [("agent", "UInt64"), ("seen", "Date"), ("stack_id", "UInt64"),
               ("frames", "Array(UInt64)")],
    "samples": [("day", "Date"), ("service", "String"), ("event", "String"),
                ("ts_ns", "UInt64"), ("host", "String"),
                ("labels", "Array(String)"), ("recording", "String"),
                ("agent", "UInt64"), ("seq", "UInt64"), ("kind", "UInt8"),
                ("unit", "UInt8"), ("pid", "Int32"), ("tid", "Int32"),
                ("process", "String"), ("thread", "String"),
                ("stack_id", "UInt64"), ("count", "UInt64"),
                ("value", "UInt64")],
    "calls": [("day", "Date"), ("service", "String"), ("ts_ns", "UInt64"),
              ("host", "String"), ("labels", "Array(String)"),
              ("recording", "String"), ("agent", "UInt64"), ("seq", "UInt64"),
              ("pid", "Int32"), ("process", "String"), ("frame_id", "UInt64"),
              ("count", "UInt64"), ("min_ns", "UInt64"), ("max_ns", "UInt64"),
              ("sum_ns", "UInt64"), ("total_ns", "UInt64"),
              ("self_ns", "UInt64"), ("buckets", "Array(UInt16)"),
              ("counts", "Array(UInt64)")],
    "losses": [("day", "Date"), ("service", "String"), ("ts_ns", "UInt64"),
               ("host", "String"), ("labels", "Array(String)"),
               ("recording", "String"), ("agent", "UInt64"), ("seq", "UInt64"),
               ("cause", "String"), ("source", "String"),
               ("records", "UInt64"), ("bytes", "UInt64")],
    "batches": [("day", "Date"), ("agent", "UInt64"), ("seq", "UInt64"),
                ("service", "String"), ("host", "String"),
                ("labels", "Array(String)"), ("recording", "String"),
                ("from_ns", "UInt64"), ("to_ns", "UInt64"),
                ("n_frames", "UInt64"), ("n_stacks", "UInt64"),
                ("n_samples", "UInt64"), ("n_calls", "UInt64"),
                ("n_losses", "UInt64")],
}
NUMBERS = {"UInt8": "B", "UInt16": "H", "UInt32": "I", "UInt64": "Q",
           "Int32": "i", "Date": "H"}
SECOND = 10 ** 9
DAY_NS = 86400 * SECOND
WINDOW = 10 * SECOND


# -- blocks -------------------------------------------------------------------

def _leb(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _text(text):
    data = text.encode("utf-8", "surrogateescape")
    return _leb(len(data)) + data


def _values(kind, values):
    if kind.startswith("Array("):
        ends, flat = [], []
        for value in values:
            flat += value
            ends.append(len(flat))
        return struct.pack(f"<{len(ends)}Q", *ends) + _values(kind[6:-1], flat)
    if kind == "String":
        return b"".join(map(_text, values))
    return struct.pack(f"<{len(values)}{NUMBERS[kind]}", *values)


def block(table, rows):
    """Rows, which are dicts, as a block of format Native."""
    columns = TABLES[table]
    out = _leb(len(columns)) + _leb(len(rows))
    for name, kind in columns:
        out += _text(name) + _text(kind) + _values(
            kind, [row[name] for row in rows])
    return out


class _Reader:
    def __init__(self, data):
        self.data, self.pos = data, 0

    def take(self, size):
        self.pos += size
        if self.pos > len(self.data):
            raise ValueError("cut")
        return self.data[self.pos - size:self.pos]

    def leb(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def text(self):
        return self.take(self.leb()).decode("utf-8", "surrogateescape")

    def values(self, kind, count):
        if kind.startswith("Array("):
            ends = self.values("UInt64", count)
            flat = self.values(kind[6:-1], ends[-1] if ends else 0)
            return [flat[a:b] for a, b in zip([0] + ends, ends)]
        if kind == "String":
            return [self.text() for _ in range(count)]
        letter = NUMBERS[kind]
        return list(struct.unpack(
            f"<{count}{letter}",
            self.take(count * struct.calcsize("<" + letter))))

    def rows(self):
        """All rows of all blocks."""
        rows = []
        while self.pos < len(self.data):
            n_columns, n_rows = self.leb(), self.leb()
            columns = {}
            for _ in range(n_columns):
                name, kind = self.text(), self.text()
                columns[name] = self.values(kind, n_rows)
            rows += [dict(zip(columns, row))
                     for row in zip(*columns.values())]
        return rows


# -- files --------------------------------------------------------------------

def _pack(data):
    return subprocess.run(
        ["zstd", "-q", "-c", "--check", f"--stream-size={len(data)}"],
        input=data, stdout=subprocess.PIPE, check=True).stdout


def write_file(path, batch):
    """@batch, which has rows by table and its head, as a file."""
    head = batch["head"] | {"rows": {name: len(batch[name])
                                     for name in TABLES}}
    body = b"".join(f"{name} {len(data)}\n".encode() + data
                    for name, data in ((name, block(name, batch[name]))
                                       for name in TABLES))
    with open(path, "wb") as out:
        out.write(_pack(b"seam-batch 1\n" + json.dumps(head).encode() + b"\n"))
        out.write(_pack(body))
    return path


def read_file(data):
    """Rows by table of a batch file's bytes."""
    plain = subprocess.run(["zstd", "-q", "-d", "-c"], input=data,
                           stdout=subprocess.PIPE, check=True).stdout
    rest = plain.split(b"\n", 2)[2].lstrip(b"\n")
    tables = {}
    while rest:
        line, rest = rest.split(b"\n", 1)
        name, size = line.decode().split()
        tables[name] = _Reader(rest[:int(size)]).rows()
        rest = rest[int(size):]
    return tables


# -- rows from a seed ---------------------------------------------------------

def make(agent, seq, start_ns, service, host, labels=(), n_samples=200,
         n_stacks=30, hostile=False):
    """A batch whose rows depend on its arguments alone."""
    chance = random.Random(f"{agent} {seq}")
    names = [f"{service}_fn_{i}" for i in range(40)]
    if hostile:
        names[:6] = ["a'b\\c", "tab\tnew\nline", "\x1b[31mred", "--seam-x--",
                     "\r\n--b--\r\n", "SELECT ' OR 1=1 --"]
    frames = [{"agent": agent, "frame_id": hash_of(f"f {service} {i} {name}"),
               "layer": 1 + i % 4, "is_named": 1, "is_inlined": i % 7 == 0,
               "func": name, "file": f"/src/{i % 5}.c", "line": i,
               "module": f"/usr/lib/lib{i % 3}.so", "build_id": "00ff" * 10,
               "offset": i * 16} for i, name in enumerate(names)]
    day = start_ns // DAY_NS
    stacks = []
    for i in range(n_stacks):
        own = random.Random(f"stack {service} {i}")
        ids = [own.choice(frames)["frame_id"] for _ in range(5 + i % 9)]
        stacks.append({"agent": agent, "seen": day,
                       "stack_id": hash_of(f"s {ids}"),
                       "frames": ids})
    origin = {"day": day, "service": service, "host": host,
              "labels": sorted(labels), "recording": "", "agent": agent,
              "seq": seq}
    windows = [start_ns + i * WINDOW for i in range(3)]
    samples = []
    for _ in range(n_samples):
        thread = chance.randrange(4)
        off_cpu = chance.random() < 0.2
        count = 1 + chance.randrange(5)
        samples.append(origin | {
            "event": "off-cpu" if off_cpu else "cpu-clock",
            "kind": 2 if off_cpu else 0, "unit": 1,
            "ts_ns": chance.choice(windows), "pid": 1000 + agent % 100,
            "tid": 2000 + thread, "process": f"{service}d",
            "thread": f"worker-{thread}",
            "stack_id": chance.choice(stacks)["stack_id"], "count": count,
            "value": count * (1000 + chance.randrange(10 ** 7))})
    calls = []
    for frame in frames[:10]:
        buckets = sorted(chance.sample(range(300), 4))
        calls.append(origin | {
            "ts_ns": windows[0], "pid": 1000 + agent % 100,
            "process": f"{service}d", "frame_id": frame["frame_id"],
            "count": 10, "min_ns": chance.randrange(1, 99),
            "max_ns": chance.randrange(100, 9999), "sum_ns": 5000,
            "total_ns": 5000, "self_ns": 100, "buckets": buckets,
            "counts": [1, 2, 3, 4]})
    losses = [origin | {"ts_ns": windows[0], "cause": "ring full",
                        "source": f"cpu {i}", "records": 1 + seq, "bytes": 0}
              for i in range(2)]
    end_ns = windows[-1] + WINDOW
    batches = [origin | {"from_ns": start_ns, "to_ns": end_ns,
                         "n_frames": len(frames), "n_stacks": len(stacks),
                         "n_samples": len(samples), "n_calls": len(calls),
                         "n_losses": len(losses)}]
    head = {"agent": f"{agent:016x}", "seq": seq, "from_ns": start_ns,
            "to_ns": end_ns, "service": service, "host": host,
            "recording": "", "labels": sorted(labels)}
    return {"head": head, "frames": frames, "stacks": stacks,
            "samples": samples, "calls": calls, "losses": losses,
            "batches": batches}


def hash_of(text):
    return random.Random(text).getrandbits(64)


# -- queries ------------------------------------------------------------------

def stack_sums(batches, matches=lambda row: True, names=()):
    """{(event, names of frames, @names of the row): (count, value)}"""
    functions, stacks = {}, {}
    for batch in batches:
        functions |= {row["frame_id"]: row["func"] for row in batch["frames"]}
        stacks |= {row["stack_id"]: row["frames"] for row in batch["stacks"]}
    sums = collections.defaultdict(lambda: (0, 0))
    for batch in batches:
        for row in filter(matches, batch["samples"]):
            stack = tuple(functions[i] for i in stacks[row["stack_id"]])
            key = (row["event"], stack) + tuple(row[name] for name in names)
            count, value = sums[key]
            sums[key] = count + row["count"], value + row["value"]
    return dict(sums)
