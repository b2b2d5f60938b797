#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks through JIT code without frame pointers, unwound while recorded.

jit_unwinding.py SEAM TARGET: see unwinding_target.c.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
from record_lib import (SEAM, check, equal, manifest, record,  # noqa: E402
                        run, run_tests)

TARGET = os.path.abspath(sys.argv[2])


def stacks(how, *words, options=()):
    """Folded stacks with spin(), and how many samples each has."""
    path = f"{how}.seam"
    result = record("-o", path, *options, "--", TARGET, how, "0.4", *words)
    equal(result.returncode, 0, result.stderr)
    found = {}
    for line in run(SEAM, "convert", "--to", "folded",
                    path).stdout.splitlines():
        stack, n = line.rsplit(None, 1)
        if ";spin" in stack:
            found[stack] = found.get(stack, 0) + int(n)
    return found, manifest(path)["stacks"]


def check_complete(how, names, percent, *words, options=()):
    """That @percent of the stacks lead from spin() over @names to main()."""
    found, counts = stacks(how, *words, options=options)
    n = sum(found.values())
    check(n > 50, f"{n} samples")
    whole = sum(count for stack, count in found.items()
                if any(f";{name}_[j];spin" in stack for name in names) and
                ";_start;" in stack and ";main;" in stack)
    check(whole >= n * percent / 100, f"{whole} of {n}: {found}")
    return counts


def test_code_without_a_frame_pointer_has_the_rules_it_was_announced_with():
    counts = check_complete("plain", ["hop"], 97)
    check(counts["ended"]["complete"] > 50, str(counts))
    check_complete("plain", ["hop"], 97, options=("-z", "-F", "4000"))


def test_code_that_was_moved():
    check_complete("moved", ["hop"], 97)


def test_code_of_the_parent_in_a_child():
    check_complete("forked", ["hop"], 97)


def test_a_piece_that_is_larger_than_a_record_of_a_ring():
    # it is known one round later
    check_complete("large", ["hop"], 60)


def test_code_that_replaces_other_code_at_its_address_and_time():
    check_complete("changing", ["hop", "hop2"], 97)


def test_a_jitdump_file_is_read_while_it_is_written():
    # it is read each 20 ms
    check_complete("plain", ["hop"], 70, os.getcwd())


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
