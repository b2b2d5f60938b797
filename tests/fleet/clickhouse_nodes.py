# SPDX-License-Identifier: MIT
"""ClickHouse servers on loopback, as one cluster, for tests and benchmarks.

Debian's clickhouse-server, wherever it is: installed, or unpacked by ./dev
below build/.  Each node has a folder, three ports that were free, and ends with
the process that started the server, however that process ends.
"""
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import tap

PR_SET_PDEATHSIG = 1
USER, PASSWORD = "fleet", "a secret & more"

# 18.16 wants "yandex" as its root, which later versions also take.
CONFIG = """<?xml version="1.0"?>
<yandex>
  <logger><level>information</level><log>{dir}/server.log</log>
    <errorlog>{dir}/error.log</errorlog></logger>
  <listen_host>127.0.0.1</listen_host>
  <http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
  <interserver_http_port>{interserver}</interserver_http_port>
  <interserver_http_host>127.0.0.1</interserver_http_host>
  <max_concurrent_queries>100</max_concurrent_queries>
  <mark_cache_size>268435456</mark_cache_size>
  <path>{dir}/data/</path><tmp_path>{dir}/tmp/</tmp_path>
  <user_files_path>{dir}/files/</user_files_path>
  <format_schema_path>{dir}/schemas/</format_schema_path>
  <users_config>{dir}/users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <timezone>UTC</timezone>
  <remote_servers><seam>{shards}</seam></remote_servers>
</yandex>
"""
SHARD = """<shard><internal_replication>true</internal_replication>
    <replica><host>127.0.0.1</host><port>{tcp}</port></replica></shard>"""
USERS = f"""<?xml version="1.0"?>
<yandex>
  <profiles><default><max_memory_usage>4000000000</max_memory_usage>
    <connect_timeout_with_failover_ms>1000</connect_timeout_with_failover_ms>
    </default></profiles>
  <users>
    <default><password></password><networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile><quota>default</quota></default>
    <{USER}><password>{PASSWORD.replace("&", "&amp;")}</password>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile><quota>default</quota></{USER}>
  </users>
  <quotas><default></default></quotas>
</yandex>
"""


def program():
    """The server's path; raises tap.Skip where there is none."""
    tree = pathlib.Path(__file__).parents[2]
    found = shutil.which("clickhouse-server", path=os.pathsep.join(
        [str(tree / "build/clickhouse/usr/sbin"), os.environ.get("PATH", ""),
         "/usr/sbin"]))
    if not found:
        raise tap.Skip("no clickhouse-server (Debian: ./dev test unpacks it)")
    return found


def free_ports(count):
    """Ports that nothing listens on, each another one."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Node:
    """A server; its folder and ports stay when it is stopped."""

    def __init__(self, folder, ports):
        self.folder, self.process = folder, None
        self.http, self.tcp, self.interserver = ports
        self.url = f"http://127.0.0.1:{self.http}"

    def write_config(self, nodes):
        os.makedirs(self.folder)
        shards = "".join(SHARD.format(tcp=node.tcp) for node in nodes)
        for name, text in (("users.xml", USERS), ("config.xml", CONFIG.format(
                dir=self.folder, http=self.http, tcp=self.tcp,
                interserver=self.interserver, shards=shards))):
            with open(f"{self.folder}/{name}", "w", encoding="ascii") as out:
                out.write(text)

    def start(self):
        with open(f"{self.folder}/out", "ab") as out:
            self.process = subprocess.Popen(
                [program(), f"--config-file={self.folder}/config.xml"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                cwd=self.folder, preexec_fn=_die_with_parent)

    def wait(self, seconds=60):
        """Until the server answers."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended: {self.errors()}")
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(f"{self.url}/ping", timeout=5):
                    return
            time.sleep(0.1)
        raise RuntimeError(f"no answer in {seconds} s: {self.errors()}")

    def errors(self):
        text = ""
        for name in ("out", "error.log"):
            with contextlib.suppress(OSError):
                with open(f"{self.folder}/{name}", encoding="utf-8",
                          errors="replace") as lines:
                    text += lines.read()[-1500:]
        return text

    def kill(self, signum=signal.SIGKILL):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signum)
            self.process.wait()

    def query(self, sql, **settings):
        """The answer's text; RuntimeError with the server's."""
        settings = {"connect_timeout_with_failover_ms": 1000} | settings
        request = urllib.request.Request(
            f"{self.url}/?{urllib.parse.urlencode(settings)}",
            data=sql if isinstance(sql, bytes) else sql.encode())
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from None


@contextlib.contextmanager
def cluster(count=2):
    """@count nodes that answer; killed, and their folders removed, at the
    end."""
    program()
    folder = tempfile.mkdtemp(prefix="seam-clickhouse-")
    ports = free_ports(3 * count)
    nodes = [Node(f"{folder}/n{i}", ports[3 * i:3 * i + 3])
             for i in range(count)]
    try:
        for node in nodes:
            node.write_config(nodes)
            node.start()
        for node in nodes:
            node.wait()
        yield nodes
    finally:
        for node in nodes:
            node.kill()
        shutil.rmtree(folder, ignore_errors=True)
