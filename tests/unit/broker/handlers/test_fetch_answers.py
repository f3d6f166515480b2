import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.handlers.fetch_answers import encode_fetch, fetch_template
from broker.handlers.leader_hints import Endpoint
from broker.net.answers import frame_answer
from protocol import messages as m
from protocol.api_keys import ApiKey
from replication.fetch import Row, Wanted
from runtime.files import FileRegion

offsets = st.integers(-1, 2**62)
names = st.text("abcz._-", min_size=1, max_size=200)


def row(topic, topic_id, **fields):
    made = Row(Wanted(topic, topic_id, fields.pop("index"), 0, 0))
    for name, value in fields.items():
        setattr(made, name, value)
    if not made.length:
        made.length = len(made.data)
    return made


rows_of_a_topic = st.fixed_dictionaries(
    {
        "index": st.integers(0, 9999),
        "error": st.integers(-1, 130),
        "high_watermark": offsets,
        "last_stable_offset": offsets,
        "log_start_offset": offsets,
        "data": st.binary(max_size=300),
        "aborted": st.none() | st.lists(st.tuples(offsets, offsets), max_size=3),
        "preferred_replica": st.integers(-1, 5),
        "diverging": st.none() | st.tuples(st.integers(0, 9), offsets),
        "leader": st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
    }
)
topics = st.tuples(
    names, st.binary(min_size=16, max_size=16), st.lists(rows_of_a_topic, min_size=1, max_size=4)
)
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
            records=p.data if isinstance(p.data, bytes) else b"".join(p.data),
            **extra,
        )

    body = r(
        throttle_time_ms=throttle_ms,
        error_code=error,
        session_id=session_id if version >= 7 else 0,
        responses=[
            r.FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[one(p) for p in rows])
            for name, topic_id, rows in topics
        ],
        node_endpoints=[r.NodeEndpoint(node_id=e[0], host=e[1], port=e[2], rack=e[3]) for e in endpoints]
        if version >= 16
        else [],
    )
    return frame_answer(ApiKey.FETCH, version, correlation_id, body)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(
    st.integers(0, 18),
    st.integers(0, 2**31 - 1),
    st.lists(topics, max_size=3, unique_by=lambda topic: topic[0]),
    st.lists(endpoints, max_size=2),
    st.booleans(),
)
def test_every_version_is_written_as_the_codec_writes_it(
    version, correlation_id, topics, endpoints, in_pieces
):
    made = [
        (name, topic_id, [row(name, topic_id, **fields) for fields in rows])
        for name, topic_id, rows in topics
    ]
    if in_pieces:
        for each in (one for _, _, rows in made for one in rows):
            each.data = [each.data[: each.length // 2], bytearray(each.data[each.length // 2 :])]
    parts = encode_fetch(
        version,
        correlation_id,
        [one for _, _, rows in made for one in rows],
        error=7,
        session_id=9,
        throttle_ms=11,
        endpoints=endpoints,
    )
    assert b"".join(parts) == as_codec_sees_it(version, correlation_id, made, 7, 9, 11, endpoints)


def test_a_file_region_counts_with_its_length():
    region = FileRegion(None, 100, 5000)
    parts = encode_fetch(11, 1, [row("t", bytes(16), index=0, data=region, length=5000)])
    assert parts[1] is region
    assert int.from_bytes(parts[0][:4], "big") == len(parts[0]) - 4 + 5000 + len(parts[2])


def test_rows_of_one_topic_share_its_name_only_while_they_are_neighbours():
    rows = [row(topic, bytes(16), index=i) for i, topic in enumerate("aaba")]
    answer, _ = m.FetchResponse.decode(4, b"".join(encode_fetch(4, 1, rows)), 8)
    assert [(t.topic, [p.partition_index for p in t.partitions]) for t in answer.responses] == [
        ("a", [0, 1]),
        ("b", [2]),
        ("a", [3]),
    ]


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
    general = row(
        "orders",
        bytes(range(16)),
        index=3,
        high_watermark=50,
        last_stable_offset=49,
        log_start_offset=7,
        data=records,
        aborted=[] if committed else None,
    )
    assert frame == b"".join(encode_fetch(version, 77, [general]))
