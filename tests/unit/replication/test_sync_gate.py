"""flush.messages: answers and readers wait for the sync, which is not done on the event loop."""

import dataclasses

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.support.net_broker import NetBroker, decode, fetch_request, frame, produce_request


@pytest.fixture
def broker(tmp_path):
    with NetBroker(tmp_path) as made:
        made.create("orders", 3)
        yield made


@pytest.fixture
def client(broker):
    return broker.connect()


class Syncs:
    """Takes the jobs that the logs hand over; the test says when each ends, and how."""

    def __init__(self, broker, messages=1):
        self.jobs = []
        broker.ctx.logs.on_flush_job(self.jobs.append)
        for index in range(3):
            log = broker.ctx.replicas.get("orders", index).log
            log.update_config(dataclasses.replace(log.config, flush_messages=messages))

    def end(self, error=None):
        job = self.jobs.pop(0)
        try:
            if error is None:
                job.run()
        except OSError as failed:
            error = failed
        job.finish(error)


def produced(data, version=7):
    return decode(ApiKey.PRODUCE, version, data).responses[0].partition_responses[0]


def send(client, value, correlation_id, index=0, acks=1):
    client.send(frame(produce_request("orders", index, [value], acks=acks), 7, correlation_id))


@pytest.mark.parametrize("acks", [1, -1])
def test_an_answer_leaves_when_the_records_are_on_the_disk(broker, client, acks):
    client.call(produce_request("orders", 0, [b"before"]), 7)  # the memo serves from here on
    syncs = Syncs(broker)
    log = broker.ctx.replicas.get("orders", 0).log
    send(client, b"a", 1, acks=acks)
    broker.end_turn()
    broker.run()
    assert client.answers() == []
    assert (log.end_offset, log.high_watermark) == (2, 1)
    [job] = syncs.jobs
    assert job.awaited
    syncs.end()
    assert log.high_watermark == log.recovery_point == 2
    broker.run()
    [(_, data)] = client.answers()
    assert (produced(data).error_code, produced(data).base_offset) == (ErrorCode.NONE, 1)


def test_readers_do_not_see_what_is_not_synced(broker, client):
    syncs = Syncs(broker)
    reader = broker.connect()
    reader.send(frame(fetch_request("orders", {0: 0}, max_wait_ms=10_000), 12, 5))
    send(client, b"a", 1)
    broker.end_turn()
    broker.run()
    assert reader.answers() == []
    syncs.end()
    broker.run()
    [(_, data)] = reader.answers()
    assert decode(ApiKey.FETCH, 12, data).responses[0].partitions[0].high_watermark == 1


def test_one_sync_serves_all_who_wait(broker):
    syncs = Syncs(broker)
    clients = [broker.connect() for _ in range(4)]
    send(clients[0], b"a", 1)
    broker.end_turn()
    for number, client in enumerate(clients[1:], 2):
        send(client, b"b", number)
        broker.end_turn()
    assert len(syncs.jobs) == 1
    syncs.end()
    broker.run()
    assert [len(client.answers()) for client in clients] == [1, 0, 0, 0]
    assert len(syncs.jobs) == 1
    assert syncs.jobs[0].upto == 4
    syncs.end()
    broker.run()
    assert [len(client.answers()) for client in clients] == [0, 1, 1, 1]
    assert not syncs.jobs


def test_answers_stay_in_order_behind_one_that_waits(broker, client):
    syncs = Syncs(broker)
    log = broker.ctx.replicas.get("orders", 1).log
    log.update_config(dataclasses.replace(log.config, flush_messages=100))
    send(client, b"a", 1, index=0)
    send(client, b"b", 2, index=1)
    broker.end_turn()
    send(client, b"c", 3, index=1)
    broker.end_turn()
    assert client.answers() == []
    syncs.end()
    broker.run()
    broker.end_turn()
    broker.run()
    assert [correlation_id for correlation_id, _ in client.answers()] == [1, 2, 3]


def test_fewer_messages_than_that_wait_for_nothing(broker, client):
    syncs = Syncs(broker, messages=3)
    log = broker.ctx.replicas.get("orders", 0).log
    for number in (1, 2):
        send(client, b"a", number)
        broker.end_turn()
        assert len(client.answers()) == 1
    send(client, b"a", 3)
    broker.end_turn()
    assert client.answers() == []
    assert log.high_watermark == 2
    syncs.end()
    broker.run()
    assert len(client.answers()) == 1
    assert log.high_watermark == 3


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_sync_that_fails_refuses_what_waited_for_it(broker, client, partitions):
    syncs = Syncs(broker)
    request = produce_request("orders", 0, [b"a"])
    if partitions == 2:  # a request that no memo serves
        other = produce_request("orders", 1, [b"b"])
        request.topic_data[0].partition_data += other.topic_data[0].partition_data
    client.send(frame(request, 7, 1))
    broker.end_turn()
    broker.run()
    assert client.answers() == []
    for _ in range(partitions):
        syncs.end(OSError(5, "Input/output error"))
    broker.run()
    [(_, data)] = client.answers()
    found = decode(ApiKey.PRODUCE, 7, data).responses[0].partition_responses
    assert [each.error_code for each in found] == [ErrorCode.KAFKA_STORAGE_ERROR] * partitions
    assert broker.ctx.replicas.get("orders", 0).log.high_watermark == 0


def test_a_client_that_leaves_is_not_waited_for(broker, client):
    syncs = Syncs(broker)
    send(client, b"a", 1)
    broker.end_turn()
    client.lose()
    syncs.end()
    broker.run()
    assert broker.ctx.replicas.get("orders", 0).log.high_watermark == 1


def test_a_topic_that_is_deleted_meanwhile_keeps_nobody_waiting(broker, client):
    syncs = Syncs(broker)
    send(client, b"a", 1)
    broker.end_turn()
    broker.ctx.logs.delete("orders", 0)
    syncs.end()
    broker.run()
    assert len(client.answers()) == 1


def test_without_a_helper_the_sync_is_made_at_once(broker, client):
    Syncs(broker)
    broker.ctx.logs.on_flush_job(None)
    send(client, b"a", 1)
    broker.end_turn()
    assert len(client.answers()) == 1
    assert broker.ctx.replicas.get("orders", 0).log.recovery_point == 1
