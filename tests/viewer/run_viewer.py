#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_viewer.py TEST SEAM - tests of viewer/, by node, in a browser or without

TEST is engine, draw, flame, numbers, page or types.  A machine without the npm
packages of viewer/package-lock.json skips them: './dev viewer' installs those.
"""
import os
import shutil
import subprocess
import sys

TEST, SEAM = sys.argv[1:3]
VIEWER = os.path.join(os.environ["SEAM_SOURCE"], "viewer")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")


def skip(reason):
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


def types():
    """TypeScript's own messages, as one test."""
    done = subprocess.run(["node_modules/.bin/tsc", "--noEmit"], cwd=VIEWER,
                          stdout=subprocess.PIPE, text=True, check=False)
    print("1..1")
    for line in done.stdout.splitlines():
        print("#", line)
    print("ok" if done.returncode == 0 else "not ok",
          "1 - the types of viewer/src agree")


def main():
    if not shutil.which("node"):
        skip("node is not installed")
    if not os.path.isdir(os.path.join(VIEWER, "node_modules")):
        skip("viewer/node_modules is not there: run './dev viewer'")
    if TEST == "types":
        types()
        return
    if TEST == "page" and not CHROMIUM:
        skip("chromium is not installed")
    command = ["node", "--test", "--test-reporter=tap", "test/page.test.mjs"] \
        if TEST == "page" else \
        ["node", "test/run.mjs", f"src/test/{TEST}.test.ts"]
    env = dict(os.environ, SEAM=os.path.abspath(SEAM), CHROMIUM=CHROMIUM or "")
    done = subprocess.run(command, cwd=VIEWER, env=env, check=False,
                          timeout=280)
    sys.exit(done.returncode)


main()
