"""Which announced frame sizes are refused, and what is said about them.

A size is refused before its bytes are collected. Only Produce may have up to `socket.request.max.bytes`;
other requests end at `GENERAL_BYTES_MAX`, since their fields become objects several times their size. Sizes
that no request can have are mostly the first bytes of another protocol.
"""

from __future__ import annotations

from broker.net.misdial import recognise
from protocol.api_keys import ApiKey, api_name

FRAME_BYTES_MIN = 8  # API key, version, correlation id
GENERAL_BYTES_MAX = 16 << 20
ONLY_PRODUCE = f"only Produce may have more than {GENERAL_BYTES_MAX}"


def refusal_of_size(size: int, start: bytes, size_max: int) -> tuple[str, bytes] | None:
    """Why a frame that begins with `start` (size included, at least 4 bytes) is refused, and what to answer
    before the end (may be empty); None for one that is to be collected.
    """
    if FRAME_BYTES_MIN <= size <= size_max:
        api = int.from_bytes(start[4:6], "big", signed=True)
        if size <= GENERAL_BYTES_MAX or len(start) < 6 or api == ApiKey.PRODUCE:
            return None
        return f"{api_name(api)} announced {size} bytes; {ONLY_PRODUCE}", b""
    known = recognise(start)
    if known is not None:
        return f"this looks like {known[0]}; the port speaks the plain Kafka protocol", known[1]
    limits = f"{FRAME_BYTES_MIN} and {size_max} (socket.request.max.bytes)"
    return f"a frame announced {size} bytes, which is not between {limits}", b""
