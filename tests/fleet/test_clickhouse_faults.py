# SPDX-License-Identifier: MIT
"""Batches reach ClickHouse once, whatever happens on the way, to the row.

Each fault of fault_proxy.py strikes each kind of insert; servers are killed in
the middle of one.  With --rounds N, servers are killed N times at moments by
chance, and stopped (./dev soak fleet).
"""
import contextlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import store_lib
from store_lib import store, write
import batch_rows
import clickhouse_nodes
import fault_proxy
import tap

NODES = []
ROUNDS = int(sys.argv[sys.argv.index("--rounds") + 1]) \
    if "--rounds" in sys.argv else 0
# Past the deadline of a small request, and before it.
TOO_LATE, STILL_IN_TIME = 13, 3
_agents = iter(range(100, 10 ** 6))


def batch(n_samples=150, seq=0, agent=None):
    return batch_rows.make(agent or next(_agents), seq, store_lib.START_NS,
                           "svc", "host", n_samples=n_samples)


def each(fault, tables=batch_rows.TABLES):
    return [[(f"INSERT INTO seam.{table}", fault)] for table in tables]


# What is done to the requests of one sender each, and what must hold after.
FAULTS = {
    "an insert whose answer is lost is done once":
        each(fault_proxy.lose_answer),
    "a request that arrives in half is sent again": each(fault_proxy.cut),
    "a request that arrives late is done once":
        each(fault_proxy.late(STILL_IN_TIME), store_lib.APPENDED),
    "a request that arrives too late is refused":
        each(fault_proxy.late(TOO_LATE), store_lib.APPENDED),
    "a request that arrives twice is done once":
        each(fault_proxy.twice, store_lib.APPENDED),
    "a request that arrives twice at the same time is done once":
        each(fault_proxy.at_once, store_lib.APPENDED),
    "an answer of a load balancer proves nothing":
        [[("INSERT INTO seam.samples", fault_proxy.refuse(status)),
          ("INSERT INTO seam.calls", fault_proxy.refuse(status))]
         for status in (502, 504)],
}


class Sender:
    """A process that puts one batch through a proxy of its own."""

    def __init__(self, i, faults):
        self.batch = batch()
        self.agent = self.batch["batches"][0]["agent"]
        # Of each agent's shard, and of the other: agents are in order.
        self.proxy = fault_proxy.Proxy(NODES[i // 2 % 2].http, faults)
        self.process = subprocess.Popen(
            [store_lib.STORE, self.proxy.url, "put", write(self.batch)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self):
        self.output, self.text = self.process.communicate(timeout=120)
        self.proxy.close()

    def check(self):
        assert self.output == b"stored\n", self.text.decode()
        assert not self.proxy.faults, f"{self.proxy.faults} did not happen"
        store_lib.check_stored(NODES[0], [self.batch], [self.agent])


def check_faults():
    """All at the same time: most of it is waiting."""
    numbers = iter(range(10 ** 6))
    senders = {name: [Sender(next(numbers), faults) for faults in lists]
               for name, lists in FAULTS.items()}
    for sender in (one for group in senders.values() for one in group):
        sender.finish()
    for name, group in senders.items():
        results = [caught(sender.check) for sender in group]
        tap.check(name, all(result[0] for result in results), results)
    late = [sender.proxy.done for sender in senders[
        "a request that arrives too late is refused"]]
    # Unless the sender's next request ran just then, or was done before.
    tap.check("the server says that a request is too late", any(
        b"Code: 395" in done[0] for done in late if done), late)


def test_a_server_that_is_not_there_for_a_while_gets_all_of_it():
    port, = clickhouse_nodes.free_ports(1)
    one = batch()
    sender = subprocess.Popen(
        [store_lib.STORE, f"http://127.0.0.1:{port}", "put", write(one)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(2)
    with contextlib.closing(fault_proxy.Proxy(NODES[0].http, [], port)):
        out, text = sender.communicate(timeout=90)
    assert out == b"stored\n", text.decode()
    assert b"Couldn't connect" in text, text
    store_lib.check_stored(NODES[0], [one], [one["batches"][0]["agent"]])


def put_while(batches, strike):
    """Put all @batches through both nodes, and call @strike when inserts run;
    start again what it killed.  Then each is there once."""
    files = [write(one) for one in batches]
    senders = [subprocess.Popen([store_lib.STORE, NODES[i].url, "put",
                                 *files[i::2]],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
               for i in range(2)]
    strike()
    for node in NODES:
        if node.process.poll() is not None:
            node.start()
    for node in NODES:
        node.wait()
    outputs = [sender.communicate(timeout=180) for sender in senders]
    for i, (out, text) in enumerate(outputs):
        assert out == b"stored\n" * len(files[i::2]), \
            f"{out}\n{text.decode()[-2000:]}"
    store_lib.check_stored(NODES[0], batches,
                           [one["batches"][0]["agent"] for one in batches])


def wait_for_insert(seconds=20):
    """Until either node inserts samples."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for node in NODES:
            if node.query("SELECT count() FROM system.processes WHERE query "
                          "LIKE 'INSERT INTO seam.samples%'") != "0\n":
                return


def test_servers_that_are_killed_in_an_insert_have_it_once():
    # Four agents: each node inserts into itself and into the other.
    batches = [batch(20000, agent=agent) for agent in (20, 21, 23, 22)]

    def strike():
        wait_for_insert()
        for node in NODES:
            node.kill()
    put_while(batches, strike)


def strike_by_chance(chance):
    def strike():
        wait_for_insert()
        time.sleep(chance.random() * 0.3)
        for node in chance.sample(NODES, chance.choice((1, 1, 2))):
            if chance.random() < 0.3:
                # Longer than a request may take.
                node.process.send_signal(signal.SIGSTOP)
                threading.Timer(25, node.process.send_signal,
                                (signal.SIGCONT,)).start()
            else:
                node.kill()
    return strike


def many_rounds():
    chance = random.Random(24)
    for i in range(ROUNDS):
        agents = [1000 + 10 * i + k for k in (0, 1, 3, 2)]
        tap.check(f"round {i}: each batch is stored once", *caught(
            put_while, [batch(chance.choice((200, 20000)), agent=agent)
                        for agent in agents], strike_by_chance(chance)))


def caught(function, *words):
    try:
        function(*words)
        return (True,)
    except (AssertionError, RuntimeError, OSError) as problem:
        return False, problem


def main():
    try:
        with clickhouse_nodes.cluster() as nodes:
            NODES.extend(nodes)
            for node in nodes:
                store(node.url, "init", "seam")
            if ROUNDS:
                many_rounds()
                return tap.end()
            check_faults()
            for name, test in tap.promises(globals()):
                tap.check(name, *caught(test))
            return tap.end()
    except tap.Skip as reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    finally:
        shutil.rmtree(store_lib.FOLDER, ignore_errors=True)


sys.exit(main())
