# SPDX-License-Identifier: MIT
"""Recordings of other tools, unpacked where they are packed.

SEAM_CORPUS names their folder: tests/corpus as the build unpacked it, or a
larger one of the same layout.
"""
import gzip
import lzma
import os
import pathlib
import re

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
