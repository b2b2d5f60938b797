#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names of XRay logs: test_xray_names.py SEAM

Of the maps and names of events beside them, PID.yaml and PID.events, and of
maps that a command is given.
"""
import itertools
import json
import os
import struct
import subprocess
import sys
import tempfile

import tap

SEAM = os.path.abspath(sys.argv[1])
COMMANDS = (["calls"], ["calls", "--json"], ["calls", "--stacks"],
            ["calls", "--graph"], ["report"], ["report", "--json"],
            ["report", "--tree"], ["convert", "--to", "folded"],
            ["convert", "--to", "trace-json"],
            ["convert", "--to", "xray-yaml"], ["flamegraph", "-o", "-"],
            ["dump"], ["dump", "--json"])
VIEWS = COMMANDS[:-2]
FOLDER = tempfile.TemporaryDirectory()
NUMBERS = itertools.count()


def typed(type_, data):
    return struct.pack("<BiiH5x", 8 << 1 | 1, len(data), 10, type_) + data


def call(function, inside=b""):
    return struct.pack("<II", function << 4, 10) + inside + \
        struct.pack("<II", function << 4 | 2, 10)


def log(pid, body):
    head = struct.pack("<Bi11x", 0 << 1 | 1, pid)        # NewBuffer
    head += struct.pack("<Bqi3x", 4 << 1 | 1, 1700000000, pid % 1000)
    head += struct.pack("<Bi11x", 9 << 1 | 1, pid)       # Pid
    head += struct.pack("<BHQ5x", 2 << 1 | 1, 0, 1000 * pid)
    body = head + body
    return struct.pack("<HHIQ16x", 5, 1, 3, 10**9) + \
        struct.pack("<BQ7x", 7 << 1 | 1, len(body)) + body


def yaml(names, images=()):
    """The map of a program whose function 1 is names[0]; None: not there."""
    text = "".join(f"# image {first} {json.dumps(path)}\n"
                   for first, path in images) + "---\n"
    for i, name in enumerate(names, 1):
        for kind in ("function-enter", "function-exit") if name else ():
            text += (f"- {{ id: {i}, address: {hex(4096 * i)}, function: "
                     f"{hex(4096 * i)}, kind: {kind}, always-instrument: "
                     f"false, version: 2, function-name: {json.dumps(name)} "
                     "}\n")
    return (text + "...\n").encode()


def files(**data):
    """A folder with the files of these names: _7_xray is 7.xray."""
    path = os.path.join(FOLDER.name, str(next(NUMBERS)))
    os.mkdir(path)
    for name, content in data.items():
        with open(os.path.join(path, name[1:].replace("_", ".")), "wb") as f:
            f.write(content)
    return path


def logs_of(path):
    return [os.path.join(path, name) for name in sorted(os.listdir(path))
            if name.endswith(".xray")]


def run(*words, **more):
    done = subprocess.run([SEAM, *words], capture_output=True, timeout=60,
                          check=False, **more)
    done.out, done.err = done.stdout.decode(), done.stderr.decode()
    return done


def rows(*words):
    """{name: calls}, and the numbers of the functions."""
    functions = json.loads(run("calls", "--json", *words).out)["functions"]
    return {f["name"]: f["count"] for f in functions}, \
        sorted(f["id"] for f in functions)


def test_every_command_finds_the_map_beside_a_log():
    path = files(_7_xray=log(7, call(1, call(2))),
                 _7_yaml=yaml(["outer", "ns::inner(int)"]))
    for words in COMMANDS:
        done = run(*words, *logs_of(path))
        assert done.returncode == 0 and done.err == "", (words, done)
        assert "outer" in done.out and "ns::inner(int)" in \
            done.out.replace("&#58;", ":"), (words, done.out)


def test_a_recording_of_logs_alone_is_read_by_every_command():
    path = files(_7_xray=log(7, call(1)), _7_yaml=yaml(["one"]),
                 _8_xray=log(8, call(1)), _8_yaml=yaml(["two"]))
    bundle = os.path.join(FOLDER.name, "alone.seam")
    os.mkdir(bundle)
    os.rename(path, os.path.join(bundle, "xray"))
    for words in COMMANDS:
        done = run(*words, bundle)
        assert done.returncode == 0 and done.err == "", (words, done)
        assert "one" in done.out and "two" in done.out, (words, done.out)
    empty = os.path.join(FOLDER.name, "empty.seam")
    os.makedirs(os.path.join(empty, "xray"))
    assert run("report", empty).returncode == 1


def test_a_map_of_the_user_wins_over_the_one_beside():
    path = files(_7_xray=log(7, call(1)), _7_yaml=yaml(["wrong_one"]),
                 _mine=yaml(["mine"]))
    for words in COMMANDS:
        done = run(*words, "--map", os.path.join(path, "mine"),
                   *logs_of(path))
        assert "mine" in done.out and "wrong_one" not in done.out, (words, done)


def test_processes_of_several_programs_keep_their_functions_apart():
    path = files(_1_xray=log(1, call(1, call(2))), _1_yaml=yaml(["a1", "a2"]),
                 _2_xray=log(2, call(1) * 3), _2_yaml=yaml(["b1"]),
                 _3_xray=log(3, call(1) * 5 + call(300000) * 2))
    expected = ({"a1": 1, "a2": 1, "b1": 3, "#1": 5, "#300000": 2},
                [1, 1, 1, 2, 300000])
    for order in itertools.permutations(logs_of(path)):
        assert rows(*order) == expected, rows(*order)
    folded = run("convert", "--to", "folded", *logs_of(path)).out
    for stack in "thread 1;a1;a2 ", "thread 2;b1 ", "thread 3;#1 ":
        assert stack in folded, folded
    done = run("convert", "--to", "xray-yaml", *logs_of(path)).out
    assert done.count("func-id: 1, function: \"b1\"") == 6, done
    done = run("convert", "--to", "xray", *logs_of(path))
    assert done.returncode == 1 and "several programs" in done.err, done


def test_a_process_and_its_fork_are_one_program():
    """Each saw other functions; the map of each has what it saw."""
    path = files(_1_xray=log(1, call(1) + call(3)),
                 _1_yaml=yaml(["one", None, "three"]),
                 _2_xray=log(2, call(2) + call(3)),
                 _2_yaml=yaml([None, "two", "three"]))
    assert rows(*logs_of(path)) == ({"one": 1, "two": 1, "three": 2},
                                    [1, 2, 3]), rows(*logs_of(path))
    done = run("convert", "--to", "xray", "-o", os.path.join(path, "all"),
               *logs_of(path))
    assert done.returncode == 0, done


def test_names_of_cpp_are_for_people():
    """A program that records itself writes those of its symbols."""
    names = ["_ZN3app5LevelD2Ev", "_ZL7computei", "_ZSt3minIiEvv", "_Zbad"]
    path = files(_7_xray=log(7, b"".join(map(call, range(1, 5)))),
                 _7_yaml=yaml(names))
    assert set(rows(*logs_of(path))[0]) == {
        "app::Level::~Level()", "compute(int)", "void std::min<int>()",
        "_Zbad"}, rows(*logs_of(path))


def test_they_do_not_fill_the_memory():
    """Of these each has 8,000 bytes for people."""
    pairs = "St4pairIiiE" + "".join(
        f"S_IS{i}_S{i}_E" for i in range(7))
    names = [f"_Z{len(str(i)) + 1}f{i}{pairs}" for i in range(300)]
    maps = yaml(names)
    path = files(_7_xray=log(7, b"".join(map(call, range(1, 301)))),
                 _7_yaml=maps)
    functions = rows(*logs_of(path))[0]
    assert len(functions) == 300, len(functions)
    assert 2 * len(maps) < sum(map(len, functions)) < 9 * len(maps), \
        (sum(map(len, functions)), len(maps))


def test_it_is_so_where_one_has_calls_of_its_own_making():
    """They are of no binary, and may have the lowest numbers of a map."""
    app = [(2, "/bin/app")]
    path = files(_7_xray=log(7, call(1, call(2))),
                 _7_yaml=yaml(["request", "shared"], app),
                 _8_xray=log(8, call(2, call(3))),
                 _8_yaml=yaml([None, "shared", "child"], app))
    counts, ids = rows(*logs_of(path))
    assert counts == {"request": 1, "shared": 2, "child": 1}, counts
    assert ids == [1, 2, 3], ids


def test_programs_of_two_names_are_two_even_if_no_function_says_so():
    path = files(_1_xray=log(1, call(1)),
                 _1_yaml=yaml(["one"], [(1, "/bin/a")]),
                 _2_xray=log(2, call(1) + call(2)),
                 _2_yaml=yaml([None, "two"], [(1, "/bin/b")]))
    assert rows(*logs_of(path))[0] == {"one": 1, "two": 1, "#1": 1}, \
        rows(*logs_of(path))


def test_functions_have_the_binary_of_the_maps_comments():
    path = files(_1_xray=log(1, call(1) + call(2)),
                 _1_yaml=yaml(["one", "two"], [(1, "/bin/a b"),
                                               (2, "/lib/\"q\".so")]))
    report = json.loads(run("report", "--json", "--sort=dso,symbol",
                            *logs_of(path)).out)
    assert {(row["symbol"], row["module"]) for row in report["rows"]} == \
        {("one", "/bin/a b"), ("two", "/lib/\"q\".so")}, report["rows"]


def test_without_a_map_a_message_says_how_to_get_names():
    path = files(_7_xray=log(7, call(1)), _8_xray=log(8, call(1)),
                 _9_log=log(9, call(1)))
    for words in (["calls"], ["report"], ["convert", "--to", "trace-json"]):
        one, two = run(*words, logs_of(path)[0]), run(*words, *logs_of(path))
        other = run(*words, os.path.join(path, "9.log"))
        for done in one, two, other:
            said = done.err + done.out
            assert done.returncode == 0 and "are numbers" in said and \
                "--map PROGRAM" in said, (words, done)
        assert "7.xray" in one.err + one.out, one
        assert "2 logs" in two.err + two.out, two


def test_a_broken_map_beside_a_log_costs_the_names_only():
    good = yaml(["name"])
    for bad in (b"", b"\n", b"{}", b"[" * 5000, b"- &a [ *a ]", good[:70],
                b"\x7fELF" + bytes(300), bytes(range(256)),
                b"- { id: 4294967295, kind: function-enter }",
                b"# image 1 \"x\n" + good[4:20]):
        path = files(_7_xray=log(7, call(1)), _7_yaml=bad)
        for words in COMMANDS:
            done = run(*words, *logs_of(path))
            said = done.err + done.out
            assert done.returncode == 0, (bad, words, done)
            assert "#1" in done.out or words[0] == "dump" or \
                words[-1] == "xray-yaml", (bad, words, done.out)
            assert "7.yaml" in said or words[0] in ("dump", "flamegraph"), \
                (bad, words, done)
    path = files(_7_xray=log(7, call(1)))
    os.mkfifo(os.path.join(path, "7.yaml"))
    os.mkfifo(os.path.join(path, "7.events"))
    assert run("calls", *logs_of(path)).returncode == 0


def test_maps_beside_logs_have_a_limit_together():
    size = 600 << 20
    path = files(_7_xray=log(7, call(1)), _8_xray=log(8, call(1)))
    for name in "7.yaml", "8.yaml":
        with open(os.path.join(path, name), "wb") as f:
            f.truncate(size)    # zeroes are no YAML, but end the parser late
    done = run("calls", *logs_of(path))
    assert done.returncode == 0 and "7.yaml" in done.err, done
    assert f"with {size} bytes" in done.err.split("8.yaml")[1], done


def test_a_map_beside_a_log_is_no_symbolic_link():
    path = files(_7_xray=log(7, call(1)), _other=yaml(["elsewhere"]))
    os.symlink("other", os.path.join(path, "7.yaml"))
    done = run("calls", *logs_of(path))
    assert done.returncode == 0 and "7.yaml" in done.err and \
        "elsewhere" not in done.out, done


def test_a_log_of_a_recording_is_no_link_and_nothing_is_waited_for():
    """Also a link to the reader's own standard input, a pipe here."""
    folder = files(_8_xray=log(8, call(2)), _8_yaml=yaml(["a", "elsewhere"]))
    os.rename(files(_7_xray=log(7, call(1)), _7_yaml=yaml(["here"])),
              os.path.join(folder, "xray"))
    link = os.path.join(folder, "xray", "9.xray")
    for target in ("../8.xray", "/proc/self/fd/0", "9.xray"):
        os.symlink(target, link)
        with subprocess.Popen([SEAM, "report", folder], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as done:
            try:
                done.wait(timeout=30)
            finally:
                done.kill()
            said = done.stdout.read()
        assert done.returncode == 3 and "xray/9.xray is not read: it is a " \
            "symbolic link" in said, (target, said)
        assert "here" in said and "elsewhere" not in said, said
        os.remove(link)


def test_notes_of_many_broken_files_are_few():
    data = {f"_{i}_xray": log(i, call(1)) for i in range(1, 31)}
    data |= {f"_{i}_yaml": b"{}" for i in range(1, 31)}
    data |= {f"_{i}_events": b"x" for i in range(1, 31)}
    path = files(**data)
    for words in ["calls"], ["report"]:
        done = run(*words, *logs_of(path))
        said = done.err + done.out
        assert done.returncode == 0 and "52 more files of names" in said, done
        assert len(said.splitlines()) < 60, said


def test_large_numbers_of_a_map_stay_apart_from_other_programs():
    last = (1 << 28) - 1
    text = yaml(["x"]).replace(b"id: 1,", f"id: {last},".encode())
    maps = {f"_{i}_yaml": text.replace(b'"x"', f'"x{i}"'.encode())
            for i in range(1, 7)}
    maps |= {f"_{i}_xray": log(i, call(last) + call(i)) for i in range(1, 8)}
    got, ids = rows(*logs_of(files(**maps)))
    # four programs of 2^28 numbers have room
    assert all(got[f"x{i}"] == 1 for i in range(1, 5)), got
    assert got[f"#{last}"] == 3 and ids.count(last) == 5, (got, ids)


def test_events_have_the_names_under_which_they_were_registered():
    body = call(1, typed(3, b'{"key": [1, {"a": null}], "n": -1.5e3}') +
                typed(4, b"\0\1") + typed(5, b"plain {") +
                typed(6, b'{"key": }'))
    path = files(_7_xray=log(7, body), _7_yaml=yaml(["f"]),
                 _7_events=b'4 "old"\n3 "re\\u0071uest \\"x\\" \xc3\xa4"\n'
                           b'4 "cache"\n')
    done = run("calls", "--stacks", *logs_of(path)).out
    for line in ('request "x" ä: {"key": [1, {"a": null}], "n": -1.5e3}',
                 "cache: 00 01", 'typed event 5: "plain {"',
                 r'typed event 6: "{\"key\": }"'):
        assert line in done, done
    events = json.loads(run("convert", "--to", "trace-json",
                            *logs_of(path)).out)["traceEvents"]
    instants = [(e["name"], e["args"]) for e in events if e["ph"] == "i"]
    assert instants == [
        ('request "x" ä', {"data": {"key": [1, {"a": None}], "n": -1500.0}}),
        ("cache", {"hex": "0001"}), ("typed event 5", {"data": "plain {"}),
        ("typed event 6", {"data": '{"key": }'})], instants
    lines = [json.loads(line) for line in
             run("dump", "--json", *logs_of(path)).out.splitlines()]
    lines = [line for line in lines if line["type"] == "TypedEventMarker"]
    assert [(line.get("event"), line.get("text")) for line in lines[1:3]] == \
        [("cache", None), (None, "plain {")], lines


def test_small_calls_are_left_out_of_a_slow_one_unless_they_have_an_event():
    inside = call(2) + call(3, typed(1, b"{}")) + \
        struct.pack("<II", 4 << 4, 10) + struct.pack("<II", 4 << 4 | 2, 30000)
    path = files(_7_xray=log(7, call(1, inside)),
                 _7_yaml=yaml(["slow", "tiny", "told", "large"]))
    shown = run("calls", "--stacks=1", *logs_of(path)).out
    assert "large" in shown and "told" in shown and "tiny" not in shown and \
        "1 smaller node not shown" in shown, shown
    every = run("calls", "--stacks=1", "--min-percent=0", *logs_of(path)).out
    assert "tiny" in every and "not shown" not in every, every


def test_a_picture_of_a_part_has_the_parts_calls_and_time():
    path = files(_7_xray=log(7, call(1, call(2)) + call(1, call(2) * 2)),
                 _7_yaml=yaml(["one", "two"]))
    words = run("calls", "--stacks=1", *logs_of(path)).out.splitlines()[1]
    picture = run("flamegraph", "-o", "-", *words.split(),
                  *logs_of(path)).out
    assert "xray: 3 calls over 50 ns" in picture, (words, picture[:3000])


def test_bad_event_names_are_noted_and_the_first_ones_used():
    for bad in (b"x", b"5", b"5 ", b"5 x", b'5 "x', b'5 "x" ', b'65536 "x"',
                b'-1 "x"', b'5 "\\ud800"', b'5 "\\u0000"', b'5 "\\q"',
                b'5 "' + b"x" * 2000 + b'"', b"\0" * 100, b'5 "\n"'):
        path = files(_7_xray=log(7, call(1, typed(3, b"a"))),
                     _7_yaml=yaml(["f"]), _7_events=b'3 "good"\n' + bad)
        done = run("calls", "--stacks", *logs_of(path))
        assert done.returncode == 0 and "good: " in done.out, (bad, done)
        assert "line 2" in done.err and "7.events" in done.err, (bad, done)

# ---- maps that a command is given ----

WITHOUT_NAMES = """---
- { id: 1, address: 0x401140, function: 0x401136, kind: function-enter,
    always-instrument: true, version: 2 }
- { id: 1, address: 0x401160, function: 0x401136, kind: function-exit,
    always-instrument: true, version: 2 }
- { id: 2, address: 0x401190, function: 0x40118a, kind: function-enter,
    always-instrument: true, version: 2, function-name: '' }
- { id: 2, address: 0x4011a0, function: 0x40118a, kind: function-exit,
    always-instrument: true, version: 2 }
...
"""


def file(content):
    path = os.path.join(FOLDER.name, str(next(NUMBERS)))
    with open(path, "wb") as f:
        f.write(content)
    return path


def made_log():
    """Function 1 with the argument 42, and function 2 in it."""
    return file(log(7, call(1, struct.pack("<BQ7x", 0x0d, 42) + call(2))))


def test_an_empty_or_broken_map_is_an_error_with_its_cause():
    with open(SEAM, "rb") as f:
        program = f.read()
    broken = [file(data) for data in (
        b"", b"\n", b"---\n...\n", b"[]", b"{}", b"- { id: 1 }", b"- [ 1 ]",
        b"- { id: -1, kind: function-enter }", b"- { id: 1, kind: nonsense }",
        b"- { id: 1, kind: ", b"\0" * 100, bytes(range(256)), b"[" * 5000,
        b"- &a [ *a ]", b"\xff\xfe", program[:4], program[:64],
        program[:5000], program, b"\x7fELF" + bytes(200), b"MZ" + bytes(100))]
    path = made_log()
    for name in [*broken, "/dev/null", FOLDER.name, "/nonexistent"]:
        for words in VIEWS:
            done = run(*words, "--map", name, path)
            said = done.err.splitlines()
            assert done.returncode == 1 and done.out == "", (words, name, done)
            assert said[0].startswith("seam: cannot read") and \
                name in "".join(said) and len(said) >= 2, (words, said)


def test_a_map_from_a_pipe_that_is_empty_is_an_error():
    for words in VIEWS:
        done = run(*words, "--map", "-", made_log(), input=b"")
        assert done.returncode == 1 and "it is empty" in done.err, \
            (words, done)


def test_a_function_without_a_name_is_its_address():
    for words in VIEWS:
        done = run(*words, "--map", file(WITHOUT_NAMES.encode()), made_log())
        assert done.returncode == 0, (words, done)
        assert "0x401136" in done.out and "0x40118a" in done.out, \
            (words, done.out)


def test_m_is_the_map_in_every_command():
    name = file(WITHOUT_NAMES.replace("version: 2 }\n- { id: 2",
                "version: 2, function-name: seven }\n- { id: 2").encode())
    path = made_log()
    for words in VIEWS:
        short, long = (run(*words, flag, name, path)
                       for flag in ("-m", "--map"))
        assert short.returncode == 0 and "seven" in short.out, (words, short)
        assert short.out == long.out, words


def test_an_entry_with_arguments_is_shown_with_them_in_yaml():
    done = run("convert", "--to", "xray-yaml", made_log()).out
    rows = [line for line in done.splitlines() if "func-id: 1" in line]
    assert "args: [ 42 ]" in rows[0] and \
        "kind: function-enter-arg," in rows[0], rows
    assert "kind: function-exit," in rows[1], rows
    assert done.count("function-enter,") == 1, done



sys.exit(tap.run(tap.promises(globals())))
