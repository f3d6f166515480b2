"""Topics that a broker of a cluster creates by itself: on first use, and the coordinators' own.

Clients ask any broker for the topics they use, but only the controller creates. So it is asked like by any
client, and the answer here waits until this broker's own metadata shows the topic. Kafka's brokers write such
topics into ZooKeeper themselves; what comes of it is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import ChannelLost
from replication.cluster.controller_client import ControllerClient
from replication.controller.image_waits import ImageWaits, leads
from replication.controller.outcomes import NewTopic, TopicOutcome
from replication.metadata.image import ImageHolder

_Request = m.CreateTopicsRequest


class AutoTopics:
    """See the module."""

    def __init__(self, client: ControllerClient, holder: ImageHolder) -> None:
        self._client = client
        self._waits = ImageWaits(holder)

    async def create_topics(self, topics: Sequence[NewTopic], *, timeout_ms: int) -> list[TopicOutcome]:
        """One outcome for each distinct name. What exists by the time of the answer has error 36, as ever."""
        if not topics:
            return []
        request = _Request(topics=[_wanted(topic) for topic in topics], timeout_ms=timeout_ms)
        try:
            answer: m.CreateTopicsResponse = await self._client.ask(request)
        except ChannelLost as lost:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            names = dict.fromkeys(topic.name for topic in topics)
            return [TopicOutcome(name, error, str(lost)) for name in names]
        outcomes = [
            TopicOutcome(each.name, ErrorCode(each.error_code), each.error_message) for each in answer.topics
        ]
        there = [
            each.name for each in outcomes if each.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        ]
        await self._waits.until(lambda image: all(leads(image, name) for name in there), timeout_ms)
        return outcomes


def _wanted(topic: NewTopic) -> m.CreateTopicsRequest.CreatableTopic:
    return _Request.CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        configs=[_Request.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs],
    )
