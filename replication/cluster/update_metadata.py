"""UpdateMetadata: fenced as every control request, then the next image."""

from __future__ import annotations

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.control_fence import ControlFence
from replication.cluster.metadata_cache import updated
from replication.metadata.image import ImageHolder


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
                self._holder.publish(updated(self._holder.current, request))
        return m.UpdateMetadataResponse(error_code=error)
