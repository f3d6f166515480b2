"""Looks into the brokers of a cluster at short intervals: who leads, and how far what they show has come.

- In one leader epoch of a partition one broker leads, whoever says so: the tree, a broker's role, what it
  follows, or what it tells clients of. While a broker runs, neither its role nor what it tells goes back to
  an earlier epoch. Of a topic that is to be deleted it may tell no more, partition by partition.
- A leader's high watermark never falls within an epoch, is not above the end of its log, and no member of the
  ISR has less. It stands still while the ISR is smaller than the minimum. A log's start never falls while its
  broker runs, and is not above the high watermark.
- Who joins an ISR has all that is committed there and all from before the leader's epoch, and had it in its
  present registration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from replication.metadata import paths
from replication.metadata.image import PartitionImage, TopicImage
from replication.metadata.payloads import StatePayload
from tests.simulation.inside import broker_epoch_of, image_of, replica_on, replicas_on
from tests.simulation.machine import BrokerMachine
from tests.simulation.watched_tree import StateChange, WatchedTree

Key = tuple[bytes, int]  # topic id and partition
NOBODY = -1


class LeaderChecks:
    """See the module. To be called between steps of the brokers; `machines` by broker id.

    `keeps` tells whether a replica keeps what it has acknowledged, also where its power was cut.
    """

    def __init__(
        self,
        machines: dict[int, BrokerMachine],
        tree: WatchedTree,
        fail: Callable[[str], None],
        keeps: Callable[[str], bool],
    ) -> None:
        self._machines, self._tree, self._fail, self._keeps = machines, tree, fail, keeps
        self._leaders: dict[tuple[Key, int], int] = {}
        self._images: dict[str, dict[str, TopicImage]] = {}
        self._told: dict[tuple[str, Key], int] = {}  # the greatest epoch that a broker told of
        self._epochs: dict[tuple[str, Key], tuple[Any, int]] = {}
        self._marks: dict[tuple[str, Key], tuple[int, int]] = {}
        self._still: dict[tuple[str, Key], tuple[int, int]] = {}  # partition epoch and mark under the minimum
        self._starts: dict[tuple[str, Key], tuple[Any, int]] = {}

    def look(self) -> None:
        """At all running brokers."""
        for broker_id, machine in self._machines.items():
            assert machine.process is not None or not machine.serving
            for replica in replicas_on(machine):
                self._look_at(broker_id, machine, replica)
            self._look_at_image(machine)

    def changed(self, change: StateChange) -> None:
        """The tree has another state of a partition."""
        key, after = (change.topic_id, change.index), change.after
        self._leads(change.topic, key, after.leader_epoch, after.leader, "the tree")
        before = change.before
        if before is not None and before.leader >= 0:
            leader = replica_on(self._machines[before.leader], *key)
            if leader is not None and leader.is_leader:
                self._look_at_members(f"{change.topic}-{change.index} on b{before.leader}", leader, before)
        if before is not None and after.leader_epoch == before.leader_epoch:
            for broker_id in change.joined:
                self._joins(change, broker_id)

    # -- leaders

    def _leads(self, topic: str, key: Key, epoch: int, broker_id: int, who: str) -> None:
        if broker_id < 0 or epoch < 0:
            return
        leader = self._leaders.setdefault((key, epoch), broker_id)
        if leader != broker_id:
            self._fail(f"{topic}-{key[1]}: {who} has {broker_id} lead in epoch {epoch}, others {leader}")

    def _look_at_image(self, machine: BrokerMachine) -> None:
        image = image_of(machine)
        if image is None:
            return
        known = self._images.setdefault(f"{machine.name}.{machine.lives}", {})
        for name, topic in image.topics.items():
            before = known.get(name)
            if before is topic:
                continue
            known[name] = topic
            for each in topic.partitions:
                self._look_at_told(machine, topic, each)

    def _look_at_told(self, machine: BrokerMachine, topic: TopicImage, told: PartitionImage) -> None:
        name, key = topic.name, (topic.topic_id, told.index)
        place = f"{machine.name}.{machine.lives}", key
        before = self._told.get(place, -1)
        if not told.replicas:  # nothing was told, or that it goes
            if before >= 0 and self._is_there_to_stay(topic):
                self._fail(f"{machine.name} tells no more of {name}-{told.index}, after epoch {before}")
            return
        self._leads(name, key, told.leader_epoch, told.leader, f"the metadata of {machine.name}")
        if told.leader_epoch < before:
            self._fail(
                f"{machine.name} tells of epoch {told.leader_epoch} of {name}-{told.index}, after {before}"
            )
        self._told[place] = told.leader_epoch

    def _is_there_to_stay(self, topic: TopicImage) -> bool:
        """Whether the topic of this id exists and is not to be deleted."""
        if paths.topic(topic.name) not in self._tree.nodes:
            return False
        going = topic.name in self._tree.children.get(paths.DELETE_TOPICS, ())
        return not going and self._tree.topic(topic.name).topic_id == topic.topic_id

    # -- offsets

    def _look_at(self, broker_id: int, machine: BrokerMachine, replica: Any) -> None:
        log, key = replica.log, (replica.topic_id, replica.index)
        where = f"{replica.topic}-{replica.index} on {machine.name}"
        mark, life = log.high_watermark, f"{machine.name}.{machine.lives}"
        self._leads(replica.topic, key, replica.leader_epoch, replica.leader_id, machine.name)
        if not log.start_offset <= mark <= log.end_offset:
            self._fail(f"{where}: start {log.start_offset}, high watermark {mark}, end {log.end_offset}")
        same, start = self._starts.get((life, key), (log, 0))
        if log.start_offset < start and same is log:  # another one may have been moved here since
            self._fail(f"{where}: starts at {log.start_offset}, before at {start}")
        self._starts[life, key] = log, log.start_offset
        same, epoch = self._epochs.get((life, key), (replica, -1))
        if replica.leader_epoch < epoch and same is replica:
            self._fail(f"{where}: epoch {replica.leader_epoch} after {epoch}")
        self._epochs[life, key] = replica, replica.leader_epoch
        if not replica.is_leader:
            return
        self._leads(replica.topic, key, replica.leader_epoch, broker_id, machine.name)
        epoch, before = self._marks.get((life, key), (NOBODY, 0))
        if epoch == replica.leader_epoch and mark < before:
            self._fail(f"{where}: high watermark {mark} after {before}, epoch {epoch}")
        self._marks[life, key] = replica.leader_epoch, mark
        self._look_at_minimum(where, (life, key), replica)
        self._look_at_members(where, replica, self._tree.state(replica.topic, replica.index))

    def _look_at_minimum(self, where: str, place: tuple[str, Key], leader: Any) -> None:
        """Nothing is committed by too few, from one look to the next."""
        mark = leader.log.high_watermark
        version, before = self._still.pop(place, (NOBODY, 0))
        if len(leader.isr) < leader.min_isr:
            self._still[place] = leader.partition_epoch, mark
            if version == leader.partition_epoch and mark > before:
                self._fail(f"{where}: high watermark {mark} after {before} with the ISR {leader.isr}")

    def _look_at_members(self, where: str, leader: Any, state: StatePayload | None) -> None:
        """All of the ISR have what is committed."""
        if state is None or state.leader_epoch != leader.leader_epoch or not self._keeps(leader.topic):
            return
        for member in state.isr:
            replica = replica_on(self._machines[member], leader.topic_id, leader.index)
            if replica is not None and replica.log.end_offset < leader.log.high_watermark:
                self._fail(
                    f"{where}: high watermark {leader.log.high_watermark}, in sync is broker {member} with "
                    f"{replica.log.end_offset}"
                )

    def _joins(self, change: StateChange, broker_id: int) -> None:
        key, after = (change.topic_id, change.index), change.after
        where = f"{change.topic}-{change.index}, epoch {after.leader_epoch}: broker {broker_id} joins"
        node = self._tree.nodes.get(paths.broker(broker_id))
        if node is None:
            return  # its session has ended, and the controller was not told yet
        leader = replica_on(self._machines[after.leader], *key)
        joins = replica_on(self._machines[broker_id], *key)
        if leader is None or leader.leader_epoch != after.leader_epoch:
            return  # gone since it proposed the change
        if joins is None:
            serving = self._machines[broker_id].serving
            if serving and broker_epoch_of(self._machines[broker_id]) == node.created_id:
                self._fail(f"{where} without a log")
            return
        if broker_epoch_of(self._machines[broker_id]) != node.created_id:
            return  # started again since it fetched, and not registered yet
        if joins.leader_epoch != after.leader_epoch or joins.leader_id != after.leader:
            self._fail(f"{where}, which follows {joins.leader_id} in epoch {joins.leader_epoch}")
            return
        needed = leader.log.high_watermark
        if leader.leadership is not None:
            needed = max(needed, leader.leadership.epoch_start)
        if joins.log.end_offset < needed:
            self._fail(f"{where} with {joins.log.end_offset} of {needed}")


def broker_ids(machines: Sequence[BrokerMachine]) -> dict[int, BrokerMachine]:
    """The machines by the ids of their brokers: b1 has 1."""
    return {int(machine.name[1:]): machine for machine in machines}
