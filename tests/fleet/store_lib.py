# SPDX-License-Identifier: MIT
"""What tests of a store share: the driver, batches as files, rows compared."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../cli"))
# pylint: disable=wrong-import-position
import batch_rows

STORE = os.path.abspath(sys.argv[1])
FOLDER = tempfile.mkdtemp(prefix="seam-fleet-")
# 2026-11-24 10:00 UTC
START_NS = 1795514400 * batch_rows.SECOND
APPENDED = ("samples", "calls", "losses")   # tables that keep each row


def store(where, *words, status=0, **environment):
    """Run the driver.  Returns the process; AssertionError with its text."""
    done = subprocess.run([STORE, where, *words], capture_output=True,
                          env=os.environ | environment, timeout=200,
                          check=False)
    assert done.returncode == status, \
        f"{words}: exit status {done.returncode}\n{done.stderr.decode()}"
    return done


def ask(where, *options):
    """The rows of an answer by table, and its numbers."""
    done = store(where, "ask", *options)
    numbers = re.search(r"rows (\d+) nodes (\d+) missing (\d+) \((.*)\)",
                        done.stderr.decode())
    return batch_rows.read_file(done.stdout), numbers.groups()


def write(batch, name=None):
    """@batch as a file; its path."""
    head = batch["head"]
    return batch_rows.write_file(
        f"{FOLDER}/{name or head['agent'] + '-' + str(head['seq'])}", batch)


def _plain(row):
    """Numbers of 64 bits are strings in ClickHouse's JSON."""
    return tuple(sorted(
        (name, str(value) if not isinstance(value, list) else
         tuple(map(str, value))) for name, value in row.items()))


def stored_rows(node, table, where="1"):
    """A multiset of the rows that the cluster has."""
    columns = ", ".join("toUInt32(day) AS day" if name == "day" else name
                        for name, _ in batch_rows.TABLES[table])
    text = node.query(f"SELECT {columns} FROM seam.{table}_all "
                      f"WHERE {where} FORMAT JSONEachRow")
    return collections.Counter(_plain(json.loads(line))
                               for line in text.splitlines())


def made_rows(batches, table):
    return collections.Counter(_plain(row) for batch in batches
                               for row in batch[table])


def check_stored(node, batches, agents=None):
    """Each row of @batches is stored once, and no other of their agents."""
    where = "1" if agents is None else \
        f"agent IN ({', '.join(map(str, agents))})"
    for table in APPENDED:
        want, got = made_rows(batches, table), stored_rows(node, table, where)
        assert got == want, \
            (f"{table}: {sum(got.values())} rows, of which "
             f"{sum((got - want).values())} too many; "
             f"{sum((want - got).values())} are missing")
    ledger = {row[:2]: row for row in map(_ledger_key, (
        json.loads(line) for line in node.query(
            "SELECT * FROM seam.batches_all "
            f"WHERE {where} FORMAT JSONEachRow").splitlines()))}
    assert len(ledger) == len(batches), f"{len(ledger)} rows of the ledger"
    for batch in batches:
        key = _ledger_key(batch["batches"][0])
        assert ledger.get(key[:2]) == key, f"the ledger has no {key}"


def _ledger_key(row):
    return tuple(int(row[name]) for name in (
        "agent", "seq", "n_samples", "n_calls", "n_losses"))
