"""Ends the session of a broker that was killed, so that the others need not wait for its time-out.

    python zookeeper_farewell.py < wills

A script for `last_will`: it runs in a process of its own with nothing but the standard library. Each line of
its input is a will, `farewell` in JSON; when the input ends it executes the last. It takes the session up
again by its id and password, as the broker's client would after a lost connection, and closes it; its
ephemeral nodes go with it. A session that is over already is left alone by the server.

ZooKeeper's client protocol: every message has its length before it. Connect: protocol version, last zxid
seen, time-out, session, password. The answer holds the time-out, which is 0 where there is no such session.
Close: xid and type -11.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
from collections.abc import Iterable

SCRIPT = __file__
CONNECT_SECONDS = 2.0
CLOSE_TYPE = -11
_CONNECT = struct.Struct(">iqiqi")
_CONNECTED = struct.Struct(">ii")
_CLOSE = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")


def farewell(hosts: str, session_id: int, password: bytes, timeout_ms: int) -> str:
    """The will of a broker with this session; `hosts` as in `zookeeper.connect`, without a chroot."""
    return json.dumps(
        {"hosts": hosts, "session": session_id, "password": password.hex(), "timeout_ms": timeout_ms}
    )


def last_of(lines: Iterable[str]) -> str:
    """The will that holds when the input ends; a line that was cut off counts for nothing."""
    last = ""
    for line in lines:
        if line.endswith("\n"):
            last = line.strip()
    return last


def execute(will: str) -> bool:
    """Close the session with the first server that answers; whether it was there to be closed."""
    wanted = json.loads(will)
    for server in wanted["hosts"].split(","):
        host, _, port = server.strip().rpartition(":")
        if not host:
            host, port = server.strip(), "2181"
        try:
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS) as connection:
                return _close(
                    connection, wanted["session"], bytes.fromhex(wanted["password"]), wanted["timeout_ms"]
                )
        except OSError:
            continue
    return False


def _close(connection: socket.socket, session_id: int, password: bytes, timeout_ms: int) -> bool:
    connect = _CONNECT.pack(0, 0, timeout_ms, session_id, len(password)) + password + b"\0"
    connection.sendall(_LENGTH.pack(len(connect)) + connect)
    _, granted_ms = _CONNECTED.unpack_from(_message(connection))
    if granted_ms <= 0:
        return False
    connection.sendall(_LENGTH.pack(_CLOSE.size) + _CLOSE.pack(1, CLOSE_TYPE))
    _message(connection)
    return True


def _message(connection: socket.socket) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    return _exactly(connection, length)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise ConnectionResetError("the server closed the connection")
        data += piece
    return data


if __name__ == "__main__":
    if last := last_of(sys.stdin):
        execute(last)
