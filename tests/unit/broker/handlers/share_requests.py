"""Requests about share state, for one group and one topic."""

from __future__ import annotations

from typing import Any

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker

ENTRIES = {
    m.InitializeShareGroupStateRequest: "InitializeStateData",
    m.ReadShareGroupStateRequest: "ReadStateData",
    m.WriteShareGroupStateRequest: "WriteStateData",
    m.DeleteShareGroupStateRequest: "DeleteStateData",
    m.ReadShareGroupStateSummaryRequest: "ReadStateSummaryData",
}


def topic_of(broker: HandlerBroker) -> bytes:
    """The id of topic "orders" with two partitions; the share coordinator's topic is there, too."""
    if "orders" not in broker.ctx.image.topics:
        broker.create("orders", partitions=2)
        broker.runner.run(broker.ctx.share_state.create_topic())
    return broker.ctx.image.topics["orders"].topic_id


def ask(broker: HandlerBroker, cls: Any, *partitions: dict[str, Any], version: int = 0) -> list[Any]:
    """One result for each partition, of group "g" and topic "orders"."""
    asked = [cls.PartitionData(**{"partition": 0, **each}) for each in partitions]
    topic = getattr(cls, ENTRIES[cls])(topic_id=topic_of(broker), partitions=asked)
    [result] = broker.call(cls(group_id="g", topics=[topic]), version).results
    assert result.topic_id == topic_of(broker)
    return list(result.partitions)


def initialize(broker: HandlerBroker, state_epoch: int = 0, start_offset: int = 0) -> None:
    """Begin partition 0."""
    wanted = {"state_epoch": state_epoch, "start_offset": start_offset}
    [result] = ask(broker, m.InitializeShareGroupStateRequest, wanted)
    assert result.error_code == 0, result
