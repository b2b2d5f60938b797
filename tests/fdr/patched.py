#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs with sleds, built in many ways:

patched.py SAMPLER PROBE PROBE.a LIBSEAM...

The probe is libseam-fdr with a text as its output (patch_probe.c), and how
often a program calls each function is known (patch_program.c): each way has to
have just these calls.
"""
import collections
import glob
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
from tap import Skip, promises, run  # noqa: E402

SAMPLER, PROBE, *STATIC = (os.path.abspath(path) for path in sys.argv[1:])
SOURCE = os.path.join(HERE, "patch_program.c")
LIBRARY = os.path.join(HERE, "patch_library.c")
ENTRY, EXIT, TAIL, ENTRY_ARGS, ARGUMENT, CUSTOM, TYPED = range(7)
CLANG = ["clang", "-O2", "-fxray-instrument",
         "-fxray-instruction-threshold=1000000", "-fxray-ignore-loops"]
GCC = ["gcc", "-O2", "-fno-optimize-sibling-calls"]
NAMED = "functions=leaf,fibonacci"
INSIDE = ("valgrind",)   # its children are not
FIBONACCI = 177         # calls of fibonacci(10)
FOLDER = tempfile.TemporaryDirectory(prefix="seam-patched-")
os.chdir(FOLDER.name)
os.environ["ASAN_OPTIONS"] = "detect_leaks=0"

# function: records by kind; what clang's programs have in each run
CALLS = {
    "leaf": {ENTRY: 14, EXIT: 14},
    "fibonacci": {ENTRY: FIBONACCI, EXIT: FIBONACCI},
    "tail_caller": {ENTRY: 4, TAIL: 4},
    "logged": {ENTRY_ARGS: 4, EXIT: 4},
    "events": {ENTRY: 1, EXIT: 1},
}
GCC_CALLS = {"leaf": {ENTRY: 10}, "fibonacci": {ENTRY: FIBONACCI}}


def equal(got, wanted, why=""):
    if got != wanted:
        raise AssertionError(f"{got} is not {wanted} {why}")


def build(name, *command, source=SOURCE):
    result = subprocess.run([*command, source, "-o", name, "-lpthread"],
                            capture_output=True, text=True, check=False)
    if result.returncode:
        raise AssertionError(f"{command}: {result.stderr[-1500:]}")
    return os.path.abspath(name)


class Output:
    """What the probe of one process wrote."""

    def __init__(self, text):
        self.notes = re.findall(r"^note (.*)$", text, re.M)
        self.names = collections.defaultdict(list)
        for number, name in re.findall(r"^function (\d+) \S+ (.*)$", text,
                                       re.M):
            self.names[int(number)].append(name)
        self.addresses = dict(re.findall(r"^function (\d+) (\S+)", text, re.M))
        self.announced = dict(re.findall(r"^announced (\d+) (\S+)$", text,
                                         re.M))
        self.images = {os.path.basename(path): list(map(int, numbers.split()))
                       for numbers, path in re.findall(
                           r"^image ([\d ]+) (/.*)$", text, re.M)
                       if not numbers.split()[1] == "0"}
        self.arguments = list(map(int, re.findall(r"^argument (\d+)$", text,
                                                  re.M)))
        self.problems = re.findall(r"^(?:bad|lost) .*$", text, re.M)
        self.by_id = collections.defaultdict(dict)
        for numbers in re.findall(r"^count (.*)$", text, re.M):
            number, kind, n = map(int, numbers.split())
            self.by_id[number][kind] = n

    def calls(self):
        """{function: {kind: number}} by the first name of each."""
        return {self.names.get(number, [f"{number}"])[0]: kinds
                for number, kinds in self.by_id.items()
                if number}


def trace(program, *words, options="", env=(), status=0, launcher=(),
          preload=PROBE):
    """Run with the probe.  The first process' output, and those of others."""
    for old in glob.glob("out.*"):
        os.unlink(old)
    more = {"SEAM_TRACE": options, "SEAM_LINK": "@seam-test",
            "PATCH_PROBE": os.path.abspath("out"), **dict(env)}
    if preload:
        more["LD_PRELOAD"] = preload
    result = subprocess.run(
        [*(() if launcher == INSIDE else launcher), "env",
         *(f"{key}={value}" for key, value in more.items()),
         *(launcher if launcher == INSIDE else ()), program, *words],
        capture_output=True, text=True, timeout=60, check=False)
    if result.returncode != status:
        raise AssertionError(f"{program} {words}: {result.returncode}, "
                             f"{result.stdout} {result.stderr}")
    trace.stdout = result.stdout
    texts = {}
    for path in glob.glob("out.*"):
        with open(path, encoding="utf-8") as file:
            texts[int(path[4:])] = Output(file.read())
    first = texts.pop(min(texts)) if texts else None
    return first, list(texts.values())


def check_calls(output, wanted, why=""):
    equal(output.problems, [], why)
    equal({number: output.announced.get(number)
           for number in output.addresses}, output.addresses, why)
    equal({name: kinds for name, kinds in output.calls().items()
           if name in wanted or kinds}, wanted, f"{why} {output.notes}")


def check_program(*command, wanted=None, strip=False, words=(), **more):
    program = build("program", *command)
    output, _ = trace(program, *words, **more)
    wanted = wanted or CALLS
    check_calls(output, wanted, command)
    equal(output.by_id[0], {CUSTOM: 1, ARGUMENT: 4}, command)
    if strip:
        # without names the ids are the same
        subprocess.run(["strip", program], check=True)
        stripped, _ = trace(program, *words, **more)
        equal(stripped.by_id, output.by_id, f"stripped {command}")
    return output


# ---- clang ----

def test_each_sled_kind_of_a_pie_is_recorded_stripped_too():
    check_program(*CLANG, "-fPIE", "-pie", "-fnoxray-link-deps",
                  *UNRESOLVED, strip=True)


def test_programs_at_a_fixed_address_and_with_compiler_rt_are_recorded():
    check_program(*CLANG, "-fno-PIC", "-no-pie", "-fnoxray-link-deps",
                  *UNRESOLVED, strip=True)
    for flags in (["-fPIE", "-pie"], ["-fno-PIC", "-no-pie"]):
        check_program(*CLANG, *flags, strip=True)


def test_typed_events_with_any_operands_are_recorded():
    for flags in (["-O0"], ["-O2"]):
        program = build("program", *CLANG, *flags, "-DHAS_TYPED")
        output, _ = trace(program)
        equal(output.problems, [])
        equal(output.by_id[0], {CUSTOM: 1, TYPED: 1, ARGUMENT: 4}, flags)


def test_ids_are_those_of_llvm_xray():
    program = build("program", *CLANG)
    output, _ = trace(program)
    text = subprocess.run(["llvm-xray", "extract", "-symbolize", program],
                          capture_output=True, text=True, check=False).stdout
    rows = set(re.findall(r"id: (\d+),.*function-name: '?([\w ]+)", text))
    equal({(str(number), names[0])
           for number, names in output.names.items()}, rows)


def test_cplusplus_names_and_exceptions():
    program = build("program", "clang++", *CLANG[1:], "-x", "c++",
                    "-fnoxray-link-deps", *UNRESOLVED)
    output, _ = trace(program)
    equal(output.problems, [])
    calls = output.calls()
    equal(calls["_Z7throweri"], {ENTRY: 6, EXIT: 3})
    equal(calls["_Z7catcheri"], {ENTRY: 6, EXIT: 6})
    method = "_ZN5space3boxIilE6methodEi"
    for options, wanted in (
            ("functions=space::box<int\\, long>::method", {method}),
            ("functions=space::*", {method}),
            ("functions=*::method(int)", {method}),
            (f"functions={method}", {method}),
            ("functions=thrower,catcher;except=catch*", {"_Z7throweri"}),
            ("except=*;trigger=calls:thrower", {"_Z7throweri"})):
        output, _ = trace(program, options=options)
        equal(set(output.calls()), wanted, options)


def test_maps_of_version_0_and_1_are_read():
    """Absolute addresses, which the loader relocates in a PIE."""
    text = subprocess.run([*CLANG, "-fPIC", "-S", SOURCE, "-o", "-",
                           "-fnoxray-link-deps"], capture_output=True,
                          text=True, check=True).stdout
    for version in (0, 1):
        old = text.replace('xray_instr_map,"ao"', 'xray_instr_map,"awo"')
        start = old.index("xray_instr_map")
        old = old[:start] + re.sub(
            r"(\.byte\t0x0\d\n\t\.byte\t0x0\d\n\t\.byte\t)0x02",
            f"\\g<1>0x{version:02}",
            re.sub(r"\.quad\t(\.L\w+)-\(?\.L\w+(\+8\))?", r".quad \1",
                   old[start:]))
        with open("old.s", "w", encoding="ascii") as file:
            file.write(old)
        for flags in (["-pie"], ["-no-pie"]):
            program = build("old", "clang", *flags, *UNRESOLVED,
                            source="old.s")
            output, _ = trace(program)
            check_calls(output, CALLS, (version, flags))


def test_static_programs_are_recorded():
    for flags in (["-static"], ["-static-pie"]):
        program = build("program", *CLANG, "-fPIE", "-fnoxray-link-deps",
                        "-c")
        os.rename(program, "program.o")
        build("static", "clang", *flags, "-fuse-ld=bfd",
              "-Wl,--whole-archive", STATIC[0], "-Wl,--no-whole-archive",
              *STATIC[1:], *WRAPPED, "-liberty", *UNRESOLVED,
              source="program.o")
        output, _ = trace(os.path.abspath("static"), preload=None)
        check_calls(output, CALLS, flags)


# ---- shared objects ----

def build_library(name="liblibrary.so", *flags):
    return build(name, *CLANG, "-fPIC", "-shared", "-fnoxray-link-deps",
                 *flags, source=LIBRARY)


def test_shared_objects_that_are_linked_are_recorded():
    library = build_library()
    program = build("program", *CLANG, "-fnoxray-link-deps", *UNRESOLVED,
                    "-DLINKED=library_leaf", "-include", DECLARED(),
                    library, "-Wl,-rpath=" + os.getcwd())
    output, _ = trace(program, "linked")
    check_calls(output, {**CALLS, "library_leaf": {ENTRY: 3, EXIT: 3}})
    equal(output.images["program"][0], 1, "the executable's come first")


def test_shared_objects_of_programs_without_sleds_are_recorded():
    library = build_library()
    program = build("program", "gcc", "-O1", "-fno-inline",
                    "-DLINKED=library_leaf", "-include", DECLARED(),
                    "-Wl,--no-as-needed", library,
                    "-Wl,-rpath=" + os.getcwd())
    output, _ = trace(program, "linked")
    check_calls(output, {"library_leaf": {ENTRY: 3, EXIT: 3}})


def test_libraries_loaded_later_keep_their_ids():
    first = build_library("libfirst.so")
    second = build_library("libsecond.so", "-DSECOND")
    program = build("program", *CLANG, "-fnoxray-link-deps", *UNRESOLVED)
    output, _ = trace(program, *[first, second, first, "more"] * 20, second)
    equal(output.problems, [])
    first_id = output.images["libfirst.so"][0]
    second_id = output.images["libsecond.so"][0]
    equal(output.by_id[first_id], {ENTRY: 200, EXIT: 200})
    equal(output.by_id[second_id], {ENTRY: 105, EXIT: 105})
    equal(output.calls()["leaf"], {ENTRY: 2014, EXIT: 2014})
    equal(output.notes, [])


# ---- gcc ----

def test_gcc_entries_are_recorded():
    for flags in (["-fpatchable-function-entry=5"],
                  ["-fpatchable-function-entry=5", "-fcf-protection"],
                  ["-fpatchable-function-entry=16"],
                  ["-fpatchable-function-entry=10,5"],
                  ["-fpatchable-function-entry=5", "-no-pie", "-fno-pie"],
                  ["-pg", "-mfentry"],
                  ["-pg", "-mfentry", "-fcf-protection"],
                  ["-pg", "-mfentry", "-no-pie", "-fno-pie"],
                  ["-pg", "-mfentry", "-mrecord-mcount", "-no-pie",
                   "-fno-pie"],
                  ["-pg", "-mfentry", "-mnop-mcount", "-mrecord-mcount",
                   "-no-pie", "-fno-pie"]):
        equal(check_gcc(*GCC, *flags).notes, [], flags)


def check_gcc(*command):
    """main() and others have entries too; by name only two are wanted."""
    program = build("program", *command)
    output, _ = trace(program, options=NAMED)
    check_calls(output, GCC_CALLS, command)
    everything, _ = trace(program)
    equal(everything.problems, [], command)
    calls = everything.calls()
    equal({name: calls.get(name) for name in ("leaf", "fibonacci", "main")},
          {**GCC_CALLS, "main": {ENTRY: 1}}, command)
    subprocess.run(["strip", program], check=True)
    stripped, _ = trace(program)
    equal(stripped.by_id, everything.by_id, command)
    return output


def test_entries_of_several_nops_want_a_single_thread():
    """Another thread could be between the nops; a call is one instruction."""
    program = build("program", "gcc", "-O1")
    for flags, n in (["-fpatchable-function-entry=5"], 0), (
            ["-pg", "-mfentry"], 5):
        library = build("libgcc.so", *GCC, "-fPIC", "-shared", *flags,
                        source=LIBRARY)
        output, _ = trace(program, library, options="functions=library_leaf")
        equal(output.calls(), {"library_leaf": {ENTRY: 5}})
        output, _ = trace(program, "sleep", library,
                          options="functions=library_leaf")
        equal(output.calls(), {"library_leaf": {ENTRY: n}} if n else {})
        equal(["while there are threads" in note for note in output.notes],
              [] if n else [True], output.notes)


def test_patchable_entries_of_clang_are_recorded():
    wanted = {"leaf": {ENTRY: 14}, "fibonacci": {ENTRY: FIBONACCI}}
    for entry in ("5", "9,2", "12"):
        program = build("program", "clang", "-O1", *UNRESOLVED,
                        f"-fpatchable-function-entry={entry}")
        output, _ = trace(program, options=NAMED)
        check_calls(output, wanted, entry)


def test_unaligned_entries_are_recorded():
    """A sled's first two bytes have to be in one word of 8."""
    for skipped in range(8):
        program = build("program", *GCC, "-fpatchable-function-entry=16",
                        "-fno-align-functions", f"-DUNALIGNED={skipped}")
        output, _ = trace(program, options=NAMED)
        check_calls(output, GCC_CALLS, skipped)
        equal(output.notes, [], skipped)


def test_too_few_nops_are_left_alone():
    for entry in ("3", "7,5"):
        program = build("program", *GCC, f"-fpatchable-function-entry={entry}")
        output, _ = trace(program)
        check_calls(output, {})


# ---- processes ----

def test_a_forked_child_records_as_itself():
    program = build("program", *CLANG, "-fnoxray-link-deps", *UNRESOLVED)
    output, children = trace(program, "fork", "wait", "more")
    equal(len(children), 1)
    # words after "fork" are done by both
    equal(output.calls()["leaf"], {ENTRY: 114, EXIT: 114})
    equal(children[0].calls(), {"leaf": {ENTRY: 107, EXIT: 107}})
    equal(output.problems + children[0].problems, [])


def test_handlers_may_fork_while_libraries_are_patched():
    """Also handlers of faults, which are not blocked."""
    library = build_library()
    program = build("program", *CLANG, "-fnoxray-link-deps", *UNRESOLVED)
    for number in (signal.SIGURG, signal.SIGSEGV):
        output, _ = trace(program, "handler", *[library] * 20, "forked",
                          "more",
                          env={"PATCH_PROBE_RAISES": str(int(number))})
        equal("forked 1\n" in trace.stdout, True, trace.stdout)
        equal(output.calls()["library_leaf"], {ENTRY: 100, EXIT: 100})
        equal(output.calls()["leaf"], {ENTRY: 114, EXIT: 114})
        equal(output.problems, [])


def test_sanitized_programs_are_recorded():
    for sanitizer in ("address", "thread"):
        program = build("program", *CLANG, f"-fsanitize={sanitizer}",
                        "-fnoxray-link-deps", *UNRESOLVED)
        output, _ = trace(program, "thread")
        wanted = dict(CALLS, leaf={ENTRY: 1014, EXIT: 1014})
        if sanitizer == "thread":       # its functions end with a call
            wanted["tail_caller"] = {ENTRY: 4, EXIT: 4}
        check_calls(output, wanted, sanitizer)


def test_libraries_that_come_and_go_leave_no_memory_behind():
    library = build_library()
    program = build("program", *CLANG, "-fsanitize=address",
                    "-fnoxray-link-deps", *UNRESOLVED)
    # it ends with another status where its sanitizer finds leaks
    output, _ = trace(program, *[library] * 20,
                      env={"ASAN_OPTIONS": "detect_leaks=1"})
    equal(output.calls()["library_leaf"], {ENTRY: 100, EXIT: 100})


def test_a_seccomp_filter_ends_it_before():
    program = build("program", *CLANG, "-fnoxray-link-deps", *UNRESOLVED)
    # it ends by _exit(), without the probe's output
    trace(program, "filter")
    equal(trace.stdout.endswith("filtered\n"), True, trace.stdout)
    # and without us its filter kills it for a system call of ours, or none
    output, _ = trace(program, "more")
    equal(output.calls()["leaf"], {ENTRY: 114, EXIT: 114})


def test_the_sampler_beside_it_changes_nothing():
    """Both have dlopen(), prctl() and syscall() in front of libc's."""
    library = build_library()
    program = build("program", *CLANG, "-fnoxray-link-deps", *UNRESOLVED)
    for preload in (f"{SAMPLER}:{PROBE}", f"{PROBE}:{SAMPLER}"):
        output, _ = trace(program, library, "more", library, preload=preload)
        check_calls(output, {**CALLS, "leaf": {ENTRY: 114, EXIT: 114},
                             "library_leaf": {ENTRY: 10, EXIT: 10}}, preload)
        trace(program, "filter", preload=preload)
        equal(trace.stdout.endswith("filtered\n"), True, preload)


def test_a_set_user_id_program_is_left_alone():
    if os.getuid():
        raise Skip("root may make one")
    folder = tempfile.mkdtemp(prefix="seam-setuid-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    program = os.path.join(folder, "program")
    shutil.copy(build("program", *CLANG, "-fnoxray-link-deps",
                      *UNRESOLVED, "-Wl,-rpath=" + folder,
                      os.path.abspath(shutil.copy(PROBE, folder))), program)
    os.chmod(program, 0o4755)
    try:
        # the linked probe is in it, unlike a preloaded one
        output, _ = trace(program, preload=None)
        check_calls(output, CALLS, "as its owner")
        os.chmod(os.getcwd(), 0o777)
        output, _ = trace(program, preload=None, launcher=(
            "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"))
        equal((output.calls(), output.notes), ({}, []))
    finally:
        shutil.rmtree(folder)


def test_refused_write_and_execute_goes_through_memory():
    """By a filter as SELinux refuses it, and by PR_SET_MDWE of Linux 6.3."""
    helper = build("refuse", "gcc", "-O1",
                   source=os.path.join(HERE, "refuse_writable_code.c"))
    program = build("program", *CLANG, "-fnoxray-link-deps", *UNRESOLVED)
    gcc = build("gcc_program", *GCC, "-fpatchable-function-entry=5")
    library = build("libgcc.so", *GCC, "-fPIC", "-shared", "-pg", "-mfentry",
                    source=LIBRARY)
    for how in ("filter", "mdwe"):
        output, _ = trace(program, "thread", launcher=(helper, how))
        if output is None:
            raise Skip(f"{how} is not to be had")
        check_calls(output, dict(CALLS, leaf={ENTRY: 1014, EXIT: 1014}), how)
        output, _ = trace(gcc, launcher=(helper, how),
                          options=NAMED)
        check_calls(output, GCC_CALLS, how)
        # two bytes differ, and are not written at once
        output, _ = trace(gcc, "sleep", library, launcher=(helper, how),
                          options="functions=library_leaf")
        equal(output.calls(), {})
        equal(["while there are threads" in note for note in output.notes],
              [True], output.notes)


def test_under_valgrind_nothing_is_recorded():
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    program = build("program", *CLANG, "-fnoxray-link-deps", *UNRESOLVED)
    output, _ = trace(program, launcher=INSIDE)
    equal(output.calls(), {})
    equal("valgrind" in output.notes[0], True, output.notes)


def test_bad_options_are_refused():
    program = build("program", *CLANG, "-fnoxray-link-deps", *UNRESOLVED)
    for options in ("nonsense=1", "min=soon", "args=7", "trigger=x"):
        output, _ = trace(program, options=options)
        equal(output.calls(), {})
        equal("not recorded" in output.notes[0], True, output.notes)
    output, _ = trace(program, options="start=0")
    equal((output.calls(), output.notes), ({}, []))


def test_a_process_without_calls_does_not_connect():
    program = build("program", "gcc", "-O1")
    library = build_library()
    # the probe's note comes of the connection, which is replaced
    for words, wanted in ((), 0), ((library,), 1):
        trace("strace", "-f", "-o", "calls.txt", "-e", "trace=socket",
              program, *words, env={"PATCH_PROBE_CONNECTS": "1"})
        with open("calls.txt", encoding="utf-8") as file:
            equal(file.read().count("socket(AF_UNIX"), wanted, words)


def test_files_without_a_section_table_are_noted():
    program = build("program", *CLANG, "-fnoxray-link-deps", *UNRESOLVED)
    with open(program, "r+b") as file:
        header = bytearray(file.read(64))
        header[40:48] = bytes(8)                # e_shoff
        header[58:64] = bytes(6)                # sizes, numbers
        file.seek(0)
        file.write(header)
    output, _ = trace(program)
    equal(output.calls(), {})
    equal(any("no section table" in note for note in output.notes), True,
          output.notes)


def test_its_thread_local_storage_fits_into_what_is_left():
    """A program whose libraries have used it up to 128 bytes loads it."""
    with open("full.c", "w", encoding="ascii") as file:
        file.write("__thread char filler[SIZE] __attribute__((tls_model("
                   "\"initial-exec\")));\nchar *use(void)\n"
                   "{ return filler; }\n")
    program = build("program", *CLANG, "-fnoxray-link-deps", *UNRESOLVED)
    text = subprocess.run(["readelf", "-lW", PROBE], capture_output=True,
                          text=True, check=True).stdout
    size = int(re.search(r"TLS +\w+ +\w+ +\w+ +\w+ +(\w+)", text)[1], 16)
    equal(size <= 128, True, f"{size} bytes")
    def loads(filler_bytes, *ours):
        filler = build("libfull.so", "gcc", "-O1", "-fPIC", "-shared",
                       f"-DSIZE={filler_bytes}", source="full.c")
        return subprocess.run([program, "only", filler, *ours],
                              capture_output=True, check=False).returncode == 0
    low, high = 0, 4096
    while high - low > 64:
        middle = (low + high) // 2
        low, high = (middle, high) if loads(middle) else (low, middle)
    equal(low >= 512, True, f"{low} bytes are left")
    # and what aligning both takes
    equal(loads(low - 128 - 64, PROBE), True, f"{low}")
    equal(loads(low, PROBE), False, "it was full")


def test_a_damaged_map_is_not_followed():
    """Each entry, in turn, points to other code, or out of it."""
    program = build("program", *CLANG, "-fno-PIC", "-no-pie",
                    "-fnoxray-link-deps", *UNRESOLVED)
    with open(program, "rb") as file:
        whole = file.read()
    at, size = section(program, "xray_instr_map")
    for entry in range(at, at + size, 32):
        for change in (1, -1, 64, -4096, 1 << 20, 1 << 40, -(1 << 62)):
            number, = struct.unpack_from("<q", whole, entry)
            changed = bytearray(whole)
            struct.pack_into("<q", changed, entry, number + change)
            with open("damaged", "wb") as file:
                file.write(changed)
            os.chmod("damaged", 0o755)
            output, _ = trace(os.path.abspath("damaged"))
            equal(output.problems, [])
            equal(output.images["damaged"][3], 1, (entry, change))


def section(program, name):
    text = subprocess.run(["readelf", "-SW", program], capture_output=True,
                          text=True, check=True).stdout
    numbers = re.search(re.escape(name) + r"\s+\w+\s+\w+ (\w+) (\w+)", text)
    return int(numbers[1], 16), int(numbers[2], 16)


def DECLARED():
    with open("declared.h", "w", encoding="ascii") as file:
        file.write("extern\n#ifdef __cplusplus\n\"C\"\n#endif\n"
                   "int library_leaf(int);\n")
    return "declared.h"


# A program without compiler-rt gets them from libseam-fdr.
UNRESOLVED = ["-Wl,--defsym=__xray_CustomEvent=0",
              "-Wl,--defsym=__xray_TypedEvent=0"]
WRAPPED = ["-Wl,--wrap=" + name for name in (
    "seam_link_client_note", "seam_fdr_link_connect", "seam_link_client_claim",
    "seam_fdr_thread_init", "seam_fdr_images_with")]

status = run(promises(globals()))
os.chdir("/")
FOLDER.cleanup()
sys.exit(status)
