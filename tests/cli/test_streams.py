#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam: the exit status is right with closed streams and without readers"""
import os
import signal
import subprocess
import sys

from record_lib import SEAM, check, equal, perf, record, run, run_tests


def closed_pipe():
    """The write end of a pipe without a reader."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def with_no_reader(stream, *words, **options):
    """The status of seam, whose stdout or stderr is such a pipe."""
    writer = closed_pipe()
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    streams[stream] = writer
    result = subprocess.run([SEAM, *words], check=False, timeout=60,
                            **streams, **options)
    os.close(writer)
    return result.returncode


def make_recordings():
    """One that is whole, and one whose recorder was killed: lossy."""
    if os.path.exists("whole.seam"):
        return
    equal(record("-q", "-o", "whole.seam", "./spin", "5000000").returncode, 0)
    run("sh", "-c", f"{SEAM} record -q -o lossy.seam sh -c 'kill -9 $PPID'")
    equal(run(SEAM, "report", "lossy.seam").returncode, 3)


READERS = (("report",), ("dump",), ("flamegraph", "-o", "/dev/null"),
           ("convert", "--to", "folded", "-o", "/dev/null"))


def test_a_failure_has_its_status_without_a_reader_of_stderr():
    for words in (*READERS, ("annotate", "x"), ("calls",), ("snapshot",)):
        equal(with_no_reader("stderr", *words, "nowhere.seam"), 1, words)
    equal(with_no_reader("stderr", "report", "--nosuch"), 2)
    equal(with_no_reader("stderr", "nosuch"), 2)
    equal(with_no_reader("stderr"), 2)


def test_a_loss_has_its_status_without_a_reader_of_stderr():
    make_recordings()
    for words in READERS:
        for path in ("lossy.seam", "whole.seam"):
            status = run(SEAM, *words, path).returncode
            equal(with_no_reader("stderr", *words, path), status, words)


def test_a_recording_has_the_command_s_status_without_a_reader():
    for status in (0, 5):
        equal(with_no_reader("stderr", "record", "-o", "r.seam", "sh", "-c",
                             f"exit {status}"), status)
    equal(with_no_reader("stderr", "record", "-o", "r.seam",
                         "./nosuch"), 127)
    equal(with_no_reader("stderr", "record", "-o", "nowhere/r.seam",
                         "true"), 1)


def test_a_reader_that_closes_ends_the_command_by_sigpipe():
    make_recordings()
    for setup in (None, lambda: signal.signal(signal.SIGPIPE,
                                              signal.SIG_IGN)):
        for words in (("dump", "whole.seam"), ("report", "lossy.seam"),
                      ("help",), ("record", "--help"), ("--version",),
                      ("convert", "--to", "folded", "whole.seam")):
            equal(with_no_reader("stdout", *words, preexec_fn=setup),
                  -signal.SIGPIPE, words)


def test_output_that_cannot_be_written_is_a_failure():
    make_recordings()
    result = run("sh", "-c", f"{SEAM} report whole.seam >&-")
    equal(result.returncode, 1, result.stderr)
    check("cannot write standard output" in result.stderr, result.stderr)
    with open("/dev/full", "w", encoding="ascii") as full:
        equal(subprocess.run([SEAM, "report", "whole.seam"], stdout=full,
                             stderr=subprocess.DEVNULL,
                             check=False).returncode, 1)


def test_no_message_goes_into_a_file_in_place_of_a_closed_stream():
    for closed in ("2>&-", ">&- 2>&-", "<&- >&- 2>&-", "<&- 2>&-"):
        result = run("sh", "-c", f"{SEAM} record -v -o c.seam ./spin 5000000 "
                     f"{closed}")
        equal(result.returncode, 0, closed)
        perf("script", "-i", "c.seam")
        equal(run(SEAM, "report", "c.seam").returncode, 0, closed)


def test_a_stream_that_was_closed_is_closed_for_the_command():
    show = "for i in 0 1 2; do [ -e /proc/$$/fd/$i ] && echo $i; done"
    for closed, left in (("2>&-", {"0", "1"}), ("<&- 2>&-", {"1"}),
                         ("<&-", {"1", "2"})):
        with open("show.sh", "w", encoding="ascii") as out:
            out.write(f"({show}; true) > fds\n")
        run("sh", "-c", f"{SEAM} record -q -o c.seam sh show.sh {closed}")
        with open("fds", encoding="ascii") as text:
            fds = set(text.read().split())
        equal(fds, left, closed)


sys.exit(run_tests(globals()))
