#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The shared library exports the names of its version script, and no others.

Usage: exports.py LIBRARY MAP.  Prints TAP.
"""
import re
import subprocess
import sys

library, version_script = sys.argv[1:]
wanted = set(re.findall(r"^\t(\w+);", open(version_script).read(), re.M))
listed = subprocess.run(["nm", "-D", "--defined-only", library],
                        capture_output=True, text=True, check=True).stdout
found = set(re.findall(r" T (\w+)", listed))
good = found == wanted and wanted
print(f"{'ok' if good else 'not ok'} 1 - exports are what the map lists")
if not good:
    print(f"# differ: {sorted(found ^ wanted)}")
print("1..1")
sys.exit(not good)
