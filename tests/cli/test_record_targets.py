#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record -G, --cgroups and --uid: whose samples are in a recording."""
import contextlib
import json
import os
import re
import subprocess
import sys

import tap
from record_lib import (FOLDER, IS_ROOT, NOBODY, SEAM, as_nobody, check, equal,
                        perf, record, refused, run, run_tests, running)


def cgroup_root():
    """Where the hierarchy is that perf events know; None: nowhere."""
    root = None
    with open("/proc/self/mounts", encoding="ascii") as mounts:
        for _, folder, kind, options, *_ in map(str.split, mounts):
            if kind == "cgroup" and "perf_event" in options.split(","):
                return folder
            if kind == "cgroup2" and not root:
                root = folder
    return root


@contextlib.contextmanager
def cgroups(*names):
    """Folders below one that is new, or a skip where there can be none."""
    root = cgroup_root()
    if not root:
        raise tap.Skip("no cgroups of perf_event are mounted here")
    made = [os.path.join(root, f"seam-{os.getpid()}")]
    made += [os.path.join(made[0], name) for name in names]
    try:
        for path in made:
            os.mkdir(path)
    except OSError as error:
        raise tap.Skip(f"no cgroup can be made here: {error}") from error
    try:
        yield made
    finally:
        for path in reversed(made):
            os.rmdir(path)


def spinning_in(cgroup, name):
    """A copy of spin by another name, which moves there and runs."""
    if not os.path.exists(name):
        os.link("spin", name)
    return running("sh", "-c", f'echo $$ >{cgroup}/cgroup.procs; echo up; '
                   f'exec ./{name} 99999999999', stdout=subprocess.PIPE)


def wait_until_up(*processes):
    for process in processes:
        process.stdout.readline()


def rows(path, by, event="cpu-clock"):
    text = json.loads(run(SEAM, "report", "--json", "--by", by, "--event",
                          event, path).stdout)
    return {tuple(row[key] for key in by.split(",")): row["self"]
            for row in text["rows"]}


def recorded_here(*words):
    """Others of a machine may cost records, which status 3 says."""
    result = record(*words)
    check(result.returncode in (0, 3), result.stderr)
    return result


def test_only_threads_of_the_cgroup_and_below_are_sampled():
    if not IS_ROOT:
        check("CAP_PERFMON" in refused("-a", "-G", "/"), "no advice")
        return
    with cgroups("in", "in/below", "out") as (_, inside, below, out), \
            spinning_in(inside, "one") as a, \
            spinning_in(below, "two") as b, spinning_in(out, "three") as c:
        wait_until_up(a, b, c)
        name = inside.removeprefix(cgroup_root())
        recorded_here("-a", "-e", "cpu-clock", "-G", name, "-o", "g.seam",
                 "--duration", "0.5")
        equal(set(rows("g.seam", "comm")), {("one",), ("two",)})
        recorded_here("-a", "-e", "cpu-clock", "-o", "all.seam", "--duration", "0.5")
        check(("three",) in rows("all.seam", "comm"), "not without -G")


def test_each_sample_and_each_wait_has_its_cgroup():
    """The same by perf."""
    if not IS_ROOT:
        return
    with cgroups("in", "out") as (top, inside, out), \
            spinning_in(inside, "one") as a, spinning_in(out, "two") as b:
        wait_until_up(a, b)
        name = top.removeprefix(cgroup_root())
        recorded_here("-a", "-e", "cpu-clock", "--cgroups", "--off-cpu", "-G", name,
                 "-o", "c.seam", "--duration", "0.5")
        text = perf("report", "-i", "c.seam/data", "--stdio", "-n", "-F",
                    "sample", "--sort", "cgroup,comm", "-g", "none",
                    silent=False)
    found = rows("c.seam", "cgroup,comm")
    equal(set(found), {(f"{name}/in", "one"), (f"{name}/out", "two")})
    of_perf = re.findall(r"^\s+(\d+)\s+(/\S+)\s+(one|two)\s*$", text, re.M)
    equal({(cgroup, comm): int(n) for n, cgroup, comm in of_perf[:2]}, found)
    # two threads each, on few CPUs: they lose them
    waits = rows("c.seam", "cgroup,comm", "preempted")
    equal(set(waits), set(found))


def test_cgroups_that_are_none_are_refused():
    if not IS_ROOT or not cgroup_root():
        return
    for name, text in (("/not/there", "there is no cgroup '/not/there'"),
                       ("../..", "is no cgroup")):
        result = record("-a", "-G", name, "-o", "no.seam")
        equal(result.returncode, 1)
        check(text in result.stderr, result.stderr)
    result = record("-G", "/", "true")
    equal(result.returncode, 2)
    check("needs -a" in result.stderr, result.stderr)


def pids_of(path):
    return {row["id"] if "id" in row else row["pid"]
            for row in json.loads(run(SEAM, "report", "--json", "--by",
                                      "process", path).stdout)["rows"]}


def test_only_processes_of_the_user_are_recorded():
    with running("./spin", "99999999999") as own, \
            running("sh", "-c", "./spin 99999999999; true",
                    preexec_fn=as_nobody, start_new_session=True) as other:
        uid = NOBODY if IS_ROOT else os.getuid()
        result = recorded_here("-e", "cpu-clock", "--uid", str(uid), "-o", "u.seam",
                          "--duration", "0.5")
        name = run("id", "-nu", str(uid)).stdout.strip()
        if name:
            recorded_here("-e", "cpu-clock", "--uid", name, "-o", "n.seam", "--",
                     "sleep", "0.5")
        check("samples in" in result.stderr, result.stderr)
        with open(f"/proc/{other.pid}/task/{other.pid}/children",
                  encoding="ascii") as children:
            child = int(children.read())
        try:
            for path in ("u.seam", "n.seam") if name else ("u.seam",):
                check(child in pids_of(path), f"{pids_of(path)}")
                equal(own.pid in pids_of(path), not IS_ROOT, path)
        finally:
            os.kill(child, 9)


def test_the_recording_of_a_user_ends_with_the_last_process():
    if not IS_ROOT:
        return
    with running("sh", "-c", "./spin 10000000; ./spin 20000000",
                 preexec_fn=as_nobody):
        result = recorded_here("-e", "cpu-clock", "-u", str(NOBODY), "-o", "e.seam")
    check("samples in" in result.stderr, result.stderr)


def test_users_that_are_none_are_refused():
    for user, status, text in (("no-such-user", 2, "name or the number"),
                               ("4000000001", 1, "no process of user")):
        result = record("-u", user, "-o", "no.seam")
        equal(result.returncode, status, result.stderr)
        check(text in result.stderr, result.stderr)
    equal(run(SEAM, "record", "-a", "-u", "root").returncode, 2)


os.chdir(FOLDER)
sys.exit(run_tests(globals()))
