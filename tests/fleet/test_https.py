# SPDX-License-Identifier: MIT
"""What a server over HTTP may do to the client of a store, without ClickHouse.

usage: test_https.py FLEET_STORE
"""
import http.server
import os
import shutil
import ssl
import subprocess
import sys
import threading

import store_lib
from store_lib import store
import tap

VERSION = b"18.16.1\t1795528418\n"


class Server:
    """Answers each request with what @answer(handler, body) returns."""

    def __init__(self, answer, certificate=None):
        requests = self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                requests.append((self.path, dict(self.headers), body))
                status, headers, text = answer(self, body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                      Handler)
        scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate + ".pem", certificate + ".key")
            self.server.socket = context.wrap_socket(self.server.socket,
                                                     server_side=True)
            scheme = "https"
        threading.Thread(target=self.server.serve_forever,
                         daemon=True).start()
        self.url = f"{scheme}://127.0.0.1:{self.server.server_port}"


def no_schema(_handler, body):
    if b"version()" in body:
        return 200, {}, VERSION
    return 404, {}, b"Code: 60, e.displayText() = DB::Exception: no table"


def make_certificate(name, address):
    if not shutil.which("openssl"):
        raise tap.Skip("no openssl(1)")
    path = f"{store_lib.FOLDER}/{name}"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
         "2", "-subj", "/CN=seam test", "-addext",
         f"subjectAltName=IP:{address}", "-keyout", path + ".key", "-out",
         path + ".pem"], check=True, capture_output=True)
    return path


def test_a_certificate_is_verified():
    mine = make_certificate("mine", "127.0.0.1")
    server = Server(no_schema, mine)
    refused = store(server.url, "ask", status=1)
    assert b"--ca-file FILE" in refused.stderr, refused.stderr
    assert not server.requests, "it had a request"
    done = store(server.url, "ask", status=1, SEAM_CA_FILE=mine + ".pem")
    assert b"seam fleet init" in done.stderr, done.stderr
    assert server.requests


def test_a_certificate_of_another_host_is_refused():
    other = make_certificate("other", "127.0.0.2")
    server = Server(no_schema, other)
    store(server.url, "ask", status=1, SEAM_CA_FILE=other + ".pem")
    assert not server.requests


def test_credentials_are_headers_and_nowhere_else():
    server = Server(no_schema)
    store(server.url, "ask", status=1, SEAM_FLEET_USER="reader",
          SEAM_FLEET_PASSWORD="hidden")
    assert server.requests
    for path, headers, body in server.requests:
        assert headers["X-ClickHouse-User"] == "reader", headers
        assert headers["X-ClickHouse-Key"] == "hidden", headers
        assert "hidden" not in path and b"hidden" not in body


def test_credentials_are_read_from_systemds_folder():
    folder = f"{store_lib.FOLDER}/credentials"
    os.makedirs(folder)
    with open(f"{folder}/fleet", "w", encoding="ascii") as out:
        out.write("agent:from systemd\n")
    os.chmod(out.name, 0o400)
    server = Server(no_schema)
    store(server.url, "ask", status=1, CREDENTIALS_DIRECTORY=folder)
    assert server.requests[0][1]["X-ClickHouse-User"] == "agent"


def test_redirects_are_not_followed():
    target = Server(no_schema)
    server = Server(lambda *_: (302, {"Location": target.url + "/"}, b"gone"))
    done = store(server.url, "ask", status=1)
    assert b"HTTP status 302: gone" in done.stderr, done.stderr
    assert not target.requests


def test_texts_of_a_server_are_escaped_and_cut():
    server = Server(lambda *_: (
        500, {}, b"Code: 1, e.displayText() = DB::Exception: \x1b[31m" +
        b"A" * 50000 + b", e.what() = x"))
    done = store(server.url, "ask", status=1)
    assert b"ClickHouse's code 1: \\x1b[31mAAA" in done.stderr, done.stderr
    assert b"\x1b" not in done.stderr and len(done.stderr) < 1000


def test_a_server_that_is_none_of_clickhouses_is_named():
    for text in (b"", b"<html>", b"18", b"\x00\x01" * 100):
        done = store(Server(lambda *_, text=text: (200, {}, text)).url, "ask",
                     status=1)
        assert b"not of ClickHouse" in done.stderr, done.stderr


def test_an_answer_without_end_is_refused():
    def answer(_handler, body):
        if b"version()" in body:
            return 200, {}, b"1" * (2 << 20)
        return 200, {}, b""
    done = store(Server(answer).url, "ask", status=1)
    assert b"the answer is larger than 1048576 bytes" in done.stderr, \
        done.stderr


def test_damaged_answers_are_refused():
    def answer(_handler, body):
        if b"version()" in body:
            return 200, {}, VERSION
        if b".meta" in body:
            return 200, {}, b"1\t\n"
        if b"FORMAT Native" in body:
            return 200, {}, b"\x01\xff\xff\xff\xff\x0f\x05event\x06String"
        return 200, {}, b"1\t2\t3\n"
    done = store(Server(answer).url, "ask", status=1)
    assert b"cannot query 'samples'" in done.stderr, done.stderr


def test_urls_with_passwords_and_strange_parts_are_refused():
    for url, said in (("http://u:secret@h:1", b"--credentials FILE"),
                      ("http://h/?database=a'b", b"database=NAME"),
                      ("http://h/?user=x", b"database=NAME"),
                      ("http://h/#x", b"'#'"), ("http://", b"http://HOST")):
        done = store(url, "ask", status=1)
        assert said in done.stderr and b"secret" not in done.stderr, \
            done.stderr


def main():
    try:
        return tap.run(tap.promises(globals()))
    finally:
        shutil.rmtree(store_lib.FOLDER, ignore_errors=True)


sys.exit(main())
