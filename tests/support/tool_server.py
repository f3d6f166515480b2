"""One Java process that runs Apache Kafka's tools one after another: starting Java costs a second each time.

The tools' `main` methods are called through py4j, which comes with pyspark. Before each call standard input
and output are replaced by buffers. A tool ends its process through Kafka's own `Exit`, whose procedure is
replaced by one that raises; a tool that lets an exception escape is judged as Java judges it. The process
ends with ours.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

from py4j.java_gateway import (
    CallbackServerParameters,
    GatewayParameters,
    JavaGateway,
    launch_gateway,
)
from py4j.protocol import Py4JJavaError, Py4JNetworkError

from tests.support.jars import kafka_tools_jars, pyspark_jar
from tests.support.java import java

JVM_FLAGS = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
TOOLS = "org.apache.kafka.tools"


class ExitProcedure:
    """What Kafka's `Exit` calls in place of ending the process; remembers the first code."""

    class Java:
        implements = ("org.apache.kafka.common.utils.internals.Exit$Procedure",)

    def __init__(self) -> None:
        self.code: int | None = None
        self.printed = ("", "")
        self.streams: tuple[Any, Any] | None = None
        self.hooks = ShutdownHooks()

    def execute(self, code: int, message: str | None) -> None:
        """The tool has ended here; what it prints while our exception passes through it is no concern."""
        if self.code is None:
            self.code = code
            self.hooks.run()
            self.printed = self.collect()
        raise SystemError(f"exit {code}")

    def collect(self) -> tuple[str, str]:
        """What was printed so far, without SLF4J's words about a missing logging binding."""
        assert self.streams is not None
        output, errors = (stream.toString("UTF-8") for stream in self.streams)
        lines = (line for line in errors.splitlines(keepends=True) if not line.startswith("SLF4J: "))
        return output, "".join(lines)


class ShutdownHooks:
    """What a tool runs at the end of its process: its producer's last flush, its consumer's count."""

    class Java:
        implements = ("org.apache.kafka.common.utils.internals.Exit$ShutdownHookAdder",)

    def __init__(self) -> None:
        self.waiting: list[Any] = []

    def addShutdownHook(self, name: str, runnable: Any) -> None:
        self.waiting.append(runnable)

    def run(self) -> None:
        while self.waiting:
            self.waiting.pop(0).run()


class ToolServer:
    """The running Java process. Not for several threads at a time."""

    def __init__(self) -> None:
        py4j = str(pyspark_jar("py4j"))
        port, self._process = launch_gateway(
            jarpath=py4j,
            classpath=f"{kafka_tools_jars()}/*",
            java_path=str(java()),
            javaopts=JVM_FLAGS,
            die_on_exit=True,
            return_proc=True,
        )
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port),
            callback_server_parameters=CallbackServerParameters(
                port=0, daemonize=True, daemonize_connections=True
            ),
        )
        server = self._gateway.java_gateway_server
        callbacks = self._gateway.get_callback_server().get_listening_port()
        server.resetCallbackClient(server.getCallbackClient().getAddress(), callbacks)
        self._exit = ExitProcedure()
        exits = self._gateway.jvm.org.apache.kafka.common.utils.internals.Exit
        exits.setExitProcedure(self._exit)
        exits.setHaltProcedure(self._exit)
        exits.setShutdownHookAdder(self._exit.hooks)
        logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it reports the exception of every exit
        atexit.register(self._gateway.shutdown)

    def run(
        self, name: str, arguments: tuple[str, ...], stdin: str, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Calls `main(arguments)` of a tool and returns what it printed and its exit code.

        A tool that takes longer than timeout_s ends the whole process: Py4JNetworkError.
        """
        self._exit.streams = self._redirect(stdin)
        patience = threading.Timer(timeout_s, self._process.kill)
        patience.start()
        try:
            return self._call(name, arguments)
        finally:
            patience.cancel()

    def _call(self, name: str, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        array = self._gateway.new_array(self._gateway.jvm.String, len(arguments))
        for index, argument in enumerate(arguments):
            array[index] = argument
        self._exit.code = None
        tool: Any = self._gateway.jvm
        for part in f"{TOOLS}.{name}".split("."):
            tool = getattr(tool, part)
        code, escaped = 0, ""
        try:
            tool.main(array)
        except Py4JJavaError as error:
            code, escaped = 1, f'Exception in thread "main" {error.java_exception.toString()}\n'
        if self._exit.code is not None:
            return subprocess.CompletedProcess([name, *arguments], self._exit.code, *self._exit.printed)
        self._exit.hooks.run()
        output, errors = self._exit.collect()
        return subprocess.CompletedProcess([name, *arguments], code, output, errors + escaped)

    def _redirect(self, stdin: str) -> tuple[Any, Any]:
        java_lang, java_io = self._gateway.jvm.java.lang, self._gateway.jvm.java.io
        output, errors = java_io.ByteArrayOutputStream(), java_io.ByteArrayOutputStream()
        java_lang.System.setOut(java_io.PrintStream(output, True, "UTF-8"))
        java_lang.System.setErr(java_io.PrintStream(errors, True, "UTF-8"))
        java_lang.System.setIn(java_io.ByteArrayInputStream(stdin.encode()))
        return output, errors


_running = threading.Lock()


@functools.cache
def tool_server() -> ToolServer:
    """This process's server, started on first use."""
    return ToolServer()


@contextlib.contextmanager
def free_tool_server() -> Iterator[ToolServer | None]:
    """The server for one call; None while a tool runs in it (called from another thread)."""
    if not _running.acquire(blocking=False):
        yield None
        return
    try:
        yield tool_server()
    except Py4JNetworkError:
        tool_server.cache_clear()
        raise
    finally:
        _running.release()
