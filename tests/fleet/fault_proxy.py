# SPDX-License-Identifier: MIT
"""A proxy between a sender and a server that does what networks do.

Requests are read whole, one a connection.  FAULTS says what happens to those
whose SQL has the words of a fault; each fault happens once.
"""
import contextlib
import socket
import threading
import time
import urllib.parse


def read_message(connection):
    """Head and body of a request, or b"" where the peer has left."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    size = next((int(line.split(b":")[1]) for line in head.split(b"\r\n")
                 if line.lower().startswith(b"content-length:")), 0)
    while len(body) < size:
        more = connection.recv(65536)
        if not more:
            return b""
        body += more
    return head + b"\r\n\r\n" + body


class Proxy:
    """Listens on @listen, or a port of its own, for the server on @port;
    @faults: [(word of the SQL, fault)]."""

    def __init__(self, port, faults, listen=0):
        self.port, self.faults = port, list(faults)
        self.done, self.threads, self.lock = [], [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", listen))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(60)

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,),
                                      daemon=True)
            self.threads.append(thread)
            thread.start()

    def _fault(self, message):
        sql = urllib.parse.unquote_plus(
            message.split(b"\r\n", 1)[0].decode("latin-1"))
        with self.lock:
            for i, (word, fault) in enumerate(self.faults):
                if word in sql:
                    return self.faults.pop(i)[1]
        return None

    def forward(self, message):
        """The server's answer to @message."""
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            server.settimeout(60)
            # The server would wait for the next request.
            server.sendall(message.replace(b"\r\n",
                                           b"\r\nConnection: close\r\n", 1))
            answer = b""
            while True:
                more = server.recv(65536)
                if not more:
                    return answer
                answer += more

    def _serve(self, connection):
        with connection, contextlib.suppress(OSError):
            connection.settimeout(60)
            message = read_message(connection)
            if not message:
                return
            fault = self._fault(message)
            if fault is None:
                connection.sendall(self.forward(message))
            else:
                self.done.append(fault(self, connection, message))


# -- faults: functions of the proxy, the connection and the message -----------

def lose_answer(proxy, connection, message):
    """The server does it, and the client never hears of that."""
    answer = proxy.forward(message)
    connection.close()
    return answer


def cut(proxy, connection, message):
    """Half of the body arrives; then both sides lose the connection."""
    connection.close()
    with socket.create_connection(("127.0.0.1", proxy.port)) as server:
        server.sendall(message[:len(message) // 2])
    return b""


def twice(proxy, connection, message):
    """The request arrives two times, one after the other."""
    connection.sendall(proxy.forward(message))
    return proxy.forward(message)


def at_once(proxy, connection, message):
    """The request arrives two times, at the same time."""
    other = threading.Thread(target=proxy.forward, args=(message,))
    other.start()
    answer = proxy.forward(message)
    connection.sendall(answer)
    other.join(60)
    return answer


def late(seconds):
    """The client loses the connection at once; the request arrives later."""
    def fault(proxy, connection, message):
        connection.close()
        time.sleep(seconds)
        return proxy.forward(message)
    return fault


def refuse(status):
    """The proxy answers itself, as load balancers do."""
    def fault(_proxy, connection, _message):
        connection.sendall(b"HTTP/1.1 %d No\r\nContent-Length: 3\r\n"
                           b"Connection: close\r\n\r\nno\n" % status)
        return b""
    return fault
