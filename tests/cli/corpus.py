# SPDX-License-Identifier: MIT
"""Recordings of other tools, unpacked where they are packed.

SEAM_CORPUS names their folder: tests/corpus as the build unpacked it, or a
larger one of the same layout.
"""
import collections
import gzip
import lzma
import os
import pathlib
import re
import struct

ROOT = pathlib.Path(os.environ["SEAM_CORPUS"])
BESIDE = re.compile(r"\.(txt|gz|err|c|bin|md|buildids|pb_data)$")


def is_recording(path):
    if not path.is_file() or BESIDE.search(path.name):
        return False
    start = open_any(path)(path).read(8)
    return start in (b"PERFILE2", b"PERFFILE", b"2ELIFREP")


def open_any(path):
    return lzma.open if path.suffix == ".xz" else lambda p: open(p, "rb")


def recordings(*folders):
    """(name, path of the records.txt or None, path) of every perf.data."""
    found = []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if "pb_data" in path.name or not is_recording(path):
                continue
            base = str(path)[:-3] if path.suffix == ".xz" else str(path)
            records = pathlib.Path(base + ".records.txt")
            found.append((str(path.relative_to(ROOT)),
                          records if records.exists() else None, path))
    return found


def unpacked(path, folder):
    """A path that Seam can open: itself, or a copy in @folder."""
    if path.suffix != ".xz":
        return str(path)
    copy = os.path.join(folder, path.stem)
    with lzma.open(path) as packed, open(copy, "wb") as out:
        out.write(packed.read())
    return copy


def record_counts(records):
    """{"MMAP2": 4, ...} as perf counted them; {} where it could not."""
    counts = {}
    for line in records.read_text().splitlines():
        match = re.match(r"\s*(\d+) PERF_RECORD_(\w+)", line)
        if match:
            counts[match[2]] = int(match[1])
    return counts


def script_text(path):
    """perf script's output for a recording of the corpus, or None."""
    text = pathlib.Path(str(path) + ".script.txt.gz")
    return gzip.open(text, "rt", errors="replace").read() \
        if text.exists() else None


def walked(path):
    """Records by number of their type, by a walk that shares nothing with
    Seam's; None where a file is not plain enough for it."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"PERFILE2" or len(data) < 104:
        return None
    pos, size = struct.unpack_from("<QQ", data, 40)
    end = pos + size
    if size == 0 or end > len(data):
        return None
    counts = collections.Counter()
    while pos + 8 <= end:
        kind, misc, length = struct.unpack_from("<IHH", data, pos)
        if kind >= 0x8000:          # simpleperf: a size of 32 bits
            length |= misc << 16
        if kind in (81, 83) or length < 8 or pos + length > end:
            return None
        counts[kind] += 1
        if kind == 66 and length <= 16:     # formats behind the record
            length += (struct.unpack_from("<I", data, pos + 8)[0] + 7) & ~7
        if kind == 71:                      # a trace behind it
            length += struct.unpack_from("<Q", data, pos + 8)[0]
        pos += length
    return counts


def script_threads(path):
    """{(pid, tid): samples} of perf script's output, or None."""
    text = script_text(path)
    return collections.Counter(
        (int(m[1]), int(m[2])) for m in re.finditer(
            r"^\s*\S.*?\s(-?\d+)/(-?\d+)\s+(?:\[\d+\]\s+)?[\d.]+:\s+"
            r"(?!PERF_RECORD)", text, re.M)) if text else None


ID_BITS = 1 << 1, 1 << 2, 1 << 6, 1 << 9, 1 << 7, 1 << 16


def with_losses(path, copy):
    """Write @copy: @path with a LOST record before each sample, of 2 records
    each and with the trailer of a thread that was named; False where there
    is none.  For files of one event in file mode."""
    with open(path, "rb") as file:
        data = file.read()
    attrs, n_attrs, begin, size = struct.unpack_from("<QQQQ", data, 24)
    attr_size, = struct.unpack_from("<Q", data, 16)
    if data[:8] != b"PERFILE2" or attr_size == 0 or n_attrs != attr_size \
            or walked(path) is None:
        return False
    sample_type, = struct.unpack_from("<Q", data, attrs + 24)
    n = sum(8 for bit in ID_BITS if sample_type & bit)
    pos, trailer, out = begin, None, b""
    while pos + 8 <= begin + size:
        kind, _, length = struct.unpack_from("<IHH", data, pos)
        if kind in (66, 71):            # bytes behind the record
            return False
        if kind == 3:
            trailer = data[pos + length - n:pos + length]
        if kind == 9 and trailer:
            out += struct.pack("<IHHQQ", 2, 0, 24 + n, 0, 2) + trailer
        out += data[pos:pos + length]
        pos += length
    tail = bytearray(data[begin + size:])
    flags = int.from_bytes(data[72:104], "little")
    for i in range(bin(flags).count("1")):
        at, = struct.unpack_from("<Q", tail, 16 * i)
        struct.pack_into("<Q", tail, 16 * i, at + len(out) - size)
    with open(copy, "wb") as file:
        file.write(data[:48] + struct.pack("<Q", len(out)) +
                   data[56:begin] + out + tail)
    return trailer is not None
