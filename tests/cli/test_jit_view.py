#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam dump, annotate and inject on the code of JITs, and of plain C.

The example JIT runs two functions at one address and moves one of them; perf,
where it is installed, is the oracle for names, lines and counts.

Usage: test_jit_view.py SEAM JIT.  Prints TAP.
"""
import collections
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys

from record_lib import FOLDER, SEAM, run, run_tests
from tap import Skip

JIT = os.path.abspath(sys.argv[2])
HAS_PERF = shutil.which("perf") is not None

HOT_C = """
static inline __attribute__((always_inline)) int in(int i)
{ volatile int x = 0; for (int k = 0; k < 50; k++) x += k * i; return x; }
__attribute__((noinline)) int hot(int n)
{ int s = 0; for (int i = 0; i < n; i++) s += in(i); return s; }
int main(void) { return hot(6000000) == 3; }
"""


def seam(*words, status=0):
    done = run(SEAM, *words)
    assert done.returncode == status, f"{words}: {done.returncode} " \
        f"{done.stderr} {done.stdout[:300]}"
    return done


def as_json(*words, status=0):
    text = seam(*words, status=status).stdout
    assert not text.endswith("\n\n"), "an empty line after the JSON"
    return json.loads(text)


def record():
    """A recording of the example by Seam and one by perf, made once."""
    if not os.path.exists("r.seam"):
        done = run(SEAM, "record", "-q", "-g", "-F", "999", "-o", "r.seam", "--",
                   JIT, "100", FOLDER)
        if done.returncode or not os.path.exists("r.seam"):
            raise Skip("no permission to record, or no x86-64")
    if not os.path.exists("perf.data") and HAS_PERF:
        os.mkdir("p")
        run("perf", "record", "-q", "-B", "-k", "mono", "-g", "-e", "cpu-clock",
            "-F", "999", "-o", "perf.data", JIT, "100", FOLDER)
    return "r.seam"


def dump_path():
    record()
    names = [n for n in os.listdir("r.seam/jit") if n.endswith(".dump")]
    return "r.seam/jit/" + names[0]


# -- dump ------------------------------------------------------------------

def test_dump_shows_every_record_of_a_jitdump():
    path = dump_path()
    rows = [json.loads(line) for line in
            seam("dump", "--json", path).stdout.splitlines()]
    kinds = collections.Counter(row["type"] for row in rows)
    assert rows[0]["type"] == "header" and rows[0]["magic"] == 0x4a695444
    assert kinds["JIT_CODE_LOAD"] == 3, kinds
    assert kinds["JIT_CODE_MOVE"] >= 1, kinds
    assert kinds["JIT_CODE_DEBUG_INFO"] == 2, kinds
    assert kinds["JIT_CODE_UNWINDING_INFO"] == 2, kinds
    load = next(r for r in rows if r.get("name") == "triangle")
    assert len(load["code"]) == 2 * load["code_size"]
    lines = next(r for r in rows if r["type"] == "JIT_CODE_DEBUG_INFO")
    assert len(lines["entries"]) == lines["nr_entry"] > 0
    text = seam("dump", path).stdout.splitlines()
    assert len(text) == len(rows)
    assert "code=[" in seam("dump", path).stdout
    assert load["code"] in seam("dump", "--code", path).stdout


def test_dump_of_a_cut_dump_shows_the_rest_and_ends_with_3():
    path = dump_path()
    data = open(path, "rb").read()
    with open("cut.dump", "wb") as out:
        out.write(data[:-7])
    whole = seam("dump", path).stdout
    cut = seam("dump", "cut.dump", status=3)
    assert "does not fit" in cut.stderr
    assert cut.stdout.splitlines()[1] == whole.splitlines()[1]
    bent = bytearray(data)
    at = data.index(b"triangle\0") - 16       # code_size of its load
    bent[at:at + 8] = b"\xff" * 8
    with open("bent.dump", "wb") as out:
        out.write(bent)
    assert "DAMAGED" in seam("dump", "bent.dump", status=3).stdout


def test_dump_escapes_hostile_names():
    data = open(dump_path(), "rb").read().replace(b"triangle", b"\x1b]0;pwn\a")
    with open("evil.dump", "wb") as out:
        out.write(data)
    done = run(SEAM, "dump", "evil.dump")
    assert "\x1b" not in done.stdout and "\\x1b]0;pwn" in done.stdout
    with open("perf-7.map", "w", encoding="latin-1") as out:
        out.write("1000 10 \x1b[2Jname\nbad\n")
    done = seam("dump", "perf-7.map", status=3)
    assert "\x1b" not in done.stdout and "start=0x1000" in done.stdout
    row = json.loads(seam("dump", "--json", "perf-7.map",
                          status=3).stdout.splitlines()[0])
    assert row["name"] == "\x1b[2Jname"


# -- annotate ----------------------------------------------------------------

def test_annotate_puts_all_samples_of_jit_code_on_instructions():
    path = record()
    rows = {r["symbol"]: r for r in as_json("report", "--json", path)["rows"]}
    for name in "triangle", "countdown":
        what = as_json("annotate", "--json", name, path)
        assert what["schema"] == "seam.annotate/1"
        assert len(what["functions"]) == 1, what["functions"]
        body = what["functions"][0]
        assert body["layer"] == "jit" and body["symbol"] == name
        hits = sum(i["samples"] for i in body["instructions"])
        assert hits == body["samples"] == rows[name]["self"]
        assert sum(len(i["bytes"]) // 2
                   for i in body["instructions"]) == body["size"]
        assert body["instructions"][0]["text"] == "push rbp"
        assert body["instructions"][-1]["text"] == "ret"
        assert {i["file"] for i in body["instructions"]} == {name + ".bf"}
    # The inner loop is where time goes; it is line 3 of each.
    hot = max(body["instructions"], key=lambda i: i["samples"])
    assert hot["line"] == 3, hot


def test_annotate_shows_text_for_people():
    path = record()
    text = seam("annotate", "countdown", path).stdout
    assert "countdown.bf:3" in text and "push rbp" in text
    assert "\x1b" not in text
    assert "\x1b[1;31m" in seam("annotate", "--color=always", "countdown",
                                path).stdout
    hot = seam("annotate", "--hot", "--no-source", "countdown", path).stdout
    assert "push rbp" not in hot and ".bf" not in hot
    with open("countdown.bf", "w", encoding="ascii") as out:
        out.write("one\ntwo\nthe \x1b[31mthird\n")
    text = seam("annotate", "countdown", path).stdout
    assert "countdown.bf:3  the \\x1b[31mthird" in text


def test_annotate_reports_what_it_cannot_show():
    path = record()
    done = seam("annotate", "no_such_function", path, status=1)
    assert "no function of that name" in done.stderr
    assert "--total" not in done.stderr and "mean" not in done.stderr
    for word in "ountdow", "cuontdown":     # a part of it; a slip
        done = seam("annotate", word, path, status=1)
        assert "did you mean 'countdown'?" in done.stderr, done.stderr
    done = seam("annotate", "main", path, status=1)
    assert "--total" in done.stderr, done.stderr
    seam("annotate", status=2)
    body = as_json("annotate", "--json", "--total", "run",
                   path)["functions"][0]
    hits = [i for i in body["instructions"] if i["samples"]]
    assert any(i["text"].startswith("call") for i in hits)
    no_code = as_json("report", "--json", "--layer", "kernel", path)["rows"]
    if no_code:
        done = as_json("annotate", "--json", no_code[0]["symbol"], path,
                       status=1)
        assert "kernel" in done["functions"][0]["problem"]


def build_hot():
    record()
    if not os.path.exists("hot.seam"):
        with open("hot.c", "w", encoding="ascii") as out:
            out.write(HOT_C)
        if run("cc", "-O1", "-g", "-o", "hot", "hot.c").returncode:
            raise Skip("no compiler")
        seam("record", "-q", "-F", "999", "-o", "hot.seam", "--", "./hot",
             status=run("./hot").returncode)
    return "hot.seam"


def test_annotate_of_c_counts_each_address_as_perf_does():
    path = build_hot()
    if not HAS_PERF:
        raise Skip("no perf")
    script = run("perf", "script", "-i", path, "-F", "ip,sym,symoff",
                 "-G").stdout
    counts = collections.Counter(re.findall(r" hot\+(0x[0-9a-f]+)", script))
    body = as_json("annotate", "--json", "hot", path)["functions"][0]
    ours = {hex(i["offset"]): i["samples"]
            for i in body["instructions"] if i["samples"]}
    assert ours and ours == dict(counts), (ours, counts)
    inlined = as_json("annotate", "--json", "in", path)["functions"]
    assert [f["symbol"] for f in inlined] == ["hot"]
    assert 0 < inlined[0]["samples"] <= body["samples"]
    assert "\nin, inlined in hot  hot  " in seam("annotate", "in", path).stdout
    assert "\nhot  hot  " in seam("annotate", "hot", path).stdout
    assert "volatile int x" in seam("annotate", "hot", path).stdout


def record_bare(*changes):
    """[bare+...] that was hit most in the stripped program, and its row."""
    build_hot()
    shutil.copy("hot", "bare")
    run("strip", *changes, "bare")
    seam("record", "-q", "-F", "999", "-o", "bare.seam", "--", "./bare",
         status=run("./bare").returncode)
    rows = as_json("report", "--json", "bare.seam")["rows"]
    row = next(r for r in rows if r["symbol"].startswith("[bare+"))
    body, = as_json("annotate", "--json", row["symbol"],
                    "bare.seam")["functions"]
    at = int(row["symbol"][6:-1], 16)
    here = next(i for i in body["instructions"] if i["addr"] == at)
    return row, body, at, here


def test_annotate_shows_the_function_of_stripped_code():
    row, body, at, _ = record_bare()
    assert body["addr"] == at, (at, body)
    assert body["samples"] == row["self"]
    assert any(i["text"].startswith("ret") for i in body["instructions"])


def test_annotate_shows_a_window_around_an_address_of_no_function():
    _, body, _, here = record_bare("-R", ".eh_frame", "-R", ".eh_frame_hdr")
    assert here["samples"] > 0, body
    assert body["size"] == 128


def leaf_ips(path, pid, start, size):
    """How many samples of @pid were interrupted in a range, as recorded."""
    n = 0
    for line in seam("dump", "--json", path).stdout.splitlines():
        row = json.loads(line)
        n += row["type"] == "SAMPLE" and row["pid"] == pid and \
            start <= row["ip"] < start + size
    return n


def test_annotate_reports_where_moved_code_was_sampled():
    path = record()
    body, = as_json("annotate", "--json", "triangle", path)["functions"]
    first, second = body["places"]
    assert first["addr"] == body["addr"] != second["addr"]
    assert first["since_ns"] == body["loaded_ns"] < second["since_ns"]
    assert first["samples"] + second["samples"] == body["samples"]
    # Nothing else is ever at the second place; countdown comes to the first.
    assert second["samples"] == leaf_ips(path, second["pid"], second["addr"],
                                         body["size"])
    text = seam("annotate", "triangle", path).stdout
    assert f"{second['addr']:x}" in text and ", moved\n" in text
    assert "object 1 of" not in text
    assert " since " not in seam("annotate", "countdown", path).stdout


def test_annotate_separates_code_objects_of_one_name():
    done = run(SEAM, "record", "-o", "two.seam", "--", "sh", "-c",
               f"{JIT} 100; {JIT} 100")
    assert done.returncode in (0, 3), done.stderr
    bodies = as_json("annotate", "--json", "countdown",
                     "two.seam")["functions"]
    assert len(bodies) == 2
    pids = {b["places"][0]["pid"] for b in bodies}
    assert len(pids) == 2
    for body in bodies:
        place, = body["places"]
        assert place["samples"] == body["samples"] > 0
        # Only this function was there from then on.
        assert place["addr"] == body["addr"]
    text = seam("annotate", "countdown", "two.seam").stdout
    for i, body in enumerate(bodies, 1):
        assert f"object {i} of 2" in text
        assert re.search(rf" {i} +{body['addr']:x} +{body['size']} .*process "
                         rf"{body['places'][0]['pid']}\n", text), text[:900]


# -- annotate, the kernel ----------------------------------------------------

def kernel_recording():
    """A recording, the kernel's identity, its hottest function and where."""
    if not os.path.exists("k.seam"):
        done = run(SEAM, "record", "-F", "10000", "-o", "k.seam", "--", "sh",
                   "-c", "i=0; while [ $i -lt 300 ]; do /bin/true; "
                   "i=$((i+1)); done")
        assert done.returncode in (0, 3), done.stderr
    with open("k.seam/meta.json", encoding="utf-8") as text:
        kernel = json.load(text)["kernel"]
    rows = as_json("report", "--json", "--layer", "kernel", "k.seam")["rows"]
    rows = [r for r in rows if not r["symbol"].startswith("[") and
            r["module"] == "[kernel.kallsyms]"]
    if os.geteuid() and not rows:
        return None     # a user's recording, which has none of the kernel
    assert rows and kernel["build_id"] and kernel["text"] != "0x0", kernel
    text = int(kernel["text"], 16)
    with open("/proc/kallsyms", encoding="ascii") as lines:
        places = {f[2]: int(f[0], 16) for f in map(str.split, lines)}
    # of vmlinux itself, not of a module
    rows = [r for r in rows
            if text <= places.get(r["symbol"], 0) < text + (64 << 20)]
    addr = places[rows[0]["symbol"]]
    return kernel, rows[0], addr, addr - text


def make_vmlinux(folder, build_id, offset):
    """A function and traps around it, linked where no kernel ever runs."""
    os.makedirs(folder, exist_ok=True)
    with open("vmlinux.s", "w", encoding="ascii") as out:
        out.write(f".globl _text\n_text: .org {offset}, 0xcc\n"
                  "push %rbp\n.fill 65536, 1, 0x90\n")
    subprocess.run(["cc", "-nostdlib", "-static", "-o", f"{folder}/vmlinux",
                    f"-Wl,--build-id=0x{build_id},-Ttext=0x40000000,-e,0",
                    "vmlinux.s"], check=True)


def check_no_kernel():
    """As a user: no sample of it, and the reason."""
    with open("k.seam/meta.json", encoding="utf-8") as text:
        assert json.load(text)["left_out"] == ["kernel"]
    layers = {r["layer"] for r in as_json("report", "--json",
                                          "k.seam")["rows"]}
    assert layers and "kernel" not in layers, layers
    done = seam("annotate", "schedule", "k.seam", status=1)
    assert "schedule" in done.stderr, done.stderr


def test_annotate_shows_the_kernels_code_from_its_vmlinux():
    if not kernel_recording():
        check_no_kernel()
        return
    kernel, row, addr, offset = kernel_recording()
    make_vmlinux("debug", kernel["build_id"], offset)
    done = seam("annotate", "--json", "--symfs", "debug", row["symbol"],
                "k.seam")
    body, = json.loads(done.stdout)["functions"]
    assert "problem" not in body, body["problem"]
    assert body["addr"] == addr
    assert body["instructions"][0]["text"] == "push rbp"
    assert {i["text"] for i in body["instructions"][1:]} == {"nop"}
    assert sum(i["samples"] for i in body["instructions"]) == \
        body["samples"] == row["self"] > 0


def test_annotate_reports_why_there_is_no_code_of_the_kernel():
    if not kernel_recording():
        check_no_kernel()
        return
    kernel, row, _, offset = kernel_recording()
    make_vmlinux("wrong", "00" * 20, offset)
    done = run(SEAM, "annotate", "--symfs", "wrong", row["symbol"], "k.seam")
    if done.returncode == 0:
        return          # this machine has the kernel's code
    assert done.returncode == 1
    for words in ("no machine code: ", "build id " + kernel["build_id"][:12],
                  "'wrong/vmlinux' is of another kernel", "debug package",
                  "--symfs", "/proc/kcore"):
        assert words in done.stdout, (words, done.stdout)


# -- inject ------------------------------------------------------------------

def perf_frames(path):
    """Per sample the JIT frames, leaf first: (name, line)."""
    done = run("perf", "script", "-i", path, "-F", "comm,tid,time,ip,sym,dso")
    assert done.returncode == 0 and not done.stderr, done.stderr
    samples, frames = [], None
    for line in done.stdout.splitlines():
        frame = re.match(r"\s+[0-9a-f]+ (.*) \((.*)\)$", line)
        if frame and frames is not None:
            if "/jitted-" in frame[2]:
                frames.append(frame[1])
        elif re.search(r"\d+\.\d+:", line):
            frames = []
            samples.append(frames)
    return samples


def seam_frames(path):
    """The same as Seam has it in the recording as it was.

    In the order of time, as perf script has it: in the file one CPU's samples
    may stand before older ones of another.
    """
    samples = []
    for line in seam("dump", "--json", "--symbols", path).stdout.splitlines():
        row = json.loads(line)
        if row["type"] == "SAMPLE":
            frames = [f["symbol"] for f in row["callchain"]
                      if f.get("layer") == "jit" and
                      not f["symbol"].startswith("[")]
            samples.append((row["time"], frames))
    return [frames for _, frames in sorted(samples, key=lambda s: s[0])]


def inject(path, out):
    done = seam("inject", "-o", out, path)
    assert "functions of 1 process," in done.stderr, done.stderr


def test_perf_reads_what_inject_wrote_with_seams_own_names():
    path = record()
    if not HAS_PERF:
        raise Skip("no perf")
    inject(path, "out.seam")
    ours, theirs = seam_frames(path), perf_frames("out.seam")
    assert ours == theirs, (ours[:5], theirs[:5])
    assert {n for s in theirs for n in s} == {"triangle", "countdown"}
    assert sorted(os.listdir("out.seam")) == sorted(
        os.listdir("r.seam") + [n for n in os.listdir("out.seam")
                                if n.startswith("jitted-")])
    assert seam("report", "out.seam").stdout


def test_an_inject_that_fails_leaves_no_folder():
    path = record()
    before = sorted(os.listdir("."))
    # At each size of file that is allowed, another one does not fit.
    for limit in (1, 100, 1000, 3000):
        done = subprocess.run(
            [SEAM, "inject", "-o", "failed", path], capture_output=True,
            text=True, check=False, preexec_fn=lambda: (
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
        assert done.returncode == 1, (limit, done.stderr)
        assert sorted(os.listdir(".")) == before, limit
    # Nor does it touch one that was there.
    os.mkdir("there")
    open("there/mine", "w", encoding="ascii").close()
    done = run(SEAM, "inject", "-o", "there", path)
    assert done.returncode == 1 and os.listdir("there") == ["mine"]


def test_perf_annotates_what_was_injected():
    record()
    if not HAS_PERF:
        raise Skip("no perf")
    if not os.path.exists("out.seam"):
        inject("r.seam", "out.seam")
    done = run("perf", "annotate", "--stdio", "-i", "out.seam", "countdown")
    if shutil.which("objdump"):
        assert done.returncode == 0 and "push" in done.stdout, done.stderr


def test_what_was_injected_is_counted():
    message = seam("inject", "-o", "out.counted", record()).stderr
    assert "2 functions of 1 process, from 1 file; " in message, \
        message


def test_a_perf_data_file_is_injected_as_well():
    record()
    if not HAS_PERF or not os.path.exists("perf.data"):
        raise Skip("no perf")
    inject("perf.data", "out.perf")
    ours, theirs = seam_frames("perf.data"), perf_frames("out.perf/data")
    assert ours == theirs, (len(ours), len(theirs), [
        p for p in enumerate(zip(ours, theirs)) if p[1][0] != p[1][1]][:3])
    header = run("perf", "report", "--header-only", "-i", "out.perf/data")
    assert "hostname" in header.stdout and not header.stderr


def test_perf_unwinds_through_code_with_its_tables():
    record()
    if not HAS_PERF or "--call-graph" not in run("perf", "record",
                                                 "-h").stderr:
        raise Skip("no perf")
    done = run("perf", "record", "-q", "-B", "-k", "mono", "--call-graph", "dwarf",
               "-e", "cpu-clock", "-F", "499", "-o", "dwarf.data", JIT, "100",
               FOLDER)
    if done.returncode:
        raise Skip("perf cannot record stacks: " + done.stderr[:150])
    inject("dwarf.data", "out.dwarf")
    script = run("perf", "script", "-i", "out.dwarf/data", "-F",
                 "ip,sym").stdout
    below = re.findall(r" countdown\n\s+[0-9a-f]+ (\S+)", script)
    if "triangle" in script and not re.search(r" triangle\n\s+\w+ run",
                                              script):
        raise Skip("perf cannot unwind stacks")
    assert below and set(below) == {"run"}, script[-500:]


def test_what_has_no_jit_is_copied_byte_for_byte():
    path = build_hot()
    seam("inject", "-o", "same.seam", path)
    assert open("same.seam/data", "rb").read() == \
        open(path + "/data", "rb").read()
    seam("inject", "-o", "same.seam", path, status=1)
    seam("inject", path, status=2)


def test_inject_hands_over_what_is_whole_of_a_cut_recording():
    with open(record() + "/data", "rb") as whole:
        data = whole.read()
    offset, size = struct.unpack_from("<QQ", data, 40)
    with open("cut.data", "wb") as cut:
        cut.write(data[:offset + size - 20])
    done = seam("inject", "-o", "cut.out", "cut.data", status=3)
    assert "cannot inject all of 'cut.data'" in done.stderr, done.stderr
    written = seam("dump", "cut.out/data", status=3).stdout
    assert written.count(" SAMPLE ") > 0


def test_a_bundle_may_be_injected_into_itself():
    path = build_hot()
    shutil.copytree(path, "self.seam")
    seam("inject", "-o", "self.seam/out", "self.seam")
    assert sorted(os.listdir("self.seam/out")) == sorted(os.listdir(path))


# -- made recordings ---------------------------------------------------------

PID = 4242


class Made:
    """A perf.data of one process, and what its JIT left beside it."""

    def __init__(self, folder):
        self.folder = folder
        os.mkdir(folder)
        self.records = b""
        self.put(3, 0x2000, struct.pack("<II8s", PID, PID, b"made"), 10)

    def put(self, kind, misc, body, time):
        body += struct.pack("<IIQ", PID, PID, time)
        self.records += struct.pack("<IHH", kind, misc, 8 + len(body)) + body

    def map(self, addr, size, name, time):
        name = name.encode()
        name += b"\0" * (8 - len(name) % 8)
        self.put(10, 2, struct.pack("<IIQQQIIQQII", PID, PID, addr, size, 0,
                                    0, 0, 0, 0, 5, 2) + name, time)

    def sample(self, addr, time):
        self.records += struct.pack("<IHHQIIQ", 9, 2, 32, addr, PID, PID, time)

    def loads(self, *loads):
        """(time, name, addr, code) each."""
        data = struct.pack("<IIIIIIQQ", 0x4a695444, 1, 40, 62, 0, PID, 1, 0)
        for i, (time, name, addr, code) in enumerate(loads):
            body = struct.pack("<IIQQQQ", PID, PID, addr, addr, len(code), i)
            body += name.encode() + b"\0" + code
            data += struct.pack("<IIQ", 0, 16 + len(body), time) + body
        with open(f"{self.folder}/jit-{PID}.dump", "wb") as out:
            out.write(data)
        self.map(0x900000, 4096, f"/gone/jit-{PID}.dump", 20)

    def perf_map(self, text):
        with open(f"{self.folder}/perf-{PID}.map", "w",
                  encoding="ascii") as out:
            out.write(text)

    def write(self):
        attr = struct.pack("<IIQQQQQ", 1, 128, 0, 1000, 7, 0,
                           1 << 18 | 1 << 25)
        attr += b"\0" * 44 + struct.pack("<i", 1) + b"\0" * 32
        at = 104 + 144
        head = b"PERFILE2" + struct.pack("<QQQQQQQQ", 104, 144, 104, 144, at,
                                         len(self.records), 0, 0)
        path = self.folder + "/perf.data"
        with open(path, "wb") as out:
            out.write(head + b"\0" * 32 + attr + b"\0" * 16 + self.records)
        return path


def test_code_of_one_name_and_address_is_shown_as_it_was_at_each_time():
    made = Made("again")
    made.loads((30, "f", 0x5000, b"\x90\x90\xc3"),
               (50, "f", 0x5000, b"\x31\xc0\xc3"))
    for time in 40, 60, 61:
        made.sample(0x5001 if time == 40 else 0x5000, time)
    bodies = as_json("annotate", "--json", "f", made.write())["functions"]
    assert [(b["samples"], b["loaded_ns"]) for b in bodies] == \
        [(2, 50), (1, 30)], bodies
    assert [[(i["text"], i["samples"]) for i in b["instructions"]]
            for b in bodies] == [
        [("xor eax, eax", 2), ("ret", 0)],
        [("nop", 0), ("nop", 1), ("ret", 0)]]


def symbols_by_perf(path, fields="ip,sym"):
    out = path.replace("perf.data", "out")
    seam("inject", "-q", "-o", out, path)
    done = run("perf", "script", "-i", out + "/data", "-F", fields)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return [line.split()[1] for line in done.stdout.splitlines() if line]


def test_memory_mapped_anew_over_code_does_not_hide_it_from_perf():
    if not HAS_PERF:
        raise Skip("no perf")
    made = Made("anew")
    made.map(0x5000, 0x1000, "//anon", 25)
    made.loads((30, "f", 0x5000, b"\x90" * 64),
               (50, "inner", 0x5010, b"\x90" * 16),
               (70, "over", 0x4ff0, b"\x90" * 20))
    made.sample(0x5001, 40)
    made.map(0x5000, 0x1000, "//anon", 45)
    made.map(0x7000, 0x1000, "//anon", 46)
    for addr, time in ((0x5001, 48), (0x5011, 60), (0x5031, 61),
                       (0x5031, 80), (0x5011, 81), (0x4ff1, 82)):
        made.sample(addr, time)
    path = made.write()
    assert symbols_by_perf(path) == [
        "f", "f", "inner", "f", "[unknown]", "inner", "over"]
    kinds = [json.loads(line) for line in
             seam("dump", "--json", "anew/out").stdout.splitlines()]
    kept = [k["addr"] for k in kinds if k.get("filename") == "//anon" and
            k["sample_id"]["time"] in (25, 45, 46)]
    assert kept == [0x5000, 0x7000], kept


def test_a_line_of_a_map_inside_another_leaves_the_rest_of_it():
    if not HAS_PERF:
        raise Skip("no perf")
    made = Made("nested")
    made.map(0x5000, 0x1000, "//anon", 25)
    made.perf_map("5000 100 outer\n5040 40 inner\n")
    for addr in 0x5001, 0x5041, 0x50a0:
        made.sample(addr, 40)
    assert symbols_by_perf(made.write(), "ip,sym,symoff") == [
        "outer+0x1", "inner+0x1", "outer+0xa0"]


os.environ["HOME"] = FOLDER     # perf caches what it reads there
os.environ.pop("COLUMNS", None)
sys.exit(run_tests(globals()))
