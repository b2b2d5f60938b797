#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names of stripped programs, in the program itself:
debug_files.py SEAM LIBRARY

A small program is built, and its symbols are put into a debug file by each of
the tools that do so, in each of the places where gdb looks; a GLOB selects by
the names of the debug file.  A file that is not its debug file is put in these
places too.  Prints TAP.
"""
import json
import os
import shutil
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cli")]
SEAM, LIBRARY = map(os.path.abspath, sys.argv[1:])
import fdr_log                                       # noqa: E402
from record_lib import FOLDER, equal, run_tests      # noqa: E402
from tap import Skip                                 # noqa: E402

ROOT = "/usr/lib/debug"
SOURCE = """
#ifdef LIBRARY
#pragma GCC visibility push(hidden)
#endif
__attribute__((noinline)) void leaf(int i) { __asm__ volatile("" :: "r"(i)); }
#ifdef LIBRARY
#pragma GCC visibility pop
#endif
__attribute__((noinline)) void step(int i) { leaf(i); leaf(i); }
#ifndef LIBRARY
int main(void) { for (int i = 0; i < 50; i++) step(i); return 7; }
#endif
"""
COUNTS = {"leaf": 100, "step": 50, "main": 1}
NOPS = ["-fpatchable-function-entry=16"]

def call(*words, **more):
    return subprocess.run(words, check=True, **more)


def build(name, *flags):
    call("gcc", "-O1", *(flags or NOPS), "-o", name, "-xc", "-",
         input=SOURCE, text=True)
    return os.path.abspath(name)


def split(folder, tool="objcopy", debug="app.debug", flags=()):
    """A program without symbols in a new folder, and its debug file."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, os.path.dirname(debug)))
    app, debug = os.path.join(folder, "app"), os.path.join(folder, debug)
    whole = build(os.path.join(folder, "whole"), *flags)
    if tool == "eu-strip":
        call(tool, "-f", debug, "-o", app, whole)
    else:
        call(tool, "--only-keep-debug", whole, debug)
        call(tool, "--strip-all", f"--add-gnu-debuglink={debug}", whole, app)
    os.unlink(whole)
    shown = subprocess.run(["nm", app], capture_output=True, text=True,
                           check=False)
    equal("no symbols" in shown.stderr, True, "stripped")
    return os.path.abspath(app), os.path.abspath(debug)


def calls_of(bundle):
    """How often each function was called: that says which one it is."""
    return sorted(fdr_log.entries(bundle).values())


def own(*words, options="", launcher=(), **more):
    """Calls in the program's own bundle; it prints and returns the same."""
    shutil.rmtree("own.seam", ignore_errors=True)
    own.ran = subprocess.run(
        [*launcher, "env", f"LD_PRELOAD={LIBRARY}",
         f"SEAM_TRACE=out={FOLDER}/own.seam;{options}", *words],
        capture_output=True, text=True, timeout=60, check=False, **more)
    equal(own.ran.returncode, 7, own.ran.stderr)
    return calls_of("own.seam")


def only(*names):
    return sorted(COUNTS[name] for name in names)


def check_names(app, **more):
    """A GLOB selects by them."""
    equal(own(app, **more), only(*COUNTS))
    equal(own(app, options="functions=l*f", **more), only("leaf"))
    equal(own(app, options="except=leaf", **more), only("step", "main"))


def check_no_names(app, why, **more):
    """All calls are there; a GLOB matches no function."""
    equal(own(app, **more), only(*COUNTS), why)
    equal(own(app, options="functions=leaf", **more), [], why)
    equal("'leaf': no function that can be recorded has this name" in
          own.ran.stderr, True, own.ran.stderr)


# ---- places and tools ----

def test_a_debug_file_of_each_tool_is_found_beside_the_program():
    for tool in ("objcopy", "llvm-objcopy", "eu-strip"):
        if shutil.which(tool):
            check_names(split("beside", tool)[0])


def test_it_is_found_in_the_folder_debug():
    check_names(split("below", debug=".debug/app.sym")[0])


def below_root(name, debug):
    """Words before a command that sees a copy of it there, alone."""
    words = ["unshare", "-rm", "sh", "-ec",
             f'mount -t tmpfs none {ROOT}; mkdir -p "{ROOT}/$(dirname "$1")";'
             f'cp "$2" "{ROOT}/$1"; shift 2; exec "$@"', "sh", name, debug]
    ran = subprocess.run([*words, "true"], capture_output=True, text=True,
                         check=False)
    if ran.returncode:
        raise Skip(f"no file system of its own: {ran.stderr[:200].strip()}")
    return words


def hidden(debug):
    return shutil.move(debug, "hidden")


def build_id(path):
    text = call("readelf", "-n", path, capture_output=True, text=True).stdout
    return text.split("Build ID: ")[1].split()[0]


def test_it_is_found_below_the_root_by_the_folder_of_the_program():
    app, debug = split("rooted")
    words = below_root(debug.lstrip("/"), hidden(debug))
    check_names(app, launcher=words)


def test_it_is_found_by_build_id_without_a_link():
    app, debug = split("identified")
    id_text = build_id(app)
    call("objcopy", "--remove-section=.gnu_debuglink", app)
    words = below_root(f".build-id/{id_text[:2]}/{id_text[2:]}.debug",
                       hidden(debug))
    check_names(app, launcher=words)


def test_programs_of_each_kind_have_the_names():
    for flags in ([*NOPS, "-no-pie", "-fno-pie"], ["-finstrument-functions"]):
        check_names(split("kinds", flags=flags)[0])
    app, _ = split("kinds", flags=["-pg", "-mfentry"])
    equal(own(app, options="functions=leaf"), only("leaf"))


def test_so_have_libraries_by_a_path_that_is_relative():
    _, debug = split("lib", flags=[*NOPS, "-DLIBRARY", "-shared", "-fPIC",
                                   "-Wl,-soname,app"])
    with open("main.c", "w", encoding="ascii") as source:
        source.write("void step(int);\nint main(void)\n{ for (int i = 0; "
                     "i < 50; i++) step(i); return 7; }\n")
    call("gcc", "-O1", "main.c", "lib/app", "-o", "main")
    with_names = {"env": {**os.environ, "LD_LIBRARY_PATH": "lib"}}
    main = os.path.abspath("main")
    equal(own(main, **with_names), only("leaf", "step"))
    equal(own(main, options="functions=leaf", **with_names), only("leaf"))
    # what others may call has a name without it
    os.unlink(debug)
    equal(own(main, options="functions=leaf", **with_names), [])
    equal(own(main, options="functions=step", **with_names), only("step"))


def test_the_program_may_be_started_through_a_link():
    app, _ = split("linked")
    os.makedirs("elsewhere", exist_ok=True)
    os.symlink(app, "elsewhere/other")
    check_names(os.path.abspath("elsewhere/other"))


# ---- with a recorder ----

def record(app, *options):
    shutil.rmtree("t.seam", ignore_errors=True)
    record.ran = subprocess.run(
        [SEAM, "record", "-o", "t.seam", *options, "--", app],
        capture_output=True, text=True, timeout=60, check=False)
    equal(record.ran.returncode, 7, record.ran.stderr)
    shown = subprocess.run([SEAM, "calls", "--json", "t.seam"],
                           capture_output=True, check=False)
    if not shown.stdout:    # no call was recorded
        return []
    return sorted(f["count"] for f in json.loads(shown.stdout)["functions"])


def test_a_recorder_selects_by_them():
    app, debug = split("recorded")
    equal(record(app, "--trace=leaf,st*"), only("leaf", "step"))
    equal(record(app, "--trace", "--no-trace=leaf"), only("step", "main"))
    record(app, "--flight-recorder=256K", "--trigger", "calls:step")
    equal("has this name" in record.ran.stderr, False, record.ran.stderr)
    os.unlink(debug)
    equal(record(app, "--trace=leaf"), [])
    equal("whose name --trace matches; it may be inlined, and of a stripped "
          "program only the debug file has names" in record.ran.stderr, True,
          record.ran.stderr)
    record(app, "--flight-recorder=256K", "--trigger", "calls:step")
    equal("'calls:step': no function that can be recorded has this name" in
          record.ran.stderr, True, record.ran.stderr)


# ---- what is not its debug file ----

def test_the_debug_file_of_another_build_is_not_used():
    app, debug = split("other")
    os.rename(split("this", flags=[*NOPS, "-Wl,--build-id=0x11223344"])[1],
              debug)
    check_no_names(app, "another build id")
    app, _ = split("none", flags=[*NOPS, "-Wl,--build-id=none"])
    check_no_names(app, "no build ids")
    app, debug = split("without")
    call("objcopy", "--remove-section=.note.gnu.build-id", debug)
    check_no_names(app, "the debug file has none")


def test_neither_is_one_of_another_user():
    if os.geteuid():
        raise Skip("not root")
    app, debug = split("planted")
    os.chown(debug, 65534, 65534)
    check_no_names(app, "a file of nobody's")
    os.chown(app, 65534, 65534)
    check_names(app)


def test_a_link_does_not_lead_out_of_its_folders():
    app, _ = split("leading", debug="sub/app.debug")
    with open("link", "wb") as link:
        link.write(b"sub/app.debug\0\0\0" + bytes(4))
    call("objcopy", "--update-section=.gnu_debuglink=link", app)
    check_no_names(app, "below its folder")


def test_other_than_a_regular_file_is_not_opened():
    app, debug = split("kind")
    os.unlink(debug)
    os.mkfifo(debug)
    writer = subprocess.Popen(["sh", "-c", 'echo x > "$1"', "sh", debug])
    try:
        check_no_names(app, "a FIFO")
        equal(writer.poll(), None, "its writer still waits")
    finally:
        writer.kill()
        writer.wait()
    for target in ("/dev/zero", "/dev/tty", "app.debug", "/", "."):
        os.unlink(debug)
        os.symlink(target, debug)
        check_no_names(app, target)


def section(path, wanted):
    """Where the header of the first section of this type is in the file."""
    with open(path, "rb") as file:
        whole = file.read()
    table, = struct.unpack_from("<Q", whole, 40)
    n, = struct.unpack_from("<H", whole, 60)
    for at in range(table, table + n * 64, 64):
        if struct.unpack_from("<I", whole, at + 4)[0] == wanted:
            return at
    raise AssertionError(f"no section {wanted}")


def test_a_damaged_or_huge_one_harms_nothing():
    app, debug = split("damaged")
    with open(debug, "rb") as file:
        whole = file.read()
    symbols = section(debug, 2)
    huge = bytearray(whole)
    struct.pack_into("<QQ", huge, symbols + 24, 0, 1 << 39)
    far = bytearray(whole)
    struct.pack_into("<QQ", far, symbols + 24, (1 << 64) - 8, 1 << 20)
    names = bytearray(whole)
    struct.pack_into("<I", names, symbols + 40, 0xffffffff)
    for content, size, why in (
            (b"", 0, "empty"), (b"", 1 << 40, "zeros"),
            (whole[:64], 1 << 40, "sections of zeros"),
            (whole[:len(whole) // 2], 0, "cut"), (huge, 1 << 40, "huge table"),
            (far, 0, "far table"), (names, 0, "names in no section")):
        with open(debug, "wb") as file:
            file.write(content)
            if size:
                file.truncate(size)
        check_no_names(app, why)


sys.exit(run_tests(globals()))
