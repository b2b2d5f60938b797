#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record as root beside a hostile program: what it reads, waits, takes.

Each program is another user's, and tries to have the recorder read what that
user may not, stand still, or fill its disk or memory.
"""
import json
import os
import resource
import signal
import subprocess
import sys
import time

from record_lib import (IS_ROOT, SEAM, as_nobody, build_id, check, compile_c,
                        end_group, end_private_mounts, equal, in_order,
                        manifest, own_folder_for_nobody, record, run,
                        run_tests, wait_for)

HANGING_FILE = os.path.abspath(sys.argv[2])
STALLING_FS = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                           "stalling_fs.py")


def of_root(test):
    """Another user's recorder has no rights that its programs lack."""
    return test if IS_ROOT else lambda: None


# In a user namespace of its own it mounts words[1], or its own page map, on
# its perf map, and runs code in memory without a file.
BIND_C = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>
enum { NOBODY = 65534 };
static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	if (write(fd, text, strlen(text)) < 0)
		perror(path);
	close(fd);
}
int main(int n, char **words)
{
	char map[64], from[64], line[64];
	unsigned int uid = getuid(), gid = getgid();
	int is_root = getuid() == 0;
	if (unshare(CLONE_NEWNS | (is_root ? 0 : CLONE_NEWUSER)))
		return 77;
	if (!is_root) {
		put("/proc/self/setgroups", "deny");
		sprintf(line, "0 %u 1", uid);
		put("/proc/self/uid_map", line);
		sprintf(line, "0 %u 1", gid);
		put("/proc/self/gid_map", line);
	}
	sprintf(map, "/tmp/perf-%d.map", getpid());
	close(open(map, O_CREAT | O_RDWR, 0600));
	if (is_root && (chown(map, NOBODY, NOBODY) ||
			(mount(0, "/", 0, MS_REC | MS_PRIVATE, 0) &&
			 (mount(map, map, 0, MS_BIND, 0) ||
			  mount(0, map, 0, MS_PRIVATE, 0)))))
		return 77;
	sprintf(from, "/proc/%d/pagemap", getpid());
	if (mount(n > 1 ? words[1] : from, map, 0, MS_BIND, 0))
		return 77;
	if (is_root && (setgid(NOBODY) || setuid(NOBODY) ||
			prctl(PR_SET_DUMPABLE, 1)))
		return 77;
	char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	code[0] = '\xc3';
	puts("runs");
	fflush(stdout);
	alarm(30);
	for (;;)
		((void (*)(void))code)();
}
"""

# Maps the library words[1], does words[2] to it (l: takes a lease, s: puts a
# link to words[3] in its place, r: gives it another name again and again) and
# runs for words[4] seconds.
MAPS_C = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
int main(int n, char **words)
{
	int fd = open(words[1], O_RDWR);
	double end = now() + atof(words[4]);
	char from[4096], to[4096], folder[3000];
	mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	signal(SIGIO, SIG_IGN);
	if (words[2][0] == 'l' && fcntl(fd, F_SETLEASE, F_WRLCK))
		return 77;
	if (words[2][0] == 's' && (unlink(words[1]) ||
				   symlink(words[3], words[1])))
		return 77;
	strcpy(from, words[1]);
	strcpy(folder, ".");
	for (int i = 0; words[2][0] == 'r' && i < 12; i++) {
		memset(folder + strlen(folder) + 1, 0, 201);
		memset(folder + strlen(folder), 'd', 200);
		folder[(i + 1) * 201] = '/';
		folder[(i + 1) * 201 + 1] = 0;
		mkdir(folder, 0700);
	}
	for (long i = 0; now() < end; i++) {
		if (words[2][0] != 'r')
			continue;
		snprintf(to, sizeof(to), "%sf%ld", folder, i);
		rename(from, to);
		strcpy(from, to);
		close(fd);
		fd = open(to, O_RDONLY);
		munmap(mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			    0), 4096);
	}
	if (words[2][0] == 's')
		unlink(words[1]);
	return 0;
}
"""


# Uses CPU time for words[1] ms.
BUSY_C = r"""
#include <stdlib.h>
#include <time.h>
int main(int n, char **words)
{
	while (clock() < atoi(words[1]) * (CLOCKS_PER_SEC / 1000))
		;
	return n < 0;
}
"""


def build(folder, name, text):
    compile_c(f"{folder}/{name}", text, "-w")


def library(folder, name):
    """One with a build id of its own; root's if it has no @folder."""
    path = compile_c(f"{folder}/{name}", f'const char who[] = "{name}";\n',
                     "-shared", "-fPIC", "-Wl,--build-id")
    os.chmod(path, 0o755)
    os.chown(path, 65534, 65534)
    return path, build_id(path)


def record_of_nobody(path, *words, **options):
    """Root records, nobody runs.  @words may begin with options and '--'."""
    at = words.index("--") if "--" in words else -1
    own, words = words[:max(at, 0)], words[at + 1:]
    return record("-o", path, *own, "setpriv", "--reuid=65534", "--regid=65534",
                  "--clear-groups", *words, **options)


def told(path):
    return manifest(path).get("kept", {})


def all_bytes(path):
    return sum(os.path.getsize(os.path.join(at, name))
               for at, _, names in os.walk(path) for name in names)


def bind(*words):
    folder = own_folder_for_nobody()
    build(folder, "bind", BIND_C)
    # Where nobody may make a user namespace (in a chroot), root does what is
    # done in it for them; where root may not either, nobody can.
    for become in (as_nobody, None):
        program = subprocess.Popen([f"{folder}/bind", *words], text=True,
                                   stdout=subprocess.PIPE, preexec_fn=become)
        if program.stdout.readline():
            break
        program.wait()
    else:
        return
    result = record("-o", "b.seam", "-p", str(program.pid), "--duration",
                    "0.3")
    program.kill()
    program.wait()
    end_private_mounts(f"/tmp/perf-{program.pid}.map")
    os.remove(f"/tmp/perf-{program.pid}.map")
    equal(result.returncode, 0, result.stderr)
    check("rejected as untrusted" in result.stderr, result.stderr)
    check(not os.path.exists("b.seam/jit"), "it was kept")
    equal(told("b.seam")["refused"], 1)


def test_a_file_that_was_mounted_on_a_perf_map_is_not_read():
    with open("secret", "w", encoding="ascii") as out:
        out.write("1000 10 secret\n")
    os.chmod("secret", 0o644)
    bind(os.path.abspath("secret"))


def test_a_page_map_in_the_place_of_a_perf_map_takes_no_space():
    bind()
    check(all_bytes("b.seam") < 4 << 20, f"{all_bytes('b.seam')} bytes")


@of_root
def test_a_link_in_the_place_of_a_mapped_file_is_not_followed():
    folder = own_folder_for_nobody()
    build(folder, "maps", MAPS_C)
    secret, secret_id = library(".", "secret.so")
    os.chown(secret, 0, 0)
    os.chmod(secret, 0o600)
    # it claims the build id of a file that it may not read
    path, own_id = library(folder, "lib.so")
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(content.replace(bytes.fromhex(own_id),
                                   bytes.fromhex(secret_id)))
    result = record_of_nobody("s.seam", f"{folder}/maps", path, "s", secret,
                              "0.3")
    equal(result.returncode, 0, result.stderr)
    kept = f"s.seam/elf/{secret_id}"
    if os.path.exists(kept):
        with open(kept, "rb") as file:
            check(b"secret.so" not in file.read(), "the secret was kept")


@of_root
def test_a_lease_does_not_stop_the_drain():
    folder = own_folder_for_nobody()
    build(folder, "maps", MAPS_C)
    path, _ = library(folder, "leased.so")
    result = record_of_nobody("l.seam", "--duration", "0.5", "--",
                              f"{folder}/maps", path, "l", "-", "3")
    check(manifest("l.seam")["duration_ns"] < 2e9, "it waited for the lease")
    equal(result.returncode, 0, result.stderr)
    check(sum(manifest("l.seam")["lost"].values()) == 0, result.stderr)


@of_root
def test_a_file_that_many_names_lead_to_takes_little_memory_and_disk():
    folder = own_folder_for_nobody()
    build(folder, "maps", MAPS_C)
    path, _ = library(folder, "renamed.so")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    result = record_of_nobody(os.path.abspath("r.seam"),
                              os.path.abspath(f"{folder}/maps"), path, "r",
                              "-", "2", cwd=folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    check(result.returncode in (0, 3), result.stderr)
    check(max(before, after) < 100 << 10, f"{after} KiB at most")
    check(told("r.seam")["too_many"] > 100, result.stderr)
    # a share of 16 MiB at once and 1 MiB a second; before some 100 a second
    check(all_bytes("r.seam") < 40 << 20, f"{all_bytes('r.seam')} bytes")
    left_out = manifest("r.seam")["lost"]["over_share"]
    equal(f"{left_out} because one user maps too many files" in result.stderr,
          left_out > 0, result.stderr)


def start_beside_a_file_that_hangs(since):
    """The recorder of a program whose mapped file can't be opened."""
    folder = own_folder_for_nobody()
    build(folder, "maps", MAPS_C)
    path, _ = library(folder, "stuck.so")
    environment = dict(os.environ, LD_PRELOAD=HANGING_FILE, HANG="stuck.so",
                       HANG_SINCE=since)
    return subprocess.Popen(
        [SEAM, "record", "-o", "h.seam", "env", "-u", "LD_PRELOAD",
         "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
         os.path.abspath(f"{folder}/maps"), path, "-", "-", "1"],
        env=environment, stderr=subprocess.PIPE, text=True,
        start_new_session=True)


@of_root
def test_a_file_that_hangs_stops_neither_the_drain_nor_the_end():
    process = start_beside_a_file_that_hangs("/")
    begin = time.monotonic()
    text = process.communicate(timeout=60)[1]
    check(time.monotonic() - begin < 20, text)
    check(process.returncode in (0, 3), text)
    check("took too long" in text, text)
    check(manifest("h.seam")["complete"], text)
    equal(sum(manifest("h.seam")["lost"].values()), 0, text)
    equal(told("h.seam")["stuck"], 1)


@of_root
def test_a_signal_ends_an_ending_that_hangs():
    process = start_beside_a_file_that_hangs("since")
    wait_for("h.seam/meta.json")
    time.sleep(0.3)
    with open("since", "w", encoding="ascii"):
        pass
    # the first one ends program and recording, the next one the ending
    begin = time.monotonic()
    while process.poll() is None and time.monotonic() - begin < 30:
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    text = process.communicate(timeout=30)[1]
    os.remove("since")
    end_group(process)
    check(time.monotonic() - begin < 5, text)
    check("by a signal" in text or "too long" in text, text)
    check(manifest("h.seam")["complete"], text)


def test_samples_that_wait_for_a_slow_file_are_in_order_for_perf():
    """The samples of one program wait, those of another are written.

    That one's file was read before: files are opened one after the other.
    Each has a name in it, and so a build id of its own.
    """
    for name in "slow", "fast":
        build(".", name, f"{BUSY_C}const char name[] = \"{name}\";")
    environment = dict(os.environ, LD_PRELOAD=HANGING_FILE, HANG="/slow",
                       HANG_SINCE="/", HANG_MS="300")
    done = run(SEAM, "record", "-o", "w.seam", "env", "-u", "LD_PRELOAD",
               "sh", "-c", "./fast 200; ./slow 500 & ./fast 500; wait",
               env=environment)
    check(done.returncode in (0, 3), done.stderr)
    lines = [json.loads(line) for line in
             run(SEAM, "dump", "--json", "w.seam").stdout.splitlines()]
    check(in_order(lines), "no round was finished")
    equal(manifest("w.seam")["stacks"]["ended"]["not_ready"], 0)


# $1: when requests stall, $2: the recorder.  The program is mapped before.
STALL_SH = r"""
setpriv --reuid=65534 --regid=65534 --clear-groups stall/file 20000 &
busy=$!
until grep -q file /proc/$busy/comm; do sleep 0.01; done
[ $1 = before ] && touch since
(sleep 0.4; touch since) &
"$2" record -q -o t.seam -p $busy --duration 0.8 2>&1 | cat
kill -9 $busy
"""


def left_behind():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if f"{SEAM}\0record\0".encode() in file.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def stall(request, when):
    """The file system of nobody's program does not answer @request any more.

    The recorder ends, and so does the pipe that it wrote to; what it left
    behind ends with the file system.
    """
    if os.path.exists("since"):
        os.remove("since")
    done = run("unshare", "--mount", "--propagation=private", sys.executable,
               "-B", STALLING_FS, "busy", "stall", request, "since", "sh",
               "-c", STALL_SH, "sh", when, SEAM, timeout=60)
    check(manifest("t.seam")["complete"], done.stdout + done.stderr)
    equal(sum(manifest("t.seam")["lost"].values()), 0, done.stdout)
    deadline = time.monotonic() + 30
    while left_behind() and time.monotonic() < deadline:
        time.sleep(0.01)
    equal(left_behind(), [])


@of_root
def test_a_file_system_that_stops_to_answer_does_not_hold_the_recorder():
    if not os.path.exists("/dev/fuse"):
        return
    os.makedirs("stall")
    build(".", "busy", BUSY_C)
    stall("getattr", "before")
    stall("open", "before")
    stall("read", "during")
    stall("flush", "during")


sys.exit(run_tests(globals()))
