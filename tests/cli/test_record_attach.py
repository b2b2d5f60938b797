#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record -p, -t, -a: what is kept for a launched program is kept too."""
import os
import shutil
import signal
import subprocess
import sys

from record_lib import (SEAM, as_nobody, build_id, check, compile_c, end_group,
                        end_private_mounts, equal, manifest,
                        own_folder_for_nobody, private_mounts, record,
                        recorded, run, run_tests, samples_told, wait_for)

LIB_C = r"""
volatile unsigned long y;
__attribute__((noinline)) void in_the_library(void)
{ for (unsigned long i = 0; i < 1000000; i++) y += i; }
"""
# Says a line when it runs; with a number, that many children do the work.
DAEMON_C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
void in_the_library(void);
volatile unsigned long x;
__attribute__((noinline)) static void in_the_program(void)
{ struct timeval t; gettimeofday(&t, 0);
  for (unsigned long i = 0; i < 1000000; i++) x += i; }
int main(int n, char **words)
{
	int children = n > 1 ? atoi(words[1]) : 0;
	for (int i = 0; i < children; i++)
		if (fork() == 0) {
			children = 0;
			alarm(60);
		}
	puts("runs");
	fflush(stdout);
	alarm(60);
	for (;;)
		if (children) {
			pause();
		} else {
			in_the_program();
			in_the_library();
		}
}
"""


def build(folder="."):
    """A daemon and its library in @folder; their build ids."""
    lib = compile_c(f"{folder}/libwork.so", LIB_C, "-shared", "-fPIC",
                    "-Wl,--build-id")
    daemon = compile_c(f"{folder}/daemon", DAEMON_C, "-Wl,--build-id",
                       "-Wl,--no-as-needed,-rpath,$ORIGIN", "-L", folder,
                       "-lwork")
    return build_id(daemon), build_id(lib)


def start(*words, **options):
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True,
                               start_new_session=True, **options)
    check(process.stdout.readline(), f"{words} does not run")
    return process


def kept(path):
    folder = os.path.join(path, "elf")
    return os.listdir(folder) if os.path.isdir(folder) else []


def names(path):
    return run(SEAM, "report", path).stdout


def attach(path, *words, **options):
    result = record("-o", path, "--duration", "0.4", *words, **options)
    check(result.returncode in (0, 3), result.stderr)
    return result


def test_of_a_daemon_that_was_deployed_over_all_is_kept():
    if os.geteuid() != 0:
        return          # the next one has what such a user is promised
    program, library = build()
    daemon = start("./daemon")
    for name in ("daemon", "libwork.so"):
        os.remove(name)
        shutil.copy("/bin/true", name)
    for path, words in (("p.seam", ("-p", str(daemon.pid))),
                        ("t.seam", ("-t", str(daemon.pid))),
                        ("a.seam", ("-a",)),
                        ("o.seam", ("--per-thread", "-p", str(daemon.pid)))):
        attach(path, *words)
        check({program, library} <= set(kept(path)), f"{path}: {kept(path)}")
        text = names(path)
        check("in_the_program" in text and "in_the_library" in text, text)
        vdso = manifest(path)["vdso"]["build_id"]
        check(vdso in kept(path), f"no vdso in {kept(path)}")
        told = manifest(path)["kept"]
        check(told["files"] >= 2 and told["file_bytes"] > 10000, str(told))
    end_group(daemon)


def test_an_ordinary_user_keeps_the_program_and_names_no_other_file():
    folder = own_folder_for_nobody()
    program, library = build(folder)
    daemon = start(f"{folder}/daemon", preexec_fn=as_nobody)
    for name in ("daemon", "libwork.so"):
        os.remove(f"{folder}/{name}")
        shutil.copy("/bin/true", f"{folder}/{name}")
    result = attach(f"{folder}/p.seam", "-p", str(daemon.pid),
                    preexec_fn=as_nobody)
    end_group(daemon)
    check(program in kept(f"{folder}/p.seam"), result.stderr)
    check("in_the_program" in names(f"{folder}/p.seam"), "no names")
    # of the library its build id is known, from memory
    ids = run("perf", "buildid-list", "-i", f"{folder}/p.seam").stdout
    check(build_id("/bin/true") not in ids, ids)
    check("1 mapped files were gone" in result.stderr, result.stderr)
    text = run(SEAM, "dump", f"{folder}/p.seam/data").stdout
    check(library[:16] in text.replace(" ", ""), "no build id of the library")


def test_files_of_another_mount_namespace_are_kept():
    os.makedirs("hidden", exist_ok=True)
    unshare = private_mounts("hidden")
    if not unshare:
        return          # nor is there such a process to be recorded
    program, library = build()
    daemon = start(*unshare, "sh", "-c",
                   "mount -t tmpfs none hidden && cp daemon libwork.so hidden"
                   " && exec hidden/daemon")
    attach("m.seam", "-p", str(daemon.pid))
    end_group(daemon)
    end_private_mounts("hidden")
    check({program, library} <= set(kept("m.seam")), f"{kept('m.seam')}")
    check("in_the_library" in names("m.seam"), names("m.seam"))


def test_a_map_of_a_jit_that_runs_already_is_kept():
    with open("w.js", "w", encoding="ascii") as out:
        out.write("function hot(n) { let s = 0; for (let i = 0; i < n; i++) "
                  "s += i % 7; return s; }\nfor (let i = 0; i < 50; i++) "
                  "hot(100000);\nconsole.log('runs');\n"
                  "const end = Date.now() + 60000;\n"
                  "while (Date.now() < end) hot(1000000);\n")
    for flag, pattern in (("--perf-basic-prof", "perf-%d.map"),
                          ("--perf-prof", "jit-%d.dump")):
        node = start("node", flag, "w.js")
        attach("j.seam", "-p", str(node.pid))
        end_group(node)
        name = pattern % node.pid
        left = [p for p in (f"/tmp/{name}", name) if os.path.exists(p)]
        for path in left:
            os.remove(path)
        check(os.path.exists(f"j.seam/jit/{name}"),
              f"{flag}: {os.listdir('j.seam')}")
        if "map" in name:       # V8 keeps the end of its dump in memory
            check("hot" in names("j.seam"), names("j.seam"))
        check(manifest("j.seam")["kept"]["dumps"] >= 1, "not told")


def test_the_children_that_a_process_has_are_recorded_with_it():
    build()
    server = start("./daemon", "3")
    for _ in range(3):
        server.stdout.readline()
    result = attach("c.seam", "-p", str(server.pid))
    check("recording 1 process and 3 child processes (-i: " in result.stderr,
          result.stderr)
    check(samples_told(result) > 20, result.stderr)
    threads = run(SEAM, "report", "--json", "c.seam").stdout
    check("in_the_program" in threads, threads[:300])
    alone = attach("d.seam", "-t", str(server.pid))
    check("child process" not in alone.stderr, alone.stderr)
    equal(samples_told(alone), 0)
    both = attach("d.seam", "-p", str(os.getpid()), "-t", str(server.pid))
    check("recording 1 process and 3 child processes (-i: " in both.stderr,
          both.stderr)
    end_group(server)
    server = start("./daemon", "1")
    server.stdout.readline()
    one = attach("e.seam", "-p", str(server.pid))
    check("recording 1 process and 1 child process (-i: " in one.stderr,
          one.stderr)
    end_group(server)


def test_who_records_a_shell_does_not_record_itself():
    result = run("sh", "-c", f"{SEAM} record -o s.seam --duration 0.2 -p $$; "
                 "true")
    equal(result.returncode, 0, result.stderr)
    check("child process" not in result.stderr, result.stderr)


def test_files_that_were_hit_are_copied_on_request():
    program, library = build()
    daemon = start("./daemon")
    result = attach("k.seam", "-p", str(daemon.pid), "--keep-files", "-v")
    attach("n.seam", "-p", str(daemon.pid))
    end_group(daemon)
    check({program, library} <= set(kept("k.seam")), f"{kept('k.seam')}")
    check(f"{manifest('k.seam')['kept']['files']} mapped files copied" in
          result.stderr, result.stderr)
    equal(len(kept("n.seam")), 1, "only the vdso is not at its path:")
    check(build_id("/lib64/ld-linux-x86-64.so.2") not in kept("k.seam"),
          "the loader was not hit")
    for name in ("daemon", "libwork.so"):
        shutil.copy("/bin/true", name)
    check("in_the_library" in names("k.seam"), names("k.seam"))
    result = recorded("-g", "--keep-files", "-z", "-o", "l.seam", "./spin",
                      "20000000")
    check(build_id("spin") in kept("l.seam"), f"{kept('l.seam')}")


def test_what_does_not_fit_into_the_size_limit_is_left_out():
    build()
    with open("daemon", "ab") as out:
        out.write(bytes(3 << 20))
    daemon = start("./daemon")
    os.remove("daemon")
    result = attach("x.seam", "-p", str(daemon.pid), "--max-size", "1M")
    end_group(daemon)
    check("1 mapped files not copied: too large" in result.stderr,
          result.stderr)
    equal(manifest("x.seam")["kept"]["too_large"], 1)
    size = sum(os.path.getsize(os.path.join(at, name)) for at, _, all_ in
               os.walk("x.seam") for name in all_ if name != "kernel.sym.zst")
    check(size <= 1 << 20, f"{size} bytes")


def test_an_interrupt_ends_a_recording_that_is_being_attached():
    daemon = start("sh", "-c", "echo runs; exec sleep 60")
    process = subprocess.Popen([SEAM, "record", "-o", "i.seam", "-p",
                                str(daemon.pid)], stderr=subprocess.PIPE)
    wait_for("i.seam")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    end_group(daemon)
    equal(process.returncode, 0)
    check(manifest("i.seam")["complete"], "not whole")


sys.exit(run_tests(globals()))
