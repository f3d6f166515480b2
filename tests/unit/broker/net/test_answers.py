import pytest

from broker.net.answers import BIG_ELEMENTS, FramedAnswer, frame_answer, is_big
from protocol import messages as m
from protocol.api_keys import ApiKey


def test_size_header_and_body_of_both_header_versions():
    response = m.ListOffsetsResponse(throttle_time_ms=5)
    old = frame_answer(ApiKey.LIST_OFFSETS, 2, 77, response)
    assert old == b"\0\0\0\x0c" + b"\0\0\0\x4d" + b"\0\0\0\5" + b"\0\0\0\0"
    flexible = frame_answer(ApiKey.LIST_OFFSETS, 6, 77, response)
    assert flexible == b"\0\0\0\x0b" + b"\0\0\0\x4d" + b"\0" + b"\0\0\0\5" + b"\1" + b"\0"


@pytest.mark.parametrize("topics", [1, BIG_ELEMENTS // 100])
@pytest.mark.parametrize("more", [0, 1])
def test_an_answer_is_big_by_all_the_structs_in_it(topics, more):
    """However deep they lie."""
    topic, partition = m.ListOffsetsResponse.ListOffsetsTopicResponse, m.ListOffsetsResponse
    places = (BIG_ELEMENTS - topics) // topics
    of = [topic(partitions=[partition.ListOffsetsPartitionResponse()] * places) for _ in range(topics)]
    of[0].partitions += [partition.ListOffsetsPartitionResponse()] * (
        more + BIG_ELEMENTS - topics * (places + 1)
    )
    assert is_big(m.ListOffsetsResponse(topics=of)) == bool(more)


def test_plain_values_do_not_count_and_what_is_framed_is_not_looked_at():
    partition = m.MetadataResponse.MetadataResponsePartition(replica_nodes=[1] * (BIG_ELEMENTS + 1))
    topic = m.MetadataResponse.MetadataResponseTopic(partitions=[partition])
    assert not is_big(m.MetadataResponse(topics=[topic]))
    assert not is_big(FramedAnswer([b"x"] * (BIG_ELEMENTS + 1)))
