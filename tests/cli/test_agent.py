#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam agent: a program's samples in a store, once, whatever is killed.

Batches are read by tests/fleet/batch_rows.py.  Agents mostly wait, so all runs
are made at the same time, and each test looks at one of them.
"""
import atexit
import collections
import concurrent.futures
import functools
import glob
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

from record_lib import (IS_ROOT, SEAM, check, compile_c, equal, run, run_tests,
                        running)

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fleet"))
import batch_rows  # noqa: E402 pylint: disable=wrong-import-position

# Two functions, the CPU time of each by the thread's own clock, and naps.
TWO_C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long x;
static double cpu(void)
{ struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline)) void heavy(void)
{ for (int i = 0; i < 700000; i++) x += i; }
__attribute__((noinline)) void light(void)
{ for (int i = 0; i < 300000; i++) x += i; }
int main(int n, char **words)
{
	double spent[2] = { 0, 0 }, end = atof(words[1]);
	while (spent[0] + spent[1] < end) {
		double a = cpu(), b;
		heavy();
		b = cpu();
		light();
		spent[1] += cpu() - b;
		spent[0] += b - a;
		if (n > 2) usleep(atoi(words[2]));
	}
	printf("%f %f\n", spent[0], spent[1]);
	return 5;
}
"""
# Naps of 20 ms, and of 0.2 ms: how long they were, if longer than 5 ms.
NAPS_C = r"""
#include <stdio.h>
#include <time.h>
static double now(void)
{ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9; }
static double nap(long ns)
{ struct timespec t = { 0, ns }; double begin = now();
  nanosleep(&t, 0); return now() - begin; }
__attribute__((noinline)) double long_nap(void)
{ double n = nap(20000000); __asm__(""); return n; }
__attribute__((noinline)) double short_nap(void)
{ double n = nap(200000); __asm__(""); return n; }
int main(void)
{
	double sums[2] = { 0, 0 };
	for (int i = 0; i < 100; i++) {
		sums[0] += long_nap();
		for (int k = 0; k < 10; k++) {
			double n = short_nap();
			if (n > 0.005) sums[1] += n;
		}
	}
	printf("%.9f %.9f\n", sums[0], sums[1]);
	return 0;
}
"""
WINDOW = 10 * 10 ** 9


# -- agents -------------------------------------------------------------------

def words_of(name, *words, to=None):
    return [SEAM, "agent", "--service", name, "--spool", f"{name}.spool",
            "--to", to or f"{name}.store", "--window", "1s", "-F", "997",
            "--max-cpu", "0", *words]


def agent(name, *words, to=None, **options):
    """Run to the end.  The result of subprocess.run()."""
    return run(*words_of(name, *words, to=to), stdin=subprocess.DEVNULL,
               timeout=200, **options)


def start(name, *words, to=None, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    process = subprocess.Popen(words_of(name, *words, to=to), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               **options)
    # where a test fails, it must not go on
    atexit.register(process.kill)
    return process


def end(process):
    """Its exit status after SIGTERM, and what it has printed."""
    process.send_signal(signal.SIGTERM)
    printed = process.communicate(timeout=150)
    return process.returncode, printed


def status(name, code=0):
    result = run(SEAM, "agent", "--status", "--json", "--spool",
                 f"{name}.spool")
    equal(result.returncode, code, result.stderr)
    return json.loads(result.stdout)


def wait_until(truth, what, seconds=150):
    for _ in range(seconds * 20):
        if truth():
            return
        time.sleep(0.05)
    raise AssertionError(f"not in {seconds} s: {what}")


def n_batches(name):
    path = f"{name}.spool/status.json"
    if not os.path.exists(path):
        return 0
    with open(path, encoding="utf-8") as text:
        return json.load(text)["batches"]


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as text:
        return [int(word) for word in text.read().split()]


def tree(pid):
    found = [pid]
    for child in children(pid):
        found += tree(child)
    return found


# -- what is in a store -------------------------------------------------------

def batches_of(folder):
    rows = []
    for path in sorted(glob.glob(f"{folder}/*.batch")):
        with open(path, "rb") as file:
            rows.append(batch_rows.read_file(file.read()))
    return rows


def losses_of(batches):
    sums = collections.Counter()
    for batch in batches:
        for row in batch["losses"]:
            sums[row["cause"]] += row["records"]
    return sums


def n_samples(batches, event="cpu-clock"):
    return sum(row["count"] for batch in batches for row in batch["samples"]
               if row["event"] == event)


def totals(batches, event="cpu-clock", column=0):
    """Of each function the samples, or the value, of stacks that it is in."""
    sums = collections.Counter()
    for (name, stack), values in batch_rows.stack_sums(batches).items():
        for function in set(stack) if name == event else ():
            sums[function] += values[column]
    return sums


def check_shares(batches, spent, least=300):
    """Shares of heavy and light are those of the program's clock."""
    sums = totals(batches)
    heavy, light = (float(word) for word in spent.split())
    n = sums["heavy"] + sums["light"]
    check(n >= least, f"{n} samples")
    # five standard deviations of a share of so many samples, and 2 %
    tolerance = 5 * (0.25 / n) ** 0.5 + 0.02
    got, wanted = sums["heavy"] / n, heavy / (heavy + light)
    check(abs(got - wanted) < tolerance, f"heavy: {got}, wanted {wanted}")
    # complete stacks
    check(sums["main"] >= 0.98 * n, f"{sums['main']} of {n} in main")


# -- the runs -----------------------------------------------------------------

def run_command():
    return agent("command", "-l", "b=2", "-l", "a=1", "--host", "h", "--",
                 "./two", "0.6")


def run_attached():
    with running("./two", "0.6", "1000", stdout=subprocess.PIPE, text=True) as two:
        result = agent("attached", "-p", str(two.pid))
        return result, two.communicate(timeout=150)[0]


def run_system():
    """-a, with a known program beside it."""
    process = start("system", "-a", "-F", "199")
    wait_until(lambda: process.poll() is not None or n_batches("system"),
               "a batch")
    own = tree(process.pid) if process.poll() is None else []
    with running("./two", "0.6", stdout=subprocess.PIPE, text=True) as two:
        pid, printed = two.pid, two.communicate(timeout=150)[0]
    before = n_batches("system")
    wait_until(lambda: process.poll() is not None or
               n_batches("system") > before + 1, "two more")
    return own, pid, printed, end(process)


def run_waits():
    return agent("waits", "--off-cpu-min", "5ms", "--", "./naps")


def run_killed():
    """Everything is killed while the store is away; another agent sends."""
    away = os.path.abspath("two.c") + "/store"
    process = start("killed", "--", "./two", "60", "20000", to=away,
                    start_new_session=True)
    wait_until(lambda: n_batches("killed") > 2, "three batches")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=150)
    left = batches_of("killed.spool")
    return left, agent("killed", "--", "./two", "0.2")


def run_sender():
    """The sender is killed; the profiler goes on, and another one sends."""
    process = start("sender", "--", "./two", "60", "20000")
    wait_until(lambda: len(children(process.pid)) == 2 and
               glob.glob("sender.store/*"), "a batch in the store")
    sender = children(process.pid)[0]
    caps = [line for line in open(f"/proc/{sender}/status", encoding="ascii")
            if line.startswith(("CapEff", "CapPrm", "NoNewPrivs"))]
    os.kill(sender, signal.SIGKILL)
    before = n_batches("sender")
    wait_until(lambda: n_batches("sender") > before + 2, "batches go on")
    wait_until(lambda: len(children(process.pid)) == 2, "another sender")
    wait_until(lambda: not glob.glob("sender.spool/*.batch"), "all is sent")
    return caps, end(process)


def run_full():
    """The store is away, and the spool holds few of the batches."""
    away = os.path.abspath("two.c") + "/store"
    first = agent("full", "--spool-max", "8K", "--", "./two", "0.5",
                  "20000", to=away)
    before = status("full", 1)
    left = batches_of("full.spool")
    return first, before, left, agent("full", "--", "./two", "0.2")


def run_hanging():
    """A server that takes a connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        began = time.monotonic()
        result = agent("hanging", "--", "./two", "0.3", "20000", to=url)
        return result, time.monotonic() - began, status("hanging", 1)


def run_refused():
    """Nothing listens there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
    return agent("refused", "--", "./two", "0.2", "5000", to=url), status("refused", 1)


def run_reload():
    def write(service, label):
        with open("agent.conf", "w", encoding="ascii") as file:
            file.write(f"# the shop\nservice = {service}\n\n"
                       f"label = version={label}\nto = reload.store\n"
                       "window = 1s\nspool = reload.spool\nfreq = 997\n"
                       "max-cpu = 0\nno-such-line\n"[:-13])

    write("before", 1)
    with subprocess.Popen(
            [SEAM, "agent", "--config", "agent.conf", "--", "./two", "60", "20000"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: n_batches("reload") > 1, "two batches")
        with open("agent.conf", "a", encoding="ascii") as file:
            file.write("colour = red\n")
        process.send_signal(signal.SIGHUP)
        n = n_batches("reload")
        wait_until(lambda: n_batches("reload") > n + 1, "two more")
        write("after", 2)
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: status("reload")["service"] == "after",
                   "the new name")
        n = n_batches("reload")
        wait_until(lambda: n_batches("reload") > n, "one more")
        live = status("reload")
        second = agent("reload", "--", "true")
        return end(process), live, second


def run_budget():
    process = start("budget", "-F", "4", "--max-cpu", "0.0001", "--", "./two",
                    "60", "20000")
    wait_until(lambda: status("budget")["skipped_windows"] > 1
               if n_batches("budget") else False, "windows are left out")
    now = status("budget")
    return now, run(SEAM, "agent", "--status", "--spool",
                    "budget.spool").stdout, end(process)


def run_memory():
    return agent("memory", "--max-memory", "1M", "--max-cpu", "100", "--",
                 "./two", "0.6", "5000")


def run_secret():
    environment = dict(os.environ, SEAM_FLEET_USER="me",
                       SEAM_FLEET_PASSWORD="top-secret")
    process = start("secret", "--", "sh", "-c",
                    "echo [$SEAM_FLEET_PASSWORD]; exec ./two 60 20000",
                    env=environment)
    wait_until(lambda: n_batches("secret"), "a batch")
    sender, profiler = children(process.pid)
    seen = []
    for pid in tree(profiler):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                seen.append(b"top-secret" in file.read())
        except OSError:     # a reader without rights
            pass
    return sender, seen, end(process)


# The longest first.
RUNS = {"sender": run_sender, "budget": run_budget} | {
    name[4:]: function for name, function in list(globals().items())
    if name.startswith("run_") and name != "run_tests"}
started = {}


@functools.lru_cache
def made(name):
    if not started:
        compile_c("two", TWO_C, "-fno-omit-frame-pointer")
        compile_c("naps", NAPS_C, "-fno-omit-frame-pointer")
        pool = concurrent.futures.ThreadPoolExecutor(6)
        started.update((key, pool.submit(function))
                       for key, function in RUNS.items())
    return started[name].result()


# -- the promises -------------------------------------------------------------

def test_shares_of_a_command_are_those_of_its_own_clock():
    result = made("command")
    equal(result.returncode, 5, result.stderr)
    batches = batches_of("command.store")
    check_shares(batches, result.stdout)
    equal(n_samples(batches), status("command", 1)["samples"])
    rows = [row for batch in batches for row in batch["samples"]]
    equal({(row["service"], row["host"], tuple(row["labels"]))
           for row in rows}, {("command", "h", ("a=1", "b=2"))})
    equal({row["process"] for row in rows}, {"two"})


def test_rows_are_of_windows_of_ten_seconds_and_batches_count_up():
    made("command")
    batches = batches_of("command.store")
    for batch in batches:
        for row in batch["samples"]:
            equal(row["ts_ns"] % WINDOW, 0)
    ids = [(row["agent"], row["seq"]) for batch in batches
           for row in batch["batches"]]
    equal(ids, [(ids[0][0], seq) for seq in range(len(ids))])
    now = time.time_ns()
    for batch in batches:
        for row in batch["batches"]:
            check(now - 3600e9 < row["from_ns"] < now, row["from_ns"])


def test_a_running_process_is_profiled_until_it_ends():
    result, printed = made("attached")
    equal(result.returncode, 0, result.stderr)
    # what it had used before is not in it
    check_shares(batches_of("attached.store"), printed)


def test_the_system_without_the_agent_itself_and_without_idle_cpus():
    own, pid, printed, (code, said) = made("system")
    if not IS_ROOT and code:
        check("perf_event_paranoid" in said[1] or "CAP_PERFMON" in said[1],
              said[1])
        return
    equal(code, 0, said[1])
    batches = batches_of("system.store")
    mine = [batch | {"samples": [row for row in batch["samples"]
                                 if row["pid"] == pid]}
            for batch in batches]
    check(len(own) > 3, own)
    check_shares(mine, printed, 50)
    seen = {row["pid"] for batch in batches for row in batch["samples"]}
    # nor its idle CPUs, which are process 0
    equal(seen & {0, *own}, set())


def test_waits_of_at_least_so_long_have_their_time_and_stack():
    result = made("waits")
    equal(result.returncode, 0, result.stderr)
    batches = batches_of("waits.store")
    value = totals(batches, "off-cpu", 1)
    long, short = (float(word) for word in result.stdout.split())
    check(0.9 * long < value["long_nap"] / 1e9 < long + 0.05,
          f"{value['long_nap']} ns, wanted {long} s")
    # all of them together are 0.2 s or more
    check(value["short_nap"] / 1e9 <= short, f"{value} ns, at most {short} s")


def test_after_a_kill_what_was_spooled_is_sent_once():
    left, result = made("killed")
    equal(result.returncode, 5, result.stderr)
    check(len(left) >= 3, len(left))
    stored = batches_of("killed.store")
    ids = [(row["agent"], row["seq"]) for batch in stored
           for row in batch["batches"]]
    equal(len(set(ids)), len(ids))
    wanted = {(row["agent"], row["seq"]) for batch in left
              for row in batch["batches"]}
    check(wanted <= set(ids), f"{wanted} of {ids}")
    equal(glob.glob("killed.spool/*.batch"), [])
    equal(sum(row["count"] for batch in stored for row in batch["samples"]
              if (row["agent"], row["seq"]) in wanted), n_samples(left))


def test_a_sender_that_is_killed_is_replaced_and_sends_the_rest():
    caps, (code, _) = made("sender")
    equal(code, 0)
    equal({int(line.split()[1], 16) for line in caps
           if line.startswith("Cap")}, {0})
    check(any(line.split() == ["NoNewPrivs:", "1"] for line in caps), caps)
    batches = batches_of("sender.store")
    equal(n_samples(batches), status("sender", 1)["samples"])
    seqs = [row["seq"] for batch in batches for row in batch["batches"]]
    equal(sorted(seqs), list(range(len(seqs))))


def test_what_a_full_spool_drops_is_counted_in_the_store_to_the_sample():
    first, before, left, second = made("full")
    equal(first.returncode, 5, first.stderr)
    equal(second.returncode, 5, second.stderr)
    check(before["dropped_batches"] > 0, before)
    check(len(left) <= 3, len(left))
    stored = batches_of("full.store")
    lost = losses_of(stored)["spool full"]
    check(lost > 0, "nothing was dropped")
    equal(n_samples(stored) + lost,
          before["samples"] + status("full", 1)["samples"])
    equal(glob.glob("full.spool/*gone*"), [])


def test_a_server_that_never_answers_delays_neither_the_program_nor_the_end():
    result, took, now = made("hanging")
    equal(result.returncode, 5, result.stderr)
    check(took < 60, took)
    equal(now["sent_batches"], 0)
    equal(n_samples(batches_of("hanging.spool")), now["samples"])


def test_the_state_says_why_nothing_is_sent():
    result, now = made("refused")
    equal(result.returncode, 5, result.stderr)
    check("127.0.0.1" in now["send_error"], now)
    check(now["failed_tries"] > 0, now)
    equal(now["waiting_batches"], now["batches"])
    text = run(SEAM, "agent", "--status", "--spool", "refused.spool").stdout
    check("not running" in text and now["send_error"][:40] in text, text)


def test_sighup_reads_the_file_again_and_a_bad_one_changes_nothing():
    (code, said), live, second = made("reload")
    equal(code, 0, said[1])
    check("agent.conf:10" in said[1] and "as before" in said[1], said[1])
    equal((live["running"], live["service"], live["labels"]),
          (True, "after", ["version=2"]))
    rows = [row for batch in batches_of("reload.store")
            for row in batch["samples"]]
    equal({(row["service"], row["labels"][0]) for row in rows},
          {("before", "version=1"), ("after", "version=2")})
    equal(sum(row["count"] for row in rows), status("reload", 1)["samples"])
    equal(second.returncode, 1)
    check("another agent uses the spool" in second.stderr, second.stderr)


def test_above_its_budget_it_samples_less_and_says_so():
    now, text, (code, _) = made("budget")
    equal(code, 0)
    check(now["skipped_windows"] > 1, now)
    check("reduced for --max-cpu" in text, text)
    causes = {row["cause"] for batch in batches_of("budget.store")
              for row in batch["losses"]}
    check("window left out for --max-cpu" in causes, causes)


def test_above_its_memory_it_forgets_and_goes_on():
    result = made("memory")
    equal(result.returncode, 5, result.stderr)
    now = status("memory", 1)
    check(now["forgotten"] >= 3, now)
    batches = batches_of("memory.store")
    check_shares(batches, result.stdout)
    equal(n_samples(batches), now["samples"])


def test_only_the_sender_has_the_credentials():
    _, seen, (code, said) = made("secret")
    equal(code, 0)
    check(said[0].startswith("[]"), said[0])
    check(len(seen) >= 3 and not any(seen), seen)


def test_options_that_cannot_be_are_refused_with_the_reason():
    for words, text in (
            (["-a", "--to", "x"], "--service"),
            (["-a", "--service", "s"], "--to"),
            (["--service", "s", "--to", "x"], "nothing is selected"),
            (["-a", "--service", "s", "--to", "http://me:pw@h/"],
             "--credentials"),
            (["-a", "--service", "s", "--to", "x", "-l", "=1"], "KEY=VALUE"),
            (["-a", "--service", "s", "--to", "x", "--window", "7s"],
             "--window"),
            (["-a", "--service", "s", "--to", "x", "-F", "0"], "-F")):
        result = run(SEAM, "agent", *words)
        equal(result.returncode, 2, words)
        check(text in result.stderr, f"{words}: {result.stderr}")
    result = run(SEAM, "agent", "--status", "--spool", "none")
    equal(result.returncode, 1)
    check("no agent uses this spool" in result.stderr, result.stderr)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
