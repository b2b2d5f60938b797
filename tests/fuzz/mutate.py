# SPDX-License-Identifier: MIT
"""Recordings changed by their structure: records, sizes, sections, files.

A mutation takes a random.Random and bytes, and returns bytes.  It knows where
the parts of a format begin, so that a change reaches the code behind the
checks of the parts before it.  The same random numbers make the same file.
"""
import json
import os
import struct

WORDS = (0, 1, 2, 7, 8, 0x7f, 0xff, 0x1000, 0xfff8, 0xffff, 1 << 24,
         (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 47, 1 << 62,
         (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 8)
NAMES = (b"\x1b]0;own\x07", b"\xe2\x80\xae\xc2\x9b2J", b"<script>&\"'",
         b"\xff\xfe\x80", b"a;b c 7", b"../../../etc/passwd", b"%s%n%s",
         b"\r\n\t\x00")
MAX_PARTS = 20000


def word(r, old=0):
    """A value that is likely to be a limit of something."""
    return r.choice((r.choice(WORDS), old + r.choice((-8, -1, 1, 8)),
                     old ^ 1 << r.randrange(64), old * 2)) % (1 << 64)


def put(data, at, size, value):
    if 0 <= at and at + size <= len(data):
        value %= 1 << 8 * size
        data[at:at + size] = value.to_bytes(size, "little")


def change_word(r, data, begin, end):
    """One aligned integer between @begin and @end."""
    size = r.choice((1, 2, 4, 8))
    if end - begin < size:
        return
    at = begin + r.randrange((end - begin) // size) * size
    put(data, at, size, word(r, int.from_bytes(data[at:at + size], "little")))


def change_bytes(r, data, begin, end):
    for _ in range(r.choice((1, 1, 4, 64))):
        if end > begin:
            data[r.randrange(begin, end)] = r.randrange(256)


def change_name(r, data, begin, end):
    name = r.choice(NAMES)
    if end - begin > len(name):
        at = r.randrange(begin, end - len(name))
        data[at:at + len(name)] = name


def parts_of(data, at, end, size_of):
    """(begin, end) of each part; @size_of tells its size, or 0 for none."""
    parts = []
    while at < end and len(parts) < MAX_PARTS:
        size = size_of(data, at)
        if size <= 0 or at + size > end:
            break
        parts.append((at, at + size))
        at += size
    return parts


def change_parts(r, data, parts, size_at, size_bytes):
    """Take away, repeat, swap, cut or change some of the @parts."""
    if not parts:
        return data
    begin, end = r.choice(parts)
    kind = r.randrange(9)
    if kind == 0:
        del data[begin:end]
    elif kind == 1:
        data[begin:begin] = data[begin:end] * r.choice((1, 1, 2, 50))
    elif kind == 2:
        other = r.choice(parts)
        a, b = sorted(((begin, end), other))
        if a[1] <= b[0]:
            data[a[0]:b[1]] = data[b[0]:b[1]] + data[a[1]:b[0]] + \
                data[a[0]:a[1]]
    elif kind == 3:
        put(data, begin + size_at, size_bytes,
            word(r, end - begin))
    elif kind == 4:
        cut = r.randrange(begin, end)
        del data[cut:end]
    elif kind == 5:
        change_bytes(r, data, begin, end)
    elif kind == 6:
        change_name(r, data, begin, end)
    else:
        change_word(r, data, begin, end)
    return data


def perf_record_size(data, at):
    return struct.unpack_from("<H", data, at + 6)[0] \
        if at + 8 <= len(data) else 0


def perf_data(r, data):
    size, = struct.unpack_from("<Q", data, 8)
    if size == 16:          # written to a pipe: records from here on
        parts = parts_of(data, 16, len(data), perf_record_size)
        return change_parts(r, data, parts, 6, 2)
    if len(data) < 104:
        return data
    attrs, attrs_size, at, size = struct.unpack_from("<QQQQ", data, 24)
    end = min(at + size, len(data))
    kind = r.randrange(12)
    if kind == 0:
        change_word(r, data, 8, 104)
    elif kind == 1:
        change_word(r, data, attrs, min(attrs + attrs_size, len(data)))
    elif kind == 2:         # the table of feature sections
        change_word(r, data, end, min(end + 512, len(data)))
    elif kind == 3:         # what is in them
        change_bytes(r, data, end, len(data))
    elif kind == 4:
        change_word(r, data, 72, 104)
    elif kind == 5:
        change_name(r, data, end, len(data))
    else:
        before = len(data)
        parts = parts_of(data, at, end, perf_record_size)
        data = change_parts(r, data, parts, 6, 2)
        # mostly the sections stay where the header says they are
        if r.randrange(4):
            put(data, 48, 8, size + len(data) - before)
    return data


def jitdump(r, data):
    if r.randrange(8) == 0:
        change_word(r, data, 0, min(40, len(data)))
        return data
    parts = parts_of(data, 40, len(data), lambda d, at: struct.unpack_from(
        "<I", d, at + 4)[0] if at + 16 <= len(d) else 0)
    return change_parts(r, data, parts, 4, 4)


def xray(r, data):
    if r.randrange(8) == 0:
        change_word(r, data, 0, min(32, len(data)))
        return data
    version, kind = struct.unpack_from("<HH", data)
    if kind == 0:           # basic: records of 32 bytes
        parts = parts_of(data, 32, len(data), lambda d, at: 32)
        return change_parts(r, data, parts, 0, 2)
    blocks = parts_of(data, 32, len(data), lambda d, at: 16 +
                      int.from_bytes(d[at + 1:at + 9], "little"))
    if r.randrange(2) or not blocks:
        return change_parts(r, data, blocks, 1, 8)
    begin, end = r.choice(blocks)
    # a record: 8 bytes of a function, 16 of all others
    records = parts_of(data, begin, end,
                       lambda d, at: 16 if d[at] & 1 else 8)
    return change_parts(r, data, records, 0, 1)


def lines(r, data):
    parts = parts_of(data, 0, len(data),
                     lambda d, at: d.find(b"\n", at) + 1 - at)
    return change_parts(r, data, parts, 0, 1)


def any_file(r, data):
    r.choice((change_bytes, change_word, change_name))(r, data, 0, len(data))
    return data


def change_json(r, data):
    """One value of a manifest, or its text."""
    try:
        root = json.loads(data)
    except ValueError:
        return any_file(r, data)
    if r.randrange(5) == 0:
        return any_file(r, data)
    where = root
    while True:
        key = r.choice(list(where) if isinstance(where, dict)
                       else range(len(where)))
        if not isinstance(where[key], (dict, list)) or not where[key] or \
                r.randrange(4) == 0:
            break
        where = where[key]
    if r.randrange(4) == 0:
        del where[key]
    else:
        where[key] = r.choice((
            None, -1, 0, 1 << 31, (1 << 63) - 1, 1e300, True, "", "x" * 5000,
            [], {}, [[]] * 100, "\x1b[2J\u202e", "../../x",
            r.choice((root, where[key], "0xffffffffffffffff"))
            if not isinstance(where[key], (dict, list)) else "y"))
    try:
        return bytearray(json.dumps(root).encode())
    except ValueError:      # a value that holds itself
        return data


def content(r, name, data):
    """@data of a file, changed a few times as what its start says it is."""
    data = bytearray(data)
    for _ in range(r.choice((1, 1, 1, 2, 4, 16))):
        if r.randrange(20) == 0 and data:
            del data[r.randrange(len(data)):]
        if len(data) < 32:
            return bytes(data)
        if data[:8] == b"PERFILE2":
            data = perf_data(r, data)
        elif data[:4] == b"DTiJ":
            data = jitdump(r, data)
        elif name.endswith(".xray"):
            data = xray(r, data)
        elif name.endswith(".json"):
            data = change_json(r, data)
        elif name.endswith(".map"):
            data = lines(r, data)
        else:
            data = any_file(r, data)
    return bytes(data)


def files_of(folder):
    return sorted(os.path.join(where, name)
                  for where, _, names in os.walk(folder) for name in names)


def bundle(r, folder):
    """A copied bundle: contents, and whole files gone, swapped or others."""
    files = files_of(folder)
    path = r.choice(files)
    kind = r.randrange(10)
    if kind == 0:
        os.unlink(path)
    elif kind == 1:
        other = r.choice(files)
        if other != path:
            os.rename(path, path + ".old")
            os.rename(other, path)
            os.rename(path + ".old", other)
    elif kind == 2:
        with open(r.choice(files), "rb") as from_, open(path, "r+b") as to:
            to.write(from_.read())
    elif kind == 3:
        open(path, "wb").close()
    elif kind == 4:
        os.unlink(path)
        os.mkdir(path)
    elif kind == 5:
        os.unlink(path)
        os.symlink(r.choice((os.path.basename(path), "nowhere", ".",
                             os.path.basename(r.choice(files)))), path)
    else:
        for _ in range(r.choice((1, 1, 2))):
            path = r.choice(files)
            with open(path, "rb") as old:
                data = content(r, path, old.read())
            with open(path, "wb") as new:
                new.write(data)
