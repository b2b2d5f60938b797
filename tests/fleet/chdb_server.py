# SPDX-License-Identifier: MIT
"""Today's engine of ClickHouse, as libchdb.so, behind its HTTP interface.

As much of the interface as Seam uses: a statement in the body or in the URL, a
table "d" of format Native beside it, errors as status 500.  One node: the
library has no cluster.
"""
import ctypes
import http.server
import os
import re
import tempfile
import threading
import urllib.parse


class Engine:
    """A database in a folder of its own."""

    def __init__(self, library, folder):
        self.folder, self.lock = folder, threading.Lock()
        lib = self.lib = ctypes.CDLL(library)
        lib.chdb_connect.restype = ctypes.c_void_p
        lib.chdb_query.restype = ctypes.c_void_p
        lib.chdb_query.argtypes = [ctypes.c_void_p, ctypes.c_char_p,
                                   ctypes.c_char_p]
        lib.chdb_result_buffer.restype = ctypes.c_void_p
        lib.chdb_result_length.restype = ctypes.c_size_t
        lib.chdb_result_error.restype = ctypes.c_char_p
        for name in ("buffer", "length", "error"):
            getattr(lib, f"chdb_result_{name}").argtypes = [ctypes.c_void_p]
        lib.chdb_destroy_query_result.argtypes = [ctypes.c_void_p]
        words = [b"clickhouse", b"--path=" + folder.encode()]
        self.connection = ctypes.cast(
            lib.chdb_connect(len(words),
                             (ctypes.c_char_p * len(words))(*words)),
            ctypes.POINTER(ctypes.c_void_p))[0]

    def query(self, sql):
        """The answer's bytes; RuntimeError with the engine's text."""
        form = re.search(r"FORMAT (\w+)\s*$", sql)
        with self.lock:
            result = self.lib.chdb_query(
                self.connection, sql[:form.start()].encode() if form else
                sql.encode(), (form[1] if form else "TSV").encode())
            error = self.lib.chdb_result_error(result)
            length = self.lib.chdb_result_length(result)
            data = ctypes.string_at(self.lib.chdb_result_buffer(result),
                                    length) if length else b""
            self.lib.chdb_destroy_query_result(result)
        if error:
            raise RuntimeError(error.decode("utf-8", "replace"))
        return data

    def run(self, parameters, body, content_type):
        """What a POST gives."""
        boundary = re.search("boundary=([^;]+)", content_type or "")
        sql = parameters.get("query", body.decode("utf-8", "replace"))
        if not boundary:
            return self.query(sql)
        part = body.split(b"--" + boundary[1].encode())[1]
        with tempfile.NamedTemporaryFile(dir=self.folder) as data:
            data.write(part.split(b"\r\n\r\n", 1)[1][:-2])
            data.flush()
            self.query("CREATE DATABASE IF NOT EXISTS data")
            self.query("CREATE OR REPLACE TABLE data.d "
                       f"({parameters['d_structure']}) ENGINE = Memory")
            self.query(f"INSERT INTO data.d SELECT * FROM file('{data.name}', "
                       f"Native, '{parameters['d_structure']}')")
            return self.query(re.sub(r"\bFROM d\b", "FROM data.d", sql))


def serve(library, folder):
    """The URL of a server that runs until the process ends, and its engine."""
    engine = Engine(library, folder)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            parameters = dict(urllib.parse.parse_qsl(
                urllib.parse.urlsplit(self.path).query))
            try:
                status, text = 200, engine.run(parameters, body,
                                               self.headers["Content-Type"])
            except RuntimeError as error:
                status, text = 500, str(error).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", engine


def library():
    """libchdb.so of the npm package, or None."""
    tree = os.path.join(os.path.dirname(__file__), "../..")
    path = os.environ.get("SEAM_CHDB", os.path.join(
        tree, "build/chdb/node_modules/@chdb/lib-linux-x64-gnu/libchdb.so"))
    return path if os.path.exists(path) else None
