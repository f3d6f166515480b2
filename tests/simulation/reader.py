"""Simulated consumers: fetches at drawn sizes, waits and versions, some with fetch sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from protocol import messages as m
from protocol.records.batch import batches, read_header, records
from tests.simulation.caller import CallLost
from tests.simulation.client import REQUEST_TIMEOUT_S, RETRIABLE, Client, wire_name
from tests.simulation.history import TopicPartition

OUT_OF_RANGE = 1
SESSION_ERRORS = (70, 71, 106)
Rows = list[tuple[int, bytes]]
Asked = tuple[int, int]  # from which offset, of a leader of which epoch


class Reader(Client):
    """Reads partitions from their start on. With `keep` it reads much at a time, and keeps it in `rows`."""

    def __init__(
        self, *args: Any, partitions: Sequence[TopicPartition], sessions: bool = False, keep: bool = False
    ) -> None:
        super().__init__(*args)
        self._partitions = list(partitions)
        self._position = dict.fromkeys(partitions, 0)
        self._losses = dict.fromkeys(partitions, 0)
        self._sessions = sessions
        self._keep = keep
        self._session: tuple[int, int] | None = None  # id, epoch of the next fetch
        self._in_session: dict[TopicPartition, Asked] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._session_with: object = None
        self.rows: dict[TopicPartition, Rows] = {partition: [] for partition in partitions}
        self.high_watermark: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        """Until it is told to stop."""
        while not (self.stopping or self.gone):
            if not await self.poll(self.chance.randint(0, 300)):
                await self.back_off()
            elif self.chance.random() < 0.1:
                await asyncio.sleep(self.chance.random() * 0.1)
        self.close()

    async def read_to_end(self) -> None:
        """Until every partition's records up to its high watermark are read."""
        while any(self._position[each] != self.high_watermark.get(each) for each in self._partitions):
            if not await self.poll(0):
                await self.back_off()
        self.close()

    async def poll(self, max_wait_ms: int) -> bool:
        """One fetch from one broker; False after a failure."""
        chance = self.chance
        first = chance.choice(self._partitions)
        try:
            caller, leader = await self.leader_of(first)
        except CallLost:
            self.forget(first)
            return False
        led = [
            each
            for each in self._partitions
            if each in self.leaders and self.leaders[each].node_id == leader.node_id
        ]
        if not self._sessions and not self._keep:
            led = sorted(chance.sample(led, chance.randint(1, len(led))))
        for each in led:
            if self.history.losses(each) != self._losses[each]:  # it may be another log now: read it anew
                self._losses[each] = self.history.losses(each)
                self._position[each] = self.history.of(each).start_offset
                self.rows[each].clear()
        asked = {each: (self._position[each], self.leaders[each].epoch) for each in led}
        request = self.request(asked, max_wait_ms, caller)
        try:
            answer = await caller.ask(request, REQUEST_TIMEOUT_S)
        except CallLost:
            self._session = None
            for each in led:
                self.forget(each)
            return False
        return self._take(answer, asked)

    def request(self, asked: dict[TopicPartition, Asked], max_wait_ms: int, caller: object) -> m.FetchRequest:
        """The next fetch."""
        chance = self.chance
        session_id, session_epoch, wanted, gone = 0, -1, asked, []
        self._topic_ids.update({each[0]: self.leaders[each].topic_id for each in asked})
        if self._sessions:
            if self._session is None or self._session_with is not caller:
                self._session, self._session_with, self._in_session = (0, 0), caller, {}
            session_id, session_epoch = self._session
            wanted = {each: place for each, place in asked.items() if self._in_session.get(each) != place}
            gone = [each for each in self._in_session if each not in asked]  # led by others now
            for each in gone:
                del self._in_session[each]
            self._in_session.update(wanted)
        request = m.FetchRequest
        topics: dict[str, Any] = {}
        for each, (offset, epoch) in wanted.items():
            topic, index = each
            if topic not in topics:
                topics[topic] = request.FetchTopic(
                    topic=wire_name(topic), topic_id=self.leaders[each].topic_id, partitions=[]
                )
            topics[topic].partitions.append(
                request.FetchPartition(
                    partition=index,
                    current_leader_epoch=epoch,
                    fetch_offset=offset,
                    partition_max_bytes=1 << 20 if self._keep else chance.choice((1, 500, 1 << 20)),
                )
            )
        return request(
            max_wait_ms=max_wait_ms,
            min_bytes=chance.choice((1, 1, 200)),
            max_bytes=1 << 20 if self._keep else chance.choice((1_000, 1 << 20)),
            session_id=session_id,
            session_epoch=session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=[
                request.ForgottenTopic(
                    topic=wire_name(topic), topic_id=self._topic_ids[topic], partitions=[index]
                )
                for topic, index in gone
            ],
        )

    def _take(self, answer: Any, asked: dict[TopicPartition, Asked]) -> bool:
        if answer.error_code:
            self._session = None
            if answer.error_code not in SESSION_ERRORS:
                self.world.fail(f"{self.name}: a fetch failed with {answer.error_code}")
            return False
        if self._sessions:
            epoch = self._session[1] if self._session is not None else 0
            self._session = (answer.session_id, epoch + 1) if answer.session_id else None
        names = {self._topic_ids[topic]: topic for topic, _ in asked}
        good = True
        for topic in answer.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for each in topic.partitions:
                partition = (name, each.partition_index)
                if partition not in asked:
                    self.world.fail(f"{self.name}: an answer about {partition}, which was not asked for")
                    continue
                good = self._take_partition(partition, asked[partition], each) and good
        return good

    def _take_partition(self, partition: TopicPartition, asked: Asked, found: Any) -> bool:
        history, (fetch_offset, epoch) = self.history, asked
        if history.losses(partition) != self._losses[partition]:
            return True  # said before the loss
        if epoch < history.of(partition).clean_epoch:  # by one who may not know yet that he was replaced
            self.forget(partition)
            return False
        if found.error_code == OUT_OF_RANGE:
            start = history.of(partition).start_offset
            if fetch_offset >= start:
                self.world.fail(f"{self.name}: {partition}@{fetch_offset} is out of range")
            self._position[partition] = start
            return True
        if found.error_code:
            if found.error_code not in RETRIABLE:
                self.world.fail(f"{self.name}: {partition}: error {found.error_code}")
            self.forget(partition)
            self._session = None
            return False
        rows, limit = self.rows_of(partition, found, fetch_offset), self.limit_of(found)
        history.read(self.name, partition, fetch_offset, limit, rows)
        self.high_watermark[partition] = limit
        if rows:
            self._position[partition] = rows[-1][0] + 1
            if self._keep:
                self.rows[partition] += rows
        if history.of(partition).has_markers:
            self._position[partition] = max(self._position[partition], end_of(found.records or b""))
        return True

    def rows_of(self, partition: TopicPartition, found: Any, fetch_offset: int) -> Rows:
        """What of an answer this reader takes."""
        return rows_from(found.records or b"", fetch_offset)

    def limit_of(self, found: Any) -> int:
        """Where the records end that it may see."""
        limit: int = found.high_watermark
        return limit


def end_of(data: bytes) -> int:
    """The offset behind the whole batches in an answer; 0 where there are none."""
    return max((read_header(data, at).last_offset + 1 for at, _ in batches(data)), default=0)


def rows_from(data: bytes, fetch_offset: int) -> Rows:
    """(offset, value) of the whole batches in an answer, from the wanted offset on."""
    rows: Rows = []
    for at, _ in batches(data):
        if not read_header(data, at).is_control:
            rows += [
                (record.offset, record.value or b"")
                for record in records(data, at)
                if record.offset >= fetch_offset
            ]
    return rows
