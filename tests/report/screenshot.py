#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The first picture that a headless browser takes: screenshot.py DRAW

Documentation and CI take pictures of flame graphs that way.  A graph taller
than the window scrolls to its root when a person opens it, and what a
headless browser has not scrolled to stays white in its picture.
"""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

WIDTH, HEIGHT, DEPTH = 1200, 800, 120


def unfilter(kind, line, above, step):
    """Undo one line's filter in place; Source: PNG specification, 9.2."""
    for i, byte in enumerate(line):
        a = line[i - step] if i >= step else 0
        b, c = above[i], above[i - step] if i >= step else 0
        if kind == 1:
            byte += a
        elif kind == 2:
            byte += b
        elif kind == 3:
            byte += (a + b) // 2
        elif kind == 4:
            p = a + b - c
            byte += min((abs(p - a), 0, a), (abs(p - b), 1, b),
                        (abs(p - c), 2, c))[2]
        line[i] = byte & 255


def read_png(data):
    """The lines of an 8-bit RGB or RGBA image, and bytes per pixel."""
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack_from(">IIBB", body)
        elif kind == b"IDAT":
            packed += body
        at += 12 + size
    step = {2: 3, 6: 4}[colour]
    raw, lines = zlib.decompress(packed), []
    above, stride = bytearray(width * step), width * step + 1
    for y in range(height):
        line = bytearray(raw[y * stride + 1:(y + 1) * stride])
        unfilter(raw[y * stride], line, above, step)
        lines.append(line)
        above = line
    return lines, step


def coloured(lines, step):
    """The share of pixels that are neither white nor grey."""
    n = total = 0
    for line in lines[::8]:
        for x in range(0, len(line), step * 8):
            red, green, blue = line[x:x + 3]
            total += 1
            n += max(red, green, blue) - min(red, green, blue) > 24
    return n / total


def picture(browser, draw, folder, *arguments):
    stacks = "app;" + ";".join(f"f{i}" for i in range(DEPTH)) + " 10\n"
    svg = os.path.join(folder, "tall.svg")
    png = os.path.join(folder, "tall.png")
    with open(svg, "wb") as out:
        subprocess.run([draw, *arguments], input=stacks.encode(), check=True,
                       stdout=out)
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu",
         "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-proxy-server",
         "--user-data-dir=" + os.path.join(folder, "profile"),
         f"--window-size={WIDTH},{HEIGHT}", "--screenshot=" + png,
         "file://" + svg], timeout=120, check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(png, "rb") as data:
        lines, step = read_png(data.read())
    half = len(lines) // 2
    return coloured(lines[:half], step), coloured(lines[half:], step)


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    print("1..2")
    for number, (what, arguments) in enumerate((
            ("a tall flame graph", ()), ("one with its root at the top",
                                         ("inverted",))), 1):
        shares = (0, 0)
        if browser:
            with tempfile.TemporaryDirectory(
                    ignore_cleanup_errors=True) as folder:
                shares = picture(browser, sys.argv[1], folder, *arguments)
        print(f"# coloured: {shares[0]:.0%} above, {shares[1]:.0%} below")
        print(f"{'ok' if min(shares) > 0.3 else 'not ok'} {number} - "
              f"the first picture of {what} shows frames from top to bottom")


main()
