"""Runs a query to its end: signals, progress, errors as one line.

TERM and INT end a query after the batch that is running: its sinks have it, and the checkpoint says so. A
second one breaks the batch off, which is repeated at the next start. Under spark-submit the signal goes to
the JVM, and so it does where a service manager sends it to the whole group: a handler of the JVM's calls back
here, in place of its own, which would end Spark in the middle of a batch.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from typing import Any

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError
from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.failures import JobFailed, explain
from spark_jobs.progress import Progress

LOOK_EVERY_S: Any = 0.25  # awaitTermination takes fractions, its annotation does not
LOOK_EVERY_MS = 250
LOCK_MS = 1000  # while this side is not in the queue for the lock, a thread may pass it by
_log = logging.getLogger(__name__)


class Stopping:
    """Whether somebody asked the job to end. TERM and INT ask from when it is made.

    A service manager signals every process of a group, so the signals of each are counted for themselves: a
    second one to the same process means at once.
    """

    def __init__(self) -> None:
        self.here = 0  # signals to this process
        self.in_jvm = 0
        self.following = False  # whether run_query looks here
        self.install()

    @property
    def asked(self) -> int:
        """0: no, 1: after the batch, more: at once."""
        return max(self.here, self.in_jvm)

    def install(self) -> None:
        """In this process; Spark's start puts its own handler of INT in place, so it is done again later."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self.ask)

    def install_in_jvm(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        gateway: Any = java_gateway
        gateway.ensure_callback_server_started(context._gateway)
        for name in ("TERM", "INT"):
            signal_of_jvm = context._jvm.sun.misc.Signal
            signal_of_jvm.handle(signal_of_jvm(name), JvmHandler(self))

    def ask(self, *_: object) -> None:
        """A signal to this process; raises KeyboardInterrupt at the second where no query is followed."""
        self.tell()
        self.here += 1
        if self.asked > 1 and not self.following:
            raise KeyboardInterrupt

    def ask_of_jvm(self) -> None:
        self.tell()
        self.in_jvm += 1

    def tell(self) -> None:
        if not self.asked:
            _log.info("asked to stop: ends after this batch")


class JvmHandler:
    """The JVM's handler of a signal."""

    def __init__(self, stopping: Stopping) -> None:
        self.stopping = stopping

    def handle(self, _: Any) -> None:
        self.stopping.ask_of_jvm()

    class Java:
        implements: list[str] = ["sun.misc.SignalHandler"]  # noqa: RUF012


def run_query(query: StreamingQuery, progress: Progress, stopping: Stopping | None = None) -> None:
    """Returns when the query has ended by itself or was asked to; raises JobFailed with the line to show."""
    if stopping is not None:
        stopping.install()
        stopping.install_in_jvm(spark_of(query))
        stopping.following = True
    try:
        follow(query, progress, stopping)
    except JobFailed:
        raise
    except Exception as error:
        raise JobFailed(explain(error)) from error
    finally:
        if stopping is not None:
            stopping.following = False


def follow(query: StreamingQuery, progress: Progress, stopping: Stopping | None) -> None:
    try:
        while not query.awaitTermination(LOOK_EVERY_S):
            progress.look(query)
            if stopping is not None and stopping.asked:
                end_after_batch(query, stopping)
    finally:
        progress.look(query)


def spark_of(query: StreamingQuery) -> SparkSession:
    spark = SparkSession.getActiveSession()
    if spark is None:
        raise JobFailed(f"query {query.id} has no session")
    return spark


def end_after_batch(query: StreamingQuery, stopping: Stopping | None = None) -> None:
    """Returns when the query has ended: after the batch that runs, or at once where that is asked.

    Spark has `stop` only, which breaks a batch off, and between looking whether one runs and stopping another
    may begin. From when the end of a batch is settled the query counts as ended (isActive, awaitTermination),
    so it is its thread that is awaited.
    """
    try:
        if "Continuous" in type_name(jvm_query(query)):  # has no batches
            query.stop()
            return
        batches = Batches(query)
    except Py4JError as error:  # another version of Spark: what is left is to stop between two batches
        _log.warning("Spark begins batches until it is stopped (%s)", type(error).__name__)
        while query.status["isTriggerActive"] and not query.awaitTermination(LOOK_EVERY_S):
            pass
        query.stop()
        return

    def at_once() -> bool:
        return stopping is not None and stopping.asked > 1

    waits = batches.end(at_once)
    while not (waits or at_once()) and batches.thread.isAlive():
        batches.thread.join(LOOK_EVERY_MS)
    query.stop()


class Batches:
    """The thread of a query that makes batches and runs them, as the JVM shows it.

    It asks a state whether to go on before each batch, and Spark 4.2 once more when it has planned one, which
    it then interrupts: some of it may be in the sink by then. So the state may only be set where no batch has
    begun. The thread takes a lock three times in a round: to make a batch, to commit it, and when all is
    over. Who holds the lock sees it wait there; the steps that it has timed in this round tell where it is.
    """

    def __init__(self, query: StreamingQuery) -> None:
        """Py4JError where this version of Spark has not what is needed."""
        context: Any = SparkContext
        if not isinstance(context._gateway, ClientServer):
            raise Py4JError("locks need a thread of the JVM for each of Python's")
        self._query = query
        self._execution = jvm_query(query)
        self.thread = self._execution.queryExecutionThread()
        self._milliseconds = context._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._lock = self._execution.awaitProgressLock()  # a fair one: who waits longest is the next
        self._state = self._execution.state()
        state = self._state.get()
        name = type_name(state).replace("ACTIVE", "TERMINATED").replace("INITIALIZING", "TERMINATED")
        loader = state.getClass().getClassLoader()
        self._terminated = loader.loadClass(name).getField("MODULE$").get(None)

    def end(self, at_once: Callable[[], bool]) -> bool:
        """Settle that the batch which runs is the last one, unless `at_once` asks for more.

        Returns whether none runs, as the thread waits for its next trigger.
        """
        while self.thread.isAlive() and not at_once():
            if not self._take_lock():
                continue
            try:
                if self._stands_still(at_once):
                    if self._is_over():
                        self._state.set(self._terminated)
                        return False
                elif not at_once() and self._settled_while_idle():
                    return True
            finally:
                self._lock.unlock()
        return False

    def _stands_still(self, at_once: Callable[[], bool]) -> bool:
        """Whether the thread waits for the lock by now, not for its next trigger."""
        idle = False
        while not self._lock.hasQueuedThread(self.thread):
            # twice: a status may be that of the batch before
            was_idle, idle = idle, not self._query.status["isTriggerActive"]
            if not self.thread.isAlive() or at_once() or (was_idle and idle):
                return False
            self.thread.join(LOOK_EVERY_MS)
        return True

    def _take_lock(self) -> bool:
        """A thread that makes a batch has it for as long as Kafka does not answer."""
        return bool(self._lock.tryLock(LOCK_MS, self._milliseconds))

    def _is_over(self) -> bool:
        """Whether the thread has run its batch or found none: it waits to commit, or for the end."""
        context = self._execution.getLatestExecutionContext()
        return any(context.getDuration(step).isDefined() for step in ("addBatch", "triggerExecution"))

    def _settled_while_idle(self) -> bool:
        """It may have begun a batch just now; then it comes to the lock, and goes on."""
        before = self._state.getAndSet(self._terminated)
        if self._comes_to_the_lock():
            self._state.set(before)
            return False
        return True

    def _comes_to_the_lock(self) -> bool:
        """Not if it sleeps until its trigger: it asks the state then. In between it may be anywhere."""
        while not self._lock.hasQueuedThread(self.thread):
            if str(self.thread.getState()) in ("TIMED_WAITING", "TERMINATED"):
                return False
            self.thread.join(1)
        return True


def jvm_query(query: StreamingQuery) -> Any:
    java: Any = query._jsq
    return java.streamingQuery()


def type_name(java: Any) -> str:
    return str(java.getClass().getName())
