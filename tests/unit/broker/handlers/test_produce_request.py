"""One Produce request between its decoding and its answer."""

from __future__ import annotations

import pytest

from broker.handlers.produce_answers import Partition, Topic
from broker.handlers.produce_request import (
    Entry,
    ProduceRequestState,
    busy,
    check,
    check_or_error,
    taken,
)
from protocol.api_keys import ApiKey
from protocol.errors import InvalidRecords
from protocol.headers import RequestHeader
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from protocol.records.legacy import build_message_set
from storage.errors import AppendRefused, StorageFailed
from tests.support.net_broker import NetBroker, decode

NOW_MS = 1_700_000_000_000
VERSION = 9


@pytest.fixture
def net(tmp_path):
    with NetBroker(tmp_path) as made:
        made.create("orders", 1)
        yield made


def batch(value=b"a"):
    return build_batch([Record(0, NOW_MS, None, value)])


def entry(net, data):
    return Entry(net.ctx.replicas.get("orders", 0), Partition(index=0), bytearray(data))


def state(net, client, entries, acks=1):
    header = RequestHeader(ApiKey.PRODUCE, VERSION, 7, "test")
    made = ProduceRequestState(client.connection, header, None, acks, 1000)
    made.entries = entries
    made.response.responses.append(Topic(name="orders", partition_responses=[e.answer for e in entries]))
    return made


def test_batches_and_old_sets_are_checked_by_the_version(net):
    checked = check(entry(net, batch()), 3, NOW_MS)
    assert checked is not None
    assert checked.record_count == 1
    with pytest.raises(InvalidRecords):
        check(entry(net, build_message_set([Record(0, 5, None, b"a")], magic=1)), 3, NOW_MS)
    assert check(entry(net, build_message_set([Record(0, 5, None, b"a")], magic=1)), 2, NOW_MS) is not None
    assert check(entry(net, b"short"), 2, NOW_MS) is None


def test_a_refusal_of_a_thread_is_a_value_without_frames_until_it_is_taken(net):
    refusal = check_or_error(entry(net, b"short"), 3, NOW_MS)
    assert isinstance(refusal, InvalidRecords)
    assert refusal.__traceback__ is None
    with pytest.raises(InvalidRecords):
        taken(refusal)
    assert taken(None) is None


def test_where_no_thread_is_free_the_partition_is_refused(net):
    with pytest.raises(AppendRefused, match="orders-0 took nothing"):
        busy(entry(net, batch()))


def staged(net, acks=1):
    client = net.connect()
    entries = [entry(net, batch()), entry(net, b"short")]
    request = state(net, client, entries, acks)
    now_ms = net.hub.turn.open()
    for each in entries:
        request.stage(each, lambda each=each: check(each, VERSION, NOW_MS), now_ms)
    return client, request


def answers(client):
    [(correlation_id, data)] = client.answers()
    assert correlation_id == 7
    return [p.error_code for p in decode(ApiKey.PRODUCE, VERSION, data).responses[0].partition_responses]


def test_it_is_answered_after_the_write_of_the_turn(net):
    client, request = staged(net)
    request.settle()
    assert client.answers() == []
    net.end_turn()
    assert answers(client) == [0, 87]


def test_an_answer_that_was_framed_elsewhere_may_still_change_while_it_is_held(net):
    client, request = staged(net)
    request.add_to_turn(0)
    net.hub.turn.after_write(lambda: request.finish(request.framed()))
    client.connection.hold()
    net.end_turn()
    assert client.answers() == []
    replica = request.staged[0].replica
    request.failed(replica, client.connection, 0, 7, StorageFailed("no sync", offline=True))
    assert request.failures == 1
    client.connection.release()
    net.run()
    assert answers(client) == [56, 87]


def test_without_acks_a_refusal_closes(net):
    client, request = staged(net, acks=0)
    request.settle()
    net.end_turn()
    net.run()
    assert client.answers() == []
    assert client.transport.closed


def test_replicas_are_needed_where_the_leader_is_not_alone(net):
    _, request = staged(net, acks=-1)
    assert not request.needs_replicas
    request.staged[0].replica.isr = (1, 2)
    assert request.needs_replicas
    request.acks = 1
    assert not request.needs_replicas
