#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam pack, and commands that open what it made, or what a stranger made."""
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import tap
from record_lib import (FOLDER, IS_ROOT, NOBODY, SEAM, check, compile_c, equal,
                        recorded, run, run_tests)

BUNDLE = os.path.join(os.environ.get("SEAM_CORPUS", ""), "bundle", "lua.seam")
TEMPORARY = os.path.join(FOLDER, "temporary")

APP_C = """
volatile unsigned long x;
__attribute__((noinline)) void inner_function(void)
{ for (unsigned long i = 0; i < 300000000; i++) x += i; }
int main(void) { inner_function(); return 0; }
"""


def need(path):
    if not os.path.exists(path):
        raise tap.Skip("the corpus is not unpacked")


def seam_in(*words, **options):
    os.makedirs(TEMPORARY, exist_ok=True)
    return run(SEAM, *words, env={**os.environ, "TMPDIR": TEMPORARY},
               **options)


def report(path):
    done = seam_in("report", "--json", path)
    check(done.returncode in (0, 3), done.stderr)
    return json.loads(re.sub(r'"file":"[^"]*",', "", done.stdout, count=1))


def left():
    return os.listdir(TEMPORARY) if os.path.isdir(TEMPORARY) else []


# -- what it makes ---------------------------------------------------------

def test_a_packed_recording_has_its_names_where_the_files_are_gone():
    program = compile_c("app", APP_C, "-g", "-Wl,--build-id")
    recorded("-o", "app.seam", "--", program)
    wanted = report("app.seam")
    done = seam_in("pack", "app.seam")
    equal(done.returncode, 0, done.stderr)
    os.makedirs("elsewhere", exist_ok=True)
    os.rename("app.seam.zst", "elsewhere/other name.seam.zst")
    shutil.rmtree("app.seam")
    os.unlink(program)
    packed = "elsewhere/other name.seam.zst"
    equal(report(packed), wanted)
    check("inner_function" in seam_in("report", packed).stdout)
    # code too, as it is in the file
    done = seam_in("annotate", "--json", "inner_function", packed)
    check('"instructions"' in done.stdout or "capstone" in done.stderr,
          done.stderr)
    equal(left(), [], "afterwards:")


def test_each_command_opens_it_as_its_folder():
    need(BUNDLE)
    shutil.copytree(BUNDLE, "lua.seam", dirs_exist_ok=True)
    done = seam_in("pack", "-o", "lua.seam.zst", "lua.seam")
    check(done.returncode in (0, 3), done.stderr)
    for words in (("report",), ("report", "--json"), ("dump",),
                  ("convert", "--to", "folded"),
                  ("flamegraph", "-o", "-"), ("view", "--no-code", "-o", "-"),
                  ("diff", "lua.seam", "--to"), ("report", "-i"),
                  ("report", "--tree", "--input")):
        own = seam_in(*words, "lua.seam")
        packed = seam_in(*words, "lua.seam.zst")
        equal(packed.returncode, own.returncode, f"{words}: {packed.stderr}")
        if words[0] not in ("view", "flamegraph"):
            equal(packed.stdout.replace("lua.seam.zst", "lua.seam"),
                  own.stdout, f"{words}:")
        else:
            check(packed.stdout, words)
    equal(left(), [], "afterwards:")


def test_tar_lists_and_reads_it():
    need(BUNDLE)
    shutil.copytree(BUNDLE, "tar.seam", dirs_exist_ok=True)
    seam_in("pack", "tar.seam")
    done = run("tar", "--zstd", "-tf", "tar.seam.zst")
    equal(done.returncode, 0, done.stderr)
    names = done.stdout.split()
    check({"tar.seam/data", "tar.seam/meta.json"} <= set(names), names)
    os.makedirs("x", exist_ok=True)
    equal(run("tar", "--zstd", "-xf", "tar.seam.zst", "-C", "x").returncode, 0)
    for name in ("data", "meta.json"):
        with open(f"x/tar.seam/{name}", "rb") as one, \
                open(f"tar.seam/{name}", "rb") as other:
            check(one.read() == other.read(), name)


def test_a_users_own_archive_of_a_folder_is_opened_too():
    need(BUNDLE)
    shutil.copytree(BUNDLE, "own.seam", dirs_exist_ok=True)
    equal(run("tar", "--zstd", "-cf", "own.seam.zst",
              "own.seam").returncode, 0)
    equal(report("own.seam.zst"), report("own.seam"))


def test_what_is_no_folder_cannot_be_packed():
    need(BUNDLE)
    shutil.copy(os.path.join(BUNDLE, "data"), "lone.data")
    done = seam_in("pack", "lone.data")
    equal(done.returncode, 1)
    check("only a folder that seam record wrote" in done.stderr, done.stderr)
    check(not os.path.exists("lone.data.zst"))


# -- archives of strangers -------------------------------------------------

def archive(path, members):
    """@members: (name, bytes) or TarInfo; a GNU tar, packed by zstd."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            tar.addfile(info, io.BytesIO(member[1]))
    subprocess.run(["zstd", "-q", "-f", "-o", path], input=data.getvalue(),
                   check=True)


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def refused(name, members, why):
    archive("bad.seam.zst", members)
    done = seam_in("report", "bad.seam.zst")
    equal(done.returncode, 1, f"{name}:")
    check(why in done.stderr and "cannot unpack 'bad.seam.zst'" in done.stderr,
          f"{name}: {done.stderr}")
    equal(left(), [], f"{name}:")


def test_archives_that_lead_elsewhere_are_refused():
    ok = ("a.seam/data", b"x")
    link = "is a link or a device"
    for name, members, why in (
            ("up", [("../a", b"x")], "begins with a dot"),
            ("up in the middle", [("a.seam/../../a", b"x")],
             "begins with a dot"),
            ("absolute", [("/a.seam/a", b"x")], "begins with '/'"),
            ("empty part", [("a.seam//a", b"x")], "has '//'"),
            ("hidden", [("a.seam/.a", b"x")], "begins with a dot"),
            ("two names", [ok, ("b.seam/data", b"x")], "another folder"),
            ("deep", [("a.seam/b/c/d", b"x")], "too long"),
            ("long", [("a.seam/" + "d" * 300, b"x")], "too long"),
            ("symbolic link", [ok, special("a.seam/l", tarfile.SYMTYPE,
                                           "/etc/passwd")], link),
            ("hard link", [ok, special("a.seam/l", tarfile.LNKTYPE,
                                       "a.seam/data")], link),
            ("fifo", [special("a.seam/p", tarfile.FIFOTYPE)], link),
            ("device", [special("a.seam/n", tarfile.CHRTYPE)], link),
            ("twice", [ok, ok], "File exists"),
            ("a file as a folder", [ok, ("a.seam/data/x", b"")],
             "Not a directory"),
            ("folders", [(f"a.seam/{i}/x", b"") for i in range(20)],
             "more than 8 folders"),
            ("nothing", [], "it is empty")):
        refused(name, members, why)
    check(not os.path.exists("a") and not os.path.exists("../a"))


def test_archives_that_are_too_large_are_refused():
    refused("files", [(f"a.seam/{i}", b"") for i in range(20001)],
            "more than 20000 files")
    with subprocess.Popen(["zstd", "-q", "-f", "-o", "bad.seam.zst"],
                          stdin=subprocess.PIPE) as packer:
        info = tarfile.TarInfo("a.seam/data")
        info.size = 1 << 40
        packer.stdin.write(info.tobuf(tarfile.GNU_FORMAT))
        for _ in range(400):
            packer.stdin.write(bytes(1 << 20))
        packer.stdin.close()
    done = seam_in("report", "bad.seam.zst")
    equal(done.returncode, 1)
    check("more than 200 times its size" in done.stderr, done.stderr)
    equal(left(), [])


def test_damaged_archives_are_an_error_and_leave_nothing():
    need(BUNDLE)
    shutil.copytree(BUNDLE, "whole.seam", dirs_exist_ok=True)
    seam_in("pack", "whole.seam")
    with open("whole.seam.zst", "rb") as file:
        whole = file.read()
    source = random.Random(1)
    damaged = [b"", b"x", whole[:100], whole[:len(whole) // 2], whole[:-1],
               b"PERFILE2" + whole, whole[4:]]
    for _ in range(12):
        flipped = bytearray(whole)
        flipped[source.randrange(len(whole))] ^= 1 << source.randrange(8)
        damaged.append(bytes(flipped))
    for i, content in enumerate(damaged):
        with open("bad.seam.zst", "wb") as file:
            file.write(content)
        done = seam_in("report", "bad.seam.zst", timeout=30)
        check(done.returncode in (0, 1, 3), f"{i}: {done.returncode}")
        check(i >= 7 or done.returncode == 1, f"{i}: {done.stdout[:200]}")
        check("Traceback" not in done.stderr and len(done.stderr) < 2000, i)
        equal(left(), [], f"{i}:")


def test_a_killed_command_leaves_nothing():
    need(BUNDLE)
    shutil.copytree(BUNDLE, "killed.seam", dirs_exist_ok=True)
    seam_in("pack", "killed.seam")
    with subprocess.Popen([SEAM, "view", "--no-browser", "killed.seam.zst"],
                          stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "TMPDIR": TEMPORARY}) as process:
        check(process.stdout.readline().startswith("http://"))
        equal(len(left()), 1)
        mode = os.stat(os.path.join(TEMPORARY, left()[0])).st_mode & 0o777
        equal(mode, 0o700)
        process.send_signal(signal.SIGKILL)
    for _ in range(500):
        if not left():
            return
        time.sleep(0.02)
    raise AssertionError(f"left: {left()}")


def test_an_ordinary_user_can_open_one():
    need(BUNDLE)
    if not IS_ROOT:
        raise tap.Skip("all the others ran as one")
    shutil.copytree(BUNDLE, "theirs.seam", dirs_exist_ok=True)
    seam_in("pack", "theirs.seam")
    os.chmod("theirs.seam.zst", 0o644)
    os.makedirs("nobodys", exist_ok=True)
    os.chown("nobodys", NOBODY, NOBODY)
    done = run(SEAM, "report", "theirs.seam.zst", user=NOBODY,
               env={**os.environ, "TMPDIR": os.path.abspath("nobodys")})
    check(done.returncode in (0, 3), done.stderr)
    equal(os.listdir("nobodys"), [])


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
