"""What the five APIs of share state have in common."""

from __future__ import annotations

from typing import Any

import pytest

from broker.handlers.later import Later
from broker.handlers.share_state_answers import answer
from coordinator.share.manager import Done
from coordinator.share.records import ShareKey
from coordinator.share.shard import Answer
from protocol import messages as m
from protocol.errors import ErrorCode
from runtime.pieces import Pieces
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.share_requests import ENTRIES

Request = m.DeleteShareGroupStateRequest


def body(*partitions: int) -> Request:
    asked = [Request.PartitionData(partition=each) for each in partitions]
    return Request(group_id="g", topics=[Request.DeleteStateData(topic_id=b"t" * 16, partitions=asked)])


class Asked:
    """Collects what is asked, to be answered when the test wants it."""

    def __init__(self) -> None:
        self.open: dict[ShareKey, Done] = {}

    def ask(self, key: ShareKey, _: Any, done: Done) -> None:
        self.open[key] = done

    def run(self, request: Request) -> Any:
        return answer(Pieces(), request, "do it", self.ask, lambda *shown: shown, lambda results: results)


def test_the_answer_leaves_when_all_partitions_have_one() -> None:
    asked = Asked()
    later = asked.run(body(0, 1))
    assert isinstance(later, Later)
    told: list[Any] = []
    later.then(told.append)
    first, second = asked.open.values()
    second(Answer(ErrorCode.NOT_COORDINATOR))
    assert told == []
    first(Answer())
    error = ErrorCode.NOT_COORDINATOR
    assert told == [[(b"t" * 16, [(0, Answer()), (1, Answer(error, f"Unable to do it: {error.message}"))])]]


def test_nothing_asked_for_is_answered_at_once() -> None:
    asked = Asked()
    assert asked.run(Request(group_id="g")) == []
    assert asked.run(body()) == []
    nobody = body(0)
    nobody.group_id = ""
    assert asked.run(nobody) == []
    assert not asked.open


@pytest.mark.parametrize("cls", ENTRIES, ids=lambda cls: cls.__name__)
def test_without_the_topic_nothing_is_coordinated(broker: HandlerBroker, cls: Any) -> None:
    data = getattr(cls, ENTRIES[cls])(topic_id=b"t" * 16, partitions=[cls.PartitionData(partition=0)])
    [result] = broker.call(cls(group_id="g", topics=[data]), cls.MAX_VERSION).results
    [refused] = result.partitions
    assert refused.error_code == ErrorCode.NOT_COORDINATOR
    assert refused.error_message.startswith("Unable to ")
    assert refused.error_message.endswith(ErrorCode.NOT_COORDINATOR.message)
