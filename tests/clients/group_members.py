"""Members of groups as processes, and what a test asks about them. See `group_member` for what they tell."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from protocol import messages as m
from tests.clients.group_member import TOPIC
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

CHECKOUT = Path(__file__).resolve().parents[2]
WAIT_S = 90.0


class MemberProcess:
    """One member; `lines` grows while it runs."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.name = f"{options['library']} in {options['group']}"
        self.lines: list[list[str]] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.clients.group_member", json.dumps(options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._errors: list[str] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        self._listener.start()

    def _read(self) -> None:
        assert self._process.stdout is not None, "it has a pipe"
        for line in self._process.stdout:
            self.lines.append(line.split())

    def _listen(self) -> None:
        assert self._process.stderr is not None, "it has a pipe"
        for line in self._process.stderr:
            self._errors.append(line)

    def told(self, what: str) -> list[list[str]]:
        """The lines of one kind, without their first word."""
        if self._process.poll() not in (None, 0, -signal.SIGKILL):
            raise AssertionError(f"{self.name} ended:\n{''.join(self._errors)[-3000:]}")
        return [line[1:] for line in list(self.lines) if line[0] == what]

    @property
    def assigned(self) -> list[int]:
        told = self.told("assigned")
        return [int(each) for each in told[-1]] if told else []

    def records(self) -> list[tuple[int, int, str]]:
        """Partition, offset and value of all that it has dealt with."""
        return [(int(each[0]), int(each[1]), each[2]) for each in self.told("record")]

    def where(self) -> str:
        """What its threads are at."""
        self._process.send_signal(signal.SIGUSR1)
        wait_until(lambda: any("Current thread" in line for line in self._errors), "its tracebacks", WAIT_S)
        return "".join(self._errors)

    def stop(self) -> None:
        """Have it leave the group."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        self._process.send_signal(how)
        self._process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        self._listener.join(WAIT_S)
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None, "it has pipes"
            pipe.close()


class Group:
    """All members of one group, those that have ended too."""

    def __init__(self, broker: OttlaProcess, name: str, partitions: int) -> None:
        self.broker, self.name, self.partitions = broker, name, partitions
        self.running: list[MemberProcess] = []
        self.ended: list[MemberProcess] = []

    def __enter__(self) -> Group:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in list(self.running):
            self.kill(member)

    def start(self, library: str, strategy: str = "range", **options: Any) -> MemberProcess:
        member = MemberProcess(
            {
                "servers": self.broker.bootstrap_servers,
                "group": self.name,
                "library": library,
                "strategy": strategy,
                "instance": None,
                **options,
            }
        )
        self.running.append(member)
        return member

    def stop(self, member: MemberProcess) -> None:
        member.stop()
        self.running.remove(member)
        self.ended.append(member)

    def kill(self, member: MemberProcess) -> None:
        member.kill()
        self.running.remove(member)
        self.ended.append(member)

    def wait_for_shares(self, *counts: int) -> None:
        """Until the running members share the partitions in these numbers, each partition once."""

        def shared() -> bool:
            parts = [member.assigned for member in self.running]
            everything = sorted(number for part in parts for number in part)
            return everything == list(range(self.partitions)) and sorted(map(len, parts)) == sorted(counts)

        try:
            wait_until(shared, f"{self.name} to share its partitions {counts}", WAIT_S)
        except TimeoutError as error:
            for member in list(self.running):
                error.add_note(f"{member.name}: {member.lines[-8:]}\n{member.where()}")
            error.add_note(self.broker.output()[-3000:])
            raise

    def records(self) -> list[tuple[int, int, str]]:
        return [record for member in (*self.ended, *self.running) for record in member.records()]

    def wait_for(self, values: set[str]) -> None:
        """Until all of these have been dealt with, and what was read is committed."""

        def all_read() -> bool:
            return values <= {value for _, _, value in self.records()}

        wait_until(all_read, f"{self.name} to read {len(values)} records", WAIT_S)

    def committed(self) -> list[int]:
        """The committed offset of each partition, -1 for none."""
        names = [
            m.OffsetFetchRequest.OffsetFetchRequestTopic(
                name=TOPIC, partition_indexes=list(range(self.partitions))
            )
        ]
        with WireClient(self.broker.bootstrap_servers) as wire:
            answer = wire.send(m.OffsetFetchRequest(group_id=self.name, topics=names), 5)
        assert answer.error_code == 0, answer
        return [each.committed_offset for each in answer.topics[0].partitions]


def produce(broker: OttlaProcess, partitions: int, first: int, last: int) -> set[str]:
    """One record for each number, dealt out over the partitions."""
    values = [b"%d" % number for number in range(first, last)]
    with WireClient(broker.bootstrap_servers) as wire:
        for partition in range(partitions):
            wire.produce_values(TOPIC, *values[partition::partitions], partition=partition)
    return {value.decode() for value in values}
