import itertools

import pytest

from broker.net import connection
from broker.net.frame_size import GENERAL_BYTES_MAX
from protocol import messages as m
from protocol.api_keys import ApiKey
from tests.support.net_broker import decode, fetch_request, frame, produce_request

PRODUCE, FETCH = ApiKey.PRODUCE, ApiKey.FETCH


def versions(correlation_id):
    return frame(m.ApiVersionsRequest(), 0, correlation_id)


def conversation():
    return b"".join(
        (
            frame(produce_request("orders", 0, [b"a"]), 7, 1),
            frame(produce_request("orders", 0, [b"b", b"c"]), 7, 2),
            versions(3),
            frame(fetch_request("orders", {0: 1}), 10, 4),
            frame(produce_request("orders", 1, [b"d"], acks=0), 7, 5),
            frame(produce_request("orders", 0, [b"e"], acks=-1), 7, 6),
            frame(fetch_request("orders", {0: 3}), 10, 7),
        )
    )


def check_conversation(answers):
    assert [correlation_id for correlation_id, _ in answers] == [1, 2, 3, 4, 6, 7]
    offsets = [
        decode(PRODUCE, 7, answers[i][1]).responses[0].partition_responses[0].base_offset for i in (0, 1, 4)
    ]
    assert offsets == [0, 1, 3]
    for i, high_watermark in ((3, 3), (5, 4)):  # a fetch sees what the same connection wrote before it
        assert decode(FETCH, 10, answers[i][1]).responses[0].partitions[0].high_watermark == high_watermark


def test_pipelined_requests_are_answered_in_their_order(broker, client):
    client.send(conversation())
    broker.end_turn()
    check_conversation(client.answers())
    assert broker.ctx.replicas.get("orders", 1).log.end_offset == 1


@pytest.mark.parametrize("step", [1, 3, 7, 50, 200])
def test_it_does_not_matter_how_the_bytes_arrive(broker, client, step):
    data = conversation()
    for at in range(0, len(data), step):
        client.send(data[at : at + step])
    broker.end_turn()
    check_conversation(client.answers())


def test_answers_of_one_turn_leave_in_one_write(broker, client):
    for _ in range(2):
        client.send(b"".join(frame(produce_request("orders", 0, [b"x"]), 7, i) for i in range(16)))
        assert client.transport.writes == []
        broker.end_turn()
        assert len(client.transport.writes) == 1
        assert [correlation_id for correlation_id, _ in client.answers()] == list(range(16))


def test_a_long_poll_holds_back_what_is_behind_it_and_is_woken_by_an_append(broker, client):
    poll = frame(fetch_request("orders", {0: 0}, max_wait_ms=60_000), 10, 1)
    for turn in range(3):  # the first time decoded, then from the memo
        wanted = frame(fetch_request("orders", {0: turn}, max_wait_ms=60_000), 10, 1)
        assert len(wanted) == len(poll)
        client.send(wanted + versions(2))
        broker.end_turn()
        assert client.answers() == []
        broker.connect().call(produce_request("orders", 0, [b"news"]), 7)
        answers = client.answers()
        assert [correlation_id for correlation_id, _ in answers] == [1, 2]
        assert decode(FETCH, 10, answers[0][1]).responses[0].partitions[0].records
        assert broker.ctx.replicas.get("orders", 0).waiters == {}
        assert len(broker.hub.deadlines) == 0


def test_a_long_poll_ends_with_nothing_when_its_time_is_over(broker, client):
    for _ in range(2):
        client.send(frame(fetch_request("orders", {0: 0}, max_wait_ms=20), 10, 1))
        assert client.answers() == []
        broker.run(client.wrote(1))
        [(_, data)] = client.answers()
        assert not decode(FETCH, 10, data).responses[0].partitions[0].records
        assert len(broker.hub.deadlines) == 0


def test_a_parked_client_that_pipelines_on_is_not_read_any_more(broker, client):
    client.send(frame(fetch_request("orders", {0: 0}, max_wait_ms=60_000), 10, 1))
    assert not client.transport.paused
    client.send(versions(2))
    assert client.transport.paused
    broker.connect().call(produce_request("orders", 0, [b"news"]), 7)
    assert [correlation_id for correlation_id, _ in client.answers()] == [1, 2]
    assert not client.transport.paused


def test_a_lost_connection_leaves_nothing_parked(broker):
    for version in (10, 10, 12):
        client = broker.connect()
        client.send(frame(fetch_request("orders", {0: 0, 1: 0}, max_wait_ms=60_000), version, 1))
        client.send(frame(fetch_request("orders", {0: 0}, max_wait_ms=60_000), version, 1)[:20])
        client.lose()
    single = broker.connect()
    for _ in range(2):
        single.send(frame(fetch_request("orders", {0: 0}, max_wait_ms=60_000), 10, 1))
        broker.ctx.replicas.get("orders", 0).wake()
    single.lose()
    assert all(not broker.ctx.replicas.get("orders", index).waiters for index in range(3))
    assert len(broker.hub.deadlines) == 0
    assert broker.hub.connections == {}
    assert broker.hub.receiving.held_bytes == 0


def test_a_client_that_does_not_read_its_answers_is_not_served_on(broker, client):
    client.send(versions(1))
    client.connection.pause_writing()
    client.send(versions(2) + versions(3))
    assert [correlation_id for correlation_id, _ in client.answers()] == [1]
    assert client.transport.paused
    client.connection.resume_writing()
    assert [correlation_id for correlation_id, _ in client.answers()] == [2, 3]
    assert not client.transport.paused


def test_a_big_frame_gets_a_buffer_of_its_own_which_is_free_after_the_write(broker, client):
    values = [bytes([i]) * 90_000 for i in range(5)]
    for turn in range(3):
        client.send(frame(produce_request("orders", 2, values), 7, turn) + versions(99))
        broker.end_turn()
        assert [correlation_id for correlation_id, _ in client.answers()] == [turn, 99]
    pool = broker.hub.receiving
    assert pool.held_bytes == 0
    fetched = client.call(fetch_request("orders", {2: 10}), 12)
    assert fetched.responses[0].partitions[0].high_watermark == 15


@pytest.mark.parametrize("size", [-1, 0, 7, (1 << 24) + 1, 2**31 - 1])
def test_a_size_that_no_request_has_closes_without_an_answer(broker, client, size, caplog):
    client.send(size.to_bytes(4, "big", signed=True) + b"junk")
    assert client.transport.closed
    assert client.answers() == []
    assert f"announced {size} bytes" in caplog.text


def test_http_gets_a_line_that_it_understands(client, caplog):
    client.send(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
    assert client.transport.closed
    assert b"".join(client.transport.writes).startswith(b"HTTP/1.1 400")
    assert "looks like HTTP" in caplog.text


def test_requests_before_a_broken_frame_are_answered(broker, client):
    client.send(frame(produce_request("orders", 0, [b"a"]), 7, 1) + versions(2) + b"\xff\xff\xff\xff")
    broker.end_turn()
    assert [correlation_id for correlation_id, _ in client.answers()] == [1, 2]
    assert client.transport.closed


def test_one_line_tells_who_was_closed_and_why(client, caplog):
    client.send(frame(m.MetadataRequest(topics=None), 12, 1)[:-1] + b"")
    assert not client.transport.closed  # a byte is missing: more may come
    broken = bytearray(frame(m.MetadataRequest(topics=None), 12, 1, client_id="my-app"))
    broken[-4] = 0x7F  # a tag count that no bytes follow
    client = client.broker.connect()
    client.send(bytes(broken))
    assert client.transport.closed
    [line] = [record.getMessage() for record in caplog.records if "Closing" in record.getMessage()]
    assert "127.0.0.1:50000" in line
    assert "Metadata v12" in line
    assert "'my-app'" in line


def test_answers_that_add_up_are_passed_on_while_more_requests_wait(broker, client):
    broker.create("wide", 400)
    every = frame(m.MetadataRequest(topics=None), 12, 1)

    def write(data):
        client.transport.writes.append(bytes(data))
        client.connection.pause_writing()  # the peer does not read

    client.transport.write = write
    client.send(every * 500)
    for _ in range(1000):
        broker.run()
    assert 0 < len(client.peek()) < 100
    assert sum(map(len, client.transport.writes)) < 1 << 20
    client.send(every)
    assert client.transport.paused


def test_a_client_with_many_requests_lets_others_have_their_turn(broker, client):
    broker.hub.worked = itertools.count().__next__  # each look at the clock is a second later
    client.send(b"".join(versions(i) for i in range(5)))
    assert [correlation_id for correlation_id, _ in client.answers()] == [0]
    broker.run()
    assert [correlation_id for correlation_id, _ in client.answers()] == [1, 2, 3, 4]


def produce(partition, correlation_id, client_id="test"):
    return frame(produce_request("orders", partition, [b"x"]), 7, correlation_id, client_id)


def test_remembered_shapes_are_counted_over_all_connections(broker):
    one, other = broker.connect(), broker.connect()
    for i in range(3):
        one.send(produce(i, i, f"client-{i}"))
        other.send(produce(i, i, f"client-{i}"))
        broker.end_turn()
    assert broker.hub.shapes == 6
    one.lose()
    assert broker.hub.shapes == 3
    broker.hub.forget_shapes()
    other.send(versions(9))
    assert broker.hub.shapes == 0


def test_a_connection_begins_anew_when_all_have_too_many_shapes(broker, client, monkeypatch):
    monkeypatch.setattr(connection, "SHAPES_IN_ALL_MAX", 2)
    for i in range(3):
        client.send(produce(i, i, f"client-{i}"))
        broker.end_turn()
    assert broker.hub.shapes == 1
    client.send(produce(2, 7, "client-2"))
    broker.end_turn()
    assert [correlation_id for correlation_id, _ in client.answers()] == [0, 1, 2, 7]


def test_large_requests_are_served_and_not_remembered(broker, client):
    long_name = "c" * connection.SHAPE_BYTES_MAX
    client.send(produce(0, 1, long_name))
    client.send(frame(fetch_request("orders", {0: 0}), 10, 2, long_name))
    broker.end_turn()
    assert [correlation_id for correlation_id, _ in client.answers()] == [1, 2]
    assert broker.hub.shapes == 0


def announced(size, api):
    return size.to_bytes(4, "big") + api.to_bytes(2, "big") + bytes(6)


def test_only_produce_may_have_more_than_16_mib(broker, caplog):
    broker.hub.max_frame_bytes = 2 * GENERAL_BYTES_MAX
    allowed = [
        announced(GENERAL_BYTES_MAX, ApiKey.METADATA),
        announced(GENERAL_BYTES_MAX + 1, ApiKey.PRODUCE),
        announced(GENERAL_BYTES_MAX + 1, ApiKey.METADATA)[:4],  # which API it is has yet to come
    ]
    for data in allowed:
        client = broker.connect()
        client.send(data)
        assert not client.connection.closed
    client.send(announced(0, ApiKey.METADATA)[4:])
    assert client.connection.closed
    assert "Metadata announced 16777217 bytes" in caplog.text


def test_a_connection_that_broke_in_the_turn_does_not_take_the_others_answers(broker, client):
    broken, reader = broker.connect(), broker.connect()
    reader.send(frame(fetch_request("orders", {1: 0}, max_wait_ms=10_000), 10, 5))
    broken.send(produce(0, 1))
    client.send(produce(1, 2))
    broken.transport.aborted = True
    broker.end_turn()
    assert [correlation_id for correlation_id, _ in client.answers()] == [2]
    broker.run()
    assert [correlation_id for correlation_id, _ in reader.answers()] == [5]
    broken.lose()


def test_a_connection_that_broke_while_it_waits_is_left_alone(broker):
    waiting = broker.connect()
    waiting.send(frame(fetch_request("orders", {0: 0}, max_wait_ms=10_000), 10, 1))
    waiting.send(versions(2) * 5000)  # more than may wait: reading stops
    waiting.transport.aborted = True
    broker.connect().send(produce(0, 3))
    broker.end_turn()
    broker.run()
    waiting.lose()
    assert waiting.transport.writes == []


def expecting(client, count):
    """Places for answers, which something in the turn will decide."""
    return [client.connection.expect_answer() for _ in range(count)]


def answer(number):
    return (4).to_bytes(4, "big") + number.to_bytes(4, "big")


def test_answers_leave_together_once_the_last_one_has_come(broker, client):
    one, two, three = expecting(client, 3)
    client.connection.answer(two, answer(2))
    client.connection.answer(one, answer(1))
    broker.end_turn()
    client.send(versions(4))
    assert client.answers() == []
    client.connection.answer(three, answer(3))
    broker.run()
    assert [number for number, _ in client.answers()] == [1, 2, 3, 4]


def test_answers_that_come_within_the_turn_leave_with_it(broker, client):
    (one,) = expecting(client, 1)
    client.connection.answer(one, answer(1))
    assert client.answers() == []
    broker.end_turn()
    assert [number for number, _ in client.answers()] == [1]


def test_only_so_many_answers_may_be_open(broker, client):
    places = expecting(client, connection.OPEN_MAX - 1)
    assert client.connection.waiting is None
    places += expecting(client, 1)
    assert client.connection.waiting is connection.UNANSWERED
    client.send(versions(99))
    for place in places:
        client.connection.answer(place, answer(place))
    broker.end_turn()
    broker.run()
    assert [number for number, _ in client.answers()] == [*places, 99]


def test_a_general_request_waits_for_open_answers(broker, client):
    (one,) = expecting(client, 1)
    client.send(versions(2))
    broker.run()
    assert client.answers() == []
    client.connection.answer(one, answer(1))
    broker.run()
    assert [number for number, _ in client.answers()] == [1, 2]


def test_a_long_poll_and_open_answers_before_it(broker, client):
    (one,) = expecting(client, 1)
    client.send(frame(fetch_request("orders", {0: 0}, max_wait_ms=60_000), 10, 2))
    assert client.connection.waiting not in (None, connection.UNANSWERED)
    broker.end_turn()
    client.connection.answer(one, answer(1))
    broker.run()
    assert [number for number, _ in client.answers()] == [1]
    broker.connect().call(produce_request("orders", 0, [b"news"]), 7)
    broker.run()
    assert [number for number, _ in client.answers()] == [2]


def test_a_connection_that_is_shut_sends_what_came_before_the_first_open_answer(broker, client):
    one, _, three = expecting(client, 3)
    client.connection.answer(one, answer(1))
    client.connection.answer(three, answer(3))
    client.connection.shut()
    assert [number for number, _ in client.answers()] == [1]
    client.connection.answer(1, answer(2))
    assert client.answers() == []


def test_a_connection_that_is_shut_sends_nothing_while_records_are_synced(broker, client):
    (one,) = expecting(client, 1)
    client.connection.answer(one, answer(1))
    client.connection.hold()
    client.connection.shut()
    client.connection.release()
    broker.run()
    assert client.answers() == []
    assert client.transport.closed


def test_a_lost_connection_waits_for_no_answer(broker, client):
    (one,) = expecting(client, 1)
    broker.end_turn()
    client.lose()
    client.connection.answer(one, answer(1))
    broker.run()
    assert client.answers() == []
