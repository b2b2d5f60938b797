#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks by our walk are those that libdw's unwinder finds.

agreement.py COMPARE [--soak].  Builds subject.cc without frame pointers in
several ways, and compares stacks at many of its instructions; with --soak also
those of programs of the system.  Each difference has one of the causes that
compare.c lists, by evidence in the stack; each cause has a program that differs
by it alone.  All causes are libdw's errors, and together at most 1 % of the
stacks: how many depends on the instructions at which the programs are stopped,
and a cause with more would be one that applies to other stacks too.
Prints TAP.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
FEW = [("gcc", "-O2", "pie"), ("gcc", "-O0", "pie"), ("clang", "-O3", "nopie"),
       ("gcc", "-O3", "static"), ("clang", "-O1", "pie")]
ALL = [(compiler, level, kind) for compiler in ("gcc", "clang")
       for level in ("-O0", "-O1", "-O2", "-O3", "-Os")
       for kind in ("pie", "nopie", "static")]
# Programs of the system, from their main() on.
SYSTEM = [
    ("perl", "-e", "my %h; $h{$_ % 17} .= \"x$_\" for 1 .. 500;"
     "my $s = join ',', sort values %h; $s =~ s/(x\\d)(\\d+)/$2$1/g;"),
    ("python3", "-c", "import json\nfor i in range(200):"
     " json.loads(json.dumps({'a': [i, 'x' * i]}))"),
    ("openssl", "speed", "-seconds", "1", "sha256"),
    ("openssl", "speed", "-seconds", "1", "-evp", "aes-128-gcm"),
    ("openssl", "speed", "-seconds", "1", "rsa1024"),
    ("sqlite3", ":memory:", "with recursive c(x) as (select 1 union all "
     "select x + 1 from c where x < 5000) select x * x % 97, count(*) from c "
     "group by 1"),
    ("xz", "-kc", __file__), ("zstd", "-T1", "-kc", __file__),
    ("php", "-r", "for ($i = 0; $i < 2000; $i++) $a[] = md5($i); sort($a);"),
    ("luajit", "-joff", "-e", "local t = {} for i = 1, 2000 do "
     "t[i % 7] = (t[i % 7] or '') .. i end"),
    ("bash", "-c", "for i in 1 2 3 4 5 6 7; do x=$x$i; y=${x//2/3}; done"),
    ("awk", "BEGIN { for (i = 0; i < 1000; i++) a[i % 7] = a[i % 7] i }"),
    ("gdb", "-batch", "-ex", "info functions main", "/bin/ls"),
    ("ls", "-laR", "/usr/share/doc/bash"),
]
# For each cause of a difference a program, and how it is built.
CAUSES = {
    "libdw ends at the resolver": ("resolver.cc", ["g++", "-Wl,-z,lazy"]),
    "libdw goes on where nothing is mapped": ("resume.cc",
                                              ["g++", "-Wl,-z,now"]),
    "libdw follows the rbp of a PLT": ("plt.cc", ["g++", "-static"]),
    "libdw looks before a landing pad": ("pad.cc", ["clang++", "-Wl,-z,now"]),
}
MAX_SHARE = 0.01        # of stacks that differ by these causes
CAUSE = r"^(\d+) (libdw .*|ours .*)$"
KINDS = {"pie": ["-pie", "-fPIE"], "nopie": ["-no-pie"], "static": ["-static"]}
COMPILERS = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True,
                          check=False, **more)


def build(folder, compiler, level, kind):
    flags = [level, "-g0", "-fomit-frame-pointer"]
    program = f"{folder}/{compiler}{level}-{kind}"
    done = run([COMPILERS[compiler][1], *flags, *KINDS[kind], "-o", program,
                f"{HERE}/subject.cc", "-ldl"])
    if done.returncode:
        raise AssertionError(done.stderr[-500:])
    return program


def has_cause(one, folder, cause):
    """Stacks of the cause's program differ, all of them by it."""
    source, (compiler, *flags) = CAUSES[cause]
    program = f"{folder}/{source[:-3]}"
    done = run([compiler, "-O2", "-g0", "-fomit-frame-pointer", *flags, "-o",
                program, f"{HERE}/{source}"])
    if done.returncode == 0:
        environment = {name: value for name, value in os.environ.items()
                       if name != "LD_BIND_NOW"}
        done = run([one, "1", program], env=environment, timeout=600)
    found = [name for count, name in
             re.findall(CAUSE, done.stdout, re.M) if int(count)]
    if done.returncode or found != [cause]:
        raise AssertionError(done.stdout[-2000:] + done.stderr[-500:])


def compare(one, way, folder, every):
    """One way to build it: the line of counts, and those of causes."""
    # the resolver of ld.so runs in the first one only
    environment = os.environ | ({} if way == FEW[0] else {"LD_BIND_NOW": "1"})
    if way in SYSTEM:
        done = run([one, f"{every * 8}:2000", "/usr/bin/env",
                    f"LD_PRELOAD={folder}/preload.so", *way],
                   env=environment, timeout=600)
    else:
        library = [] if way[2] == "static" else [f"{folder}/library.so"]
        done = run([one, str(every), build(folder, *way), *library],
                   env=environment, timeout=600)
    counts = re.search(r"^(\d+) stacks, (\d+) frames, (\d+) complete, "
                       r"(\d+) without", done.stdout, re.M)
    if not counts or done.returncode:
        raise AssertionError(done.stdout[-2000:] + done.stderr[-500:])
    causes = re.findall(CAUSE, done.stdout, re.M)
    return [int(n) for n in counts.groups()], causes


def attempt(check, *words):
    try:
        return check(*words), None
    except (AssertionError, subprocess.TimeoutExpired) as why:
        return None, str(why)


def main():
    is_soak = "--soak" in sys.argv
    ways, every = (FEW, 100)
    if is_soak:
        system = [way for way in SYSTEM if shutil.which(way[0])]
        ways, every = ALL + system, 20
    failed, stacks, listed = 0, 0, {}
    print(f"1..{len(CAUSES) + len(ways) + 1}")
    with tempfile.TemporaryDirectory(prefix="seam-agree-") as folder, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = run(["gcc", "-O2", "-g0", "-fomit-frame-pointer", "-shared",
                    "-fPIC", "-o", f"{folder}/library.so",
                    f"{HERE}/library.c"])
        if is_soak and not done.returncode:
            done = run(["g++", "-O2", "-shared", "-fPIC",
                        "-fomit-frame-pointer", "-o", f"{folder}/preload.so",
                        f"{HERE}/preload.cc", "-ldl"])
        if done.returncode:
            sys.exit(done.stderr)
        results = pool.map(lambda cause: attempt(has_cause, sys.argv[1],
                                                 folder, cause), CAUSES)
        for n, (cause, (_, why)) in enumerate(zip(CAUSES, results), 1):
            failed |= why is not None
            print(f"{'not ok' if why else 'ok'} {n} - {cause}: by a minimal "
                  "program, which has no other cause", flush=True)
            if why:
                print("# " + why.replace("\n", "\n# "))
        results = pool.map(lambda way: attempt(compare, sys.argv[1], way,
                                               folder, every), ways)
        for n, (way, (result, why)) in enumerate(zip(ways, results),
                                                 len(CAUSES) + 1):
            failed |= result is None
            name = way[0] if way in SYSTEM else " ".join(way)
            print(f"{'not ok' if why else 'ok'} {n} - {name}: no stack "
                  "differs without a cause", flush=True)
            if why:
                print("# " + why.replace("\n", "\n# "))
                continue
            counts, causes = result
            stacks += counts[0]
            print(f"# {counts[0]} stacks, {counts[1]} frames, {counts[2]} "
                  "complete")
            for count, cause in causes:
                listed[cause] = listed.get(cause, 0) + int(count)
    differ = sum(listed.values())
    are_few = stacks > 0 and differ <= stacks * MAX_SHARE
    print(f"{'ok' if are_few else 'not ok'} {len(CAUSES) + len(ways) + 1} - "
          f"at most {MAX_SHARE:.0%} of the stacks differ by these causes")
    print(f"# {differ} of {stacks} differ: {listed}")
    return failed or not are_few


sys.exit(main())
