#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record: each write fails once, each moment is somebody's last"""
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

from record_lib import (SAMPLE, SEAM, check, compile_c, dumped, end_group,
                        equal, need_strace, perf_samples, run, run_tests,
                        running, types_of)

SHORT_WRITES = os.path.abspath(sys.argv[2])
MAX_WRITES = 60


def check_readable(path):
    """Whole batches only; seam reads each sample of them."""
    if not os.path.exists(os.path.join(path, "data")):
        return 0
    n = types_of(path).count(SAMPLE)
    equal(dumped(path), n, path)
    return n


def inject(call, what, n, *flags):
    """A recording whose @n-th @call does @what; and whether there was one."""
    trace = f"trace-{call}"
    result = run("strace", "-o", trace, "-e", f"trace={call}", "-e",
                 f"inject={call}:{what}:when={n}", SEAM, "record", "-F",
                 "20000", "-m", "8", "-o", "w.seam", *flags, "./spin",
                 "5000000")
    with open(trace, encoding="utf-8", errors="replace") as text:
        return result, "INJECTED" in text.read()


def each_write(error, check_one, calls=("pwritev", "pwrite64", "write",
                                        "ftruncate")):
    need_strace()
    seen = 0
    for call in calls:
        for n in range(1, MAX_WRITES):
            shutil.rmtree("w.seam", ignore_errors=True)
            result, injected = inject(call, f"error={error}", n)
            if not injected:
                break
            seen += 1
            check_one(f"{error} at {call} {n}", call, result)
    check(seen > 8, f"only {seen} writes")


def failed_and_told(where, call, result):
    # what ends a recording is told; a pipe to the command may fail it whole
    check(result.returncode in (1, 3, 126), f"{where}: {result.returncode} "
          f"{result.stderr}")
    check("cannot " in result.stderr, f"{where}: {result.stderr}")
    check(result.returncode != 3 or call in result.stderr or
          "'meta.json'" in result.stderr or "cannot write" in result.stderr,
          f"{where}: which call? {result.stderr}")
    check_readable("w.seam")


def test_an_error_at_each_write_is_reported_and_the_old_recording_stays():
    for error in ("ENOSPC", "EIO"):
        each_write(error, failed_and_told, ("pwritev", "pwrite64"))


def test_an_interrupted_write_is_made_again():
    def nothing_happened(where, _call, result):
        # beside other programs such small rings may be full
        was_full = "because rings were full" in result.stderr
        equal(result.returncode, 3 if was_full else 0,
              f"{where}: {result.stderr}")
        check("cannot" not in result.stderr, f"{where}: {result.stderr}")
        check("not written" not in result.stderr, f"{where}: {result.stderr}")
        check(check_readable("w.seam") > 0, where)

    each_write("EINTR", nothing_happened, ("pwritev", "pwrite64"))


def test_a_write_that_takes_few_bytes_is_gone_on_with():
    for most, flags in (("1", ("-F", "500")), ("997", ("-F", "20000")),
                        ("997", ("-z", "-F", "20000")),
                        ("4096", ("--overwrite", "--snapshot-every", "0.05"))):
        result = run(SEAM, "record", "-o", "s.seam", "-m", "8", *flags,
                     "./spin", "20000000", env={
                         **os.environ, "LD_PRELOAD": SHORT_WRITES,
                         "SHORT_WRITES": most})
        check(result.returncode in (0, 3), f"{most}: {result.stderr}")
        check("cannot" not in result.stderr, result.stderr)
        told = int(re.search(r"(\d+) samples", result.stderr)[1])
        check(told > 0, result.stderr)
        equal(perf_samples("s.seam", silent=False), told, most)
        with open("s.seam/meta.json", encoding="utf-8") as text:
            check(json.load(text)["complete"], "the manifest")


def test_a_command_whose_status_somebody_else_took_has_ended():
    # few samples and large rings: nothing is lost, however slow strace is
    result, injected = inject("wait4", "error=ECHILD", 1, "-F", "1000", "-m",
                              "1M", "--call-graph", "fp")
    check(injected, "no wait")
    equal(result.returncode, 0, result.stderr)
    check(check_readable("w.seam") > 0)


def test_a_process_that_ends_while_it_is_attached_to_ends_the_recording():
    with running("./spin", "10000000000") as target:
        result = run("strace", "-f", "-o", "/dev/null", "-e",
                     "inject=pidfd_open:error=ESRCH", SEAM, "record", "-o",
                     "gone.seam", "-F", "100", "-p", str(target.pid),
                     timeout=60)
    equal(result.returncode, 0, result.stderr)


def test_half_a_file_is_not_kept():
    compile_c("large", "#include <unistd.h>\n"
              "char large[2 << 20] = { 1 };\n"
              "int main(int n, char **words)\n"
              "{ unlink(words[0]); for (volatile int i = 0; "
              "i < 100000000; i++) ; return n - 1; }\n", "-Wl,--build-id")
    result = run(SEAM, "record", "-o", "half.seam", "./large",
                 preexec_fn=lambda: resource.setrlimit(
                     resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
    equal(result.returncode, 3, result.stderr)
    check("1 mapped files not copied: cannot write" in result.stderr, result.stderr)
    kept = os.listdir("half.seam/elf")
    sizes = [os.path.getsize(f"half.seam/elf/{name}") for name in kept]
    check(all(size < 100000 for size in sizes), f"{dict(zip(kept, sizes))}")


def test_a_map_that_is_not_trusted_is_named():
    compile_c("jit", """
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void)
{
	/* xor eax,eax; l: inc eax; cmp eax,200000000; jne l; ret */
	static const unsigned char code[] = { 0x31, 0xc0, 0xff, 0xc0, 0x3d,
		0x00, 0xc2, 0xeb, 0x0b, 0x75, 0xf7, 0xc3 };
	unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *map;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	fprintf(map, "%lx %zx jitted\\n", (long)p, sizeof(code));
	fclose(map);
	chmod(path, 0666);
	memcpy(p, code, sizeof(code));
	((void (*)(void))p)();
	puts(path);
	return 0;
}
""")
    result = run(SEAM, "record", "-o", "map.seam", "./jit")
    os.remove(result.stdout.strip())
    check("1 jitdumps or perf maps rejected as untrusted" in result.stderr,
          result.stderr)
    check(not os.path.exists("map.seam/jit"), "it was kept")


def kill_children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children",
                  encoding="ascii") as children:
            for child in children.read().split():
                os.kill(int(child), signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        pass    # not there yet, or not any more


def killed_at_random(times, who):
    """Kill recorder or target of @times recordings, all at other moments."""
    dice = random.Random(times)
    seen = 0
    # A machine with much to do is at its first sample only after 50 ms: some
    # are killed at any moment of the time that one takes to its end.
    start = time.monotonic()
    run(SEAM, "record", "-q", "-F", "20000", "-m", "8", "-o", "k.seam",
        "./spin", "20000000")
    whole = time.monotonic() - start
    for i in range(times):
        name = f"k{i}.seam"
        process = subprocess.Popen(
            [SEAM, "record", "-q", "-F", "20000", "-m", "8", "-o", name,
             "./spin", "20000000"], start_new_session=True,
            stderr=subprocess.DEVNULL)
        time.sleep(dice.random() * (whole if i % 20 == 0 else 0.05))
        if who == "recorder":
            process.kill()
        else:
            kill_children(process.pid)
        process.wait()
        end_group(process)
        seen += check_readable(name)
        shutil.rmtree(name, ignore_errors=True)
    check(seen > 0, "not one sample in all")


KILLS = int(os.environ.get("SEAM_KILLS", "1000"))


def test_a_recorder_killed_at_any_moment_leaves_what_it_has_written():
    killed_at_random(KILLS * 3 // 4, "recorder")


def test_a_target_killed_at_any_moment_is_recorded_until_then():
    killed_at_random(KILLS // 4, "target")


sys.exit(run_tests(globals()))
