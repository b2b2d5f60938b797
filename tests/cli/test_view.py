#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam view: what is in the page, and who gets it from the server.

The page is read by the reader of tests/export/read_exports.py, which shares
nothing with Seam.  That sums of its samples are those of folded files, event
by event and stack by stack, is in tests/export/test_exports.py.
"""
import collections
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.parse

ROOT = os.environ["SEAM_SOURCE"]
sys.path.insert(0, os.path.join(ROOT, "tests", "export"))

import tap
from read_exports import read_page, read_pages
from record_lib import (IS_ROOT, NOBODY, SEAM, check, compile_c, equal,
                        recorded, run, run_tests, seam, wait_for)

CORPUS = os.environ.get("SEAM_CORPUS", "")
BUNDLE = os.path.join(CORPUS, "bundle", "lua.seam")
LOG = os.path.join(CORPUS, "xray", "rec", "basic-mt.xray")
VIEWER = os.path.join(ROOT, "viewer")


def need(path):
    if not os.path.exists(path):
        raise tap.Skip("the corpus is not unpacked")


def pages(*words, status=(0, 3)):
    done = run(SEAM, "view", "-o", "x.html", *words)
    check(done.returncode in status, done.stderr)
    return read_pages("x.html")


def sums(page):
    """{(event, thread, stack): weight} of a page's samples."""
    total = collections.Counter()
    for event, thread, stack, weight in page.rows(
            "samples", "event", "thread", "stack", "weight"):
        total[event, thread, stack] += weight
    return total


# -- calls -----------------------------------------------------------------

def called(page):
    """{function: [calls, ns, ns in itself]} of the rows of calls."""
    self, last = [], {}
    functions = collections.defaultdict(lambda: [0, 0, 0])
    rows = list(page.rows("calls", "begin", "duration", "hidden", "thread",
                          "func", "depth"))
    for i, (begin, length, hidden, thread, _, depth) in enumerate(rows):
        self.append(length - hidden)
        caller = last.get((thread, depth - 1))
        if depth:
            check(caller is not None, f"call {i} has no caller")
            self[caller] -= length
            check(rows[caller][0] <= begin and begin + length <=
                  rows[caller][0] + rows[caller][1], f"call {i} is outside")
        last[thread, depth] = i
    for (_, length, _, _, func, _), own in zip(rows, self):
        entry = functions[page.head["functions"][func]]
        entry[0] += 1
        entry[1] += length
        entry[2] += own
    return functions


def accounted(path):
    account = json.loads(seam("calls", "--json", path))
    return {f["name"]: [f["count"], f["sum_ns"], f["self_ns"]]
            for f in account["functions"]}


def test_calls_are_those_of_seam_calls():
    need(LOG)
    page = pages(LOG)[0]
    equal(dict(called(page)), accounted(LOG))
    equal(page.head["meta"]["coarse"]["calls"], 0)


def test_calls_have_the_waits_of_seam_calls():
    path = os.path.join(CORPUS, "view", "requests.seam")
    need(path)
    page = pages(path)[0]
    waits = collections.defaultdict(lambda: [0, 0])
    for func, blocked, preempted in page.rows("calls", "func", "blocked",
                                              "preempted"):
        waits[page.head["functions"][func]][0] += blocked
        waits[page.head["functions"][func]][1] += preempted
    check(page.head["meta"]["callWaits"])
    equal(dict(waits), {
        f["name"]: [f["blocked_ns"], f["preempted_ns"]] for f in
        json.loads(seam("calls", "--json", path))["functions"]})


def test_short_calls_are_left_out_and_no_sum_changes():
    need(LOG)
    whole, page = pages(LOG)[0], pages("--max-rows", "1000", LOG)[0]
    coarse = page.head["meta"]["coarse"]
    n = len(page.columns["calls.begin"])
    check(0 < n <= 1000, n)
    equal(n + coarse["calls"], len(whole.columns["calls.begin"]))
    check(min(page.columns["calls.duration"]) >= coarse["shortestCallNs"])
    equal(sums(page), sums(whole))
    all_calls, kept = accounted(LOG), called(page)
    for name, (_, _, own) in kept.items():
        if kept[name][0] == all_calls[name][0]:
            equal(own, all_calls[name][2], f"{name} in itself:")


def test_near_samples_are_added_up_and_no_sum_changes():
    recorded("-F", "5000", "-o", "spin.seam", "--", "./spin",
             "200000000")
    whole = pages("spin.seam")[0]
    page = pages("--max-rows", "200", "spin.seam")[0]
    n = len(page.columns["samples.time"])
    check(n <= 200 < len(whole.columns["samples.time"]), n)
    equal(sums(page), sums(whole))
    equal(n + page.head["meta"]["coarse"]["samples"],
          len(whole.columns["samples.time"]))
    equal(sum(page.columns["samples.count"]),
          sum(whole.columns["samples.count"]))
    check("are added to others" in run(
        SEAM, "view", "-o", "x.html", "--max-rows", "200",
        "spin.seam").stderr)


# -- waits, marks, facts ---------------------------------------------------

def test_waits_have_reasons_and_threads_have_times():
    recorded("--off-cpu", "-o", "waits.seam", "--", "sh", "-c",
             "for i in 1 2 3; do sleep 0.03; done")
    page = pages("waits.seam")[0]
    words = page.head["words"]
    waits = {i for i, event in enumerate(page.head["events"])
             if event["kind"] == "wait"}
    rows = [row for row in page.rows("samples", "event", "weight", "placed",
                                     "reason", "thread", "count")
            if row[0] in waits]
    long = [row for row in rows if row[1] > 20e6 and row[2]]
    check(len(long) >= 3, rows)
    check(all(count == 1 for *_, placed, _, _, count in rows if placed))
    check(any(words[row[3]] for row in long) or not IS_ROOT, words)
    times = [t for t in page.head["threads"] if "running" in t]
    check(times and all(t["blocked"] >= 0 for t in times), times)
    blocked = collections.Counter()
    for event, weight, _, _, thread, _ in rows:
        blocked[thread, page.head["events"][event]["preempted"]] += weight
    for i, thread in enumerate(page.head["threads"]):
        if "running" in thread and not thread["unknown"]:
            equal((blocked[i, False], blocked[i, True]),
                  (thread["blocked"], thread["preempted"]), f"thread {i}:")


def test_a_snapshot_opens_at_its_trigger():
    need(BUNDLE)
    shutil.copytree(BUNDLE, "trigger.seam", dirs_exist_ok=True)
    with open("trigger.seam/meta.json", encoding="utf-8") as file:
        manifest = json.load(file)
    start = int(pages("trigger.seam")[0].head["meta"]["startNs"])
    thread = pages("trigger.seam")[0].head["threads"][0]
    manifest["triggers"] = [{
        "trigger": "<b>f>10ms", "pid": 1, "tid": thread["tid"], "tsc": 1,
        "time_ns": start + 12345678, "duration_ns": 11000000, "function": 1}]
    with open("trigger.seam/meta.json", "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    page = pages("trigger.seam")[0]
    equal(page.head["meta"]["openAtNs"], 12345678)
    equal(page.head["meta"]["openForNs"], 11000000)
    marks = [row for row in page.rows("marks", "time", "kind", "thread",
                                      "name") if row[1] == 4]
    equal(marks, [(12345678, 4, 0, page.head["words"].index("<b>f>10ms"))])
    equal(pages(BUNDLE)[0].head["meta"]["openAtNs"], -1)


def test_compiled_code_is_marked():
    path = os.path.join(CORPUS, "bundle", "jit.seam")
    need(path)
    page = pages(path)[0]
    jit = [row for row in page.rows("marks", "time", "kind", "name")
           if row[1] == 3]
    functions = {name for name, layer in zip(
        page.head["functions"], page.columns["functions.layer"]) if layer == 2}
    names = {page.head["words"][name] for _, _, name in jit}
    check(names and functions <= names | {"[joined]"}, (names, functions))


def test_without_ties_the_skew_of_calls_is_not_known():
    need(LOG)
    equal(pages(LOG)[0].head["meta"]["clockSkewNs"], -1)


# -- texts of others -------------------------------------------------------

HOSTILE_C = r"""
#line 1 "%s"
volatile unsigned long x;
__attribute__((noinline)) void evil(void)
{ for (unsigned long i = 0; i < 200000000; i++) x += i; }
int main(void) { evil(); return 0; }
"""
MARKUP = "</script><script>alert(1)</script><!--"


def test_names_are_data_and_never_markup():
    program = compile_c("plain", HOSTILE_C % (MARKUP + ".c"), "-g")
    name = f"{MARKUP}\x1b[31m\u202e".replace("/", "\\")
    shutil.copy(program, name)
    recorded("-o", "names.seam", "--", f"./{name}")
    page = pages("names.seam")[0]
    check(any(MARKUP + ".c" in path for path in page.head["files"]),
          page.head["files"])
    with open("x.html", encoding="utf-8") as file:
        text = file.read()
    with open(f"{VIEWER}/page.html", encoding="utf-8") as file:
        before, after = file.read().split("<!--recordings-->")
    check(text.startswith(before) and text.endswith(after.rstrip("\n")) or
          text.endswith(after), "the page around the recording has changed")
    middle = text[len(before):text.rindex(after.strip())]
    check(re.fullmatch(r'<script type="application/octet-stream" '
                       r'class="recording">[A-Za-z0-9+/=]*</script>\s*',
                       middle), middle[:200])


def test_sources_are_there_when_asked_for_and_by_their_names_only():
    source = os.path.abspath("plain.c")
    program = compile_c("plain", HOSTILE_C % source, "-g")
    recorded("-o", "source.seam", "--", program)
    check(not pages("source.seam")[0].head["sources"])
    page = pages("--source", "source.seam")[0]
    texts = {page.head["files"][s["file"]]: s["text"]
             for s in page.head["sources"]}
    with open(source, encoding="ascii") as file:
        equal(texts.get(source), file.read())
    secret = os.path.abspath("secret")
    with open(secret, "w", encoding="ascii") as file:
        file.write("the key\n")
    program = compile_c("named", HOSTILE_C % secret, "-g")
    recorded("-o", "named.seam", "--", program)
    page = pages("--source", "named.seam")[0]
    check(secret in page.head["files"], page.head["files"])
    check(secret not in [page.head["files"][s["file"]]
                         for s in page.head["sources"]])


def test_instructions_are_at_the_addresses_of_frames():
    if not os.path.exists("source.seam"):
        recorded("-o", "source.seam", "--",
                 compile_c("plain", HOSTILE_C % "plain.c", "-g"))
    page = pages("source.seam")[0]
    code = [c for c in page.head["code"]
            if page.head["functions"][c["func"]] == "evil"]
    if not page.head["code"]:
        raise tap.Skip("libcapstone is not installed")
    addresses = {addr for c in code for addr in c["addr"]}
    at = [addr for func, addr in page.rows("frames", "func", "addr")
          if page.head["functions"][func] == "evil"]
    check(at and set(at) <= addresses, (at, addresses))
    check(not pages("--no-code", "source.seam")[0].head["code"])


# -- two recordings, wrong words -------------------------------------------

def test_two_recordings_are_two_payloads():
    need(BUNDLE)
    other = os.path.join(CORPUS, "bundle", "events.seam")
    both = pages(BUNDLE, other)
    equal([page.head["meta"]["file"] for page in both], [BUNDLE, other])
    equal([sums(page) for page in both],
          [sums(pages(BUNDLE)[0]), sums(pages(other)[0])])
    done = run(SEAM, "view", "-o", "x.html", BUNDLE, other, other)
    equal(done.returncode, 2)
    check("two to be compared" in done.stderr, done.stderr)


# -- the server ------------------------------------------------------------

@contextlib.contextmanager
def served(*words, env=None, **options):
    """(process, URL parsed) of a server, which Ctrl-C ends."""
    command = (SEAM, "view", *words, BUNDLE)
    process = subprocess.Popen(command, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True,
                               env={**os.environ, **(env or {})}, **options)
    try:
        url = process.stdout.readline().strip()
        check(re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", url), url)
        yield process, urllib.parse.urlparse(url)
        process.send_signal(signal.SIGINT)
        equal(process.wait(20), 0, "after Ctrl-C:")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def fetch(url, path=None, method="GET", host=None):
    connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=20)
    try:
        connection.request(method, path or url.path, headers={
            "Host": host or url.netloc})
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def test_the_server_answers_with_the_page_and_its_headers():
    need(BUNDLE)
    with served("--no-browser") as (_, url):
        for host in (url.netloc, f"localhost:{url.port}"):
            answer, body = fetch(url, host=host)
            equal(answer.status, 200)
            pages(BUNDLE)
            with open("x.html", "rb") as file:
                equal(body, file.read())
        wanted = {"Cache-Control": "no-store",
                  "X-Content-Type-Options": "nosniff",
                  "Referrer-Policy": "no-referrer",
                  "Content-Security-Policy": "frame-ancestors 'none'",
                  "Content-Type": "text/html; charset=utf-8"}
        equal({name: answer.getheader(name) for name in wanted}, wanted)


def test_the_server_refuses_other_paths_hosts_and_methods():
    need(BUNDLE)
    with served("--no-browser") as (_, url):
        wrong = url.path[:-2] + ("0" if url.path[-2] != "0" else "1") + "/"
        for status, request in (
                (404, {"path": "/"}), (404, {"path": wrong}),
                (404, {"path": url.path[:-1]}),
                (404, {"path": url.path + "x"}),
                (404, {"path": "/" + "a" * 4000}),
                (421, {"host": "evil.example"}),
                (421, {"host": f"evil.example:{url.port}"}),
                (421, {"host": "127.0.0.1"}),
                (421, {"host": f"127.0.0.1:{url.port ^ 1}"}),
                (405, {"method": "POST"}), (405, {"method": "PUT"}),
                (405, {"method": "HEAD"}), (405, {"method": "OPTIONS"})):
            answer, body = fetch(url, **request)
            equal(answer.status, status, f"{request}:")
            check(b"seam" not in body.lower() and len(body) < 100, body)
        equal(fetch(url)[0].status, 200, "afterwards:")


def listeners(port):
    """The local addresses, in hexadecimal, that listen on @port."""
    lines = []
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}", encoding="ascii") as file:
            lines += file.readlines()[1:]
    return [line.split()[1].split(":")[0] for line in lines
            if int(line.split()[1].split(":")[1], 16) == port and
            line.split()[3] == "0A"]


def test_only_this_machine_can_connect():
    need(BUNDLE)
    with served("--no-browser") as (_, url):
        equal(listeners(url.port), ["0100007F"])


BROWSER = """#!/bin/sh
echo "$@" > args.new
cat "$1" > link.html
stat -c %a "$1" > mode
mv args.new args
"""


def test_a_browser_gets_the_link_in_a_file_that_only_its_user_can_read():
    need(BUNDLE)
    with open("browser", "w", encoding="ascii") as file:
        file.write(BROWSER)
    os.chmod("browser", 0o755)
    with contextlib.suppress(FileNotFoundError):
        os.unlink("args")
    with served(env={"BROWSER": os.path.abspath("browser"),
                     "XDG_RUNTIME_DIR": os.getcwd()}) as (process, url):
        wait_for("args", process)
        with open("args", encoding="utf-8") as file:
            args = file.read().split()
        check(len(args) == 1 and url.path.strip("/") not in args[0], args)
        with open("link.html", encoding="utf-8") as file:
            check(f'url={url.geturl()}"' in file.read())
        with open("mode", encoding="ascii") as file:
            equal(file.read().strip(), "600")
    check(not os.path.exists(args[0]), "the link is still there")


def test_an_ordinary_user_can_serve_a_page():
    need(BUNDLE)
    if not IS_ROOT:
        raise tap.Skip("all the others ran as one")
    shutil.copytree(BUNDLE, "theirs.seam", dirs_exist_ok=True)
    run("chmod", "-R", "a+rX", "theirs.seam")
    command = [SEAM, "view", "--no-browser", "theirs.seam"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, user=NOBODY,
                          text=True) as process:
        url = urllib.parse.urlparse(process.stdout.readline().strip())
        status = fetch(url)[0].status if url.port else 0
        process.send_signal(signal.SIGTERM)
        equal((status, process.wait(20)), (200, 0))


# -- the page itself -------------------------------------------------------

def need_packages():
    if not shutil.which("node"):
        raise tap.Skip("node is not installed")
    if not os.path.exists(f"{VIEWER}/node_modules/esbuild"):
        raise tap.Skip("no packages: './dev viewer' installs them")


def test_the_committed_page_is_what_its_sources_build():
    need_packages()
    out = os.path.abspath("page.html")
    done = run("node", "build.mjs", out, cwd=VIEWER)
    equal(done.returncode, 0, done.stderr)
    with open(out, "rb") as new, open(f"{VIEWER}/page.html", "rb") as old:
        check(new.read() == old.read(), "run './dev viewer' and commit "
              "viewer/page.html")


def payload(page_file):
    with open(page_file, encoding="utf-8") as file:
        return re.search(r'class="recording">([^<]*)<', file.read())[1]


def test_the_page_reads_what_was_written_and_says_what_is_damaged():
    need(BUNDLE)
    need_packages()
    pages(BUNDLE, "--source")
    with open("payload", "w", encoding="ascii") as file:
        file.write(payload("x.html"))
    _, page = read_page("x.html")
    weights = collections.Counter()
    for event, weight in page.rows("samples", "event", "weight"):
        weights[event] += weight
    with open("facts.json", "w", encoding="ascii") as file:
        json.dump({"samples": len(page.columns["samples.time"]),
                   "weights": [weights[i] for i in
                               range(len(page.head["events"]))],
                   "parents": sum(page.columns["stacks.parent"][1:]),
                   "addresses": sum(page.columns["frames.addr"]),
                   "words": page.head["words"],
                   "names": page.head["functions"]}, file)
    done = run("node", "test/decode.mjs", os.path.abspath("payload"),
               os.path.abspath("facts.json"), cwd=VIEWER, timeout=200)
    equal(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
