"""The two checksums of Kafka's record formats.

Batches of magic 2 carry CRC-32C (Castagnoli) over everything from the attributes on; messages of magic 0 and
1 carry the CRC-32 of zlib from the magic byte on. Both take any buffer and return an unsigned 32-bit number.

The `crc32c` wheel uses the processor's instruction (12.8 GB/s on 16 KiB). Where it does not exist the slower
`crcmod` stands in, which refuses writable buffers and therefore gets a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TypeAlias
from zlib import crc32

Buffer: TypeAlias = bytes | bytearray | memoryview

__all__ = ["Buffer", "crc32", "crc32c", "crc32c_of_crcmod", "crc32c_of_extension"]


def crc32c_of_crcmod() -> Callable[..., int]:
    """CRC-32C by crcmod, with the signature of `crc32c`: the fallback, and the second opinion in tests."""
    from crcmod.predefined import mkPredefinedCrcFun

    function: Callable[[bytes, int], int] = mkPredefinedCrcFun("crc-32c")

    def checksum(data: Buffer, seed: int = 0) -> int:
        return function(bytes(data), seed)

    return checksum


def crc32c_of_extension() -> Callable[..., int]:
    """CRC-32C by the `crc32c` wheel, taken from its extension module without running the package around it.

    That package imports importlib.metadata to learn its own version, which takes as long as a tenth of a
    broker's start. Raises ImportError where there is no wheel for this platform.
    """
    package = PathFinder.find_spec("crc32c")
    folders = None if package is None else package.submodule_search_locations
    extension = PathFinder.find_spec("_crc32c", folders) if folders else None
    if extension is None or extension.loader is None:
        raise ImportError("no crc32c extension module")
    module = module_from_spec(extension)
    extension.loader.exec_module(module)
    function: Callable[..., int] = module.crc32c
    return function


crc32c: Callable[..., int]
try:
    crc32c = crc32c_of_extension()
except ImportError:
    crc32c = crc32c_of_crcmod()
