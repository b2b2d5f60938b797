#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""OpenTelemetry profiles, as a receiver gets them: test_otlp.py SEAM

The stacks of each thread and event, and their weights, are those of folded
files of the recording.  Messages are decoded by protoc with a .proto of our own, and,
where SEAM_OTLP_PROTO is the folder of opentelemetry-proto, or it is beside the
tree, with OpenTelemetry's.
"""
import collections
import contextlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from operator import index

ROOT = os.environ["SEAM_SOURCE"]
for place in ("cli", "export"):
    sys.path.insert(0, os.path.join(ROOT, "tests", place))

import read_exports  # noqa: E402
import tap  # noqa: E402

SEAM = sys.argv[1]
CORPUS = os.environ["SEAM_CORPUS"]
FOLDER = tempfile.mkdtemp(prefix="seam-otlp-")
PROTO = os.path.join(ROOT, "tests", "fleet", "otlp.proto")
UPSTREAM = os.environ.get("SEAM_OTLP_PROTO",
                          os.path.join(ROOT, "..", "shared", "otlp-proto"))
PROFILES = "opentelemetry/proto/profiles/v1development/profiles.proto"
RECORDINGS = ("lua.seam", "jit.seam", "events.seam", "kernel.seam")
TYPES = {"kernel": "kernel", "native": "native", "jit": "jit",
         "luajit": "guest"}
NAMES = {"cpu": "cpu-clock", "off_cpu": "off-cpu"}
HOSTILE_C = r"""
#include <sys/prctl.h>
volatile unsigned long x;
int main(void)
{
	prctl(PR_SET_NAME, "\033[31m\377a;b");
	for (unsigned long i = 0; i < 200000000; i++)
		x += i;
	return 0;
}
"""


# -- the receiver ------------------------------------------------------------

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), body))
        statuses = self.server.statuses
        self.send_response(statuses.pop(0) if len(statuses) > 1 else
                           statuses[0])
        self.send_header("Content-Length", str(len(self.server.answer)))
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, *_words):
        pass


@contextlib.contextmanager
def receiver(*statuses, answer=b""):
    """(url, requests) of a server; the last status is that of all others."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    server.statuses, server.answer, server.requests = \
        list(statuses) or [200], answer, []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", server.requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(*words, status=(0, 3), **variables):
    done = subprocess.run(words, capture_output=True, check=False, timeout=120,
                          env={**os.environ, **variables})
    told = done.stderr.decode(errors="replace")
    assert done.returncode in status, f"{done.returncode}: {told}"
    return done.stdout.decode(), told


def recording(name):
    path = os.path.join(CORPUS, "bundle", name)
    if not os.path.exists(path):
        raise tap.Skip("the corpus is not unpacked")
    return path


def pushed(path, *words):
    """All bytes that a push of @path sends."""
    with receiver() as (url, requests):
        run(SEAM, "push", "--otlp", url, "--service", "web", *words, path)
    assert requests, "nothing was sent"
    for sent, headers, _ in requests:
        assert sent == "/v1development/profiles", sent
        assert headers["Content-Type"] == "application/x-protobuf", headers
    return [body for _, _, body in requests]


# -- messages ----------------------------------------------------------------

def decode(body):
    return read_exports.decode_bytes(PROTO, "otlp.ProfilesData", body)


def attributes(tables, indices):
    found = {}
    for i in indices:
        assert i, "the attribute that is none"
        row = tables.attribute_table[i]
        key = tables.string_table[row.key]
        assert key not in found, f"{key} twice"
        found[key] = row.value.text or index(row.value.number)
    return found


def frames(tables, at):
    """Names as of folded files, leaf first."""
    place = tables.location_table[at]
    mapping = tables.mapping_table[place.mapping_index]
    layer = TYPES[attributes(tables, place.attribute_indices)
                  ["profile.frame.type"]]
    names = [read_exports.plain(tables.string_table[
        tables.function_table[line.function_index].name])
        for line in place.lines]
    if not names:
        assert place.address and place.mapping_index, "a place without a name"
        name = tables.string_table[mapping.filename].rsplit("/", 1)[-1]
        names = [f"[{read_exports.plain(name).strip('[]')}]"]
    return [name + read_exports.suffix(layer, i + 1 < len(names))
            for i, name in enumerate(names)]


def each_profile(data):
    for resource in data.resource_profiles:
        for scope in resource.scope_profiles:
            yield from scope.profiles


def read(bodies):
    """{event: {tid: {stack: weight}}}"""
    stacks = collections.defaultdict(
        lambda: collections.defaultdict(collections.Counter))
    for data in map(decode, bodies):
        tables = data.dictionary
        for profile in each_profile(data):
            event = tables.string_table[profile.sample_type.type]
            for sample in profile.samples:
                of = attributes(tables, sample.attribute_indices)
                stack = tables.stack_table[sample.stack_index]
                names = [name for i in stack.location_indices
                         for name in frames(tables, i)]
                [value] = sample.values
                stacks[NAMES.get(event, event)][of["thread.id"]][
                    tuple(reversed(names))] += value
    return stacks


def wanted(path):
    """The same of folded files; a function without a name is its module."""
    stacks = collections.defaultdict(
        lambda: collections.defaultdict(collections.Counter))
    told, _ = run(SEAM, "report", "--json", path)
    for event in (e["event"] for e in json.loads(told)["events"]):
        lines, _ = run(SEAM, "convert", "--to", "folded", "--weight", "--by",
                       "thread", "--event", event, path)
        for line in lines.splitlines():
            names, weight = line.rsplit(" ", 1)
            thread, *names = (
                re.sub(r"^\[([^+]*)\+0x[0-9a-f]+\]", r"[\1]",
                       read_exports.plain(name)) for name in names.split(";"))
            tid = int(thread.rsplit(" ", 1)[1])
            stacks[event][tid][tuple(names)] += int(weight)
    return stacks


def compare(got, expected):
    lines = [f"{event}: {thread}: {';'.join(stack)}: got "
             f"{got[event][thread][stack]}, wanted "
             f"{expected[event][thread][stack]}"
             for event in set(got) | set(expected)
             for thread in set(got[event]) | set(expected[event])
             for stack in set(got[event][thread]) |
             set(expected[event][thread])
             if got[event][thread][stack] != expected[event][thread][stack]]
    assert not lines, "\n".join(sorted(lines)[:10])


def same_stacks(name):
    def test():
        path = recording(name)
        compare(read(pushed(path)), wanted(path))
    return f"{name}: the receiver has its stacks and weights", test


# -- tests -------------------------------------------------------------------

def test_each_table_begins_with_none_and_holds_what_is_used_once():
    for data in map(decode, pushed(recording("lua.seam"))):
        t = data.dictionary
        used = {name: {0} for name in ("mapping", "location", "function",
                                       "string", "attribute", "stack")}
        for profile in each_profile(data):
            for kind in (profile.sample_type, profile.period_type):
                used["string"] |= {index(kind.type), index(kind.unit)}
            for sample in profile.samples:
                used["stack"].add(index(sample.stack_index))
                used["attribute"] |= set(sample.attribute_indices)
        for stack in t.stack_table:
            used["location"] |= set(stack.location_indices)
        for place in t.location_table:
            used["mapping"].add(index(place.mapping_index))
            used["attribute"] |= set(place.attribute_indices)
            used["function"] |= {index(ln.function_index) for ln in place.lines}
        for row in t.function_table:
            used["string"] |= {index(row.name), index(row.filename)}
        for row in t.mapping_table:
            used["string"].add(index(row.filename))
            used["attribute"] |= set(row.attribute_indices)
        for row in t.attribute_table:
            used["string"].add(index(row.key))
        values = {row.value.text for row in t.attribute_table}
        for name, indices in used.items():
            rows = getattr(t, f"{name}_table")
            if name == "string":
                indices |= {i for i, text in enumerate(rows) if text in values}
                assert rows[0] == "" and len(set(rows)) == len(rows)
            else:
                assert not rows[0].fields, f"{name} 0 is not empty"
                keys = [repr_of(row) for row in rows]
                assert len(set(keys)) == len(keys), f"{name}: one is twice"
            assert indices == set(range(len(rows))), \
                f"{name}: {sorted(indices ^ set(range(len(rows))))[:9]}"


def repr_of(value):
    return {k: repr_of(v) for k, v in value.fields.items()}.__repr__() \
        if hasattr(value, "fields") else \
        str([repr_of(v) for v in value]) if isinstance(value, list) else \
        str(value)


def test_resource_period_times_and_build_ids_are_the_recordings():
    path = recording("lua.seam")
    ids, times, of, found = set(), [], {}, False
    for data in map(decode, pushed(path, "--host", "h1", "--label", "v=2",
                                   "--label", "zone=eu=1")):
        t = data.dictionary
        for resource in data.resource_profiles:
            of = {a.key: a.value.text for a in resource.resource.attributes}
        for profile in each_profile(data):
            assert profile.time_unix_nano % 10**10 == 0
            assert 0 <= profile.duration_nano <= 10**10
            assert profile.profile_id not in ids, "an id twice"
            ids.add(profile.profile_id)
            times.append(profile.time_unix_nano)
            assert t.string_table[profile.period_type.unit] == "nanoseconds"
            assert profile.period == 10**9 // 999, profile.period
        found |= any("process.executable.build_id.gnu" in attributes(
            t, m.attribute_indices) for m in t.mapping_table)
    assert of.pop("seam.recording").startswith("lua.seam#")
    assert of == {"service.name": "web", "host.name": "h1", "v": "2",
                  "zone": "eu=1"}, of
    assert found, "no build id"
    # 0.5 s, on both sides of a full ten seconds
    assert times[1:] == [times[0] + 10**10], times


def test_a_second_push_has_the_same_ids_so_a_receiver_may_drop_it():
    path = recording("jit.seam")
    assert pushed(path) == pushed(path)


def test_opentelemetrys_own_definition_reads_it():
    if not os.path.exists(os.path.join(UPSTREAM, PROFILES)):
        raise tap.Skip("no opentelemetry-proto (SEAM_OTLP_PROTO)")
    for body in pushed(recording("lua.seam")):
        done = subprocess.run(
            ["protoc", "-I", UPSTREAM, "--decode=opentelemetry.proto.profiles."
             "v1development.ProfilesData", PROFILES], input=body, check=True,
            capture_output=True, cwd=UPSTREAM)
        unknown = re.search(rb"^\s*\d+[:{ ].*", done.stdout, re.M)
        assert not unknown, unknown[0]


def test_names_are_utf8_without_controls():
    source = os.path.join(FOLDER, "hostile")
    with open(f"{source}.c", "w", encoding="ascii") as out:
        out.write(HOSTILE_C)
    run("cc", "-O1", "-o", source, f"{source}.c")
    run(SEAM, "record", "-q", "-o", f"{source}.seam", "--", source)
    texts = [text for body in pushed(f"{source}.seam")
             for text in decode(body).dictionary.string_table]
    assert any(text.startswith("\\x1b[31m\\xff") for text in texts), texts
    for text in texts:
        text.encode()   # protoc's escapes of other bytes would not
        assert text.isprintable() or not text, text


def test_what_the_receiver_refuses_is_told_and_is_in_the_store():
    path = recording("lua.seam")
    for n, (status, answer, why) in enumerate((
            (503, b"busy", "HTTP status 503: busy"),
            (400, b"", "HTTP status 400"),
            (200, b"\x0a\x02\x08\x03", "refused 3 of the profiles"))):
        store = os.path.join(FOLDER, f"store{n}")
        with receiver(status, answer=answer) as (url, requests):
            _, told = run(SEAM, "push", "--otlp", url, "--to", store,
                          "--service", "web", path, status=(3,))
            assert len(requests) == 1, len(requests)
            assert "1 batch was not sent by OTLP: cannot send" in told, told
            assert why in told, told
            _, told = run(SEAM, "push", "--otlp", url, "--service", "web",
                          path, status=(1,))
            assert why in told, told
        text, _ = run(SEAM, "fleet", "report", "--from", store)
        assert "cpu-clock" in text, text


def agent(url, name, *words):
    """An agent of a busy shell; the state that it leaves."""
    spool = os.path.join(FOLDER, name)
    run(SEAM, "agent", "--otlp", url, "--service", "web", "--window", "1s",
        "--max-cpu", "0", "-F", "199", "--spool", spool, *words, "--", "sh",
        "-c", "i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done",
        status=(0,))
    told, _ = run(SEAM, "agent", "--status", "--json", "--spool", spool,
                  status=(1,))
    return json.loads(told)


def test_an_agent_sends_what_its_store_has():
    store = os.path.join(FOLDER, "agents")
    with receiver() as (url, requests):
        state = agent(url, "spool1", "--to", store)
    got = read([body for _, _, body in requests])
    assert got, "nothing was sent"
    compare(got, wanted(store))
    assert state["otlp_missed_batches"] == 0 and state["otlp"] == url, state


def test_an_agent_with_a_store_does_not_wait_for_a_receiver_that_is_away():
    with receiver() as (url, _):
        pass
    store = os.path.join(FOLDER, "agents2")
    state = agent(url, "spool2", "--to", store)
    assert state["otlp_missed_batches"] == state["sent_batches"] > 0, state
    assert "Failed to connect" in state["otlp_error"], state
    assert state["waiting_batches"] == 0, state


def test_an_agent_without_a_store_sends_again_until_it_is_taken():
    with receiver(503, 200) as (url, requests):
        state = agent(url, "spool3")
    assert state["waiting_batches"] == 0, state
    bodies = [body for _, _, body in requests]
    assert bodies[0] == bodies[1], "another batch, or not the same bytes"
    assert len(bodies) == state["sent_batches"] + 1 > 1, state


def test_headers_are_those_of_the_environment():
    path = recording("jit.seam")
    with receiver() as (url, requests):
        run(SEAM, "push", "--otlp", url + "/v1development/profiles",
            "--service", "web", path,
            OTEL_EXPORTER_OTLP_HEADERS="api-key=a%20b, x=1")
    [(sent, headers, _)] = requests
    assert sent == "/v1development/profiles", sent
    assert (headers["api-key"], headers["x"]) == ("a b", "1"), headers
    for value in ("a", "a=b%0d%0ac: d", "=x", ",".join(["a=b"] * 17)):
        _, told = run(SEAM, "push", "--otlp", url, "--service", "web", path,
                      status=(1,), OTEL_EXPORTER_OTLP_HEADERS=value)
        assert "OTEL_EXPORTER_OTLP_HEADERS is not KEY=VALUE" in told, told


def test_a_url_with_a_password_is_refused():
    for url in ("http://a:b@localhost", "ftp://x", "localhost:4318",
                "http://a b"):
        _, told = run(SEAM, "push", "--otlp", url, "--service", "web",
                      recording("jit.seam"), status=(1,))
        assert "the URL" in told and "a:b" not in told, told


tests = [same_stacks(name) for name in RECORDINGS]
try:
    status = tap.run(tests + tap.promises(globals()))
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
sys.exit(status)
