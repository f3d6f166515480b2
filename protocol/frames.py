"""Length-prefixed frames without I/O: an int32 size, then so many bytes.

For clients and tests; the broker reads straight into a frame's own buffer (`runtime.receive`). Nothing is
allocated by an announced size: the buffer grows with the bytes that arrive.
"""

from __future__ import annotations

import struct
from typing import Final

from protocol.errors import ProtocolViolation
from protocol.primitives import Buffer

_SIZE: Final = struct.Struct(">i")
#: `socket.request.max.bytes` of Kafka; a response may be larger, but 2 GiB is the most a size can say
DEFAULT_MAX_BYTES: Final = 104_857_600


def frame(*parts: Buffer) -> bytes:
    """One frame that holds the parts."""
    return b"".join((_SIZE.pack(sum(len(part) for part in parts)), *parts))


class FrameSplitter:
    """Cuts a stream of bytes into frames. After an error it must not be used any further."""

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._pending = bytearray()

    @property
    def pending_bytes(self) -> int:
        """How many bytes of an unfinished frame have arrived, its size included."""
        return len(self._pending)

    def feed(self, received: Buffer) -> list[bytes]:
        """Take what arrived; return the payloads of the frames that are complete now.

        Raises ProtocolViolation for a size that is negative or above `max_bytes`.
        """
        self._pending += received
        frames: list[bytes] = []
        at, end = 0, len(self._pending)
        while end - at >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._pending, at)
            if not 0 <= size <= self.max_bytes:
                raise ProtocolViolation(f"a frame of {size} bytes, allowed are 0 to {self.max_bytes}")
            start = at + _SIZE.size
            if size > end - start:
                break
            at = start + size
            with memoryview(self._pending) as view:
                frames.append(bytes(view[start:at]))
        del self._pending[:at]
        return frames
