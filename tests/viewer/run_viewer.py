#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_viewer.py TEST SEAM - tests of viewer/, by node, in a browser or without

TEST is built, draw, engine, flame, numbers or types, or for the page itself
the name of a browser.  A machine without the npm packages of
viewer/package-lock.json skips them: './dev viewer' installs those.
"""
import os
import shutil
import subprocess
import sys
import tempfile

TEST, SEAM = sys.argv[1:3]
VIEWER = os.path.join(os.environ["SEAM_SOURCE"], "viewer")
BROWSERS = {"chromium": "chromium", "firefox": "firefox-esr"}


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


def built():
    """The committed page is what the sources make."""
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, "page.html")
        subprocess.run(["node", "build.mjs", page], cwd=VIEWER, check=True)
        with open(page, "rb") as new, \
                open(os.path.join(VIEWER, "page.html"), "rb") as committed:
            is_same = new.read() == committed.read()
    print("1..1")
    print("ok" if is_same else "not ok",
          "1 - viewer/page.html is built from viewer/src ('./dev viewer')")


def main():
    if not shutil.which("node"):
        skip("node is not installed")
    if not os.path.isdir(os.path.join(VIEWER, "node_modules")):
        skip("viewer/node_modules is not there: run './dev viewer'")
    if TEST in ("types", "built"):
        {"types": types, "built": built}[TEST]()
        return
    env = dict(os.environ, SEAM=os.path.abspath(SEAM))
    command = ["node", "test/run.mjs", f"src/test/{TEST}.test.ts"]
    if TEST in BROWSERS:
        env["BROWSER"] = shutil.which(BROWSERS[TEST]) or \
            skip(f"{BROWSERS[TEST]} is not installed")
        command = ["node", "--test", "--test-reporter=tap",
                   "test/page.test.mjs"]
    done = subprocess.run(command, cwd=VIEWER, env=env, check=False,
                          timeout=280)
    sys.exit(done.returncode)


main()
