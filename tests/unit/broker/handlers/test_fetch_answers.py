import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.handlers.fetch_answers import (
    Endpoint,
    FetchedPartition,
    FetchedTopic,
    encode_fetch,
    fetch_template,
)
from broker.net.answers import frame_answer
from protocol import messages as m
from protocol.api_keys import ApiKey
from runtime.files import FileRegion

offsets = st.integers(-1, 2**62)
names = st.text("abcz._-", min_size=1, max_size=200)
partitions = st.builds(
    FetchedPartition,
    index=st.integers(0, 9999),
    error=st.integers(-1, 130),
    high_watermark=offsets,
    last_stable_offset=offsets,
    log_start_offset=offsets,
    data=st.binary(max_size=300),
    aborted=st.none() | st.lists(st.tuples(offsets, offsets), max_size=3),
    preferred_replica=st.integers(-1, 5),
    diverging=st.none() | st.tuples(st.integers(0, 9), offsets),
    leader=st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
topics = st.builds(FetchedTopic, names, st.binary(min_size=16, max_size=16), st.lists(partitions, max_size=4))
endpoints = st.builds(Endpoint, st.integers(0, 9), names, st.integers(1, 65535), st.none() | names)


def as_codec_sees_it(version, correlation_id, topics, error, session_id, throttle_ms, endpoints):
    r = m.FetchResponse

    def one(p):
        extra = {}
        if version >= 12 and p.diverging is not None:
            extra["diverging_epoch"] = r.EpochEndOffset(epoch=p.diverging[0], end_offset=p.diverging[1])
        if version >= 12 and p.leader is not None:
            extra["current_leader"] = r.LeaderIdAndEpoch(leader_id=p.leader[0], leader_epoch=p.leader[1])
        return r.PartitionData(
            partition_index=p.index,
            error_code=p.error,
            high_watermark=p.high_watermark,
            last_stable_offset=p.last_stable_offset,
            log_start_offset=p.log_start_offset,
            aborted_transactions=None
            if p.aborted is None
            else [r.AbortedTransaction(producer_id=a, first_offset=b) for a, b in p.aborted],
            preferred_read_replica=p.preferred_replica if version >= 11 else -1,
            records=bytes(p.data),
            **extra,
        )

    body = r(
        throttle_time_ms=throttle_ms,
        error_code=error,
        session_id=session_id if version >= 7 else 0,
        responses=[
            r.FetchableTopicResponse(topic=t.name, topic_id=t.topic_id, partitions=[one(p) for p in t.partitions])
            for t in topics
        ],
        node_endpoints=[r.NodeEndpoint(node_id=e[0], host=e[1], port=e[2], rack=e[3]) for e in endpoints]
        if version >= 16
        else [],
    )
    return frame_answer(ApiKey.FETCH, version, correlation_id, body)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.integers(0, 18), st.integers(0, 2**31 - 1), st.lists(topics, max_size=3), st.lists(endpoints, max_size=2), st.data())
def test_every_version_is_written_as_the_codec_writes_it(version, correlation_id, topics, endpoints, data):
    for topic in topics:
        for partition in topic.partitions:
            partition.length = len(partition.data)
            if data.draw(st.booleans()):
                half = len(partition.data) // 2
                partition.data = [partition.data[:half], partition.data[half:]]
    parts = encode_fetch(
        version, correlation_id, topics, error=7, session_id=9, throttle_ms=11, endpoints=endpoints
    )
    for topic in topics:
        for partition in topic.partitions:
            if isinstance(partition.data, list):
                partition.data = b"".join(partition.data)
    # a tag that stands where an optional struct equals its default is left out by the codec, so is ours
    assert b"".join(parts) == as_codec_sees_it(version, correlation_id, topics, 7, 9, 11, endpoints)


def test_a_file_region_counts_with_its_length():
    region = FileRegion(None, 100, 5000)
    partition = FetchedPartition(0, data=region, length=5000)
    parts = encode_fetch(11, 1, [FetchedTopic("t", bytes(16), [partition])])
    assert parts[1] is region
    assert int.from_bytes(parts[0][:4], "big") == len(parts[0]) - 4 + 5000 + len(parts[2])


@pytest.mark.parametrize("version", range(4, 19))
@pytest.mark.parametrize("committed", [False, True])
def test_a_template_answers_as_the_general_way_does(version, committed):
    template = fetch_template(version, "orders", bytes(range(16)), 3, committed)
    records = b"r" * 300
    length = len(records)
    known = [50, 49] + ([7] if version >= 5 else [])
    if version >= 12:
        size = template.size + 2 + length
        head = template.pack(size, 77, template.head, *known, template.between)
        frame = head + bytes([(length + 1) & 127 | 128, (length + 1) >> 7]) + records + template.tail
    else:
        head = template.pack(template.size + length, 77, template.head, *known, template.between, length)
        frame = head + records + template.tail
    partition = FetchedPartition(
        3,
        high_watermark=50,
        last_stable_offset=49,
        log_start_offset=7,
        data=records,
        length=length,
        aborted=[] if committed else None,
    )
    assert frame == b"".join(encode_fetch(version, 77, [FetchedTopic("orders", bytes(range(16)), [partition])]))
