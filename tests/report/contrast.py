#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What flamegraph.css promises of its colours: contrast.py CSS

Contrast as WCAG 2.1 defines it; colour-blind vision as in Vienot, Brettel
and Mollon (1999), on linear RGB.
"""
import itertools
import re
import sys

LAYERS = "nikjgau"
CHANGES = "lzm"         # less, noise, more
# Linear RGB as somebody without one kind of cone sees it.
BLIND = {
    "protanopia": ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0),
                   (0.00401, -0.00401, 1.0)),
    "deuteranopia": ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0),
                     (-0.02234, 0.02234, 1.0)),
}


def linear(hexa):
    values = [int(hexa[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
            for v in values]


def luminance(rgb):
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]


def contrast(a, b):
    x, y = sorted((luminance(linear(a)), luminance(linear(b))))
    return (y + 0.05) / (x + 0.05)


def lab(rgb):
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722),
            (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1.0, 1.089)
    f = []
    for row, w in zip(rows, white):
        v = max(sum(a * b for a, b in zip(row, rgb)), 0) / w
        f.append(v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116)
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def distance(a, b, kind):
    def seen(hexa):
        rgb = linear(hexa)
        if kind:
            rgb = [sum(m * v for m, v in zip(row, rgb))
                   for row in BLIND[kind]]
        return lab(rgb)
    return sum((x - y) ** 2 for x, y in zip(seen(a), seen(b))) ** 0.5


def colours(css):
    fills = dict(re.findall(r"\.([nikjgaulzm]\d) \{ fill: (#[0-9a-f]{6})", css))
    fills["text"] = re.search(r"^text.*?fill: (#[0-9a-f]{6})", css,
                              re.M | re.S)[1]
    return fills


def main():
    with open(sys.argv[1], encoding="utf-8") as text:
        light, dark = text.read().split("@media (prefers-color-scheme: dark)")
    number = 0
    print("1..6")
    for scheme, css in (("light", light), ("dark", dark)):
        fills = colours(css)
        label = fills.pop("text")
        worst = min((contrast(label, fill), name)
                    for name, fill in fills.items())
        number += 1
        print(f"{'ok' if len(fills) == 30 and worst[0] >= 4.5 else 'not ok'} "
              f"{number} - labels read well in the {scheme} scheme")
        print(f"# least contrast: {worst}")
        near = min((distance(fills[a + "0"], fills[b + "0"], kind), a + b,
                    kind) for a, b in itertools.combinations(LAYERS, 2)
                   for kind in (None, *BLIND))
        number += 1
        print(f"{'ok' if near[0] >= 10 else 'not ok'} {number} - layers are "
              f"told apart without colour vision in the {scheme} scheme")
        print(f"# nearest layers: {near}")
        near = min((distance(fills[a + i], fills[b + k], kind), a + i, b + k,
                    kind) for a, b in itertools.combinations(CHANGES, 2)
                   for i in "012" for k in "012" for kind in (None, *BLIND))
        number += 1
        print(f"{'ok' if near[0] >= 10 else 'not ok'} {number} - changes are "
              f"told apart without colour vision in the {scheme} scheme")
        print(f"# nearest changes: {near}")


main()
