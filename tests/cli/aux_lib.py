# SPDX-License-Identifier: MIT
"""What tests of AUX areas need: a simulated PMU, and its bytes by hand.

The program is called with the path of simulated_pmu.c's module after Seam's.
"""
import os
import shutil
import struct
import sys

from record_lib import FOLDER, SEAM, check, equal, run

PLAYED = shutil.copy(sys.argv[2], FOLDER)    # which nobody can read
AUX, INFO, AUXTRACE = 11, 70, 71
TRUNCATED = 1

# What the machine of the corpus' file has; the type is the player's.
INTEL_PT = {
    "type": "77", "format/tsc": "config:10", "format/noretcomp": "config:11",
    "format/mtc": "config:9", "format/mtc_period": "config:14-17",
    "format/psb_period": "config:24-27", "format/cyc": "config:1",
    "format/pt": "config:0", "format/branch": "config:13",
    "caps/mtc": "1", "caps/mtc_periods": "249", "caps/psb_cyc": "1",
    "caps/psb_periods": "3f", "max_nonturbo_ratio": "12",
}
CS_ETM = {
    "type": "77", "format/contextid": "config:14", "sinks/tmc_etr0": "0x1234",
    **{f"cpu{cpu}/{name}": value for cpu in range(64) for name, value in {
        "trcidr/trcidr0": "0x28000ea1", "trcidr/trcidr1": "0x4100f422",
        "trcidr/trcidr2": "0x20001088", "trcidr/trcidr8": "0x0",
        "mgmt/trcauthstatus": "0x8c"}.items()},
}
ARM_SPE = {"type": "77", "format/ts_enable": "config:0",
           "caps/min_interval": "256"}


def byte_at(pos):
    return (pos * 0x9e3779b97f4a7c15 & (1 << 64) - 1) >> 56 | 1


def bytes_at(pos, n):
    return bytes(byte_at(pos + i) for i in range(n))


def make_sysfs(**pmus):
    for name, files in pmus.items():
        for path, text in files.items():
            path = f"sysfs/{name}/{path}"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as out:
                out.write(text + "\n")


# Until a file is there, and not for ever.
WAIT = ("i=0; until [ -e {0} ] || [ $i -gt 2000 ]; do sleep 0.01; "
        "i=$((i+1)); done")


def environment(name, **settings):
    make_sysfs(intel_pt=INTEL_PT, cs_etm=CS_ETM, arm_spe_0=ARM_SPE)
    settings = {"SYSFS": "sysfs", "GO": f"{name}.go", "DONE": f"{name}.done",
                "BYTES": 100000, **settings}
    return {**os.environ, "LD_PRELOAD": PLAYED,
            **{f"SIMULATED_PMU_{key}": str(value)
               for key, value in settings.items()}}


def record(name, *words, command=True, **settings):
    """Until every area has had its bytes."""
    script = f": > {name}.go; {WAIT.format(name + '.done')}"
    return run(SEAM, "record", "-o", name, *words, "--",
               "sh", "-c", script, env=environment(name, **settings))


def recorded(name, *words, **settings):
    result = record(name, *words, **settings)
    equal(result.returncode, 0, result.stderr)
    return result


class Data:
    """What of a perf.data file matters here, read by hand."""

    def __init__(self, path):
        with open(os.path.join(path, "data"), "rb") as file:
            self.bytes = file.read()
        (_, _, stride, attrs, attrs_size, begin,
         size) = struct.unpack_from("<8s6Q", self.bytes)
        self.attrs = [struct.unpack_from("<IIQQQQQ", self.bytes, attrs + at)
                      for at in range(0, attrs_size, stride)]
        self.flags = [struct.unpack_from("<Q", self.bytes, attrs + at + 40)[0]
                      for at in range(0, attrs_size, stride)]
        self.records = list(self.walk(begin, begin + size))

    def walk(self, pos, end):
        while pos < end:
            kind, _, size = struct.unpack_from("<IHH", self.bytes, pos)
            yield kind, pos + 8, size - 8
            if kind == AUXTRACE:
                pos += struct.unpack_from("<Q", self.bytes, pos + 8)[0]
            pos += size
        equal(pos, end, "the last record")

    def aux(self):
        """(offset, size, flags, id) of each AUX record."""
        for kind, pos, _ in self.records:
            if kind == AUX:
                yield (*struct.unpack_from("<3Q", self.bytes, pos),
                       struct.unpack_from("<Q", self.bytes, pos + 48)[0])

    def areas(self):
        """{(idx, tid, cpu): [(offset, bytes)]} of the AUXTRACE records."""
        areas = {}
        for kind, pos, size in self.records:
            if kind == AUXTRACE:
                n, offset, _, idx, tid, cpu = struct.unpack_from(
                    "<3QIii", self.bytes, pos)
                areas.setdefault((idx, tid, cpu), []).append(
                    (offset, self.bytes[pos + size:pos + size + n]))
        return areas

    def info(self):
        for kind, pos, size in self.records:
            if kind == INFO:
                return struct.unpack_from(f"<{size // 8}Q", self.bytes, pos)
        return None


def check_bytes(chunks, start, total):
    """Nothing is missing between the chunks; the last may be padded."""
    pos = start
    for offset, payload in chunks:
        equal(offset, pos % 2 ** 64, "where a chunk begins")
        n = min(len(payload), start + total - pos)
        check(payload[:n] == bytes_at(pos, n), f"bytes at {pos}")
        check(not any(payload[n:]) and len(payload) - n < 8, "padding")
        pos += n
    equal(pos, start + total, "where the area ends")


def perf_script(path, *words):
    result = run("perf", "script", "-i", f"{path}/data", *words)
    equal(result.returncode, 0, result.stderr)
    equal([line for line in result.stderr.splitlines()
           if line.startswith("0x") or "corrupt" in line], [])
    return result.stdout


def perf_opens(path):
    """With its decoder, which goes by the index; returns the dump."""
    perf_script(path, "--itrace=e")
    return perf_script(path, "-D")
