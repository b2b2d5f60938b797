#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Parts and sums of XRay logs: several at once, by thread, a range of time.

Logs are made here, small enough that every figure can be told by hand: a
thread's life as text, "a" enters function 1, "A" leaves it, each 10 ns after
the one before.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["SEAM_SOURCE"], "tests", "export"))

from read_exports import read_pages
from tap import check, end

seam = sys.argv[1]


def run(*args):
    return subprocess.run([seam, *args], capture_output=True, text=True)


def little(value, size):
    return value.to_bytes(size, "little")


def header(frequency=1000000000):
    return little(5, 2) + little(1, 2) + little(3, 4) + \
        little(frequency, 8) + bytes(16)


def block(pid, tid, tsc, life, wall_ns=None, step=10, argument=99):
    """A block of one thread whose clock stands at @tsc, in ns."""
    wall_s, ns = divmod(tsc if wall_ns is None else wall_ns, 10 ** 9)
    body = b"\x01" + little(tid, 15) + \
        b"\x09" + little(wall_s, 8) + little(ns // 1000, 7) + \
        b"\x13" + little(pid, 15) + \
        b"\x05" + little(0, 2) + little(tsc, 13)
    for i, c in enumerate(life):
        if c == "+":            # an argument, 99
            body += b"\x0d" + little(argument, 8) + bytes(7)
        elif c == "*":          # a custom event
            body += b"\x0b" + little(5, 4) + little(10, 11) + b'h"\x1b[m'
        elif c == "#":          # a typed event of type 7
            body += b"\x11" + little(4, 4) + little(10, 4) + \
                little(7, 7) + b"\0\1\2\3"
        elif c not in "!0":     # "!A" leaves by a tail exit
            action = 2 if life[i - 1:i] == "!" else c.isupper()
            word = (ord(c.lower()) - 96) << 4 | action << 1
            # "0a" takes no time
            body += little(word, 4) + little(step * (life[i - 1:i] != "0"), 4)
    return b"\x0f" + little(len(body), 15) + body


def rows(*args):
    told = json.loads(run("report", "--json", *args).stdout)
    return {r["symbol"]: (r["self"], r["total"], r["self_weight"],
                          r["total_weight"]) for r in told["rows"]}


def folded(*args):
    return run("convert", "--to", "folded", *args).stdout.splitlines()


folder = tempfile.TemporaryDirectory()


def write(name, data):
    path = os.path.join(folder.name, name)
    with open(path, "wb") as out:
        out.write(data)
    return path


def check_counts():
    log = write("counts.xray", header() + block(5, 6, 1000000, "abBbBcaACA"))
    told = rows(log)
    check("self of a row is its calls, total those made from it too",
          told == {"#1": (2, 5, 50, 90), "#2": (2, 2, 20, 20),
                   "#3": (1, 2, 20, 30)}, told)
    told = json.loads(run("report", "--json", log).stdout)
    check("the sum of all self is the number of calls",
          told["samples"] == 5 and told["events"][0]["counts"] == "calls" and
          sum(r["self"] for r in told["rows"]) == 5, told)
    text = run("report", log).stdout
    check("the table says calls, not samples", "5 calls over 100 ns" in text
          and "CALLS" in text and "sample" not in text.lower(), text)
    tree = json.loads(run("report", "--tree", "--json", log).stdout)
    node = tree["events"][0]["tree"][0]
    check("a tree counts calls, too",
          node["total"] == 5 and node["self"] == 1, tree)
    told = rows(write("quick.xray", header() + block(5, 6, 1000, "a0bB0A")))
    check("a call that took no time of its own is counted",
          told == {"#1": (1, 2, 0, 10), "#2": (1, 1, 10, 10)}, told)
    run("flamegraph", "-o", log + ".svg", log)
    svg = open(log + ".svg").read()
    check("a flame graph tells calls", "5 calls" in svg and
          "sample" not in svg.split("<script>")[0], svg[:300])


def check_several():
    one = write("one.xray", header() + block(5, 6, 1000000, "abBA"))
    two = write("two.xray", header() + block(7, 8, 1000040, "abBbBA") +
                block(7, 9, 1000040, "abBA"))
    told = json.loads(run("report", "--json", "--by", "thread", one,
                          two).stdout)
    check("several logs are one report",
          [r["tid"] for r in told["rows"]] == [8, 6, 9] and
          told["samples"] == 7 and told["file"] == one and
          told["more_files"] == [two], told)
    check("they stand on one time line", told["duration_ns"] == 100, told)
    text = run("report", one, two).stdout
    check("the head says that there are more", " and 1 more\n" in text, text)
    check("folded stacks are kept by thread",
          folded(one, two) == ["thread 6;#1 20", "thread 6;#1;#2 10",
                               "thread 8;#1 30", "thread 8;#1;#2 20",
                               "thread 9;#1 20", "thread 9;#1;#2 10"],
          folded(one, two))
    check("or merged by process",
          folded("--by", "process", one, two) ==
          ["process 5;#1 20", "process 5;#1;#2 10", "process 7;#1 50",
           "process 7;#1;#2 30"], folded("--by", "process", one, two))
    check("or all in one",
          folded("--by", "all", one, two) == ["all;#1 70", "all;#1;#2 40"],
          folded("--by", "all", one, two))
    svg = os.path.join(folder.name, "several.svg")
    run("flamegraph", "--by", "all", "-o", svg, one, two)
    names = re.findall(r"<title>([^\n<]*)\n", open(svg).read())
    check("a flame graph merges all threads", names == ["all", "#1", "#2"] or
          sorted(names) == ["#1", "#2", "all"], names)
    run("flamegraph", "--by", "thread", "-o", svg, one, two)
    names = re.findall(r"<title>([^\n<]*)\n", open(svg).read())
    check("or keeps them apart", sorted(set(names)) ==
          ["#1", "#2", "all", "thread 6", "thread 8", "thread 9"], names)
    told = run("report", one, write("no.xray", b"no log"))
    check("a file among them that is no log is named",
          told.returncode == 1 and "no.xray" in told.stderr, told)


def check_time():

    log = write("time.xray", header() + block(5, 6, 1000, "abBbcCBA") +
                block(5, 7, 1020, "a+A"))
    # the recording begins with the first block, whose clock says 1000
    told = {f["name"]: f for f in json.loads(
        run("calls", "--json", "--time", "35ns,55ns", log).stdout)
        ["functions"]}
    check("a call counts, whole, where it begins",
          {k: (v["count"], v["sum_ns"]) for k, v in told.items()} ==
          {"#2": (1, 30), "#3": (1, 10)}, told)
    told = rows("--time", "35ns,55ns", log)
    check("a report has the time that lies in the range",
          told == {"#1": (0, 2, 10, 25), "#2": (1, 2, 10, 15),
                   "#3": (1, 1, 5, 5)}, told)
    parts = [rows("--time", f"{a}ns,{a + 7}ns", log)
             for a in range(0, 91, 7)]
    whole = rows(log)
    check("parts of the time add up to the whole", all(
        sum(p.get(f, (0,) * 4)[i] for p in parts) == whole[f][i]
        for f in whole for i in (0, 2, 3)), (parts, whole))
    events = json.loads(run("convert", "--to", "trace-json", "--time",
                            "25ns,45ns", log).stdout)["traceEvents"]
    calls = [(e["ph"], e.get("name")) for e in events if e["ph"] in "BE"]
    check("trace JSON has the calls that begin in the range",
          calls == [("B", "#2"), ("E", "#2"), ("B", "#1"), ("E", "#1")] and
          [e["args"] for e in events if "args" in e and e["ph"] == "B"] ==
          [{"0": 99}], events)
    events = json.loads(run("convert", "--to", "trace-json", "--time",
                            "5ns,15ns", write("args.xray", header() +
                            block(5, 6, 1000, "ab+BA"))).stdout)
    check("arguments of a call outside are not another's",
          [e.get("args") for e in events["traceEvents"] if e["ph"] == "B"] ==
          [None], events)
    text = run("convert", "--to", "xray-yaml", "--time", "25ns,45ns",
               log).stdout
    check("YAML has the records of the range",
          re.findall(r"thread: (\d+), .*tsc: (\d+)", text) ==
          [("6", "1030"), ("7", "1030"), ("6", "1040"), ("7", "1040")] and
          text.count("args: [ 99 ]") == 1, text)
    cut = os.path.join(folder.name, "cut.xray")
    told = run("convert", "--to", "xray", "-o", cut, "--time", "25ns,45ns",
               log)
    got = {f["id"]: f["count"] for f in
           json.loads(run("calls", "--json", cut).stdout)["functions"]}
    check("a log of the range reads again", told.returncode == 0 and
          got == {1: 1, 2: 2}, (told, got))
    for command in (["calls"], ["report"], ["convert", "--to", "trace-json"],
                    ["convert", "--to", "folded"]):
        told = run(*command, "--time", "rubbish", log)
        check(f"a time that is none is wrong usage of {command[-1]}",
              told.returncode == 2 and "cannot select the time" in
              told.stderr, told)
    told = run("convert", "--to", "trace-json", "--thread", "7", log)
    check("what a conversion cannot select is refused",
          told.returncode == 2, told)


def check_inside():
    log = write("inside.xray", header() +
                block(5, 6, 1000, "a+b*B#c++Cc+C!A" "bB") +
                block(5, 7, 1000, "a" + "b+B" * 6 + "*" * 20 + "A"))
    text = run("calls", "--stacks=2", log).stdout
    trees = {re.search("thread ([0-9]+)", t)[1]: t.splitlines()
             for t in text.split("\n\n")}
    lines = [line[30:] for line in trees["6"]]
    check("arguments stand beside their call", lines[3] == "#1(99)" and
          lines[7] == "  #3(99, 99), (99)", text)
    check("events stand where they were, with their time", lines[4] ==
          "  +40 ns typed event 7: 00 01 02 03" and lines[5:7] == [
              "  #2", "    +20 ns custom event: 68 22 1b 5b 6d"], text)
    check("no byte of an event reaches the terminal", "\x1b" not in text,
          repr(text))
    check("what a slow call went on in by a tail call is told",
          "it ended in a tail call of #2" in text, text)
    lines = [line[30:] for line in trees["7"]]
    check("of many calls the first arguments are shown",
          "  #2(99), (99), (99), (99), ..." in lines, text)
    check("of many events the first ones are shown", text.count(
          "custom event") == 17 and "  ... 4 more" in lines, text)
    log = write("tail.xray", header() + block(5, 6, 1000, "ab!BcCA"))
    text = run("calls", "--stacks=1", log).stdout
    check("a tail call's callee names its caller",
          "  #3  tail call of #2\n" in text, text)
    log = write("plain.xray", header() + block(5, 6, 1000, "abBcCA"))
    check("and no other callee does", "tail" not in
          run("calls", "--stacks=1", log).stdout)
    for why, life in (("of which one only was made so", "ab!BcCcCA"),
                      ("a microsecond later", "ab!B" + 101 * "*" + "cCA"),
                      ("after its end", "ab" + 300 * "*" + "B!A" +
                       101 * "*" + "cC")):
        log = write("other.xray", header() + block(5, 6, 1000, life))
        check(f"nor do calls {why}", "tail" not in
              run("calls", "--stacks=1", log).stdout)
    for life, head in (("bcCB", "in thread 6 of process 5\n"),
                       ("cC*B", "or more .*: its beginning is not in the log"),
                       ("bcC", "or more .*: its end is not in the log"),
                       ("cC*BbcC", "or more .*: its beginning is not"),
                       ("cC*", "in thread 6 of process 5\n")):
        log = write("cut.xray", header() + block(5, 6, 1000, life))
        text = run("calls", "--stacks=1", log).stdout
        check(f"a call that is not whole is shown as one: {life}",
              re.match(f".* {head}", text), text)
    shown = []
    for value in (2 ** 32 - 1, 2 ** 64 - 1, 2 ** 32, 2 ** 64 - 2 ** 31 - 1):
        log = write("value.xray", header() + block(
            5, 6, 1000, "a+A", argument=value))
        shown += re.findall(r"#1\((\S+)\)", run("calls", "--stacks=1",
                                                log).stdout)
    check("an argument is a number or an address",
          shown == ["4294967295", "-1", "0x100000000", "0xffffffff7fffffff"],
          shown)
    log = write("one.xray", header() + block(5, 6, 1000, "a"))
    for command in "calls", "report":
        text = run(command, log).stdout
        check("one repair is one", "repaired: 1 call that was open" in text,
              text)
    log = write("again.xray", header() + block(5, 6, 1000, "aaAA"))
    head, row = (line.split() for line in run(
        "calls", log).stdout.splitlines())
    check("a total counts the time of recursive calls once",
          head[-4:] == ["max", "total", "self", "function"] and
          row[-7:] == ["30", "ns", "30", "ns", "30", "ns", "#1"], row)
    text = run("calls", "--graph", log).stdout
    check("so do the vertices and edges of a graph",
          'total 30 ns|self 30 ns' in text and
          sorted(re.findall('label="(.* x.*)"', text)) ==
          ["1 x", "1 x, 30 ns"], text)
    head, row = (line.split() for line in run(
        "calls", "--sort=sum", log).stdout.splitlines())
    check("the order by sums has their column",
          head[-4:] == ["sum", "total", "self", "function"] and
          row[-7:] == ["40", "ns", "30", "ns", "30", "ns", "#1"], row)
    log = write("text.xray", header() + block(5, 6, 1000, "a*A").replace(
        b'h"\x1b[m', b'h"\\m.'))
    text = run("calls", "--stacks=1", log).stdout
    check("text is shown as text", 'custom event: "h\\"\\\\m."\n' in text,
          text)


def bundle(name, log, ties):
    path = os.path.join(folder.name, name)
    os.makedirs(os.path.join(path, "xray"))
    with open(os.path.join(path, "xray", "5.xray"), "wb") as out:
        out.write(log)
    with open(os.path.join(path, "meta.json"), "w",
              encoding="ascii") as out:
        json.dump({"schema": "seam.bundle/1", "xray": {"ties": ties}}, out)
    return path


def begins(path, *options):
    """When each call of #1 began, in ns."""
    text = run("calls", "--stacks=999", *options, path).stdout
    return sorted(int(s) * 10 ** 9 + int(ns) for s, ns in
                  re.findall(r" at (\d+)\.(\d{9}) s in", text))


def corrected(tsc, ppm, corner):
    """An hour of CLOCK_MONOTONIC: slower by @ppm to @corner, then faster."""
    hour = 3600 * 10 ** 9
    late = ppm * min(tsc, corner) // 10 ** 6
    return tsc - late + (late * (tsc - corner) // (hour - corner)
                         if tsc > corner else 0)


def check_clock():
    hour, minute = 3600 * 10 ** 9, 60 * 10 ** 9
    base, zero = 7 * hour, 2 * hour     # both clocks at the start
    for ppm, corner in ((0, hour // 2), (50, hour // 2), (-100, hour // 4),
                        (500, hour // 10)):
        when = [zero + corrected(t, ppm, corner)
                for t in range(0, hour + 1, minute)]
        # blocks of several minutes: a thread that goes on and is joined
        log = header() + b"".join(
            block(5, 6 + i % 2, base + i * minute, "aA", when[i])
            for i in range(61))
        ties = [[base + t - 5000, zero + corrected(t, ppm, corner) - 5000]
                for t in range(0, hour + 1, hour // 200)]
        path = bundle(f"clock{ppm}.seam", log, ties)
        off = [a - b - 10 for a, b in zip(begins(path), when)]
        check(f"times of an hour are by the ties, corrected by {ppm} ppm",
              len(off) == 61 and max(map(abs, off)) < 30000, off)
        page = os.path.join(folder.name, "clock.html")
        run("view", "-o", page, path)
        skew = read_pages(page)[0].head["meta"]["clockSkewNs"]
        check("a page has by how much they are off at most",
              30 <= skew <= 10030 and max(map(abs, off)) <= skew + 1000,
              (skew, max(map(abs, off))))
        half = begins(path, "--time=50%,100%")
        check("a time range is by them too", half == [
            t for t in begins(path) if t >= half[0]] and
            30 <= len(half) <= 31, half)
        # as long as records allow, one after another
        step = 4 * 10 ** 9
        one = bundle(f"one{ppm}.seam", header() + block(
            5, 6, base, "aA" * 449, zero, step), ties)
        off = [a - zero - corrected(step * (2 * i + 1), ppm, corner)
               for i, a in enumerate(begins(one))]
        check("also those of one block", len(off) == 449 and
              max(map(abs, off)) < 30000, off)
        told = json.loads(run("calls", "--json", one).stdout)
        took = sum(corrected(step * (2 * i + 2), ppm, corner) -
                   corrected(step * (2 * i + 1), ppm, corner)
                   for i in range(449))
        check("and how long its calls took",
              abs(told["functions"][0]["sum_ns"] - took) < 10 ** 6 and
              set(told["repairs"].values()) == {0}, (took, told))
        out = os.path.join(folder.name, "again.xray")
        run("convert", "--to=xray", "-o", out, path)
        check("and the wall times of what is converted",
              abs(begins(out)[0] - when[0]) < 200 * 10 ** 6 and
              len(begins(out)) == 61, begins(out))
        told = json.loads(run("calls", "--json", path).stdout)
        check("and none steps back", set(told["repairs"].values()) == {0},
              told)
    for i, odd in enumerate((
            [[base + 1, zero], [base + 2, zero + 2 ** 40]],
            [[base + 1, zero], [base + 2 ** 50, zero + 1]],
            [[0, 1], [1, 2 ** 62], [2 ** 62, 2 ** 62 + 1]],
            [[base, zero], ["x", None], [-1, 2 ** 70], 7, []])):
        path = bundle(f"odd{i}.seam", log, odd + ties[100:])
        told = run("calls", path)
        check("ties that cannot be are none, or give times all the same",
              told.returncode == 0 and "61" in told.stdout, told)
    others = bundle("others.seam", log, [[t - base, ns] for t, ns in ties])
    off = [a - b for a, b in zip(begins(others), begins(write(
        "alone.xray", log)))]
    check("ties of another recording are not used", set(off) == {0}, off)


def elf(bits, kind, machine, sled=b""):
    """An ELF file with a section xray_instr_map that holds @sled."""
    names = b"\0.names\0xray_instr_map\0"
    if bits == 32:
        return b"\x7fELF\1\1\1" + bytes(9) + little(kind, 2) + \
            little(machine, 2) + little(1, 4) + bytes(16) + \
            little(52, 2) + bytes(10)

    def section(name, kind, offset, size):
        return little(name, 4) + little(kind, 4) + bytes(16) + \
            little(offset, 8) + little(size, 8) + bytes(24)

    return b"\x7fELF\2\1\1" + bytes(9) + little(kind, 2) + \
        little(machine, 2) + little(1, 4) + bytes(16) + \
        little(64 + len(names) + len(sled), 8) + bytes(4) + \
        little(64, 2) + bytes(4) + little(64, 2) + little(3, 2) + \
        little(1, 2) + names + sled + section(0, 0, 0, 0) + \
        section(1, 3, 64, len(names)) + \
        section(8, 1, 64 + len(names), len(sled))


def check_bad():
    good = header() + block(5, 6, 1000, "abBA")
    logs = (
        ("an empty file", b"", 1, "0 of 32 bytes", "the file is empty"),
        ("a cut header", good[:31], 1, "31 of 32 bytes", "not a recording"),
        ("a newer version", little(6, 2) + good[2:], 1,
         "version=6: those up to 5", "version=6: those up to 5"),
        ("a newer basic mode", little(4, 2) + little(0, 2) + good[4:], 1,
         "basic mode with version=4", "basic mode with version=4"),
        ("profiling mode", good[:2] + little(2, 2) + good[4:], 1,
         "type=2: basic mode (0)", "type=2: basic mode (0)"),
        ("text", b"this is some text, not a log\n" * 9, 1,
         "not an XRay log", "not a recording"),
        ("zeroes", bytes(4096), 1, "not an XRay log", "not a recording"),
        ("a log that is cut", good[:-3], 3, "1 part of the log", ""),
        ("a block that is no block", header() + b"\x55" * 64, 3,
         "1 part of the log could not be read, 64 bytes", ""),
        ("no frequency", header(0) + good[32:], 3, "times are ticks", ""),
    )
    for name, data, status, calls_say, report_says in logs:
        path = write("bad.xray", data)
        bad = []
        for command in (["calls"], ["convert", "--to", "trace-json"],
                        ["convert", "--to", "xray-yaml"]):
            told = run(*command, path)
            if told.returncode != status or calls_say not in told.stderr:
                bad.append(told)
        for command in (["report"], ["convert", "--to", "folded"],
                        ["flamegraph", "-o", path + ".svg"]):
            told = run(*command, path)
            if told.returncode != status or report_says not in told.stderr:
                bad.append(told)
            if status == 1 and (told.stderr.count("seam:") != 1 or
                                told.stderr.count("cannot read '") != 1):
                bad.append(told)
        check(f"{name}: status {status}, and why", not bad, bad)
    path = write("empty.xray", header())
    bad = []
    for command in (["calls"], ["report"], ["convert", "--to", "folded"],
                    ["convert", "--to", "trace-json"],
                    ["convert", "--to", "xray-yaml"],
                    ["flamegraph", "-o", path + ".svg"]):
        told = run(*command, path)
        if told.returncode or "nothing was recorded" not in \
                told.stdout + told.stderr:
            bad.append(told)
    check("a header alone is a log, empty, and is said to be", not bad, bad)
    log = write("log.xray", good)
    sled = bytes(16) + b"\0\1\0" + bytes(13)
    for name, data, why in (
            ("of 32 bits", elf(32, 2, 40), "of 32 bits"),
            ("of an object file", elf(64, 1, 62, sled),
             "must be linked"),
            ("whose relocations are not known", elf(64, 3, 8, sled),
             "relocations of machine=8"),
            ("of macOS", b"\xcf\xfa\xed\xfe" + bytes(64), "no ELF file"),
            ("without sleds", elf(64, 2, 62)[:-64] + bytes(64),
             "-fxray-instrument")):
        bad = write("map", data)
        told = run("calls", "--map", bad, log)
        check(f"a program {name} is refused with the reason",
              told.returncode == 1 and why in told.stderr and
              told.stderr.count("cannot read") == 1, told)


def check_table():
    path = write("table.xray", header() + block(1, 2, 1000000, "bBaAbcCBdD"))
    ids = [line.split()[-1] for line in
           run("calls", "--sort", "id", path).stdout.splitlines()[1:]]
    check("rows can stand in the order of their ids",
          ids == ["#1", "#2", "#3", "#4"], ids)
    bars = re.findall(r"(\d+) ns - +(\d+) ns +(\d+)",
                      run("calls", "--histogram", "--filter", "#2",
                          path).stdout)
    check("bars stand for the calls between their powers of two",
          bars == [("0", "16", "1"), ("16", "32", "1")], bars)
    damage = b"\x0f" + little(32, 15) + b"\x55" * 32
    path = write("bad.xray", header() + b"".join(
        block(1, 2 + i, 1000000, "aA") + damage for i in range(40)))
    told = run("calls", path).stdout
    check("of many damages the first are told, and what all of them cost",
          told.count("unknown record") < 40 and
          "lost: 1,920 bytes in all, in 40 places" in told, told)


def check_names():
    log = write("names.xray", header() + block(5, 6, 1000, "abBA"))
    names = write("names.yaml", "\n".join(
        f'- {{ id: {i}, address: 0x{i}, function: 0x{i}, kind: function-enter,'
        f' always-instrument: true, function-name: "{name}" }}'
        for i, name in ((1, '\\x9b31mP{\\"'), (2, "\\u202Eex\\x7F")))
        .encode() + b"\n")
    told = run("calls", "--graph", "--map", names, log)
    check("a graph's names are harmless and to be read", told.returncode == 0
          and r'label="{\\x9b31mP\{\"|' in told.stdout and
          r'label="{\\u202eex\\x7f|' in told.stdout, told)


check_counts()
check_table()
check_names()
check_several()
check_bad()
check_inside()
check_clock()
check_time()
sys.exit(end())
