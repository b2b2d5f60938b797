#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Intervals that a program marks by pairs of events, against a list of them.

Logs of random events are made here; which begins and ends belong together is
found by other code, which has the events and not their bytes.
"""
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["SEAM_SOURCE"], "tests", "export"))

from read_exports import read_pages
from tap import check, end

seam = sys.argv[1]
folder = tempfile.TemporaryDirectory()
START = 10 ** 9
TYPES = {3: "gc", 4: "typed event 4"}   # the second one has no name


def run(*args):
    return subprocess.run([seam, *args], capture_output=True, text=True,
                          check=False)


def little(value, size):
    return value.to_bytes(size, "little")


HEADER = little(5, 2) + little(1, 2) + little(3, 4) + little(10 ** 9, 8) + \
    bytes(16)


def custom(delta, data):
    return b"\x0b" + little(len(data), 4) + little(delta, 11) + data


def typed(delta, kind, data):
    return b"\x11" + little(len(data), 4) + little(delta, 4) + \
        little(kind, 7) + data


def block(tid, at, body):
    body = b"\x01" + little(tid, 15) + b"\x09" + little(at // 10 ** 9, 8) + \
        little(at % 10 ** 9 // 1000, 7) + b"\x13" + little(5, 15) + \
        b"\x05" + little(0, 2) + little(at, 13) + body
    return b"\x0f" + little(len(body), 15) + body


# -- events: (delta, what, name, data); what: begin, end, other, lost, damage

def random_events(chance, n):
    events = []
    for _ in range(n):
        what = chance.choices(("begin", "end", "other", "lost", "damage"),
                              (30, 32, 8, 1, 1))[0]
        name = chance.choice(["a", "order", "gc", "typed event 4", "b-1"])
        text = chance.choice(["", "42", "of two words"])
        events.append((chance.randrange(1, 5000), what, name, text))
    return events


def encode(event):
    delta, what, name, text = event
    if what == "lost":
        return typed(delta, 65535, little(7, 8))
    if what == "other":
        return custom(delta, chance_other[delta % len(chance_other)])
    by_type = [kind for kind, n in TYPES.items() if n == name]
    if by_type:
        return typed(delta, by_type[0], f"{what} {text}".strip().encode())
    ending = (b"", b"\0", b"\n")[delta % 3]
    return custom(delta, f"{what} {name} {text}".strip().encode() + ending)


# None of these marks anything.
chance_other = (b"", b"begin", b"end", b"beginning a", b"ended a", b"Begin a",
                b" begin a", b"begin \x1b[m", b"begin " + b"n" * 256,
                b'{"begin":"a"}')


def log_of(tid, events):
    """Blocks of the events; damage ends its block."""
    out, body, at, first = b"", b"", START, START
    for event in events:
        at += event[0]
        if event[1] != "damage":
            body += encode(event)
            continue
        out += block(tid, first, body + b"\x55" * 16)
        body, first = b"", at
    return out + block(tid, first, body)


def pair(tid, events):
    """(tid, name, begin, duration, text) of each; begins, ends left alone."""
    open_marks, found, lone, at = [], [], [0, 0], START
    for delta, what, name, text in events:
        at += delta
        if what in ("lost", "damage"):
            lone[0] += len(open_marks)
            open_marks = []
        elif what == "begin":
            open_marks.append((name, at, text))
            if len(open_marks) > 64:
                del open_marks[0]
                lone[0] += 1
        elif what == "end":
            same = [i for i, m in enumerate(open_marks) if m[0] == name]
            if not same:
                lone[1] += 1
                continue
            _, begin, said = open_marks.pop(same[-1])
            found.append((tid, name, begin, at - begin, said))
    lone[0] += len(open_marks)
    return found, lone


def write(name, data):
    path = os.path.join(folder.name, name)
    with open(path, "wb") as out:
        out.write(data)
    with open(os.path.splitext(path)[0] + ".events", "w",
              encoding="utf-8") as out:
        out.write('3 "gc"\n')
    return path


def sums(found):
    by_name = collections.defaultdict(list)
    for _, name, _, ns, _ in found:
        by_name[name].append(ns)
    return {name: (len(all_ns), min(all_ns), max(all_ns), sum(all_ns))
            for name, all_ns in by_name.items()}


def printed(told):
    return {row["name"]: (row["count"], row["min_ns"], row["max_ns"],
                          row["sum_ns"]) for row in told["intervals"]}


def in_page(path, first, *options):
    """The intervals of a page, whose times begin at @first."""
    out = os.path.join(folder.name, "page.html")
    run("view", "-o", out, *options, path)
    page = read_pages(out)[0]
    rows = list(page.rows("intervals", "thread", "begin", "duration", "name",
                          "text"))
    assert rows == sorted(rows, key=lambda r: (r[0], r[1], -r[2])), "order"
    words = page.head["words"]
    return sorted((page.head["threads"][thread]["tid"], words[name],
                   begin + first, ns, words[text])
                  for thread, begin, ns, name, text in rows)


def check_random(seed):
    chance = random.Random(seed)
    lists = {tid: random_events(chance, 400) for tid in (6, 7)}
    path = write("random.xray", HEADER + b"".join(
        log_of(tid, events) for tid, events in lists.items()))
    pairs = [pair(tid, events) for tid, events in lists.items()]
    found = sorted(m for all_found, _ in pairs for m in all_found)
    told = json.loads(run("calls", "--json", path).stdout)
    check(f"intervals are pairs on one thread (seed {seed})",
          printed(told) == sums(found), (printed(told), sums(found)))
    lone = [sum(n) for n in zip(*(lone for _, lone in pairs))]
    check("what has no partner, or lost it, is counted and no interval",
          [told["unpaired"]["begins"], told["unpaired"]["ends"]] == lone,
          (told["unpaired"], lone))
    first = START
    shown = in_page(path, first)
    check("a page has each with its time, thread and text", shown == found,
          [m for m in zip(shown, found) if m[0] != m[1]][:3])
    length = max(m[2] + m[3] for m in found) - first
    option = f"--time={length // 3}ns,{length // 2}ns"
    part = [m for m in found if length // 3 <= m[2] - first < length // 2]
    told = json.loads(run("calls", "--json", option, path).stdout)
    check("a range of time has those that begin in it", len(part) > 9 and
          printed(told) == sums(part), (printed(told), sums(part)))
    shown = in_page(path, first, option)
    check("and so has its page", shown == part, (shown, part))


def check_table():
    marks = (custom(10, b"begin a one") + custom(10, b"begin b") +
             custom(10, b"end a") + custom(5, b"end b") + custom(1, b"end c"))
    path = write("table.xray", HEADER + block(6, START, marks))
    text = run("calls", path).stdout
    lines = [line.split() for line in text.splitlines()]
    check("the table has them under their own head", ["1", "20", "ns"] ==
          lines[2][:3] and lines[2][-1] == "a" and lines[3][-1] == "b" and
          lines[1][0] == "intervals", text)
    check("and says what is left out",
          "left out: 1 marked end without a begin" in text, text)
    text = run("calls", "--filter", "b", path).stdout
    check("a filter is of their names too", " b\n" in text and
          " a\n" not in text, text)


for seed in range(3):
    check_random(seed)
check_table()
sys.exit(end())
