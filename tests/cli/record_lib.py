# SPDX-License-Identifier: MIT
"""What tests that record need: programs, TAP lines, and perf as the oracle."""
import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import tap

# Everything happens in here.  The program is copied, because the tree may be
# in a folder that only its owner can enter, and some tests run as nobody.
os.umask(0o022)
FOLDER = tempfile.mkdtemp(prefix="seam-cli-")
os.chmod(FOLDER, 0o755)
SEAM = shutil.copy(sys.argv[1], FOLDER)
IS_ROOT = os.geteuid() == 0
NOBODY = 65534
LOST, SAMPLE, LOST_SAMPLES = 2, 9, 13   # PERF_RECORD_*

SPIN_C = r"""
#include <pthread.h>
#include <stdlib.h>
volatile unsigned long x;
static unsigned long n = 20000000;
__attribute__((noinline)) void leaf(unsigned long n)
{ for (unsigned long i = 0; i < n; i++) x += i; }
__attribute__((noinline)) void mid(int d, unsigned long n)
{ if (d) mid(d - 1, n); else leaf(n); __asm__ volatile(""); }
static void *run(void *a) { mid(10, n); return a; }
int main(int c, char **v)
{
	pthread_t t;
	if (c > 1) n = strtoul(v[1], 0, 10);
	pthread_create(&t, 0, run, 0);
	mid(10, n);
	pthread_join(t, 0);
	return 0;
}
"""


def run_tests(functions):
    """All test_* of a script's globals(), in a folder that goes with them."""
    os.chdir(FOLDER)
    build_spin()
    status = tap.run(tap.promises(functions))
    os.chdir("/")
    shutil.rmtree(FOLDER, ignore_errors=True)
    return status


def compile_c(name, text, *flags):
    """The program @name, from @text; its full path."""
    with open(f"{name}.c", "w", encoding="ascii") as out:
        out.write(text)
    subprocess.run(["cc", "-O1", "-pthread", *flags, "-o", name, f"{name}.c"],
                   check=True)
    return os.path.abspath(name)


def build_spin():
    compile_c("spin", SPIN_C, "-fno-omit-frame-pointer")


def build_id(path):
    note = run("readelf", "-n", path).stdout
    return re.search(r"Build ID: (\w+)", note)[1]


@contextlib.contextmanager
def running(*words, **options):
    """A process that is killed at the end."""
    process = subprocess.Popen(words, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(path, process=None):
    """Until @path is there, or @process has ended."""
    while not os.path.exists(path) and (
            process is None or process.poll() is None):
        time.sleep(0.005)


def wait_for_samples(name, n=200):
    """Until that many are in the file, so that a test need not guess."""
    for _ in range(3000):
        if os.path.exists(f"{name}/meta.json") and \
                types_of(name).count(SAMPLE) >= n:
            return
        time.sleep(0.02)
    raise AssertionError(f"no {n} samples in {name}")


def need_strace():
    if run("strace", "-o", "/dev/null", "true").returncode != 0:
        raise tap.Skip("strace does not work here")


def check(truth, text=""):
    if not truth:
        raise AssertionError(text)


def equal(got, wanted, text=""):
    check(got == wanted, f"{text} got {got!r}, wanted {wanted!r}")


def run(*words, **options):
    options.setdefault("timeout", 120)
    return subprocess.run(words, capture_output=True, text=True,
                          errors="replace", check=False, **options)


def seam(*words, status=0):
    """What the program prints; it ends with @status."""
    result = run(SEAM, *words, stdin=subprocess.DEVNULL)
    equal(result.returncode, status, f"{words}: {result.stderr}")
    return result.stdout


def folded(*words, statuses=(0,)):
    """(frames, count) of each line of folded stacks."""
    result = run(SEAM, "convert", "--to", "folded", *words)
    check(result.returncode in statuses, f"{words}: {result.stderr}")
    return [(stack.split(";"), int(n)) for stack, n in
            (line.rsplit(" ", 1) for line in result.stdout.splitlines())]


def record(*words, **options):
    return run(SEAM, "record", *words, **options)


def recorded(*words, **options):
    """The result of a recording that succeeds and loses nothing."""
    result = record(*words, **options)
    equal(result.returncode, 0, result.stderr)
    return result


def starved(command):
    """A shell command that runs while its recorder stands still.

    However fast the machine is, a ring of a page is full then.
    """
    return "sh", "-c", f"kill -STOP $PPID; {command}; kill -CONT $PPID"


def samples_told(result):
    match = re.search(r"seam: (\d+) samples? in", result.stderr)
    check(match, f"no summary in: {result.stderr}")
    return int(match[1])


def dumped(path):
    """How many samples seam dump prints."""
    text = run(SEAM, "dump", path)
    check(text.returncode in (0, 3), text.stderr)
    return sum(1 for line in text.stdout.splitlines()
               if line.split()[1:2] == ["SAMPLE"])


def manifest(path):
    with open(os.path.join(path, "meta.json"), encoding="utf-8") as text:
        return json.load(text)


def data_of(path):
    """The file, and offset and size of the data by its header."""
    with open(os.path.join(path, "data"), "rb") as file:
        content = file.read()
    return (content, *struct.unpack_from("<QQ", content, 40))


def types_of(path):
    """The types of all records that the header says are there."""
    content, at, size = data_of(path)
    end, types = at + size, []
    check(end <= len(content), "the data are longer than the file")
    while at < end:
        kind, _, length = struct.unpack_from("<IHH", content, at)
        check(length >= 8, f"a record of {length} bytes at {at}")
        types.append(kind)
        at += length
    equal(at, end, "the data end inside a record:")
    return types


def tells_loss(path):
    return not {LOST, LOST_SAMPLES}.isdisjoint(types_of(path))


def perf(*words, silent=True):
    result = run("perf", *words)
    equal(result.returncode, 0, f"perf {words}: {result.stderr}")
    if silent:
        equal(result.stderr, "", f"perf {words} warned:")
    return result.stdout


def perf_read(path, *words):
    """Of a recording, which may itself tell of losses; then perf does too."""
    silent = not any(manifest(path)["lost"].values()) and not tells_loss(path)
    return perf(words[0], "-i", path, *words[1:], silent=silent)


def in_order(lines):
    """No record is older than what perf has sorted and used before it.

    At a FINISHED_ROUND perf uses what is older than the newest record of the
    round before.  Source: ordered-events.c of perf 6.1, OE_FLUSH__ROUND.
    """
    used = before = newest = 0
    for line in lines:
        time = line.get("time", line.get("sample_id", {}).get("time", 0))
        if line["type"] == "FINISHED_ROUND":
            used, before = before, newest
        elif "time" in line or "sample_id" in line:
            check(time >= used, f"{line} after {used}")
            newest = max(newest, time)
    return used > 0


def perf_samples(path, silent=True):
    """How many samples perf script prints, one line each."""
    text = perf("script", "-i", path, "-F", "comm,tid,time,event,ip",
                "-G", silent=silent)
    return sum(1 for line in text.splitlines() if line.strip())


def as_nobody():
    """As a user without rights, which a user already is."""
    if not IS_ROOT:
        return
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def own_folder_for_nobody():
    path = tempfile.mkdtemp(dir=".", prefix="nobody-")
    if IS_ROOT:
        os.chown(path, NOBODY, NOBODY)
    return path


def check_no_sysctl_that_holds(text):
    for name, value in re.findall(r"kernel\.(\w+)=(-?\d+)", text):
        with open(f"/proc/sys/kernel/{name}", encoding="ascii") as now:
            check(int(now.read()) > int(value), f"it is so already: {text}")


def refused(*words):
    """What a user without rights is told; nothing is left."""
    folder = own_folder_for_nobody()
    result = record("-o", os.path.join(folder, "a.seam"), *words,
                    preexec_fn=as_nobody)
    equal(result.returncode, 1, result.stderr)
    equal(os.listdir(folder), [], "left behind:")
    check("dummy" not in result.stderr, result.stderr)
    for advised in re.findall("'sysctl [^']*'", result.stderr):
        check_no_sysctl_that_holds(advised)
    return result.stderr


def private_mounts(folder):
    """The words before a command whose mounts in @folder nobody else sees.

    () where a user may not have such a place.  The root of a chroot is no
    mount that could be made private, so the folder becomes one there;
    end_private_mounts() is due afterwards.
    """
    for words in (
            ("unshare", "-m"), ("unshare", "-rm"),
            ("unshare", "-m", "--propagation", "unchanged", "sh", "-c",
             'mount --bind "$0" "$0" && mount --make-private "$0" && '
             'cd "$PWD" && exec "$@"', os.path.abspath(folder))):
        works = run(*words, "true").returncode == 0
        end_private_mounts(folder)
        if works:
            return words
    return ()


# Not to be undone: what was a mount before the tests.
MOUNTS = {path for path in ("/tmp",) if os.path.ismount(path)}


def end_private_mounts(folder):
    """Where the mount above is shared, the folder is one outside as well."""
    if folder not in MOUNTS and os.path.ismount(folder):
        run("umount", "-l", folder)


def end_group(process):
    """End a process that we started in a session of its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
