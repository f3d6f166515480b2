"""A scripted broker that coordinates groups: answers FindCoordinator itself, the rest by functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from protocol import messages as m
from protocol.api_keys import ApiKey
from tests.unit.ottla.scripted_broker import ScriptedBroker

Answer = Callable[[Any], "m.Message | None"]

VERSIONS = {
    ApiKey.METADATA: (0, 12),
    ApiKey.LIST_OFFSETS: (1, 5),
    ApiKey.FIND_COORDINATOR: (0, 4),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.OFFSET_COMMIT: (2, 9),
    ApiKey.OFFSET_FETCH: (1, 9),
    ApiKey.OFFSET_DELETE: (0, 0),
    ApiKey.DESCRIBE_GROUPS: (0, 6),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1),
}


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")


class ScriptedGroup:
    """Answers by the type of the request; `answers` may be changed while a test runs.

    A list of answers is given one by one, its last one again and again.
    """

    def __init__(
        self,
        answers: dict[type[m.Message], Answer | list[m.Message | None]],
        versions: dict[int, tuple[int, int]] | None = None,
    ) -> None:
        self.answers = answers
        self.broker = ScriptedBroker(self._answer, {**VERSIONS, **(versions or {})})

    def __enter__(self) -> ScriptedGroup:
        self.broker.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.broker.__exit__(*error)

    @property
    def address(self) -> str:
        return self.broker.address

    def asked(self, kind: type[m.Message]) -> list[Any]:
        """The requests of one type so far."""
        return [each for each in self.broker.requests if isinstance(each, kind)]

    def _answer(self, request: m.Message) -> m.Message | None:
        found = self.answers.get(type(request))
        if isinstance(found, list):
            return found.pop(0) if len(found) > 1 else found[0]
        if found is not None:
            return found(request)
        if isinstance(request, m.FindCoordinatorRequest):
            return self.found(request)
        assert isinstance(request, m.MetadataRequest), request
        return self.metadata(request)

    def found(self, request: m.FindCoordinatorRequest) -> m.FindCoordinatorResponse:
        """This broker coordinates every group."""
        here = {"node_id": 1, "host": "127.0.0.1", "port": self.broker.port}
        if not request.coordinator_keys:
            return m.FindCoordinatorResponse(**here)
        return m.FindCoordinatorResponse(
            coordinators=[
                m.FindCoordinatorResponse.Coordinator(key=key, **here) for key in request.coordinator_keys
            ]
        )

    def metadata(self, request: m.MetadataRequest) -> m.MetadataResponse:
        """Every topic has two partitions."""
        return m.MetadataResponse(
            brokers=[
                m.MetadataResponse.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.broker.port)
            ],
            topics=[
                m.MetadataResponse.MetadataResponseTopic(
                    name=topic.name,
                    topic_id=topic_id(topic.name or ""),
                    partitions=[
                        m.MetadataResponse.MetadataResponsePartition(partition_index=index, leader_id=1)
                        for index in range(2)
                    ],
                )
                for topic in request.topics or ()
            ],
        )
