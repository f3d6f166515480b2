"""The two checksums of Kafka's record formats.

Batches of magic 2 carry CRC-32C (Castagnoli) over everything from the attributes on; messages of magic 0 and
1 carry the CRC-32 of zlib from the magic byte on. Both take any buffer and return an unsigned 32-bit number.

The `crc32c` wheel uses the processor's instruction (12.8 GB/s on 16 KiB). Where it does not exist the slower
`crcmod` stands in, which refuses writable buffers and therefore gets a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias
from zlib import crc32

Buffer: TypeAlias = bytes | bytearray | memoryview

__all__ = ["Buffer", "crc32", "crc32c", "crc32c_of_crcmod"]


def crc32c_of_crcmod() -> Callable[..., int]:
    """CRC-32C by crcmod, with the signature of `crc32c`: the fallback, and the second opinion in tests."""
    from crcmod.predefined import mkPredefinedCrcFun

    function: Callable[[bytes, int], int] = mkPredefinedCrcFun("crc-32c")

    def checksum(data: Buffer, seed: int = 0) -> int:
        return function(bytes(data), seed)

    return checksum


crc32c: Callable[..., int]
try:
    from crc32c import crc32c
except ImportError:  # no wheel for this platform
    crc32c = crc32c_of_crcmod()
