# SPDX-License-Identifier: MIT
"""Independent readers of the formats of whole profiles.

Each returns the same: {event: {thread: {stack: [samples, weight]}}}, a stack
being a tuple of names as in folded files, root first.  protobuf by protoc and
.proto files of our own; JSON by Python's.  They check
what an importer would: indices, lengths, order, balance.  samples is None in
formats that do not count them.
"""
import base64
import collections
import gzip
import json
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
CLOCK_MONOTONIC = 3


def plain(text):
    """@text of any format as folded files have it, but for bytes that are not
    UTF-8, which JSON has no way to keep: U+FFFD."""
    text = re.sub(r"\\x([0-9a-f]{2})", lambda m: "\ufffd" if m[1] >= "80"
                  else m[0], text)

    def escape(match):
        code = ord(match[0])
        return "\ufffd" if 0x80 <= code < 0xa0 else \
            f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    text = re.sub("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufffe\uffff]",
                  escape, text)
    return text.replace(";", ":")


def thread_name(name, tid):
    """As --by thread names it, cut as that is."""
    if name.endswith(f" {tid}"):
        return plain(name)
    raw = name.encode(errors="surrogateescape")[:239]
    return plain((raw.decode(errors="replace") or "thread") + f" {tid}")


def table():
    return collections.defaultdict(lambda: collections.defaultdict(
        lambda: collections.defaultdict(lambda: [0, 0])))


def add(stacks, event, thread, stack, samples, weight):
    entry = stacks[plain(event)][thread][stack]
    entry[0] = None if samples is None else entry[0] + samples
    entry[1] += weight


def folded(samples, weights):
    """The same of one event from texts of folded stacks by thread."""
    stacks = collections.defaultdict(
        lambda: collections.defaultdict(lambda: [0, 0]))
    for which, text in enumerate((samples, weights)):
        for line in text.splitlines():
            frames, count = line.rsplit(" ", 1)
            thread, *frames = (plain(f) for f in frames.split(";"))
            stacks[thread][tuple(frames)][which] += int(count)
    return stacks


class Absent:
    """A field that a message does not have, with all fields of its own."""

    def __bool__(self):
        return False

    def __index__(self):
        return 0

    def has(self, _name):
        return False

    def __iter__(self):
        return iter(())

    def __getattr__(self, name):
        return self

    __hash__ = object.__hash__

    def __eq__(self, other):
        return other == 0 or other == "" or isinstance(other, Absent)


ABSENT = Absent()


class Message:
    """Fields by name, as 'protoc --decode' prints them."""

    def __init__(self, repeated):
        self.fields = {}
        self.repeated = repeated

    def has(self, name):
        return name in self.fields

    def __getattr__(self, name):
        values = self.fields.get(name)
        if name in self.repeated:
            return values or []
        return values[-1] if values else ABSENT

    def __eq__(self, other):
        return self.fields == other.fields


def unescape(text):
    """A string in quotes; bytes that are not UTF-8 become surrogates."""
    named = {"n": b"\n", "t": b"\t", "r": b"\r"}

    def byte(match):
        octal, other = match[1], match[2]
        return bytes([int(octal, 8)]) if octal else \
            named.get(other.decode(), other)
    return re.sub(rb"\\(?:([0-7]{3})|(.))", byte, text.encode()).decode(
        errors="surrogateescape")


def decode(name, message, path):
    """A gzip file, by protoc and our own .proto: a Message."""
    with gzip.open(path) as file:
        return decode_bytes(f"{HERE}/{name}.proto", f"{name}.{message}",
                            file.read())


def decode_bytes(proto, message, data):
    """The same of bytes, by any .proto."""
    with open(proto, encoding="ascii") as file:
        repeated = set(re.findall(r"repeated \w+ (\w+)", file.read()))
    text = subprocess.run(
        ["protoc", f"--decode={message}", "-I", os.path.dirname(proto),
         proto], input=data, check=True, capture_output=True).stdout.decode()
    stack = [Message(repeated)]
    for line in text.splitlines():
        word = line.strip()
        if word == "}":
            stack.pop()
            continue
        field, value = (word[:-2], Message(repeated)) \
            if word.endswith(" {") and ": " not in word else \
            word.split(": ", 1)
        assert not field.isdigit(), f"a field that is not declared: {word}"
        if isinstance(value, Message):
            stack[-1].fields.setdefault(field, []).append(value)
            stack.append(value)
            continue
        value = unescape(value[1:-1]) if value.startswith('"') else \
            int(value) if re.fullmatch(r"-?\d+", value) else value
        stack[-1].fields.setdefault(field, []).append(value)
    return stack[0]


def suffix(layer, is_inlined):
    return {"kernel": "_[k]", "jit": "_[j]", "guest": "_[g]"}.get(
        layer, "_[i]" if is_inlined else "")


# -- pprof ---------------------------------------------------------------

def layer_of_mapping(name):
    return "kernel" if name.startswith("[kernel") else \
        {"[jit]": "jit", "[guest]": "guest"}.get(name, "native")


def read_pprof(path):
    profile = decode("pprof", "Profile", path)
    strings = profile.string_table
    assert strings[0] == "", "string 0 is not empty"
    mappings = unique(profile.mapping)
    functions = unique(profile.function)
    places = {}
    for place in unique(profile.location).values():
        lines = place.line
        assert lines, "a location without a line"
        if not place.mapping_id:
            places[place.id] = []
            continue        # it is that of samples without a stack
        layer = layer_of_mapping(
            strings[mappings[place.mapping_id].filename])
        places[place.id] = [
            plain(strings[functions[line.function_id].name]) +
            suffix(layer, i + 1 < len(lines)) for i, line in enumerate(lines)]
    types = [(strings[t.type], strings[t.unit]) for t in profile.sample_type]
    if profile.default_sample_type:
        assert types[-1][0] == strings[profile.default_sample_type], \
            f"the main event is not the last of {types}"
    stacks = table()
    for sample in profile.sample:
        assert len(sample.value) == len(types)
        labels = {strings[label.key]: strings[label.str] if label.str else
                  label.num for label in sample.label}
        leaf_first = [name for i in sample.location_id for name in places[i]]
        thread = thread_name(labels["thread"] or "", labels["tid"])
        for i in range(0, len(types), 2):
            if sample.value[i] or sample.value[i + 1]:
                add(stacks, types[i + 1][0], thread,
                    tuple(reversed(leaf_first)), sample.value[i],
                    sample.value[i + 1])
    return stacks, profile


def unique(messages):
    found = {m.id: m for m in messages}
    assert len(found) == len(messages) and 0 not in found, "ids"
    return found


# -- Firefox -------------------------------------------------------------

def check_table(rows, **limits):
    """All columns have the table's length, and indices are of tables."""
    for name, column in rows.items():
        if isinstance(column, list):
            assert len(column) == rows["length"], f"column {name}"
    for name, limit in limits.items():
        for value in rows[name]:
            assert value is None or value == -1 or 0 <= value < limit, \
                f"{name} {value} of {limit}"


def read_firefox(path):
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    assert profile["meta"]["preprocessedProfileVersion"] == 60
    shared = profile["shared"]
    strings = shared["stringArray"]
    funcs, frames = shared["funcTable"], shared["frameTable"]
    stack_table = shared["stackTable"]
    categories = profile["meta"]["categories"]
    check_table(shared["resourceTable"], lib=len(profile["libs"]),
                name=len(strings))
    check_table(shared["sources"], filename=len(strings))
    check_table(funcs, name=len(strings), source=shared["sources"]["length"],
                resource=shared["resourceTable"]["length"])
    check_table(frames, func=funcs["length"], category=len(categories))
    check_table(stack_table, frame=frames["length"])
    paths = []
    for i, (frame, prefix) in enumerate(zip(stack_table["frame"],
                                            stack_table["prefix"])):
        assert prefix is None or prefix < i, "a prefix after its stack"
        name = strings[funcs["name"][frames["func"][frame]]]
        paths.append((() if prefix is None else paths[prefix]) + (
            (name, frame),))
    stacks = table()
    for thread in profile["threads"]:
        read_firefox_thread(profile, thread, paths, stacks)
    return stacks, profile


def firefox_names(profile, path):
    """(names as folded, the event of a wait or None) of a stack."""
    frames = profile["shared"]["frameTable"]
    categories = profile["meta"]["categories"]
    names, wait = [], None
    for place, (name, frame) in enumerate(path):
        category = categories[frames["category"][frame]]
        layer = category["name"].lower()
        if layer == "idle":
            assert place + 1 == len(path), "Idle is not the leaf's"
            wait = category["subcategories"][frames["subcategory"][frame]]
        if name == "[no stack]" and layer in ("idle", "other"):
            continue
        names.append((plain(name), layer, frames["inlineDepth"][frame] > 0))
    return names, wait


def read_firefox_thread(profile, thread, paths, stacks):
    samples = thread["samples"]
    check_table(samples, stack=len(paths))
    check_table(thread["markers"],
                name=len(profile["shared"]["stringArray"]))
    assert samples["time"] == sorted(samples["time"]), "times out of order"
    name, tid = thread["name"], thread["tid"]
    extra = profile["meta"]["extra"][0]["entries"]
    event = extra[0]["value"] if extra else None
    if isinstance(tid, str):
        tid, event = tid.split(": ", 1)
        name = name[:-len(": " + event)]
    scale = 1000000 if samples["weightType"] == "tracing-ms" else 1
    for stack, weight in zip(samples["stack"], samples["weight"]):
        names, wait = firefox_names(profile, paths[stack])
        # the leaf of a wait has the category Idle, so its layer is not known
        names = tuple(n + (suffix(layer, i) if layer != "idle" else "?")
                      for n, layer, i in names)
        add(stacks, wait or event, thread_name(name, tid), names, None,
            round(weight * scale))


# -- speedscope ----------------------------------------------------------

def read_speedscope(path):
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    assert content["$schema"] == \
        "https://www.speedscope.app/file-format-schema.json"
    assert 0 <= content["activeProfileIndex"] < len(content["profiles"])
    frames = content["shared"]["frames"]
    stacks = table()
    for profile in content["profiles"]:
        match = re.fullmatch(r"(.*) \((\d+)\): (.*)", profile["name"], re.S)
        if not match:
            assert not profile["samples"], profile["name"]
            continue
        thread = thread_name(match[1], int(match[2]))
        rows = evented(profile) if profile["type"] == "evented" else \
            zip(profile["samples"], profile["weights"], strict=True)
        total = 0
        for stack, weight in rows:
            names = tuple(plain(frames[i]["name"]) for i in stack)
            add(stacks, match[3], thread, names, None, weight)
            total += weight
        if profile["type"] == "sampled":
            assert total == profile["endValue"] - profile["startValue"]
    return stacks, content


def evented(profile):
    """(stack, nanoseconds of its own) of begins and ends."""
    stack, last = [], profile["startValue"]
    for event in profile["events"]:
        assert event["at"] >= last, "events out of order"
        if stack:
            yield list(stack), event["at"] - last
        last = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert stack.pop() == event["frame"], "not balanced"
    assert not stack and last <= profile["endValue"], "not closed"


# -- Perfetto ------------------------------------------------------------

class Sequence:
    """What the packets of one sequence refer to."""

    def __init__(self):
        self.tables = collections.defaultdict(dict)
        self.defaults = None
        self.counts = collections.Counter()     # by CPU

    def intern(self, data):
        for name, entries in data.fields.items() if data else ():
            for entry in entries:
                known = self.tables[name].setdefault(entry.iid, entry)
                assert known == entry, "an id with two meanings"

    def text(self, table_name, iid):
        text = self.tables[table_name][iid].str or ""
        text.encode()       # no surrogates: it is UTF-8
        return text

    def stack(self, iid):
        names = []
        for frame_id in self.tables["callstacks"][iid].frame_ids:
            frame = self.tables["frames"][frame_id]
            mapping = self.tables["mappings"][frame.mapping_id]
            self.text("mapping_paths", mapping.path_string_ids[0])
            layer = {"KIND_KERNEL": "kernel", "KIND_INTERPRETED": "guest",
                     "KIND_JIT": "jit", ABSENT: "native",
                     "KIND_NATIVE": "native"}[frame.kind]
            names.append(plain(self.text("function_names",
                                         frame.function_name_id)) +
                         suffix(layer, frame.kind_str == "inlined"))
        return tuple(names)


class Tracks:
    """Threads and slices of a trace."""

    def __init__(self):
        self.threads = {}           # uuid: name
        self.by_id = {}             # (pid, tid): name
        self.parents = {}
        self.open = collections.defaultdict(list)
        self.last = {}

    def describe(self, track):
        if track.has("thread"):
            name = thread_name(track.thread.thread_name, track.thread.tid)
            self.threads[track.uuid] = name
            self.by_id[track.thread.pid, track.thread.tid] = name
        elif track.parent_uuid in self.threads:
            self.parents[track.uuid] = track.parent_uuid


def read_perfetto(path):
    trace = decode("perfetto", "Trace", path)
    sequences = collections.defaultdict(Sequence)
    tracks, stacks = Tracks(), table()
    for packet in trace.packet:
        sequence = sequences[packet.trusted_packet_sequence_id]
        if packet.sequence_flags & 1:
            sequence.__init__()
            sequence.defaults = packet.trace_packet_defaults
        assert sequence.defaults, "a packet before the defaults"
        sequence.intern(packet.interned_data)
        if packet.has("track_descriptor"):
            tracks.describe(packet.track_descriptor)
        if packet.has("perf_sample"):
            read_perf_sample(sequence, tracks, packet, stacks)
        if packet.has("track_event"):
            read_slice(sequence, tracks, packet, stacks)
    assert not any(tracks.open.values()), "slices that never end"
    return stacks, trace


def read_perf_sample(sequence, tracks, packet, stacks):
    sample = packet.perf_sample
    if sample.has("kernel_records_lost"):
        return
    cpu = sample.cpu if sample.has("cpu") else None
    weight = sample.timebase_count - sequence.counts[cpu]
    sequence.counts[cpu] = sample.timebase_count
    add(stacks, sequence.defaults.perf_sample_defaults.timebase.name,
        tracks.by_id[sample.pid, sample.tid],
        sequence.stack(sample.callstack_iid) if sample.callstack_iid else (),
        1, weight)


def read_slice(sequence, tracks, packet, stacks):
    """Time of a slice's own: a call has no more; a wait has a stack."""
    event = packet.track_event
    uuid = event.track_uuid or \
        sequence.defaults.track_event_defaults.track_uuid
    is_wait = uuid in tracks.parents
    thread = tracks.threads.get(tracks.parents.get(uuid, uuid))
    open_slices = tracks.open[uuid]
    if is_wait and event.type == "TYPE_INSTANT":     # a sum of short waits
        facts = {a.name: a.uint_value for a in event.debug_annotations}
        add(stacks, event.name, thread, sequence.stack(event.callstack_iid)
            if event.callstack_iid else (), facts["waits"], facts["ns"])
        return
    if event.type not in ("TYPE_SLICE_BEGIN", "TYPE_SLICE_END"):
        return
    if open_slices and not is_wait:
        path = tuple(name for name, _ in open_slices)
        add(stacks, "xray", thread, path, None,
            packet.timestamp - tracks.last[uuid])
    tracks.last[uuid] = packet.timestamp
    if event.type == "TYPE_SLICE_BEGIN":
        name = event.name if event.has("name") else \
            plain(sequence.text("event_names", event.name_iid))
        stack = sequence.stack(event.callstack_iid) \
            if event.callstack_iid else ()
        open_slices.append((name, (packet.timestamp, stack)))
        return
    name, (begin, stack) = open_slices.pop()
    if is_wait:
        add(stacks, name, thread, stack, 1, packet.timestamp - begin)


# -- page ------------------------------------------------------------------

class Page:
    """The payload of a page of 'seam view', by doc/formats/page.md."""

    def __init__(self, text):
        data = gzip.decompress(base64.b64decode(text, validate=True))
        assert data[:9] == b"seampage\x01", data[:9]
        end = data.index(0, 9)
        self.head = json.loads(data[9:end].decode())
        self.columns = {}
        at = end + 1
        while data[at]:
            name = data[at + 1:at + 1 + data[at]].decode("ascii")
            at += 1 + data[at]
            encoding = data[at]
            (n, size), at = self.numbers(data, at + 1, 2)
            column, end = self.numbers(data, at,
                                       n if encoding else min(n, 1))
            assert end == at + size, name
            at = end
            self.columns[name] = column * n if encoding == 0 else column \
                if encoding == 1 else self.sums(column)
        assert at == len(data) - 1, "bytes behind the end"
        lengths = collections.defaultdict(set)
        for name, column in self.columns.items():
            lengths[name.split(".")[0]].add(len(column))
        assert all(len(n) == 1 for n in lengths.values()), lengths

    @staticmethod
    def numbers(data, at, n):
        column = []
        for _ in range(n):
            value = shift = 0
            while data[at] & 0x80:
                value |= (data[at] & 0x7f) << shift
                shift += 7
                at += 1
            column.append(value | data[at] << shift)
            at += 1
        return column, at

    @staticmethod
    def sums(column):
        total, result = 0, []
        for value in column:
            total += -(value + 1) // 2 if value & 1 else value // 2
            result.append(total)
        return result

    def rows(self, table, *names):
        return zip(*(self.columns[f"{table}.{name}"] for name in names))

    def stacks(self):
        """The names of each stack, root first."""
        layers = ("kernel", "native", "jit", "guest")
        names = [plain(name) + suffix(layers[layer], False) for name, layer in
                 zip(self.head["functions"],
                     self.columns["functions.layer"])]
        frames = [re.sub(r"$", "_[i]", names[func]) if inlined and
                  not re.search(r"_\[[kjg]\]$", names[func]) else names[func]
                  for func, inlined in self.rows("frames", "func", "inlined")]
        paths = [()]
        for parent, frame in list(self.rows("stacks", "parent", "frame"))[1:]:
            assert parent < len(paths), "a stack before its caller"
            paths.append(paths[parent] + (frames[frame],))
        return paths

    def thread(self, i):
        thread = self.head["threads"][i]
        return thread_name(thread["name"], thread["tid"])


def read_pages(path):
    with open(path, encoding="utf-8") as file:
        return [Page(text) for text in re.findall(
            r'<script type="application/octet-stream" class="recording">'
            r'([^<]*)</script>', file.read())]


def read_page(path):
    page = read_pages(path)[0]
    stacks, paths, last = table(), page.stacks(), 0
    for time, thread, stack, event, weight, count in page.rows(
            "samples", "time", "thread", "stack", "event", "weight", "count"):
        assert time >= last, "samples that are not in order"
        last = time
        add(stacks, page.head["events"][event]["name"], page.thread(thread),
            paths[stack], count, weight)
    return stacks, page


READERS = {
    "pprof": read_pprof, "firefox": read_firefox,
    "speedscope": read_speedscope, "perfetto": read_perfetto,
    "page": read_page,
}


def differences(got, wanted):
    """Lines of what differs for one event; weights of 0 say nothing."""
    lines = []
    for thread in got.keys() | wanted.keys():
        one = {s: c for s, c in got.get(thread, {}).items() if c[1]}
        other = {s: c for s, c in wanted.get(thread, {}).items() if c[1]}
        if any(s and s[-1].endswith("?") for s in one):
            other = without_leaf_layer(other)
            one = without_leaf_layer(one)
        for stack in one.keys() | other.keys():
            a, b = one.get(stack, "nothing"), other.get(stack, "nothing")
            if a != b and not ("nothing" not in (a, b) and
                               None in (a[0], b[0]) and a[1] == b[1]):
                lines.append(f"{thread};{';'.join(stack)}: got {a}, "
                             f"wanted {b}"[:400])
    return lines


def without_leaf_layer(stacks):
    merged = collections.defaultdict(lambda: [0, 0])
    for stack, (samples, weight) in stacks.items():
        if stack:
            stack = stack[:-1] + (re.sub(r"(_\[.\]|\?)$", "", stack[-1]),)
        entry = merged[stack]
        entry[0] = None if samples is None else entry[0] + samples
        entry[1] += weight
    return merged
