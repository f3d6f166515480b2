"""Finds the coordinators of groups and asks them, again while they move or load.

A coordinator is remembered until it says that it is none (NOT_COORDINATOR) or can't be reached. What is
retried is retried until `timeout_s` from the start of the call is over; then its last error is raised.
FindCoordinator asks for many groups at once where the broker can (KIP-699, version 4), else one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ottla.client import ClientError, KafkaClient, check
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode

GROUP_KEY = 0
FIRST_BATCHED = 4
RETRY_PAUSE_S = 0.1

#: The coordinator is elsewhere, not there yet, or not ready yet: ask again.
WAITS = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)

Result = TypeVar("Result")


class Coordinators:
    """Which broker coordinates which group, from memory where it is known."""

    def __init__(self, client: KafkaClient, timeout_s: float) -> None:
        self.client = client
        self.timeout_s = timeout_s
        self._nodes: dict[str, int] = {}

    def node(self, group_id: str) -> int:
        """The coordinator's node id; ClientError where none is found in time."""
        return self.nodes([group_id])[group_id]

    def nodes(self, group_ids: Iterable[str]) -> dict[str, int]:
        """The node ids of the coordinators of several groups."""
        wanted = list(dict.fromkeys(group_ids))
        missing = [group_id for group_id in wanted if group_id not in self._nodes]
        if missing:
            self.patiently(lambda: self._find([each for each in missing if each not in self._nodes]))
        return {group_id: self._nodes[group_id] for group_id in wanted}

    def by_node(self, group_ids: Iterable[str]) -> dict[int, list[str]]:
        """Groups put together by their coordinator, in their order."""
        found: dict[int, list[str]] = {}
        for group_id, node in self.nodes(group_ids).items():
            found.setdefault(node, []).append(group_id)
        return found

    def forget(self, group_id: str) -> None:
        """Called after a refusal that says another broker coordinates the group by now."""
        self._nodes.pop(group_id, None)

    def ask(
        self,
        group_id: str,
        request: m.Message,
        version: int | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """One request to the coordinator of one group; error codes inside are the caller's to read."""
        node = self.node(group_id)
        try:
            return self.client.call(request, node, version, timeout_s)
        except ClientError:
            self.forget(group_id)
            raise

    def version_for(self, group_id: str, api_key: int) -> int:
        """The version in which the group's coordinator is asked."""
        return self.client.connection(self.node(group_id)).version_for(api_key)

    def check(self, group_id: str, code: int, message: str | None = None) -> None:
        """Raises ClientError for an error code; forgets a coordinator that is none."""
        if code == ErrorCode.NOT_COORDINATOR:
            self.forget(group_id)
        check(code, message)

    def patiently(self, ask: Callable[[], Result]) -> Result:
        """The result of `ask`, called again while it raises that a coordinator moves or loads."""
        deadline = time.monotonic() + self.timeout_s
        while True:
            try:
                return ask()
            except ClientError as error:
                if error.error not in WAITS or time.monotonic() >= deadline:
                    raise
            time.sleep(RETRY_PAUSE_S)

    def _find(self, group_ids: Sequence[str]) -> None:
        version = self.client.connection().version_for(ApiKey.FIND_COORDINATOR)
        if version >= FIRST_BATCHED:
            request = m.FindCoordinatorRequest(key_type=GROUP_KEY, coordinator_keys=list(group_ids))
            for found in self.client.call(request).coordinators:
                self._learn(found.key, found)
            return
        for group_id in group_ids:
            response = self.client.call(m.FindCoordinatorRequest(key=group_id, key_type=GROUP_KEY))
            self._learn(group_id, response)

    def _learn(
        self, group_id: str, found: m.FindCoordinatorResponse | m.FindCoordinatorResponse.Coordinator
    ) -> None:
        check(found.error_code, found.error_message)
        self.client.nodes[found.node_id] = (found.host, found.port)
        self._nodes[group_id] = found.node_id
