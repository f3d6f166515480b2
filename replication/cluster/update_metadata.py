"""UpdateMetadata: fenced as every control request, then the next image.

Its topics are made in pieces. Others publish images in between, but topics come from here and LeaderAndIsr
alone, and one request at a time.
"""

from __future__ import annotations

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.control_fence import ControlFence
from replication.cluster.metadata_cache import told_topics, updated, updated_topic
from replication.controller.slices import slices
from replication.metadata.image import ImageHolder, TopicImage

TOPICS_AT_ONCE = 50


class UpdateMetadata:
    """Serves UpdateMetadata: when the answer leaves, all subscribers of the image have heard."""

    def __init__(self, holder: ImageHolder, fence: ControlFence) -> None:
        self._holder = holder
        self._fence = fence

    async def handle(self, request: m.UpdateMetadataRequest) -> m.UpdateMetadataResponse:
        """Publish what is told; 77 and 11 change nothing."""
        async with self._fence.lock:
            error = self._fence.check(request)
            if error == ErrorCode.NONE:
                topics: dict[str, TopicImage | None] = {}
                async for some in slices(told_topics(request), TOPICS_AT_ONCE):
                    topics.update((told[0], updated_topic(self._holder.current, told)) for told in some)
                self._holder.publish(updated(self._holder.current, request, topics))
        return m.UpdateMetadataResponse(error_code=error)
