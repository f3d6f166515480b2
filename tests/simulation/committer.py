"""A simulated consumer of a group without members: it commits rising offsets and asks for them.

What it was told is committed, or saw to be, is what an answer must show, or one of the commits of which it
does not know what became: such a one may still be under way and be made later than others. Nothing but a
power loss may take a commit back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from protocol import messages as m
from tests.simulation.caller import Caller, CallLost
from tests.simulation.client import REQUEST_TIMEOUT_S, RETRIABLE, Client
from tests.simulation.history import TopicPartition

OFFSETS_TOPIC = "__consumer_offsets"
NEVER = -1


class Committer(Client):
    """See the module."""

    def __init__(self, *args: Any, partitions: Sequence[TopicPartition]) -> None:
        super().__init__(*args)
        self._partitions = list(partitions)
        self._tried = dict.fromkeys(partitions, NEVER)
        self._committed = dict.fromkeys(partitions, NEVER)
        self._unsure: dict[TopicPartition, set[int]] = {each: set() for each in partitions}
        self._coordinator: tuple[int, tuple[str, int]] | None = None
        self._losses = 0
        self.commits = 0

    async def run(self) -> None:
        """Until it is told to stop; at the end it asks once more."""
        while not self.stopping:
            await asyncio.sleep(self.chance.random() * 0.2)
            try:
                await (self._commit() if self.chance.random() < 0.7 else self._check())
            except CallLost:
                self._coordinator = None
                await self.back_off()
        while not await self._checked():
            await self.back_off()
        self.close()

    async def _checked(self) -> bool:
        try:
            return await self._check()
        except CallLost:
            self._coordinator = None
            return False

    async def _caller(self) -> Caller:
        """A connection to the group's coordinator. Raises CallLost."""
        if self._coordinator is None:
            address = self.chance.choice(self.bootstrap)
            caller = await self.caller_for(("bootstrap", address), address)
            request = m.FindCoordinatorRequest(coordinator_keys=[self.name], key_type=0)
            [found] = (await caller.ask(request, REQUEST_TIMEOUT_S)).coordinators
            if found.error_code:
                self._failed(found.error_code)
            self._coordinator = (found.node_id, (found.host, found.port))
        return await self.caller_for(*self._coordinator)

    def _failed(self, error: int) -> None:
        if error not in RETRIABLE:
            self.world.fail(f"{self.name}: error {error}")
        raise CallLost(f"error {error}")

    async def _commit(self) -> None:
        request = m.OffsetCommitRequest
        caller, losses = await self._caller(), self.history.group_losses
        topics: dict[str, Any] = {}
        wanted = {}
        for topic, index in self.chance.sample(
            self._partitions, self.chance.randint(1, len(self._partitions))
        ):
            offset = self._tried[topic, index] + self.chance.randint(1, 5)
            wanted[topic, index] = self._tried[topic, index] = offset
            entry = topics.setdefault(topic, request.OffsetCommitRequestTopic(name=topic, partitions=[]))
            entry.partitions.append(
                request.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            )
            self._unsure[topic, index].add(offset)
        answer = await caller.ask(
            request(group_id=self.name, generation_id_or_member_epoch=-1, topics=list(topics.values())),
            REQUEST_TIMEOUT_S,
        )
        errors = [each.error_code for topic in answer.topics for each in topic.partitions]
        if any(errors):
            self._failed(max(errors))
        if losses == self.history.group_losses:
            self._committed.update(wanted)
            for partition, offset in wanted.items():
                self._unsure[partition].discard(offset)
            self.commits += 1

    async def _check(self) -> bool:
        request = m.OffsetFetchRequest
        caller, losses = await self._caller(), self.history.group_losses
        topics: dict[str, Any] = {}
        for topic, index in self._partitions:
            entry = topics.setdefault(
                topic, request.OffsetFetchRequestTopics(name=topic, partition_indexes=[])
            )
            entry.partition_indexes.append(index)
        wanted = request.OffsetFetchRequestGroup(group_id=self.name, topics=list(topics.values()))
        answer = await caller.ask(request(groups=[wanted]), REQUEST_TIMEOUT_S)
        [group] = answer.groups
        if group.error_code:
            self._failed(group.error_code)
        if losses != self.history.group_losses:
            return False
        if losses != self._losses:
            self._losses = losses
            self._committed = dict.fromkeys(self._partitions, NEVER)
        for topic in group.topics:
            for each in topic.partitions:
                self._compare((topic.name, each.partition_index), each.committed_offset)
        return True

    def _compare(self, partition: TopicPartition, found: int) -> None:
        known, unsure = self._committed[partition], self._unsure[partition]
        if found != known and found not in unsure and not (known == NEVER and self._losses):
            self.world.fail(f"{self.name}: {partition} has {found}, not {known} or one of {sorted(unsure)}")
        self._committed[partition] = found  # what was seen once must not go, either
