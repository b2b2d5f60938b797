# SPDX-License-Identifier: MIT
"""The same tables and statements in today's ClickHouse, by libchdb.so.

usage: test_chdb.py FLEET_STORE
"""
import os
import shutil
import sys

import store_lib
from store_lib import ask, store, write
import batch_rows
import chdb_server
import tap

BATCHES = [batch_rows.make(agent, seq, store_lib.START_NS, f"svc-{agent % 2}",
                           f"host-{agent}", (f"version={seq}",),
                           hostile=agent == 3)
           for agent in range(1, 5) for seq in range(2)]


def test_tables_are_created_with_codecs_and_again():
    for _ in range(2):
        store(URL, "init")
    text = ENGINE.query("SHOW CREATE TABLE seam.samples").decode()
    assert "LowCardinality(String)" in text and "Delta(8)" in text, text


def test_rows_are_stored_once():
    files = [write(batch) for batch in BATCHES]
    store(URL, "put", *files)
    store(URL, "put", *files)
    for table in store_lib.APPENDED:
        count = int(ENGINE.query(f"SELECT count() FROM seam.{table}"))
        assert count == sum(len(batch[table]) for batch in BATCHES), table


def test_a_batch_is_one_part():
    count = int(ENGINE.query(
        "SELECT count() FROM system.parts WHERE table = 'samples' AND "
        "database = 'seam' AND level = 0"))
    assert count <= len(BATCHES), count


def test_a_request_that_is_too_late_is_refused():
    try:
        ENGINE.query("SELECT 1 WHERE throwIf(now() > toDateTime(1000)) = 0")
    except RuntimeError as error:
        assert "Code: 395" in str(error), error
        return
    raise AssertionError("it was done")


def test_sums_of_stacks_are_those_of_the_rows():
    for options, matches, names in (
            ((), lambda row: True, ()),
            (("keep=hspt",), lambda row: True,
             ("host", "service", "process", "pid", "thread", "tid")),
            (("service=svc-1", "host=host-[!3]", "label=version=1"),
             lambda row: row["service"] == "svc-1" and "version=1" in
             row["labels"] and row["host"] != "host-3", ()),
            (("keep=w", "step=10000000000", "event=off-cpu"),
             lambda row: row["event"] == "off-cpu", ("ts_ns",))):
        answer, _ = ask(URL, *options)
        got = batch_rows.stack_sums([answer], names=names)
        assert got == batch_rows.stack_sums(BATCHES, matches, names), options


def test_histograms_of_calls_are_added_up():
    answer, _ = ask(URL, "calls=1")
    assert sum(row["count"] for row in answer["calls"]) == sum(
        row["count"] for batch in BATCHES for row in batch["calls"])
    assert sum(sum(row["counts"]) for row in answer["calls"]) == sum(
        sum(row["counts"]) for batch in BATCHES for row in batch["calls"])


if not chdb_server.library():
    print("1..0 # SKIP no libchdb.so (npm: @chdb/lib-linux-x64-gnu)")
    sys.exit(0)
os.makedirs(f"{store_lib.FOLDER}/engine")
URL, ENGINE = chdb_server.serve(chdb_server.library(),
                                f"{store_lib.FOLDER}/engine")
STATUS = tap.run(tap.promises(globals()))
shutil.rmtree(store_lib.FOLDER, ignore_errors=True)
sys.stdout.flush()
# The library's threads would not end.
os._exit(STATUS)
