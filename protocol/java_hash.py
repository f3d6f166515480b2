"""Java's String.hashCode, which decides in several places of Kafka's protocol who is responsible for what."""

from __future__ import annotations

from struct import unpack

_SIGN = 1 << 31
_WRAP = 1 << 32


def java_hash(text: str) -> int:
    """String.hashCode: h = 31 * h + unit over UTF-16 units, a signed 32-bit number.

    A character outside the basic plane is two units; a lone surrogate is the unit that it is.
    """
    encoded = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for unit in unpack(f">{len(encoded) // 2}H", encoded):
        code = (31 * code + unit) % _WRAP
    return code - _WRAP if code >= _SIGN else code
