"""A small model of the controller for one partition: elections, and AlterPartition as the real one has it.

It keeps what would be in the partition's state node (`stored`), and refuses as the protocol says.
"""

from __future__ import annotations

from protocol.errors import ErrorCode
from replication.leadership import IsrVerdict

NO_LEADER = -1


class ControllerModel:
    def __init__(self, stage, unclean):
        self.stage, self.unclean = stage, unclean
        self.stored = stage.stored[0]
        self.stored.update(isr=list(stage.replicas), replicas=list(stage.replicas))
        self.gone: dict[int, None] = {}  # brokers whose session is over, as far as is known
        self.refused = 0

    def elect(self, tell=None, is_new=False):
        """A leader out of the live members of the ISR; without one uncleanly, or nobody."""
        stored, live = self.stored, sorted(self.stage.live)
        members = [each for each in stored["isr"] if each in live]
        if members:
            others = [each for each in members if each != stored["leader"]]
            leader = (others or members)[0]
            isr = members if len(members) < len(stored["isr"]) else stored["isr"]
        elif self.unclean and live:
            leader, isr = live[0], live[:1]
        else:
            leader, isr = NO_LEADER, stored["isr"]
        self.stage.lead(leader, isr=isr, tell=tell, is_new=is_new)

    def broker_gone(self, broker_id):
        """Its session is over: it leaves the ISR, but the last member stays."""
        if broker_id in self.gone:
            return
        self.gone[broker_id] = None
        stored = self.stored
        isr = [each for each in stored["isr"] if each != broker_id] or stored["isr"]
        if stored["leader"] == broker_id:
            stored["isr"] = isr
            self.elect()
        elif broker_id in stored["isr"]:
            self.stage.lead(stored["leader"], isr=isr)

    def broker_came(self, broker_id):
        """It hears where everything stands; a partition without a leader may get one."""
        self.gone.pop(broker_id, None)
        if self.stored["leader"] == NO_LEADER or self.stored["leader"] not in self.stage.live:
            self.elect()
        else:
            self.stage.tell(self.stage[broker_id])

    def tell_all(self):
        """What is stored, once more, to everybody."""
        if self.stored["leader"] != NO_LEADER:
            for node in self.stage.live.values():
                self.stage.tell(node)

    def decide(self, node, lost):
        """Answer the latest proposal of a leader; `lost`: the answer does not arrive, and it asks again."""
        partition, change = node.proposals.pop()
        if partition.log.closed or partition.leadership is None:
            return
        if partition.leadership.pending is not change:  # it is not sent any more
            return
        error = self._judge(node.id, partition, change)
        if error == ErrorCode.NONE and list(change.isr) != self.stored["isr"]:
            self.stored["isr"], self.stored["version"] = list(change.isr), self.stored["version"] + 1
        self.refused += error != ErrorCode.NONE
        stored = self.stored
        verdict = IsrVerdict(error, stored["epoch"], stored["version"], tuple(stored["isr"]))
        again = lost or partition.leadership.decided(change, verdict)
        if again and partition.leadership.pending is change:
            node.proposals.append((partition, change))

    def _judge(self, broker_id, partition, change):
        stored = self.stored
        if partition.leader_epoch < stored["epoch"]:
            return ErrorCode.FENCED_LEADER_EPOCH
        assert stored["leader"] == broker_id, "two leaders of one epoch"  # [5]
        if list(change.isr) == stored["isr"]:
            return ErrorCode.NONE
        if partition.partition_epoch < stored["version"]:
            return ErrorCode.INVALID_UPDATE_VERSION
        epochs = {each.id: each.epoch for each in self.stage.live.values()}
        for member, epoch in change.members:
            if member not in epochs or (0 <= epoch != epochs[member]):
                return ErrorCode.INELIGIBLE_REPLICA  # not live, or restarted since it fetched [13]
        return ErrorCode.NONE
