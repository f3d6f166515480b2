"""Uuids on the wire: 16 raw bytes, most significant first; all zero stands for "none".

Their text is Kafka's: base64 in the URL alphabet without padding, 22 characters. Making one is the business
of `runtime.entropy`; here is no chance.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

ZERO_UUID: Final = bytes(16)


def uuid_to_text(uuid: bytes) -> str:
    """The 22 characters that tools print and files hold. `uuid` must be 16 bytes."""
    if len(uuid) != 16:
        raise ValueError(f"a uuid has 16 bytes, not {len(uuid)}")
    return base64.urlsafe_b64encode(uuid)[:22].decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """The 16 bytes of a 22-character text; padding is tolerated. Raises ValueError for anything else."""
    stripped = text.rstrip("=")
    if len(stripped) != 22 or "+" in stripped or "/" in stripped:
        raise ValueError(f"not a base64 uuid of 22 characters: {text!r}")
    try:
        return base64.b64decode(stripped + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"not a base64 uuid: {text!r}") from error
