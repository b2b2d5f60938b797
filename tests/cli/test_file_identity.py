#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names of programs without a GNU build id, whatever is done to their files.

Such are the programs of Go before 1.24, which have a build id of their own, and
all that are linked with --build-id=none: these are known by their contents.
"""
import os
import shutil
import subprocess
import sys
import time

from record_lib import (SEAM, check, end_group, end_private_mounts, equal,
                        manifest, private_mounts, record, run, run_tests)

PROGRAM_C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
volatile unsigned long x;
__attribute__((noinline)) void NAME(void)
{ for (unsigned long i = 0; i < 1000000; i++) x += i; }
int main(int n, char **words)
{
	int rounds = n > 1 ? atoi(words[1]) : 1 << 30;
	puts("runs");
	fflush(stdout);
	alarm(60);
	while (rounds-- > 0)
		NAME();
	return 0;
}
"""

# The note of Go's linker, with an id of the same length for each name.
GO_NOTE = (r'__asm__(".section .note.go.buildid,\"a\",@note\n.long 4, 8, 4\n'
           r'.asciz \"Go\\0\"\n.ascii \"%8.8s\"\n.text");')


def build(path, name="work_1", is_go=True):
    text = PROGRAM_C.replace("NAME", name)
    if is_go:
        text += GO_NOTE % name.rjust(8, "-")
    with open("program.c", "w", encoding="ascii") as out:
        out.write(text)
    equal(run("cc", "-O1", "-Wl,--build-id=none", "-o", path,
              "program.c").returncode, 0)
    note = run("readelf", "-n", path).stdout
    check("GNU_BUILD_ID" not in note.replace("Build ID", "GNU_BUILD_ID"), note)
    equal("Go" in note, is_go, note)


def start(*words, **options):
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True,
                               start_new_session=True, **options)
    check(process.stdout.readline(), f"{words} does not run")
    return process


def report(path):
    done = run(SEAM, "report", path)
    return done.stdout + done.stderr


def has_names(path, name="work_1"):
    text = report(path)
    check(name in text and "changed since" not in text, text)


def has_none(path, why="p has changed since"):
    text = report(path)
    check("work_" not in text and why in text, text)


# What leaves the inode and its contents as they are.
SMALL_CHANGES = ("chmod 700 p", "ln p other", "rm other", "touch -a p",
                 "mv p other && mv other p")


def survives(recording, *changes):
    has_names(recording)
    for change in changes:
        equal(run("sh", "-c", change).returncode, 0, change)
        has_names(recording)


def survives_all(recording):
    survives(recording, *SMALL_CHANGES, "touch p", "touch -d 2001-01-01 p",
             "cp p other && mv other p")


def kinds():
    for is_go in True, False:
        build("p", is_go=is_go)
        yield is_go


def test_a_file_that_was_touched_moved_or_copied_has_its_names():
    for _ in kinds():
        equal(record("-o", "a.seam", "./p", "100").returncode, 0)
        survives_all("a.seam")
        program = start("./p")
        equal(record("-o", "b.seam", "-p", str(program.pid), "--duration",
                     "0.3").returncode, 0)
        end_group(program)
        survives_all("b.seam")


def test_a_file_of_other_contents_has_none_whatever_its_times_are():
    for is_go in kinds():
        equal(record("-o", "c.seam", "./p", "100").returncode, 0)
        has_names("c.seam")
        build("q", "work_2", is_go)
        equal(os.path.getsize("p"), os.path.getsize("q"))
        shutil.copystat("p", "q")
        with open("q", "rb") as file:
            content = file.read()
        with open("p", "wb") as file:	# the same inode
            file.write(content)
        shutil.copystat("q", "p")
        has_none("c.seam")


def test_a_file_that_is_deleted_while_it_runs_is_copied():
    for _ in kinds():
        equal(record("-o", "d.seam", "sh", "-c",
                     "./p 100 & sleep 0.1; rm p; wait").returncode, 0)
        equal(manifest("d.seam")["kept"]["files"] >= 1, True)
        has_names("d.seam")


def test_a_file_is_copied_on_request():
    for _ in kinds():
        result = record("-o", "k.seam", "--keep-files", "./p", "100")
        equal(result.returncode, 0, result.stderr)
        check("not copied" not in result.stderr, result.stderr)
        file = [f for f in manifest("k.seam")["files"]
                if f["path"] == os.path.realpath("p")]
        equal(len(file), 1)
        check(file[0]["contents"][2:].rjust(16, "0") in
              os.listdir("k.seam/elf"), os.listdir("k.seam/elf"))
        os.remove("p")
        has_names("k.seam")
        os.rename("k.seam", "moved.seam")
        has_names("moved.seam")
        shutil.rmtree("moved.seam")


def test_a_file_that_only_its_container_sees_is_copied():
    os.makedirs("hidden")
    unshare = private_mounts("hidden")
    if not unshare:
        return
    for _ in kinds():
        program = start(*unshare, "sh", "-c", "mount -t tmpfs none hidden && "
                        "cp p hidden/p && exec hidden/p")
        result = record("-o", "m.seam", "-p", str(program.pid), "--duration",
                        "0.3")
        end_group(program)
        end_private_mounts("hidden")
        equal(result.returncode, 0, result.stderr)
        os.remove("p")
        has_names("m.seam")


def test_without_the_end_of_a_recording_inode_and_mtime_decide():
    """A recorder that is killed has no time to write what files contain."""
    build("p")
    recorder = start(SEAM, "record", "-o", "e.seam", "./p",
                     stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while "work_1" not in report("e.seam") and time.monotonic() < deadline:
        time.sleep(0.05)
    end_group(recorder)
    check("files" not in manifest("e.seam"), "it was not killed")
    survives("e.seam", *SMALL_CHANGES)
    run("touch", "p")
    has_none("e.seam")


sys.exit(run_tests(globals()))
