#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam diff: two builds of a program, recorded in turn and compared"""
import contextlib
import functools
import glob
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import xml.etree.ElementTree

from corpus import ROOT
from record_lib import (SEAM, check, compile_c, equal, need_strace, record,
                        recorded, run, run_tests, seam, starved, wait_for)

WORK_C = r"""
volatile unsigned long sink;
#define N __attribute__((noinline))
N void work(unsigned long n)
{
	unsigned long h = 1;
	for (unsigned long i = 0; i < n * PERCENT / 100; i++)
		h = h * 31 + (h >> 7) + i;
	sink = h;
}
N void other(unsigned long n)
{
	unsigned long h = 3;
	for (unsigned long i = 0; i < n; i++)
		h = (h ^ i) * 0x9e3779b97f4a7c15ul;
	sink = h;
}
N void ADDED(unsigned long n) { other(n / 4); sink++; }
N void both(unsigned long n) { work(n); other(n); ADDED(n); sink++; }
int main(void)
{
	for (int i = 0; i < 15; i++)
		both(4000000);
	return 0;
}
"""
RUNS = 5
NS = {"svg": "http://www.w3.org/2000/svg"}


def programs():
    """"old", and "new", of which work() does 30 % more."""
    if not os.path.exists("new"):
        compile_c("old", WORK_C, "-DPERCENT=100", "-DADDED=before")
        compile_c("new", WORK_C, "-DPERCENT=130", "-DADDED=after")
    return "./old", ":", "./new"


def kept():
    """Recordings of the old program, and of the new one."""
    if not os.path.exists("kept"):
        result = run(SEAM, "diff", "--no-inline", "--runs", str(RUNS),
                     "--keep", "kept", "--", *programs())
        equal(result.returncode, 0, result.stderr)
    return (sorted(glob.glob("kept/a-*.seam")),
            sorted(glob.glob("kept/b-*.seam")))


@functools.cache
def compared(*words, status=0):
    """The JSON of a comparison of those."""
    before, after = kept()
    text = diff("--json", *words, *before, "--to", *after, status=status)
    return json.loads(text)


def diff(*words, status=0):
    """What it prints; libc's inlined functions take most of the time to read,
    and no test here looks at them."""
    return seam("diff", "--no-inline", *words, status=status)


def rows_of(result):
    return {row["symbol"]: row for row in result["rows"]}


def test_a_function_that_became_slower_fails_its_gate_and_has_the_first_row():
    before, after = kept()
    text = diff(*before, "--to", *after, "--gate", "work:self < +10%", "-g",
                "other:self < +60%", status=4)
    lines = text.splitlines()
    check(lines[0].startswith(f"A  {RUNS} runs of ./old: "), text)
    check(lines[1].startswith(f"B  {RUNS} runs of ./new: "), text)
    named = [line.split() for line in lines[5:8]]
    check(any(words[-2:] == ["work", "new"] for words in named), text)
    check("fails: work:self < +10%; it is +" in text, text)
    check("holds: other:self < +60%" in text, text)
    row = rows_of(compared())["work"]["self"]
    equal(row["verdict"], "more")
    check(0.1 < row["change"] < 0.6, row)
    check(row["low"] < 0.3 < row["high"] + 0.1, row)


def test_what_one_build_only_has_is_new_or_gone():
    rows = rows_of(compared("--sort", "total"))
    equal(rows["after"]["total"]["verdict"], "new")
    equal(rows["after"]["total"]["change"], None)
    equal(rows["before"]["total"]["verdict"], "gone")
    equal(rows["before"]["total"]["change"], -1)
    equal({row["module"] for name, row in rows.items()
           if name in ("work", "before", "after")}, {"new"})


def student(t, freedom):
    """The probability of a larger |t|: the density, by Simpson's rule."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) -
                     math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    n, end = 20000, abs(t)
    density = [scale * (1 + (end * i / n) ** 2 / freedom)
               ** (-(freedom + 1) / 2) for i in range(n + 1)]
    return 1 - 2 * end / n / 3 * (density[0] + density[-1] +
                                  4 * sum(density[1:-1:2]) +
                                  2 * sum(density[2:-1:2]))


def test_the_change_is_that_of_the_reports_of_each_run():
    """Welch's test, made again from what 'seam report' says of each run."""
    before, after = kept()
    runs = [{row["symbol"]: row for row in json.loads(seam(
        "report", "--json", "--no-inline", path))["rows"]}
        for path in before + after]
    for name in "work", "other":
        logs = [math.log(run[name]["self_weight"]) for run in runs]
        a, b = logs[:RUNS], logs[RUNS:]
        got = rows_of(compared())[name]["self"]
        change = statistics.mean(b) - statistics.mean(a)
        check(abs(got["change"] - math.expm1(change)) < 1e-9, got)
        check(abs(got["a"] / math.exp(statistics.mean(a)) - 1) < 1e-9, got)
        of_a = statistics.variance(a) / RUNS
        of_b = statistics.variance(b) / RUNS
        if min(of_a, of_b) < 1e-5:
            continue    # less than the rounding of samples
        freedom = (of_a + of_b) ** 2 / (
            of_a ** 2 / (RUNS - 1) + of_b ** 2 / (RUNS - 1))
        wanted = student(change / math.sqrt(of_a + of_b), freedom)
        check(abs(got["p"] - wanted) < 1e-6, f"{got} {wanted}")


def test_a_build_and_itself_do_not_differ():
    before, _ = kept()
    text = diff(*before, "--to", *before, "-g", "work:self < +50%")
    check("No function has changed by more than noise." in text, text)
    check("holds: work:self < +50%" in text, text)
    check("work" in diff("--all", *before, "--to", *before))


def test_two_runs_give_numbers_without_a_verdict():
    before, after = kept()
    words = (*before[:2], "--to", *after[:2], "-g", "work:self < +10%")
    text = diff(*words, status=5)
    check("no noise estimate" in text, text)
    check("undecided: work:self < +10%" in text, text)
    diff("--undecided=pass", *words)
    text = diff(before[0], after[0])
    check("  work " in text, text)


def test_a_gate_for_nothing_cannot_be_decided():
    before, after = kept()
    text = diff(*before, "--to", *after, "-g", "wrok:self < +10%",
                status=5)
    check("neither side has a sample of it" in text, text)
    result = run(SEAM, "diff", "-g", "work", *before, "--to", *after)
    equal(result.returncode, 2)
    check("a gate is SYMBOL:self < +5%" in result.stderr, result.stderr)


def test_selections_are_those_of_reports():
    layers = {row["layer"] for row in compared("--layer", "kernel")["rows"]}
    check(layers <= {"kernel"}, layers)
    whole, half = compared(), compared("--time", "0%,50%")
    share = half["all"]["a"] / whole["all"]["a"]
    check(0.2 < share < 0.8, share)
    second = compared("--per", "second")
    equal(second["per"], "second")
    units = [r["units"] for r in second["a"]["runs"]]
    check(all(abs(u - r["duration_ns"] / 1e9) < 1e-6 for u, r in
              zip(units, second["a"]["runs"])), second["a"])


def test_values_may_be_for_a_unit_of_work():
    whole, part = compared(), compared("--per", "request=1000")
    equal(part["per"], "request")
    check(abs(part["all"]["a"] * 1000 / whole["all"]["a"] - 1) < 1e-9, part)
    numbers = ",".join(["1000"] * RUNS + ["2000"] * RUNS)
    part = compared("--per", f"request={numbers}")
    check(abs(part["all"]["b"] * 2000 / whole["all"]["b"] - 1) < 1e-9, part)
    before, after = kept()
    for wrong in "hour", "r=", "r=0", "=5", "r=1,2", "r=x", "r=5,":
        result = run(SEAM, "diff", "--per", wrong, *before, "--to", *after)
        equal(result.returncode, 2, f"{wrong} {result.stderr}")


def test_the_tree_has_the_path_to_a_change():
    before, after = kept()
    text = diff("--tree", *before, "--to", *after)
    lines = [line.split()[-1] for line in text.splitlines() if line]
    check(lines.index("main") < lines.index("both") < lines.index("work"),
          text)
    check("work" in text and "without a change" in text, text)


def test_the_picture_is_one_file_with_marks():
    before, after = kept()
    diff(*before, "--to", *after, "-o", "d.svg")
    root = xml.etree.ElementTree.parse("d.svg").getroot()
    marks = {}
    for frame in root.iterfind(".//svg:g[@data-mark]", NS):
        title = frame.find("svg:title", NS).text.split("\n")
        marks[title[0]] = (frame.get("data-mark"), frame.get("class"))
    check(marks["work"][0].startswith("+") and
          marks["work"][1].startswith("f m"), marks)
    check(marks["after"][0] == "new", marks)
    foot = root.find(".//svg:g[@id='foot']/svg:text", NS)
    check(foot.text.startswith("gone: before (new)"), foot.text)
    svg = diff(*before, "--to", *after, "-o", "-")
    check(svg.startswith("<?xml"), svg[:80])


def test_without_names_the_last_two_recordings_are_compared():
    os.makedirs("last", exist_ok=True)
    for _ in range(2):
        recorded(os.path.abspath("spin"), cwd="last")
    result = run(SEAM, "diff", "--json", cwd="last")
    equal(result.returncode, 0, result.stderr)
    files = [json.loads(result.stdout)[side]["runs"][0]["file"]
             for side in "ab"]
    equal(files, ["recording.seam.old", "recording.seam"])


def test_lost_data_decides_nothing():
    before, _ = kept()
    result = record("-m", "1", "-e", "page-faults", "-c", "1",
                    "-o", "lossy.seam", *starved(
                        "head -c 30000000 /dev/zero | tail -c 1 >/dev/null"))
    equal(result.returncode, 3, result.stderr)
    lossy = ["lossy.seam"] * 3
    text = diff(*lossy, "--to", *lossy, status=3)
    check("records lost" in text, text)
    text = diff(*lossy, "--to", *lossy, "-g", "all:total < +90%",
                status=5)
    check("lost more than 1% of its records" in text, text)
    result = run(SEAM, "diff", "--no-inline", *before[:1], "lossy.seam")
    equal(result.returncode, 1)
    check("counts another unit" in result.stderr, result.stderr)


def test_a_command_that_fails_ends_it_and_leaves_nothing():
    os.makedirs("tmp", exist_ok=True)
    here = {**os.environ, "TMPDIR": os.path.abspath("tmp")}
    for command, why in (("false", "ended with status 1"),
                         ("./nowhere", "ended with status 127"),
                         ("sh -c 'kill -9 $$'", "ended with status 137")):
        words = ["sh", "-c", f"{SEAM} diff --runs 2 -- true : {command}"]
        result = run(*words, env=here)
        equal(result.returncode, 1, result.stderr)
        check("run 1 of B, '" in result.stderr and why in result.stderr,
              result.stderr)
        equal(os.listdir("tmp"), [])
    result = run(SEAM, "diff", "--runs", "1", "--record=-F2000",
                 "--record=--call-graph=none", "--json", "--", *programs(),
                 env=here)
    equal(result.returncode, 0, result.stderr)
    equal(os.listdir("tmp"), [])
    kept()
    result = run(SEAM, "diff", "--runs", "1", "--keep", "kept", "--",
                 *programs())
    equal(result.returncode, 1)
    check("cannot make the folder 'kept': File exists" in result.stderr,
          result.stderr)
    check(os.path.exists("kept/a-1.seam"))


def interrupted(number, *words):
    """The error output of a comparison that ends by that signal, which it
    gets when the command @words runs; its process id is in the file "ran"."""
    with contextlib.suppress(FileNotFoundError):
        os.remove("ran")
    process = subprocess.Popen(words, text=True, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    try:
        wait_for("ran", process)
        process.send_signal(number)
        return process.communicate(timeout=60)[1]
    finally:
        process.kill()
        equal(process.wait(), 128 + number)


def test_a_signal_ends_it_with_its_command_and_leaves_nothing():
    os.makedirs("stopped", exist_ok=True)
    os.environ["TMPDIR"] = os.path.abspath("stopped")
    command = ("sh", "-c", "echo $$ > ran.new; mv ran.new ran; exec sleep 99")
    try:
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            errors = interrupted(number, SEAM, "diff", "--runs", "2", "--",
                                 *command, ":", "true")
            check(f"seam: stopped by signal {number:d}\n" in errors, errors)
            equal(os.listdir("stopped"), [])
            with open("ran", encoding="ascii") as file:
                check(not os.path.exists(f"/proc/{file.read().strip()}"))
        need_strace()   # the signal comes while recordings are read
        result = run("strace", "-o", "/dev/null", "-e",
                     "inject=recvmsg:signal=SIGTERM:when=1", SEAM, "diff",
                     "--runs", "1", "--", "./spin", "99", ":", "true")
        equal(result.returncode, 128 + signal.SIGTERM, result.stderr)
        check("seam: stopped by signal 15\n" in result.stderr, result.stderr)
        equal(os.listdir("stopped"), [])
    finally:
        del os.environ["TMPDIR"]


def test_wrong_usage_is_told():
    before, after = kept()
    for words, why in (
            ([*before, *after], "write: A... --to B..."),
            ([before[0]], "write: A... --to B..."),
            (["--to", *after], "no recording before --to"),
            ([*before, "--to"], "no recording after --to"),
            (["--runs", "2", "--", "./old"], "--runs needs two commands"),
            (["--runs", "2", "--", ":", "./old"], "needs two commands"),
            (["--runs", "2", "--to", "--", "a", ":", "b"], "--runs and --to"),
            (["--keep", "d", before[0], after[0]], "need --runs"),
            (["--tree", "--json", before[0], after[0]], "cannot be combined"),
            (["-", after[0]], "standard input")):
        result = run(SEAM, "diff", *words)
        equal(result.returncode, 2, f"{words} {result.stderr}")
        check(why in result.stderr, result.stderr)
    result = run(SEAM, "diff", "nowhere.seam", after[0])
    equal(result.returncode, 1)
    check("cannot read 'nowhere.seam'" in result.stderr, result.stderr)


def test_exact_calls_have_no_noise():
    logs = [str(path) for path in sorted(ROOT.glob("xray/**/*.xray"))]
    if not logs:
        return
    for path in logs[:1]:
        result = run(SEAM, "diff", "--json", path, path, path, "--to", path,
                     path, path)
        check(result.returncode in (0, 3), result.stderr)
        rows = json.loads(result.stdout)["rows"]
        check(rows and all(row["self"]["verdict"] == "noise" and
                           row["self"]["p"] == 1 for row in rows), rows[:2])


sys.exit(run_tests(globals()))
