"""A broker without sockets whose share groups keep their state in memory, and members on its connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from broker.share.data_path import ShareDataPath
from protocol.errors import ErrorCode
from replication.share.ports import ShareState, StateWrite
from tests.support.net_broker import Client, NetBroker
from tests.support.share_member import ShareMember


class MemoryPersister:
    """Every share partition begins at offset 0; writes succeed, or end with `error`."""

    def __init__(self) -> None:
        self.error = ErrorCode.NONE
        self.writes: list[StateWrite] = []

    def read(self, group_id: str, topic_id: bytes, partition: int, leader_epoch: int, done: Any) -> None:
        done(ErrorCode.NONE, ShareState(0, 0))

    def write(self, change: StateWrite, done: Any) -> None:
        self.writes.append(change)
        done(self.error)


class ShareNet(NetBroker):
    """See the module. `enabled` is the feature."""

    def __init__(self, path: Path, **settings: str) -> None:
        super().__init__(path, {name.replace("_", "."): value for name, value in settings.items()})
        self.persister = MemoryPersister()
        self.enabled = True

    async def _start(self) -> None:
        await super()._start()
        ctx = self.ctx
        ctx.share_data = ShareDataPath(
            ctx.env, ctx.config, ctx.replicas, lambda: self.persister, enabled=lambda: self.enabled
        )
        self.hub.departures[:] = [ctx.share_data.connection_gone]

    def member(self, topic_id: bytes, client: Client | None = None, **fields: Any) -> ShareMember:
        """A member of the group g on a connection."""
        return ShareMember(Line(client or self.connect()), "g", topic_id, **fields)  # type: ignore[arg-type]

    def values(self, topic: str, *sizes: int, index: int = 0) -> None:
        """Batches of so many records, and their readers are woken."""
        for size in sizes:
            self.produce(topic, index, [(1000, b"x" * 10)] * size)
        partition = self.ctx.replicas.get(topic, index)
        assert partition is not None
        partition.wake()
        self.run()


class Line:
    """A connection with the doors of WireClient that ShareMember uses."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.correlation_id = 0

    def send(self, request: Any, version: int) -> Any:
        self.correlation_id += 1
        return self.client.call(request, version, self.correlation_id)
