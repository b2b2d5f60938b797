#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recordings of strangers: what is no file, what expands, what shrinks.

    test_hostile.py SEAM

The recordings are made here, byte by byte, so nothing need be recorded.
"""
import ctypes
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

import tap

SEAM = os.path.abspath(sys.argv[1])
READERS = [["report"], ["report", "--json"], ["annotate"], ["flamegraph"],
           ["convert", "--to", "folded"], ["dump"], ["inject", "-o", "out"],
           ["calls"], ["view", "-o", "/dev/null"]]
SAMPLE_TYPE = 0x1 | 0x2 | 0x4 | 0x100      # IP, TID, TIME, PERIOD


def sample(ip, time=1):
    body = struct.pack("<QIIQQ", ip, 1, 1, time, 1)
    return struct.pack("<IHH", 9, 2, 8 + len(body)) + body


def mmap(path, start=0x400000, size=0x100000):
    name = path.encode() + b"\0"
    name += bytes(-len(name) % 8)
    body = struct.pack("<IIQQQIIQQII", 1, 1, start, size, 0, 0, 0, 0, 0, 5,
                       2) + name + struct.pack("<IIQ", 1, 1, 0)
    return struct.pack("<IHH", 10, 2, 8 + len(body)) + body


def perf_data(records):
    """A perf.data of one event without ids."""
    attr = struct.pack("<IIQQQQQ", 1, 136, 0, 1, SAMPLE_TYPE, 0,
                       1 << 18 | 1 << 8)          # sample_id_all, mmap
    attr += bytes(136 - len(attr)) + struct.pack("<QQ", 0, 0)
    data = 104 + len(attr)
    return b"PERFILE2" + struct.pack(
        "<QQQQQQQQQ", 104, len(attr), 104, len(attr), data, len(records),
        0, 0, 0) + bytes(104 - 80) + attr + records


class Done:
    """A command's end: status, output, and the most memory it had (MiB)."""

    def __init__(self, *words, stdin=subprocess.DEVNULL, seconds=30):
        with tempfile.TemporaryFile("w+") as out, \
                tempfile.TemporaryFile("w+") as err:
            child = subprocess.Popen(["timeout", str(seconds), SEAM, *words],
                                     stdin=stdin, stdout=out, stderr=err,
                                     cwd=FOLDER)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = self.status = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            self.out, self.err = out.read(2**20), err.read()
            self.mib = usage.ru_maxrss / 1024

    def __str__(self):
        return f"{self.status} {self.mib} MiB {self.err} {self.out[:300]}"


def write(name, content):
    path = os.path.join(FOLDER, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(content)
    return path


def put_special(path, kind):
    """Make @path what is no file.  False where that is not allowed."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        os.mkdir(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(os.path.dirname(path))     # a short name, for sun_path
        socket.socket(socket.AF_UNIX).bind(os.path.basename(path))
        os.chdir(here)
    else:
        os.symlink(kind, path)


KINDS = ["fifo", "folder", "socket", "/dev/zero", "/dev/tty", "/dev/full"]


def test_data_that_is_no_file_is_an_error_of_each_command():
    for kind in KINDS:
        put_special(f"{FOLDER}/bad.seam/data", kind)
        for command in READERS:
            for name in ("bad.seam", "bad.seam/data"):
                if kind == "folder" and name != "bad.seam":
                    continue
                shutil.rmtree(f"{FOLDER}/out", ignore_errors=True)
                done = Done(*command, name)
                assert done.status == 1 and "cannot" in done.err and (
                    "regular file" in done.err or
                    "directory" in done.err), (kind, command, str(done))


def test_no_file_of_a_bundle_can_hold_a_reader_up():
    write("ok.seam/data", perf_data(mmap("/bin/x") + sample(0x400010)))
    names = ["meta.json", "jit/jit-1.dump", "jit/perf-1.map",
             "kernel.sym.zst", "elf/00", "data.0"]
    for kind in KINDS:
        for name in names:
            put_special(f"{FOLDER}/ok.seam/{name}", kind)
            for command in (READERS[1], READERS[5], READERS[6]):
                shutil.rmtree(f"{FOLDER}/out", ignore_errors=True)
                done = Done(*command, "ok.seam")
                assert done.status in (0, 1, 3), (kind, name, str(done))
                assert name != "data.0" or done.status == 1, str(done)
            put_special(f"{FOLDER}/ok.seam/{name}", "fifo")
            os.unlink(f"{FOLDER}/ok.seam/{name}")


def test_an_option_that_names_no_file_is_an_error():
    data = write("one.data", perf_data(sample(0x400010)))
    log = write("log.xray", b"\0" * 64)
    for kind in KINDS:
        put_special(f"{FOLDER}/named", kind)
        done = Done("calls", "--map", "named", log)
        assert done.status == 1, (kind, str(done))
        for option in ("--jit", "--symfs"):
            done = Done("report", option, "named", data)
            assert done.status in ((0, 3) if kind == "folder" or
                                   option == "--jit" else (1,)), str(done)


def test_a_pipe_of_the_shell_and_standard_input_are_read():
    write("piped.data", perf_data(sample(0x400010)))
    done = subprocess.run(
        ["bash", "-c", f"cd {FOLDER} && {SEAM} report --json <(cat piped.data)"
         f" && {SEAM} report --json - < piped.data"
         f" && cat piped.data | {SEAM} report --json -"],
        capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.count("seam.report/1") == 3, done
    with open("/dev/zero", "rb") as zeros:
        assert Done("report", "-", stdin=zeros).status == 1


def packed(unit, times):
    """@unit, so many times, as one zstd frame.

    Made in a child: what a process held before it runs a program counts as
    the program's memory.
    """
    path = f"{FOLDER}/packed"
    child = os.fork()
    if child == 0:
        content = unit * times
        zstd = ctypes.CDLL("libzstd.so.1")
        zstd.ZSTD_compress.restype = ctypes.c_size_t
        room = ctypes.create_string_buffer(len(content) + 1024)
        n = zstd.ZSTD_compress(room, ctypes.c_size_t(len(room)), content,
                               ctypes.c_size_t(len(content)), 3)
        with open(path, "wb") as out:
            out.write(room.raw[:n])
        os._exit(0)
    os.waitpid(child, 0)
    with open(path, "rb") as made:
        return made.read()


def test_compressed_records_unpack_within_a_limit():
    frame = packed(sample(0x400010), 100000)
    body = frame * min(30, 65000 // len(frame))
    record = struct.pack("<IHH", 81, 0, 8 + len(body)) + body
    data = write("bomb.data", perf_data(sample(0x400020) + record * 20))
    done = Done("report", "--json", data)
    assert done.status == 3 and "times their size" in done.out, str(done)
    assert done.mib < 600, str(done)
    assert json.loads(done.out)["samples"] > 1000000


def test_kernel_symbols_unpack_within_a_limit():
    header = b"seam-kernel-symbols=1\n"
    text = packed(b"ffffffff81000000 t a\n", 5000000)
    write("kernel.seam/data", perf_data(
        sample(0x400010).replace(b"\x02\0\x28", b"\x01\0\x28")))
    write("kernel.seam/kernel.sym.zst", struct.pack(
        "<II", 0x184d2a50, len(header)) + header + text)
    done = Done("report", "--json", "kernel.seam")
    assert done.mib < 60, str(done)


def test_max_memory_is_a_limit_that_is_named():
    data = write("many.data", perf_data(
        b"".join(sample(0x400000 + i, i) for i in range(600000))))
    for command in (["report", "--json"], ["flamegraph"],
                    ["convert", "--to", "folded"], ["inject", "-o", "out"]):
        shutil.rmtree(f"{FOLDER}/out", ignore_errors=True)
        done = Done(*command, "--max-memory=24M", data)
        if command[0] == "inject" and done.status == 0:
            continue                        # it needs no memory of samples
        assert done.status == 1, (command, str(done))
        assert done.err.count("--max-memory") == 1, str(done)
        assert "24 MiB" in done.err, str(done)
    for wrong in ("0", "1X", "-1", "99999999999999G", ""):
        assert Done("report", f"--max-memory={wrong}", data).status == 2
    assert Done("report", "--max-memory=2G", data).status == 0
    assert Done("doctor", "--max-memory=2G").status == 2


def test_a_recording_that_shrinks_while_it_is_read_is_reported():
    for size, word in ((73 * 4096, "shrank"), (300000, "cannot show all")):
        data = write("shrinks.data", perf_data(sample(0x400010) * 100000))
        # Nobody takes the output: the reader stops in the file's beginning.
        child = subprocess.Popen([SEAM, "dump", data], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        child.stdout.readline()
        os.truncate(data, size)
        _, err = child.communicate(timeout=30)
        assert child.returncode == 3, (child.returncode, err)
        assert word in err, err


with tempfile.TemporaryDirectory(prefix="seam-hostile-") as FOLDER:
    sys.exit(tap.run(tap.promises(globals())))
