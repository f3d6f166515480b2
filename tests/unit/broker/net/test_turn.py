import errno

import pytest

from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.support.net_broker import decode, fetch_request, frame, produce_request


def fail_next_append(monkeypatch, log, error=errno.ENOSPC):
    handle = log.handle
    real = handle.append

    class Failing:
        def __getattr__(self, name):
            return getattr(handle, name)

        def append(self, parts):
            log.handle = handle
            real([bytes(parts[0])[: len(parts[0]) // 2]])  # half of it gets to the file
            raise OSError(error, "no space")

    log.handle = Failing()


def partition_of(data, version=7):
    return decode(ApiKey.PRODUCE, version, data).responses[0].partition_responses[0]


@pytest.mark.parametrize("known", [False, True])
def test_a_failed_write_fails_all_requests_of_the_turn_to_that_log_and_no_other(broker, monkeypatch, known):
    one, other = broker.connect(), broker.connect()
    if known:  # the second time the memo serves
        for client in (one, other):
            for index in (0, 1):
                client.call(produce_request("orders", index, [b"before"]), 7)
    else:
        broker.connect().call(produce_request("orders", 0, [b"before"]), 7)
    log = broker.ctx.replicas.get("orders", 0).log
    before = log.end_offset
    fail_next_append(monkeypatch, log)
    one.send(
        frame(produce_request("orders", 0, [b"a"]), 7, 1) + frame(produce_request("orders", 1, [b"b"]), 7, 2)
    )
    other.send(frame(produce_request("orders", 0, [b"c"]), 7, 3))
    broker.end_turn()
    first, second = one.answers()
    [third] = other.answers()
    assert [answer[0] for answer in (first, second, third)] == [1, 2, 3]
    errors = [partition_of(data).error_code for _, data in (first, second, third)]
    assert errors == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
    assert partition_of(first[1]).base_offset == -1
    assert (log.end_offset, log.next_offset) == (before, before)
    # there is space again: the log goes on where it was, and readers find nothing of the failed batches
    assert (
        one.call(produce_request("orders", 0, [b"d"]), 7).responses[0].partition_responses[0].base_offset
        == before
    )
    fetched = one.call(fetch_request("orders", {0: 0}), 12).responses[0].partitions[0]
    assert fetched.high_watermark == before + 1
    assert b"a" not in bytes(fetched.records)[70:].replace(b"before", b"")


@pytest.mark.parametrize("known", [False, True])
def test_with_acks_0_a_failed_write_closes_the_connection(broker, monkeypatch, known):
    client = broker.connect()
    broker.connect().call(produce_request("orders", 0, [b"before"]), 7)
    if known:
        client.send(frame(produce_request("orders", 0, [b"x"], acks=0), 7))
        broker.end_turn()
    fail_next_append(monkeypatch, broker.ctx.replicas.get("orders", 0).log)
    client.send(frame(produce_request("orders", 0, [b"a"], acks=0), 7))
    broker.end_turn()
    broker.run()
    assert client.transport.closed
    assert client.answers() == []


def test_nothing_is_visible_or_acknowledged_before_the_write(broker):
    writer, reader = broker.connect(), broker.connect()
    for _ in range(2):
        end = broker.ctx.replicas.get("orders", 0).log.end_offset
        writer.send(frame(produce_request("orders", 0, [b"a"]), 7))
        assert writer.answers() == []
        answer = reader.call  # ends the turn, so look without it
        reader.send(frame(fetch_request("orders", {0: end}), 10, 9))
        [(_, data)] = reader.answers()
        assert decode(ApiKey.FETCH, 10, data).responses[0].partitions[0].high_watermark == end
        broker.end_turn()
        assert len(writer.answers()) == 1
        assert (
            answer(fetch_request("orders", {0: end}), 10).responses[0].partitions[0].high_watermark == end + 1
        )


def test_one_write_for_each_log_and_turn(broker):
    client = broker.connect()
    client.call(produce_request("orders", 0, [b"a"]), 7)
    log = broker.ctx.replicas.get("orders", 0).log
    calls = []
    handle = log.handle

    class Counting:
        def __getattr__(self, name):
            return getattr(handle, name)

        def append(self, parts):
            calls.append(len(parts))
            handle.append(parts)

    log.handle = Counting()
    clients = [broker.connect() for _ in range(10)]
    for each in clients:
        each.send(frame(produce_request("orders", 0, [b"x"]), 7))
    broker.end_turn()
    assert calls == [10]
    offsets = [partition_of(each.answers()[0][1]).base_offset for each in clients]
    assert offsets == list(range(1, 11))


def test_the_event_loop_ends_a_turn_by_itself(broker):
    async def send():
        client.send(frame(produce_request("orders", 0, [b"a"]), 7, 5) + frame(m.ApiVersionsRequest(), 0, 6))

    client = broker.connect()
    broker.run(send())
    assert [correlation_id for correlation_id, _ in client.answers()] == [5, 6]
