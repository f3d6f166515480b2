import pytest

from broker.net.failures import failure_answer
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode

UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR


def test_produce_answers_every_partition():
    data = m.ProduceRequest.TopicProduceData
    part = m.ProduceRequest.PartitionProduceData
    request = m.ProduceRequest(
        acks=1, topic_data=[data(name="a", partition_data=[part(index=3), part(index=5)]), data(name="b")]
    )
    answer = failure_answer(ApiKey.PRODUCE, 9, request, UNKNOWN)
    assert [(t.name, [(p.index, p.error_code) for p in t.partition_responses]) for t in answer.responses] == [
        ("a", [(3, -1), (5, -1)]),
        ("b", []),
    ]


def test_fetch_answers_at_the_top_and_for_every_partition():
    topic = m.FetchRequest.FetchTopic
    request = m.FetchRequest(
        topics=[topic(topic="a", partitions=[m.FetchRequest.FetchPartition(partition=7)])]
    )
    answer = failure_answer(ApiKey.FETCH, 11, request, UNKNOWN)
    assert answer.error_code == -1
    assert answer.responses[0].topic == "a"
    assert (
        answer.responses[0].partitions[0].partition_index,
        answer.responses[0].partitions[0].error_code,
    ) == (7, -1)


def test_topics_of_create_and_delete_are_named():
    created = failure_answer(
        ApiKey.CREATE_TOPICS,
        5,
        m.CreateTopicsRequest(topics=[m.CreateTopicsRequest.CreatableTopic(name="x")]),
        UNKNOWN,
    )
    assert [(t.name, t.error_code) for t in created.topics] == [("x", -1)]
    deleted = failure_answer(ApiKey.DELETE_TOPICS, 4, m.DeleteTopicsRequest(topic_names=["x", "y"]), UNKNOWN)
    assert [(t.name, t.error_code) for t in deleted.responses] == [("x", -1), ("y", -1)]


def test_configs_name_their_resource():
    resource = m.DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name="x")
    answer = failure_answer(
        ApiKey.DESCRIBE_CONFIGS, 1, m.DescribeConfigsRequest(resources=[resource]), UNKNOWN
    )
    assert [(r.resource_type, r.resource_name, r.error_code) for r in answer.results] == [(2, "x", -1)]


@pytest.mark.parametrize(
    "key", [key for key in ApiKey if key not in (52, 53, 54, 55, 59, 62, 63, 64, 70, 73, 80, 81, 82, 94)]
)
def test_every_api_has_an_encodable_failure_at_its_oldest_and_newest_version(key):
    try:
        request_class = m.request_class(key)
    except Exception:  # no messages: an API of KRaft controllers
        return
    for version in {request_class.MIN_VERSION, request_class.MAX_VERSION}:
        answer = failure_answer(key, version, request_class(), UNKNOWN)
        again, _ = m.response_class(key).decode(version, answer.encode(version))
        if any(name == "error_code" for name in again.__slots__) and version >= 0:
            assert again.error_code in (-1, 0)
