#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recorded stacks beside the truth: programs whose leaf fixes the whole path.

Makes programs (programs.py), records each in several ways, and compares each
stack with the tree of the stacks that the program can have (truth.py).  A wrong
frame fails, except behind [joined], where 0.1 % of the joined stacks may be
wrong; so does a recording that calls more stacks complete than reach their end.
Programs with a failure are kept, with the commands that build and record them.
Prints TAP, and a table of the failures by what the frames are.
"""
import argparse
import collections
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import programs  # noqa: E402
import truth  # noqa: E402

# How a program is recorded: the first way each time, then one of the others.
WAYS = [[], ["--call-graph", "dwarf"], ["-F", "997"],
        ["--call-graph", "dwarf,16384"], ["attach"],
        ["--call-graph", "auto,8192"], ["-z"],
        ["--call-graph", "auto,65528"], ["attach", "--call-graph", "dwarf"]]
RATE = 4000
TIMEOUT = 120
SHOWN = 3       # wrong stacks of a recording


def run(words, **more):
    return subprocess.run(words, capture_output=True, text=True, check=False,
                          errors="replace", timeout=TIMEOUT, **more)


def rate():
    """Samples a second, as far as the kernel allows them."""
    with open("/proc/sys/kernel/perf_event_max_sample_rate",
              encoding="ascii") as text:
        return min(RATE, int(text.read()))


def must(words, allowed=(0,), **more):
    done = run(words, **more)
    if done.returncode not in allowed:
        raise AssertionError(f"{shlex.join(words)}: status {done.returncode}: "
                             f"{done.stderr[-1000:]}")
    return done


class Counts:
    """Stacks by verdict, in all and for each thing that frames are."""

    def __init__(self):
        self.all = collections.Counter()
        self.labels = collections.defaultdict(collections.Counter)
        self.falsely_complete = 0       # by "report --stats"
        self.miscounted = 0             # joined ones there, and here
        self.programs = 0

    def add(self, other):
        self.all.update(other.all)
        for label, counter in other.labels.items():
            self.labels[label].update(counter)
        self.falsely_complete += other.falsely_complete
        self.miscounted += other.miscounted

    def stacks(self):
        return sum(n for verdict, n in self.all.items() if verdict != "kernel")

    def joined(self):
        return sum(n for verdict, n in self.all.items()
                   if verdict.startswith("joined"))

    def joined_wrongly(self):
        return self.all["joined wrong"] + self.all["joined half"]

    def has_failed(self):
        """Whatever is wrong but joined stacks, which few may be."""
        return (self.all["wrong"] or self.falsely_complete or
                self.miscounted or
                self.all["installing"] > 0.03 * self.stacks() or
                self.all["rare"] > 3 + 0.001 * self.stacks())

    def wrong(self):
        """What is wrong, in words; "" if nothing is."""
        wrong = [(self.all["wrong"], "stacks with wrong frames"),
                 (self.joined_wrongly(), f"of {self.joined()} joined stacks "
                  "wrong"),
                 (self.falsely_complete, "called complete and are not"),
                 (self.miscounted, "joined stacks more or fewer counted"),
                 ((self.all["installing"] + self.all["rare"]) *
                  bool(self.has_failed()), "excused")]
        return ", ".join(f"{n} {words}" for n, words in wrong if n)


def print_table(counts):
    columns = ["complete", "cut", "wrong", "joined", "joined half",
               "joined wrong"]
    print(f"# {'':28}{'stacks':>9}" +
          "".join(f"{name:>13}" for name in columns) + f"{'wrong at':>10}")
    rows = sorted(counts.labels.items(), key=lambda item: (
        -item[1]["wrong at"], item[0]))
    for label, row in [("all", counts.all)] + rows:
        total = sum(row[name] for name in columns)
        print(f"# {label:28}{total:9}" +
              "".join(f"{row[name]:13}" for name in columns) +
              (f"{row['wrong at']:10}" if label != "all" else ""))
    print(f"# stacks without a function of the program: "
          f"{counts.all['library complete']} complete, "
          f"{counts.all['library cut']} cut")
    print(f"# called complete and are not: {counts.falsely_complete}; excused: "
          f"{counts.all['installing']} while libgcc installs registers, "
          f"{counts.all['rare']} by the compiler's or kernel's fault")


def record(seam, program, way, seconds, output, folder):
    """The words that recorded, for a person to repeat."""
    name = f"./{program.name}"
    words = [seam, "record", "-q", "-o", output,
             *([] if "-F" in way else ["-F", str(rate())]),
             *[word for word in way if word != "attach"]]
    if "attach" not in way:
        words += ["--", name, str(seconds)]
        must(words, (0, 3), cwd=folder)
        return words
    with subprocess.Popen([name, str(seconds), "wait"], cwd=folder,
                          stdin=subprocess.PIPE) as traced:
        words += ["-p", str(traced.pid)]
        # A command that prints a line once the program is recorded, and ends
        # when its input does.
        with subprocess.Popen(words + ["--", "sh", "-c", "echo; read x"],
                              cwd=folder, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as recorder:
            recorder.stdout.readline()
            traced.stdin.close()
            traced.wait(TIMEOUT)
            recorder.stdin.close()
            recorder.wait(TIMEOUT)
    return words


def compare(seam, program, known, recording, folder):
    """Counts of a recording, and the stacks that are wrong."""
    counts, shown = Counts(), []
    folded = must([seam, "convert", "-q", "--to", "folded", "--no-inline",
                   recording], (0, 3), cwd=folder)
    joined = 0
    for comm, stack, n in truth.read_folded(folded.stdout):
        joined += n * (truth.JOINED in stack)
        if comm != program.name:        # the recorder's own, before the exec
            counts.all[known.judge_library(stack[::-1])] += n
            continue
        verdict, node = known.judge(stack)
        counts.all[verdict] += n
        for label in known.labels(stack):
            counts.labels[label][verdict] += n
        if verdict in ("wrong", "joined half", "joined wrong"):
            labels = program.labels[node.name] if node else ["leaf"]
            for label in labels:
                counts.labels[label]["wrong at"] += n
            shown.append((n, verdict, node.name if node else "leaf", stack))
    report = must([seam, "report", "--stats", "--json", recording],
                  (0, 3), cwd=folder)
    ended = json.loads(report.stdout)["user_stacks"]["ended"]
    reached = sum(counts.all[verdict] for verdict in
                  ("complete", "wrong", "library complete", "installing",
                   "rare"))
    # A wrong stack may be called complete once: it has failed already.
    counts.falsely_complete = max(0, ended["complete"] - reached)
    counts.miscounted = abs(ended.get("joined", 0) - joined)
    return counts, sorted(shown, reverse=True, key=lambda one: one[0])


def print_wrong(shown):
    for n, verdict, where, stack in shown[:SHOWN]:
        text = ";".join(squeeze(stack))
        print(f"#   {n} {verdict}, the caller of {where}: {text[-900:]}")


def squeeze(stack):
    """Repeated frames as one, with their number."""
    out = []
    for name in stack:
        if out and out[-1][0] == name:
            out[-1][1] += 1
        else:
            out.append([name, 1])
    return [name if n == 1 else f"{name}*{n}" for name, n in out]


def build(program, folder):
    program.write(folder)
    for words in program.commands():
        must(words, cwd=folder)


def attempt(arguments, number, total):
    """One program in some ways.  Returns whether one of them failed."""
    program = programs.make(arguments.seed, number)
    ways = [WAYS[0], WAYS[1 + number % (len(WAYS) - 1)]]
    folder = os.path.join(arguments.keep, program.name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    build(program, folder)
    known = truth.Truth(program, folder)
    failed = is_kept = False
    for at, way in enumerate(ways):
        output = f"{at}.seam"
        words = record(arguments.seam, program, way, arguments.seconds,
                       output, folder)
        counts, shown = compare(arguments.seam, program, known, output, folder)
        total.add(counts)
        failed |= bool(counts.has_failed())
        if counts.wrong():
            is_kept = True
            print(f"# {shlex.join(way) or 'default options'}, "
                  f"{counts.stacks()} stacks: {counts.wrong()}")
            print_wrong(shown)
            print(f"#   kept in {folder}: {shlex.join(words)}")
    if is_kept:
        print("#   built by: " + "; ".join(map(shlex.join,
                                               program.commands())))
    else:
        shutil.rmtree(folder)
    print(f"{'not ok' if failed else 'ok'} {total.programs} - program "
          f"{number} of seed {arguments.seed}, {program.about()}: stacks are "
          "those of the program", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("seam", type=os.path.abspath)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100000,
                        help="stacks to compare")
    parser.add_argument("--programs", type=int, default=1000000,
                        help="at most so many programs")
    parser.add_argument("--program", type=int, help="only this one")
    parser.add_argument("--seconds", type=float, default=0.5,
                        help="CPU time of each thread")
    parser.add_argument("--keep", type=os.path.abspath,
                        help="a folder for programs that fail")
    arguments = parser.parse_args()
    total, failed = Counts(), False
    with tempfile.TemporaryDirectory(prefix="seam-truth-") as folder:
        arguments.keep = arguments.keep or folder
        number = arguments.program or 0
        if arguments.program is not None:
            arguments.programs = 1
        while (total.stacks() < arguments.count and
               total.programs < arguments.programs):
            total.programs += 1
            failed |= attempt(arguments, number, total)
            number += 1
    few = total.joined_wrongly() <= 0.001 * total.joined()
    print(f"{'ok' if few else 'not ok'} {total.programs + 1} - at most 0.1 % "
          f"of the joined stacks are wrong")
    print(f"1..{total.programs + 1}")
    print(f"# {total.stacks()} stacks: {total.wrong() or 'all right'}")
    print_table(total)
    return failed or not few


if __name__ == "__main__":
    sys.exit(main())
