"""A process that has imported the `ottla` command with all its tools, and is forked for each call of one.

    python -m tests.support.tool_forker DESCRIPTOR

An interpreter's start and its imports take several times what most tools do. A fork has them behind it and
is from there on the command's process: it runs `main`, and ends with its exit code or its traceback. The
descriptor is of a socket to the test (`forked_tools.py`): a call comes as the length of its arguments, with
the descriptors of standard input, output and error, and the arguments; the pid goes back, then the exit code.
One call runs at a time, this process has one thread, and it ends with the test, which holds the other end of
the socket.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
import threading

from ottla import cli
from ottla.__main__ import main
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import MalformedMessage, UnsupportedVersion

NUMBER_BYTES = 8
STREAMS = 3

# What the other tools have no part in: a broker, and Spark.
NEVER_FORKED = ("serve", "spark")

IMPORTED_LATE = ("encodings.idna", "re2")


def prepare() -> None:
    """Imports and compiles what calls do; nothing of it is looked at as garbage in a fork."""
    modules = [module.name for module in pkgutil.iter_modules(cli.__path__)]
    for name in modules:
        if name not in NEVER_FORKED:
            importlib.import_module(f"{cli.__name__}.{name}")
    for name in IMPORTED_LATE:
        importlib.import_module(name)
    for key in ApiKey:
        with contextlib.suppress(UnsupportedVersion):
            compile_codecs(m.request_class(key), m.response_class(key))
    gc.collect()
    gc.freeze()


def compile_codecs(request: type[m.Message], response: type[m.Message]) -> None:
    """Makes an API's messages ready in the version that is spoken with brokers of today."""
    request().encode(request.MAX_VERSION)
    with contextlib.suppress(MalformedMessage):
        response.decode(response.MAX_VERSION, b"")


def next_call(door: socket.socket) -> list[str]:
    """Returns in a fork, which has the streams of a call, with its arguments; this process forks on."""
    while True:
        length, streams, _, _ = socket.recv_fds(door, NUMBER_BYTES, STREAMS)
        if not length:
            sys.exit()
        arguments: list[str] = json.loads(door.recv(int.from_bytes(length), socket.MSG_WAITALL))
        pid = os.fork()
        if not pid:
            become(streams)
            door.close()
            return arguments
        for stream in streams:
            os.close(stream)
        door.sendall(pid.to_bytes(NUMBER_BYTES))
        _, status = os.waitpid(pid, 0)
        door.sendall(os.waitstatus_to_exitcode(status).to_bytes(NUMBER_BYTES, signed=True))


def become(streams: list[int]) -> None:
    """Makes these the standard streams, and Ctrl-C an interrupt again."""
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
        os.close(stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def leave(code: object) -> None:
    """Ends this fork as Python does where it has but its main thread, and spares it to take down all modules.

    That would take 20 ms of processor time. Returns where Python has more to do.
    """
    if not isinstance(code, int) or threading.active_count() > 1:
        return
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the test decides when this process ends
    prepare()
    sys.argv[1:] = next_call(socket.socket(fileno=int(sys.argv[1])))
    try:
        main()
    except SystemExit as end:
        leave(end.code)
        raise
