# SPDX-License-Identifier: MIT
"""A fleet's store in ClickHouse: two nodes, batches put, queries compared.

What is compared with: the rows that the batches were made of, added up here;
the answer of a folder that has the same batches; and the reports of recordings
that were pushed.

usage: test_clickhouse.py FLEET_STORE SEAM
"""
import collections
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys

import store_lib
from store_lib import ask, store, write
import batch_rows
import clickhouse_nodes
import tap

STEP = 3 * batch_rows.WINDOW
BATCHES = [batch_rows.make(agent, seq, store_lib.START_NS + seq * STEP,
                           f"svc-{agent % 2}", host,
                           (f"version={seq}", "zone=it's"), hostile=agent == 3)
           for agent, host in ((1, "db-1"), (2, "db-12"), (3, "web[1]"),
                               (2 ** 64 - 1, "a\\b*")) for seq in range(2)]
NODES = []
FILES = []


def test_tables_that_are_not_there_are_named_with_the_command_to_make_them():
    text = store(NODES[0].url, "try", FILES[0], status=1)
    assert text.stdout == b"later\n", text.stdout
    assert b"run 'seam fleet init --to URL'" in text.stderr, text.stderr
    text = store(NODES[0].url, "ask", status=1)
    assert b"run 'seam fleet init --to URL'" in text.stderr, text.stderr


def test_init_can_be_repeated():
    for node in NODES * 2:
        store(node.url, "init", "seam")
    for node in NODES:
        assert node.query("SELECT count() FROM seam.meta") == "1\n"


def test_each_row_is_stored_through_either_node():
    store(NODES[0].url, "put", *FILES[::2])
    store(NODES[1].url, "put", *FILES[1::2])
    for node in NODES:
        store_lib.check_stored(node, BATCHES)


def test_rows_of_an_agent_are_on_one_node():
    counts = [node.query("SELECT uniqExact(agent) FROM seam.samples")
              for node in NODES]
    assert sorted(counts) == ["1\n", "3\n"], counts


def test_a_second_init_keeps_rows():
    for node in NODES:
        store(node.url, "init")
    store_lib.check_stored(NODES[0], BATCHES)


def test_a_batch_that_is_put_again_changes_nothing():
    store(NODES[1].url, "put", *FILES)
    store(NODES[0].url, "put", *FILES)
    store_lib.check_stored(NODES[0], BATCHES)


def same_answer(options, matches, names):
    """Both nodes, the folder and the rows give the same sums."""
    want = batch_rows.stack_sums(BATCHES, matches, names)
    rows = sum(sum(map(matches, batch["samples"])) for batch in BATCHES)
    assert want
    for where in (NODES[0].url, NODES[1].url, store_lib.FOLDER + "/store"):
        answer, numbers = ask(where, *options)
        got = batch_rows.stack_sums([answer], names=names)
        assert got == want, f"{where}: {len(got)} sums, not {len(want)}"
        if where.startswith("http"):
            assert numbers == (str(rows), "2", "0", ""), numbers


def test_sums_of_stacks_are_those_of_the_rows_and_of_a_folder():
    same_answer((), lambda row: True, ())


def test_services_hosts_and_threads_are_kept_apart():
    same_answer(("keep=hs",), lambda row: True, ("service", "host"))
    same_answer(("keep=shtp", "service=svc-1"),
                lambda row: row["service"] == "svc-1",
                ("host", "thread", "tid", "process", "pid"))


def test_windows_are_kept_apart():
    start = store_lib.START_NS
    same_answer(("keep=w", f"step={STEP}", f"from={start}",
                 f"to={start + STEP + batch_rows.WINDOW}"),
                lambda row: row["ts_ns"] < start + STEP + batch_rows.WINDOW,
                ())
    answer, _ = ask(NODES[0].url, "keep=w", f"step={STEP}")
    got = collections.Counter()
    for row in answer["samples"]:
        got[row["ts_ns"]] += row["count"]
    want = collections.Counter()
    for batch in BATCHES:
        for row in batch["samples"]:
            want[row["ts_ns"] // STEP * STEP] += row["count"]
    assert got == want, f"{got} != {want}"


def test_labels_and_events_select_rows():
    same_answer(("label=version=1", "label=zone=it's", "event=off-cpu"),
                lambda row: "version=1" in row["labels"] and
                row["event"] == "off-cpu", ())


def test_hosts_are_selected_as_fnmatch_does():
    hosts = sorted({row["host"] for batch in BATCHES
                    for row in batch["samples"]})
    for glob, pattern in (("db-*", None), ("db-?", None), ("*1*", None),
                          ("[!a]*", None), ("web[[]1]", None),
                          ("*]", None), ("*[0-9]", None), ("*.*", None),
                          ("a\\\\b\\*", "a\\b[*]"), ("x[", None)):
        want = {host for host in hosts
                if fnmatch.fnmatchcase(host, pattern or glob)}
        answer, _ = ask(NODES[0].url, "keep=h", f"host={glob}")
        got = {row["host"] for row in answer["samples"]}
        assert got == want, f"{glob}: {got}, not {want}"


def test_histograms_of_calls_are_added_up():
    want = collections.defaultdict(lambda: [0, 2 ** 64, 0,
                                            collections.Counter()])
    for batch in BATCHES:
        for row in batch["calls"]:
            sums = want[row["frame_id"]]
            sums[0] += row["count"]
            sums[1] = min(sums[1], row["min_ns"])
            sums[2] = max(sums[2], row["max_ns"])
            sums[3].update(dict(zip(row["buckets"], row["counts"])))
    answer, _ = ask(NODES[1].url, "calls=1")
    got = {row["frame_id"]: [row["count"], row["min_ns"], row["max_ns"],
                             collections.Counter(dict(zip(row["buckets"],
                                                          row["counts"])))]
           for row in answer["calls"]}
    assert got == dict(want)
    assert {row["frame_id"] for row in answer["frames"]} == set(want)


def test_losses_are_added_up():
    answer, _ = ask(NODES[0].url)
    got = {(row["cause"], row["source"]): row["records"]
           for row in answer["losses"]}
    assert got == {("ring full", "cpu 0"): 12, ("ring full", "cpu 1"): 12}, got


def test_frames_come_back_as_they_were():
    answer, _ = ask(NODES[0].url)
    want = {row["frame_id"]: row for batch in BATCHES
            for row in batch["frames"]}
    for row in answer["frames"]:
        for name in row.keys() - {"agent"}:
            assert row[name] == want[row["frame_id"]][name], (name, row)


def test_the_schema_of_a_newer_seam_is_refused():
    node = NODES[0]
    node.query("CREATE DATABASE newer")
    url = f"{node.url}/?database=newer"
    store(url, "init")
    node.query("INSERT INTO newer.meta (version, cluster, made) "
               "SELECT 99, '', now()")
    for words in (("init",), ("try", FILES[0]), ("ask",)):
        text = store(url, *words, status=1).stderr
        assert b"version 99 of the tables, which a newer Seam made" in text, \
            text


def test_one_node_without_a_cluster_stores_and_answers():
    url = f"{NODES[0].url}/?database=single"
    store(url, "init")
    store(url, "put", *FILES)
    store(url, "put", *FILES)
    answer, numbers = ask(url)
    assert batch_rows.stack_sums([answer]) == batch_rows.stack_sums(BATCHES)
    assert numbers[1:3] == ("1", "0"), numbers


def test_credentials_are_of_a_file_that_only_its_owner_reads():
    login = f"{store_lib.FOLDER}/login"
    url = f"{NODES[0].url}/"
    for text, mode, status, said in (
            (f"{clickhouse_nodes.USER}:{clickhouse_nodes.PASSWORD}\n", 0o600,
             0, b""),
            (f"{clickhouse_nodes.USER}:wrong\n", 0o600, 1,
             b"correct the password"),
            (f"{clickhouse_nodes.USER}:wrong\n", 0o640, 1,
             b"others may read it: chmod 600"),
            ("wrong\n", 0o600, 1, b"its first line is not USER:PASSWORD"),
            ("wrong:\x01\n", 0o600, 1, b"control characters")):
        with open(login, "w", encoding="ascii") as out:
            out.write(text)
        os.chmod(login, mode)
        done = store(url, "ask", status=status, SEAM_CREDENTIALS=login)
        assert said in done.stderr, done.stderr
        assert b"wrong" not in done.stderr, done.stderr
    done = store(url, "ask", SEAM_FLEET_USER=clickhouse_nodes.USER,
                 SEAM_FLEET_PASSWORD=clickhouse_nodes.PASSWORD)
    done = store(url, "ask", status=1, SEAM_FLEET_USER="nobody",
                 SEAM_FLEET_PASSWORD="secret")
    assert b"--credentials FILE" in done.stderr, done.stderr
    assert b"secret" not in done.stderr, done.stderr


SEAM = os.path.abspath(sys.argv[2])
CORPUS = os.environ.get("SEAM_CORPUS", "build/tests/corpus")
EVER = "2020-01-01..2100-01-01"
RECORDINGS = ("bundle/lua", "bundle/jit", "bundle/events", "view/requests")


def seam(*words, statuses=(0, 3)):
    """Standard output."""
    done = subprocess.run([SEAM, *words], capture_output=True, timeout=100,
                          check=False)
    assert done.returncode in statuses, f"{words}: {done.stderr.decode()}"
    return done.stdout.decode()


def pushed():
    """Each recording, its service, and the store that it is in."""
    for i, name in enumerate(RECORDINGS):
        yield f"{CORPUS}/{name}.seam", name.split("/")[1], NODES[i % 2].url


def test_seam_fleet_init_makes_the_tables_of_all_nodes():
    words = [word for node in NODES
             for word in ("--to", f"{node.url}/?database=pushed")]
    for _ in range(2):
        seam("fleet", "init", *words, "--cluster", "seam", statuses=(0,))
    text = subprocess.run([SEAM, "fleet", "init", "--to", "http://u:p@h"],
                          capture_output=True, check=False)
    assert text.returncode == 1 and b"--credentials FILE" in text.stderr and \
        b"u:p" not in text.stderr, text.stderr


def by_name(report):
    """Events in an order that all stores have."""
    return sorted(report.get("events", []), key=lambda event: event["event"])


def test_reports_of_pushed_recordings_are_those_of_the_bundles():
    for path, service, url in pushed():
        for _ in range(2):
            seam("push", "--to", f"{url}/?database=pushed",
                 "--service", service, "--host", f"host-{service}", path)
    for path, service, _ in pushed():
        want = json.loads(seam("report", "--json", path))
        for node in NODES:
            got = json.loads(seam(
                "fleet", "report", "--from", f"{node.url}/?database=pushed",
                "--since", EVER, "--service", service, "--json"))
            assert got["samples"] == want["samples"], (service, got["samples"])
            assert got.get("rows") == want.get("rows"), service
            assert by_name(got) == by_name(want), service


def folded(path, event):
    return sorted(seam("convert", "--to", "folded", "--event", event, "--weight",
                       path).splitlines())


def test_stacks_of_pushed_recordings_are_those_of_the_bundles():
    for path, service, _ in pushed():
        events = re.findall(r'"event":"([^"]+)"',
                            seam("report", "--json", path).replace(" ", ""))
        for node in NODES:
            answer = store(f"{node.url}/?database=pushed", "ask",
                           f"service={service}", "keep=shpt").stdout
            with open(f"{store_lib.FOLDER}/answer", "wb") as out:
                out.write(answer)
            for event in sorted(set(events)) or ["cpu-clock"]:
                got, want = folded(out.name, event), folded(path, event)
                assert got == want, \
                    (service, event, set(got) ^ set(want))


def test_views_of_a_server_are_those_of_a_folder():
    folder = f"{store_lib.FOLDER}/pushed"
    for path, service, _ in pushed():
        seam("push", "--to", folder, "--service", service, "--host",
             f"host-{service}", path)
    # Orders of equal rows and of events are a store's own.
    for words in (["report", "--by", "host,symbol", "--event", "cpu-clock"],
                  ["calls"],
                  ["report", "--by", "thread", "--event", "off-cpu"],
                  ["report", "--json", "--host", "host-[lr]*"],
                  ["diff", "--service", "lua", "--with-since", EVER,
                   "--with-service", "jit"],
                  ["flamegraph", "--service", "requests", "-o", "-"]):
        texts = {re.sub(r"http://127[^ :]*:[0-9]+[^ :\"]*|" + re.escape(folder),
                        "STORE", seam("fleet", words[0], "--from", where,
                                      "--since", EVER, *words[1:], statuses=(0, 3)))
                 for where in (folder, f"{NODES[0].url}/?database=pushed",
                               f"{NODES[1].url}/?database=pushed")}
        if "--json" in words:
            texts = {json.dumps([report["samples"], by_name(report)])
                     for report in map(json.loads, texts)}
        assert len(texts) == 1, f"{words}: " + "\n---\n".join(
            text[:900] for text in texts)


# Two functions, and the CPU time of each by the thread's own clock.
TWO_C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
volatile unsigned long x;
static double cpu(void)
{ struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline)) void heavy(int n) { while (n--) x += 1; }
__attribute__((noinline)) void light(int n) { while (n--) x += 2; }
int main(int n, char **words)
{
	double spent[2] = { 0, 0 }, end = atof(words[1]);
	while (spent[0] + spent[1] < end) {
		double a = cpu(), b;
		heavy(100000 * atoi(words[2]));
		b = cpu();
		light(100000 * atoi(words[3]));
		spent[1] += cpu() - b;
		spent[0] += b - a;
	}
	printf("%f %f\n", spent[0], spent[1]);
	return 0;
}
"""
PARTS = ((5, 5), (7, 3), (8, 2), (9, 1))


def run_agents(folder):
    """(service, URL, (heavy, light) by the program's clock, samples)"""
    with open(f"{folder}/two.c", "w", encoding="ascii") as source:
        source.write(TWO_C)
    subprocess.run(["cc", "-O1", "-g", "-fno-omit-frame-pointer", "-o",
                    f"{folder}/two", source.name], check=True)
    agents = [subprocess.Popen(
        [SEAM, "agent", "--service", f"four-{i}", "--host", f"h-{i}",
         "--label", f"version={i % 2}", "--window", "1s", "-F", "997",
         "--max-cpu", "0", "--spool", f"{folder}/{i}.spool", "--to",
         f"{NODES[i % 2].url}/?database=pushed", "--", f"{folder}/two", "1",
         *map(str, parts)], stdout=subprocess.PIPE)
        for i, parts in enumerate(PARTS)]
    for i, agent in enumerate(agents):
        text = agent.communicate(timeout=100)[0]
        assert agent.returncode in (0, 3), agent.returncode
        # 1: it has ended
        status = json.loads(seam("agent", "--status", "--json", "--spool",
                                 f"{folder}/{i}.spool", statuses=(1,)))
        yield (f"four-{i}", f"{NODES[i % 2].url}/?database=pushed",
               tuple(map(float, text.split())), status["samples"])


def test_four_agents_store_what_their_programs_did():
    for service, url, spent, samples in run_agents(store_lib.FOLDER):
        report = json.loads(seam("fleet", "report", "--from", url, "--service",
                                 service, "--json", "--top", "0"))
        # to the sample what the agent took, and near the program's clock
        assert report["samples"] == samples > 100, (report["samples"], samples)
        self_ns = {row["symbol"]: row["self_weight"] for row in report["rows"]}
        got = self_ns["heavy"] / (self_ns["heavy"] + self_ns["light"])
        want = spent[0] / sum(spent)
        assert abs(got - want) < 0.08, (service, got, want)


def test_with_one_node_down_the_answer_says_that_it_is_partial():
    NODES[1].kill()
    there = [batch for batch in BATCHES
             if batch["batches"][0]["agent"] % 2 == 0]
    answer, numbers = ask(NODES[0].url)
    assert batch_rows.stack_sums([answer]) == batch_rows.stack_sums(there)
    assert numbers[1:] == ("2", "1", f"127.0.0.1:{NODES[1].tcp} (shard 2)"), \
        numbers
    done = subprocess.run([SEAM, "fleet", "report", "--from", NODES[0].url,
                           "--since", EVER], capture_output=True,
                          check=False)
    assert done.returncode == 3 and \
        f"1 of 2: 127.0.0.1:{NODES[1].tcp}".encode() in done.stdout, \
        done.stdout


def test_with_one_node_down_agents_of_the_other_go_on():
    more = [batch_rows.make(agent, 9, store_lib.START_NS + 9 * STEP, "svc-9",
                            "db-9", n_samples=10) for agent in (5, 6)]
    text = store(NODES[0].url, "try", write(more[0]), status=1)
    assert text.stdout == b"later\n" and \
        b"(a node of the cluster is down)" in text.stderr, text.stderr
    store(NODES[0].url, "try", write(more[1]))
    NODES[1].start()
    NODES[1].wait()
    store(NODES[1].url, "put", write(more[0]), write(more[1]))
    store_lib.check_stored(NODES[0], more, (5, 6))


def main():
    try:
        with clickhouse_nodes.cluster() as nodes:
            NODES.extend(nodes)
            FILES.extend(write(batch) for batch in BATCHES)
            folder = store_lib.FOLDER + "/store"
            store(folder, "put", *FILES)
            return tap.run(tap.promises(globals()))
    except tap.Skip as reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    finally:
        shutil.rmtree(store_lib.FOLDER, ignore_errors=True)


sys.exit(main())
