"""What classic consumers exchange inside group APIs: subscriptions and assignments.

A blob is an int16 version and the message at that version. Like Kafka's consumers, a reader takes a version
above the newest it knows for the newest, since newer versions only append fields. Brokers look into these
blobs only to learn which topics a group is subscribed to; other protocol types have blobs of their own
making.
"""

from __future__ import annotations

import struct
from typing import Final, TypeVar

from protocol import messages as m
from protocol.errors import MalformedMessage
from protocol.primitives import Buffer

_VERSION: Final = struct.Struct(">h")
_Blob = TypeVar("_Blob", bound=m.Message)


def decode_subscription(blob: Buffer) -> m.ConsumerProtocolSubscription:
    """A member's subscription. Raises MalformedMessage."""
    return _decode(m.ConsumerProtocolSubscription, blob)


def encode_subscription(subscription: m.ConsumerProtocolSubscription, version: int) -> bytes:
    """The blob of a subscription."""
    return _VERSION.pack(version) + subscription.encode(version)


def decode_assignment(blob: Buffer) -> m.ConsumerProtocolAssignment:
    """A member's assignment. Raises MalformedMessage."""
    return _decode(m.ConsumerProtocolAssignment, blob)


def encode_assignment(assignment: m.ConsumerProtocolAssignment, version: int) -> bytes:
    """The blob of an assignment."""
    return _VERSION.pack(version) + assignment.encode(version)


def _decode(kind: type[_Blob], blob: Buffer) -> _Blob:
    if len(blob) < _VERSION.size:
        raise MalformedMessage(f"{kind.__name__}: {len(blob)} bytes hold no version")
    (version,) = _VERSION.unpack_from(blob)
    if version < kind.MIN_VERSION:
        raise MalformedMessage(f"{kind.__name__}: there is no version {version}")
    message, _ = kind.decode(min(version, kind.MAX_VERSION), blob, _VERSION.size)
    return message
