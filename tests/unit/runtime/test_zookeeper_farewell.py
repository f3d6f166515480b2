"""What is said to ZooKeeper in the name of a broker that was killed. tests/contract has a real server."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

from runtime.zookeeper_farewell import execute, farewell, last_of

PASSWORD = bytes(range(16))


class Server(threading.Thread):
    """Takes one session up; `granted_ms` 0 says that there is none."""

    def __init__(self, granted_ms):
        super().__init__()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self.listening.getsockname())
        self.granted_ms, self.heard = granted_ms, []
        self.start()

    def run(self):
        connection, _ = self.listening.accept()
        with self.listening, connection, contextlib.suppress(struct.error):
            stream = connection.makefile("rb")
            while True:
                (length,) = struct.unpack(">i", stream.read(4))
                self.heard.append(stream.read(length))
                answer = struct.pack(">iiqi", 0, self.granted_ms, 77, 16) + PASSWORD
                connection.sendall(struct.pack(">i", len(answer)) + answer)


def test_the_session_is_taken_up_and_closed():
    server = Server(2000)
    assert execute(farewell(server.address, 77, PASSWORD, 2000))
    server.join()
    connect, close = server.heard
    assert struct.unpack_from(">iqiqi", connect) == (0, 0, 2000, 77, 16)
    assert connect[28:44] == PASSWORD
    assert struct.unpack(">ii", close) == (1, -11)


def test_a_session_that_is_over_is_left_alone():
    server = Server(0)
    assert not execute(farewell(server.address, 77, PASSWORD, 2000))
    server.join()
    assert len(server.heard) == 1


def test_the_next_server_is_asked_where_one_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = "{}:{}".format(*gone.getsockname())
    server = Server(2000)
    assert execute(farewell(f"{address},{server.address}", 77, PASSWORD, 2000))
    server.join()
    assert not execute(farewell(address, 77, PASSWORD, 2000))


def test_the_last_whole_line_counts():
    assert last_of(["a\n", "b\n"]) == "b"
    assert last_of(["a\n", "b\n", "cut o"]) == "b"
    assert last_of(["a\n", "\n"]) == ""
    assert last_of([]) == ""
