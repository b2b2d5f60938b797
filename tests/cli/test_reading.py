#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The commands that read a recording, as a user runs them: reading.py SEAM

A short recording is made first.
"""
import json
import os
import pathlib
import pty
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

SEAM = os.path.abspath(sys.argv[1])
WORK = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; cat /dev/null"
checks = []
have = {}


def check(text, need=None):
    """Register a check; it returns true, or false or a word of why not."""
    def register(function):
        checks.append((text, need, function))
        return function
    return register


def run(*words, **more):
    return subprocess.run([SEAM, *words], stdin=subprocess.DEVNULL,
                          stdout=more.pop("stdout", subprocess.PIPE),
                          stderr=subprocess.PIPE, timeout=60, check=False,
                          text=True, **more)


def report(*words):
    return json.loads(run("report", "--json", *words, have["recording"])
                      .stdout)


@check("report --json holds what it promises", "recording")
def _():
    r = report()
    selves = [row["self"] for row in r["rows"]]
    return (r["schema"] == "seam.report/1" and sum(selves) == r["samples"]
            and r["samples"] > 0 and r["lost"]["records"] == 0
            and selves == sorted(selves, reverse=True)
            and all(row["self"] <= row["total"] <= r["samples"] and
                    set(row) >= {"layer", "symbol", "module"}
                    for row in r["rows"]))


@check("report --tree --json nests to the same numbers", "recording")
def _():
    r = report("--tree", "--min-percent=0")
    tree = [t for event in r["events"] for t in event["tree"]]

    def selves(node):
        return node["self"] + sum(map(selves, node.get("children", [])))
    return (r["schema"] == "seam.tree/1" and
            sum(map(selves, tree)) == r["samples"] ==
            sum(node["total"] for node in tree))


@check("each --by gives rows that add up", "recording")
def _():
    return all(sum(row["self"] for row in r["rows"]) == r["samples"]
               for r in (report("--by", by) for by in
                         ("symbol", "module", "thread", "process", "comm",
                          "cpu", "line", "comm,symbol", "cpu,comm,module")))


@check("--callers and --callees are trees of the same samples", "recording")
def _():
    rows = report("--layer", "native")["rows"]
    for row in [r for r in rows if r["total"] > r["self"]][:3] + rows[:1]:
        name = row["symbol"]
        same = sum(r["total"] for r in rows if r["symbol"] == name)
        for option in ("--callers", "--callees"):
            tree = report(option, name, "--min-percent=0")
            roots = tree["events"][0]["tree"]
            if not (tree["samples"] == sum(r["total"] for r in roots) and
                    row["total"] <= tree["samples"] <= same and
                    {r["symbol"] for r in roots} == {name} and
                    tree[option[2:] + "_of"] == name):
                return f"{option} {name}: {tree}"
    missing = run("report", "--callers", "no such", have["recording"])
    return missing.returncode == 1 and "none of that name" in missing.stderr


@check("a time after the end says how long the recording is", "recording")
def _():
    for words in (["report"], ["flamegraph", "-o", "/dev/null"],
                  ["convert", "--to", "folded"]):
        done = run(*words, "--time", "1000,", have["recording"])
        if not re.search(r"the recording is [\d.]+ m?s long", done.stderr):
            return f"{words}: {done.stderr}"
    log = os.path.join(os.environ.get("SEAM_CORPUS", "/nonexistent"),
                       "xray/rec/basic-mt.xray")
    if os.path.exists(log):
        done = run("calls", "--time", "1000,", log)
        return "the recording is " in done.stderr or done.stderr
    return True


@check("two halves of the time are the whole", "recording")
def _():
    return (report("--time=0%,50%")["samples"] +
            report("--time", "50%,")["samples"] == report()["samples"])


@check("layers and threads select", "recording")
def _():
    whole = report()
    kernel = report("--layer", "kernel")
    by_thread = report("--by", "thread")["rows"]
    return ({row["layer"] for row in kernel["rows"]} <= {"kernel"} and
            kernel["samples"] <= whole["samples"] and
            all(report("--thread", str(row["tid"]))["samples"] >= row["self"]
                for row in by_thread))


@check("--top and --filter shorten the rows", "recording")
def _():
    rows = report()["rows"]
    word = rows[0]["symbol"]
    return (len(report("--top", "1")["rows"]) == 1 and
            all(word.lower() in (row["symbol"] + row["module"]).lower()
                for row in report("--filter", word.upper())["rows"]))


@check("a filter that nothing passes is said, and no bare head", "recording")
def _():
    for words in ([], ["--tree"], ["--by", "thread"], ["--by", "module"]):
        done = run("report", *words, "--filter", "no such", have["recording"])
        if (done.returncode or "'no such'" not in done.stdout or
                "SAMPLES" in done.stdout or "CALLS" in done.stdout):
            return f"{words}: {done.stdout}"
    return True


@check("every module has a name", "recording")
def _():
    text = run("report", "--by", "module", have["recording"]).stdout
    return (all(row["module"]
                for row in report("--by", "module")["rows"]) and
            not re.search(r"^ .*% +[\d,]+ *$", text, re.M)) or text


@check("piped text has no colour unless it is asked for", "recording")
def _():
    name = have["recording"]
    return ("\x1b" not in run("report", name).stdout and
            "\x1b" in run("report", "--color=always", name).stdout and
            "\x1b" in run("report", "--color", "always", "--tree", name,
                          env={**os.environ, "NO_COLOR": "1"}).stdout)


@check("folded lines are sorted, distinct and add up", "recording")
def _():
    out = run("convert", "--to", "folded", have["recording"]).stdout
    lines = out.splitlines()
    encoded = [line.encode() for line in lines]
    return (encoded == sorted(encoded) and
            len({line.rsplit(" ", 1)[0] for line in lines}) == len(lines) and
            all(re.fullmatch(r"[^;]+(;[^;]+)* [1-9]\d*", line)
                for line in lines) and
            sum(int(line.rsplit(" ", 1)[1]) for line in lines) ==
            report()["samples"])


@check("a picture is XML, with a title for each frame", "recording")
def _():
    import xml.etree.ElementTree as tree
    target = os.path.join(have["folder"], "x.svg")
    done = run("flamegraph", "-o", target, have["recording"])
    root = tree.parse(target).getroot()
    frames = [g for g in root.iter("{http://www.w3.org/2000/svg}g")
              if g.get("role") == "treeitem"]
    return (done.returncode == 0 and done.stdout == "" and len(frames) > 2 and
            all(g.find("{http://www.w3.org/2000/svg}title") is not None
                for g in frames))


@check("an output file has the usual mode and leaves nothing beside it",
       "recording")
def _():
    folder = os.path.join(have["folder"], "out")
    os.mkdir(folder)
    target = os.path.join(folder, "a.folded")
    old = os.umask(0o027)
    done = [run("convert", "--to=folded", "-o", target, have["recording"])
            for _ in range(2)]
    os.umask(old)
    return (all(d.returncode == 0 for d in done) and
            os.listdir(folder) == ["a.folded"] and
            os.stat(target).st_mode & 0o777 == 0o640)


@check("a file that cannot be written is said, with status 1", "recording")
def _():
    done = run("flamegraph", "-o", "/nonexistent/x.svg", have["recording"])
    full = run("convert", "--to=folded", "-o", "/dev/full",
               have["recording"])
    return (done.returncode == 1 and "/nonexistent/x.svg" in done.stderr and
            full.returncode == 1 and "No space left" in full.stderr or
            f"{done} {full}")


@check("a write that fails in the middle keeps its cause", "recording")
def _():
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    name = os.path.join(have["folder"], "large.svg")
    done = subprocess.run([SEAM, "flamegraph", "-o", name, have["recording"]],
                          stderr=subprocess.PIPE, text=True, check=False,
                          preexec_fn=limit)
    return (done.returncode == 1 and "File too large" in done.stderr and
            not os.path.exists(name) or done)


@check("a full standard output is said, with status 1", "recording")
def _():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = run("report", have["recording"], stdout=full)
    return done.returncode == 1 and "standard output" in done.stderr


@check("a reader that leaves early ends it by SIGPIPE, and nothing is said",
       "recording")
def _():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([SEAM, "report", have["recording"]], stdout=writer,
                          stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    return (done.returncode, done.stderr) == (-signal.SIGPIPE, "") or done


@check("a recording cut short is read as far as it goes, with status 3",
       "recording")
def _():
    whole = os.path.join(have["recording"], "data")
    cut = os.path.join(have["folder"], "cut.data")
    with open(whole, "rb") as source, open(cut, "wb") as target:
        target.write(source.read()[:os.path.getsize(whole) * 2 // 3])
    text = run("report", cut)
    made = run("convert", "--to", "folded", cut)
    parsed = json.loads(run("report", "--json", cut).stdout)
    return (text.returncode == 3 and "lost" in text.stdout and
            made.returncode == 3 and "lost" in made.stderr and
            0 < parsed["samples"] < report()["samples"] and
            len(parsed["lost"]["causes"]) > 0)


@check("several events are never added up: the first is taken, and said",
       "recording")
def _():
    name = os.path.join(have["folder"], "two.seam")
    made = run("record", "-q", "-e", "cpu-clock,page-faults", "-o", name,
               "--", "sh", "-c", WORK)
    events = {e["event"]: e for e in json.loads(
        run("report", "--json", name).stdout)["events"]}
    if made.returncode or len(events) != 2:
        return f"{made.stderr} {list(events)}"
    for member, flags in (("samples", []), ("weight", ["--weight"])):
        first, second = (sum(int(line.rsplit(" ", 1)[1])
                             for line in done.stdout.splitlines())
                         for done in (run("convert", "--to=folded", *flags,
                                          *event, name)
                                      for event in ([], ["--event",
                                                         "page-faults"])))
        if (first, second) != (events["cpu-clock"][member],
                               events["page-faults"][member]):
            return f"{member}: {first} {second}"
    for words in (["convert", "--to=folded"], ["flamegraph", "-o", "-"]):
        said = run(*words, name).stderr
        quiet = run(*words, "--event=page-faults", name).stderr
        wanted = "'cpu-clock' is shown; --event selects another: 'page-faults'"
        if (wanted not in said or said.count("selects another") != 1 or
                "another" in quiet):
            return f"{words}: {said} {quiet}"
    return True


@check("a time that is none is wrong usage", "recording")
def _():
    done = run("report", "--time=5", have["recording"])
    return done.returncode == 2 and "A,B" in done.stderr


@check("what is not in the recording fails with what is", "recording")
def _():
    event = run("report", "--event", "nonsense", have["recording"])
    thread = run("report", "--thread", "nobody", have["recording"])
    return (event.returncode == 1 and "the recording has" in event.stderr and
            "dummy" not in event.stderr and
            thread.returncode == 1 and "nobody" in thread.stderr)


@check("the last recording is the one without a name", "recording")
def _():
    folder = os.path.dirname(have["recording"])
    done = subprocess.run([SEAM, "report", "--json"], cwd=folder, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return json.loads(done.stdout)["file"] == "recording.seam"


@check("a missing file is one chain of causes, with status 1")
def _():
    done = run("report", "/nonexistent/a.seam")
    return (done.returncode == 1 and done.stdout == "" and
            done.stderr.startswith("seam: cannot read '/nonexistent/a.seam'")
            and "No such file" in done.stderr)


@check("where an XRay log belongs, a sampled recording is told by name",
       "recording")
def _():
    name = have["recording"]
    data = os.path.join(name, "data")
    for words in (["calls", name], ["calls", data],
                  ["convert", "--to=trace-json", name],
                  ["report", name, name], ["flamegraph", name, data]):
        done = run(*words)
        if (done.returncode != 1 or done.stdout or
                f"cannot read '{name}" not in done.stderr or
                "is a sampled recording, not an XRay log" not in done.stderr or
                f"'seam report {name}" not in done.stderr):
            return f"{words}: {done.stderr}"
    done = run("calls", have["folder"])
    return "Is a directory" in done.stderr or done.stderr


@check("a --jit or --symfs that is not there fails", "recording")
def _():
    name = have["recording"]
    for command in (["report"], ["flamegraph", "-o", "/dev/null"],
                    ["annotate", "main"], ["convert", "--to=folded"],
                    ["dump", "--json", "--symbols"],
                    ["inject", "-o", os.path.join(have["folder"], "i")]):
        for option in ("--jit", "--symfs"):
            if command[0] == "inject" and option == "--symfs":
                continue
            done = run(*command, option, "/nonexistent", name)
            if (done.returncode != 1 or done.stdout or
                    f"seam: cannot use {option} '/nonexistent'\n  caused by: "
                    "No such file or directory\n" != done.stderr):
                return f"{command} {option}: {done.stderr}"
    done = run("report", "--symfs", os.path.join(name, "data"), name)
    return "Not a directory" in done.stderr or done.stderr


@check("what was not there at all was not half done")
def _():
    for words in (["dump"], ["dump", "--json", "--symbols"],
                  ["inject", "-o", "/nonexistent/b"]):
        done = run(*words, "/nonexistent/a")
        if (done.returncode != 1 or "No such file" not in done.stderr or
                "seam: cannot read '/nonexistent/a'\n" not in done.stderr):
            return f"{words}: {done.stderr}"
    done = run("dump", "/dev/null")
    return done.returncode == 1 and " all of" not in done.stderr


@check("wrong usage is said on stderr, with status 2")
def _():
    lines = ("repot", "report --tre", "report - a",
             "report --by heap", "report --tree --by module", "report --top",
             "report --min-percent=x", "record -c 0 true", "convert x", "convert --to nothing",
             "flamegraph --min-percent 101", "report --layer heap",
             "help nothing", "dump -q a b", "dump -q --symbols a",
             "doctor -q --probe", "")
    for line in lines:
        done = run(*line.split())
        if done.returncode != 2 or done.stdout or not done.stderr:
            return f"'{line}'"
    return True


@check("a mistyped word is told its neighbour")
def _():
    return ("did you mean 'report'?" in run("reprot").stderr and
            "did you mean '--tree'?" in run("report", "--tre").stderr)


@check("a part of a name suggests the function with the most samples",
       "recording")
def _():
    rows = [row for row in json.loads(run(
        "report", "--json", have["recording"]).stdout)["rows"]
            if row["symbol"][0] != "["]
    part = rows[0]["symbol"][1:5]
    wanted = [row for row in rows if part.lower() in row["symbol"].lower()
              and "@plt" not in row["symbol"]]
    told = run("annotate", part, have["recording"]).stderr
    empty = os.path.join(have["folder"], "empty.seam")
    run("record", "-q", "-F", "1", "-o", empty, "--", "true")
    none = run("annotate", "main", empty).stderr
    if "0 samples over" in run("report", empty).stdout and \
       "the recording has no samples" not in none:
        return none
    return any(f"did you mean '{row['symbol']}'?" in told for row in wanted
               if row["self"] == wanted[0]["self"]) or told


def commands():
    overview = run("--help").stdout.split("Commands:\n")[1]
    return re.findall(r"^  (\w+) ", overview, re.M)


@check("help of every command fits 80 columns and names every option")
def _():
    for name in commands():
        text = run(name, "--help").stdout
        if text != run("help", name).stdout or not text:
            return name
        if max(map(len, text.splitlines())) > 80:
            return name
    return True


@check("every manual page is clean mdoc", "mandoc")
def _():
    pages = {name: run("help", "--man", *([name] if name else [])).stdout
             for name in [*commands(), None]}
    for path in pathlib.Path(os.environ["SEAM_SOURCE"],
                             "doc/man").glob("*.[0-9]"):
        pages[path.name] = path.read_text()
    for name, page in pages.items():
        done = subprocess.run(["mandoc", "-T", "lint"], input=page, text=True,
                              stdout=subprocess.PIPE, check=False)
        bad = [line for line in done.stdout.splitlines()
               if "referenced manual not found" not in line]
        if bad:
            return f"{name}: {bad[0]}"
    return True


@check("the program in a manual page of a library compiles")
def _():
    source = pathlib.Path(os.environ["SEAM_SOURCE"])
    page = (source / "doc/man/seam-jitdump.3").read_text()
    program = re.search(r"^#include.*?(?=^\.Ed)", page, re.M | re.S)[0]
    done = subprocess.run(
        ["gcc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c",
         "-I", source / "include", "-"], input=program, text=True,
        stderr=subprocess.PIPE, check=False)
    return done.returncode == 0 or done.stderr


@check("every command has its manual page installed")
def _():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "../../doc/man/meson.build"),
              encoding="utf-8") as build:
        names = re.search(r"name : \[(.*?)\]", build.read(), re.S)[1]
    return sorted(re.findall(r"'(\w+)'", names)) == sorted(commands())


@check("completion scripts parse in the shells that are here")
def _():
    for shell in ("bash", "zsh", "fish"):
        script = run("help", "--completion", shell).stdout
        if not script:
            return shell
        if shutil.which(shell) and subprocess.run(
                [shell, "-n"], input=script, text=True, check=False,
                stderr=subprocess.PIPE).returncode:
            return shell
    return True


def completed(*words):
    script = ('source <("$0" help --completion bash); COMP_WORDS=("$@");'
              'COMP_CWORD=$(($# - 1)); _seam; echo "${COMPREPLY[@]}"')
    return subprocess.run(["bash", "-c", script, SEAM, *words], text=True,
                          stdout=subprocess.PIPE, check=False).stdout.split()


@check("bash completes commands, options and choices")
def _():
    return (completed("seam", "rep") == ["report"] and
            completed("seam", "report", "--tr") == ["--tree"] and
            completed("seam", "report", "--by", "t") == ["thread"] and
            completed("seam", "report", "--by", "=", "m") == ["module"] and
            completed("seam", "record", "--call-graph", "") ==
            ["auto", "fp", "dwarf", "none"] and
            completed("seam", "record", "--layers", "") ==
            ["auto", "guest", "native"] and
            completed("seam", "help", "flame") == ["flamegraph"])


@check("dump names the first bytes of a file of no known format")
def _():
    for data, why in ((b"%!PS\n1\x00abcdef", "with 252150530a310061"),
                      (b"GIF", "with 474946"), (b"", "the file is empty")):
        path = os.path.join(have["folder"], "unknown")
        with open(path, "wb") as out:
            out.write(data)
        done = run("dump", path)
        if done.returncode != 1 or not done.stderr.rstrip().endswith(why):
            return done
    return True


def on_terminal(*words, **environment):
    """Status and output with a terminal for standard output and error."""
    master, slave = pty.openpty()
    env = {k: v for k, v in os.environ.items()
           if k not in ("SEAM_PAGER", "PAGER", "LESS")}
    env.update({"TERM": "xterm", "NO_COLOR": "1", **environment})
    with subprocess.Popen([SEAM, *words], stdin=subprocess.DEVNULL,
                          stdout=slave, stderr=slave, env=env) as process:
        os.close(slave)
        text = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:     # the last of the terminal's users has gone
                break
            if not piece:
                break
            text += piece
    os.close(master)
    return process.returncode, text.decode(errors="replace")


@check("long text on a terminal goes through the pager", "recording")
def _():
    name, mark = have["recording"], "sed s/^/P:/"
    for words, env, paged in (
            (("report", name), {"SEAM_PAGER": mark}, True),
            (("report", name), {"PAGER": mark}, True),
            (("report", name), {"PAGER": mark, "SEAM_PAGER": ""}, False),
            (("report", name), {"SEAM_PAGER": "cat"}, False),
            (("report", "--no-pager", name), {"SEAM_PAGER": mark}, False),
            (("report", name), {"SEAM_PAGER": mark, "TERM": "dumb"}, False),
            (("dump", name), {"SEAM_PAGER": mark}, True),
            (("help", "record"), {"SEAM_PAGER": mark}, True),
            (("report", "--help"), {"SEAM_PAGER": mark}, True),
            (("report", "/nonexistent"), {"SEAM_PAGER": mark}, False)):
        status, text = on_terminal(*words, **env)
        if (status != (words[-1] == "/nonexistent") or
                ("P:" in text) != paged or len(text) < 20):
            return f"{words} {env}: {status} {text[:200]}"
    return "P:" not in run("report", name, env={
        **os.environ, "SEAM_PAGER": mark}).stdout


@check("a manual page is formatted on a terminal, and is mdoc elsewhere")
def _():
    source = run("help", "--man", "report").stdout
    if not source.startswith('.\\"') and ".Sh NAME" not in source:
        return source[:200]
    for words, env in (((), {"PAGER": "cat"}), (("--no-pager",), {})):
        status, text = on_terminal("help", *words, "--man", "report", **env)
        text = re.sub(".\b", "", text)     # bold letters, as for printers
        if status or ".Sh" in text or "SYNOPSIS" not in text:
            return f"{words}: {status} {text[:200]}"
    bare = {"PATH": "/nonexistent", "SEAM_PAGER": ""}
    status, text = on_terminal("help", "--man", "report", **bare)
    return status == 0 and ".Sh NAME" in text or text[:200]


@check("the pager leaves the status, also when it is left early", "recording")
def _():
    cut = os.path.join(have["folder"], "cut.data")
    with open(os.path.join(have["recording"], "data"), "rb") as file:
        content = file.read()
    with open(cut, "wb") as file:
        file.write(content[:len(content) * 3 // 4])
    wanted = run("report", cut).returncode
    for pager in ("sed s/^/P:/", "head -n 1", "true", "false"):
        status, _ = on_terminal("report", "--top", "0", cut,
                                SEAM_PAGER=pager)
        if status != wanted:
            return f"{pager}: {status}, not {wanted}"
    return wanted == 3


@check("a pager that is not there costs no text", "recording")
def _():
    status, text = on_terminal("report", have["recording"],
                               SEAM_PAGER="/no/such/pager -x")
    return (status == 0 and "SELF" in text and
            "cannot run the pager '/no/such/pager -x': not found" in text)


@check("the head quotes the command as a shell does")
def _():
    name = os.path.join(have["folder"], "quoted.seam")
    words = ["sh", "-c", "exit 0", "", "it's", "$HOME", "a=b", "x y"]
    if run("record", "-q", "-o", name, "--", *words).returncode:
        return "cannot record"
    told = json.loads(run("report", "--json", name).stdout)["command"]
    return shlex.split(told)[-len(words):] == words or told


@check("what perf's users type works, or is answered in one line",
       "recording")
def _():
    name = have["recording"]
    for words, same in (
            (["-i", name], [name]), (["--stdio", name], [name]),
            (["--children", name], ["--sort", "total", name]),
            (["--no-children", name], [name]),
            (["-s", "comm,dso,sym", name], ["--by", "comm,module,symbol",
                                            name]),
            (["--filter", "-n", name], ["--filter=-n", name]),
            (["--sort", "srcline", name], ["--by", "line", name]),
            (["--sort", "tid,total", name],
             ["--by", "thread", "--sort", "total", name])):
        ours, theirs = run("report", *words), run("report", *same)
        if ours.returncode or ours.stdout != theirs.stdout:
            return f"{words}: {ours.stderr}"
    for words, wanted in (
            (["script"], "seam dump"), (["list"], "seam doctor"),
            (["top"], "nothing is selected"),
            (["archive"], "copy it"), (["report", "-F", "overhead"], "--by"),
            (["report", "-n", "--stdio"], "always shown"),
            (["report", "-n", name], "always shown"),
            (["report", name, "-n"], "always shown"),
            (["report", "-g", "caller"], "--tree"),
            (["report", "--by", "comm", "--sort", "tid", name],
             "--by comm and --sort tid both define the rows"),
            (["report", "--sort", "sym,symbol", name], "each once"),
            (["report", "--percent-limit", "1"], "--min-percent"),
            (["record", "-b", "true"], "perf record")):
        done = run(*words)
        first = done.stderr.splitlines()[0]
        if done.returncode != 2 or wanted not in first:
            return f"{words}: {done.returncode} {done.stderr}"
    return True


@check("-i is the input wherever recordings are read", "recording")
def _():
    name = have["recording"]
    for command, *words in (("report",), ("dump",), ("annotate", "main"),
                            ("convert", "--to", "folded"),
                            ("flamegraph", "-o", "-")):
        ours = run(command, *words, "-i", name)
        theirs = run(command, *words, name)
        if ours.returncode == 2 or ours.stdout != theirs.stdout:
            return f"{command}: {ours.returncode} {ours.stderr}"
    return True


@check("--version says it")
def _():
    return re.fullmatch(r"seam \d+\.\d+\.\d+\n", run("--version").stdout)


def prepare(folder):
    have["folder"] = folder
    have["mandoc"] = shutil.which("mandoc")
    name = os.path.join(folder, "recording.seam")
    done = run("record", "-q", "-F", "5000", "-g", "-o", name, "--",
               "sh", "-c", WORK)
    have["recording"] = done.returncode == 0 and name


def main():
    print(f"1..{len(checks)}")
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder)
        for number, (text, need, function) in enumerate(checks, 1):
            try:
                why = function() if not need or have.get(need) else \
                    f"no {need}"
            except Exception as error:  # a check that died has failed
                why = repr(error)
            if why is True or why and not isinstance(why, str):
                print(f"ok {number} - {text}")
                continue
            print(f"not ok {number} - {text}")
            print(f"# {why}")


main()
