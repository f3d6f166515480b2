"""What the decoders of `ottla dump-log` make of a record: a text for its key and one for its value.

Records of the coordinators' topics begin with an i16 in key and value, type and version; they are shown as
JSON. A type that is not known, or bytes that do not parse, make one line instead and the dump goes on.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from struct import Struct
from struct import error as StructError
from typing import Any, Final

from ottla.message_json import as_json, json_text
from protocol import messages as m
from protocol.errors import MalformedMessage, UnsupportedVersion
from protocol.records.batch import Record

Decoder = Callable[[Record], tuple[str | None, str | None]]

SHARE_GROUP_STATE: Final = {0: "ShareSnapshot", 1: "ShareUpdate"}
"""The records of __share_group_state by type."""

TRANSACTION_RECORDS: Final = {0: "TransactionLog"}
"""The records of __transaction_state by type."""

TRANSACTION_STATES: Final = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
)  # fmt: skip
"""How a state is shown, by the number that stands in a record."""

GROUP_RECORDS: Final = {
    0: "LegacyOffsetCommit",
    1: "OffsetCommit",
    2: "GroupMetadata",
    3: "ConsumerGroupMetadata",
    4: "ConsumerGroupPartitionMetadata",
    5: "ConsumerGroupMemberMetadata",
    6: "ConsumerGroupTargetAssignmentMetadata",
    7: "ConsumerGroupTargetAssignmentMember",
    8: "ConsumerGroupCurrentMemberAssignment",
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
    16: "ConsumerGroupRegularExpression",
    17: "StreamsGroupMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
}
"""The records of __consumer_offsets by type."""

CONSUMER_PROTOCOL: Final = "consumer"
DELETED: Final = "<DELETE>"
_I16: Final = Struct(">h")


def coordinator_decoder(names: Mapping[int, str]) -> Decoder:
    """The decoder of a topic whose records have these names, before "Key" and "Value", by type."""

    def decode(record: Record) -> tuple[str | None, str | None]:
        if record.key is None:
            raise ValueError(
                f"Failed to decode message at offset {record.offset} using the specified decoder "
                "(message had a missing key)"
            )
        try:
            kind = _number(record.key, "key")
            name = names.get(kind)
            if name is None:
                return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
            key = _read(f"{name}Key", 0, record.key, "key")
            payload = DELETED if record.value is None else _value(f"{name}Value", kind, record.value)
        except ValueError as error:
            return f"Error at offset {record.offset}, skipping. {error}", None
        return json_text({"type": str(kind), "data": key}), payload

    return decode


def _value(name: str, kind: int, value: bytes) -> str:
    version = _number(value, "value")
    cls: type[m.Message] = getattr(m, name)
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise ValueError(f"Found an unknown record version {version} for {kind} type")
    data = _read(name, version, value, "value")
    if name == "GroupMetadataValue" and data.get("protocolType") == CONSUMER_PROTOCOL:
        for member in data["members"]:
            _open_blobs(member)
    if name == "TransactionLogValue":
        data["transactionStatus"] = _transaction_state(data["transactionStatus"])
    return json_text({"version": str(version), "data": data})


def _transaction_state(number: int) -> str:
    return TRANSACTION_STATES[number] if 0 <= number < len(TRANSACTION_STATES) else str(number)


def _open_blobs(member: dict[str, Any]) -> None:
    """Shows what a classic consumer told its group instead of the bytes, as far as they can be read."""
    for name, cls in (
        ("subscription", m.ConsumerProtocolSubscription),
        ("assignment", m.ConsumerProtocolAssignment),
    ):
        blob = base64.b64decode(member[name])
        try:
            version = min(_number(blob, name), cls.MAX_VERSION)
            member[name] = _read(cls.__name__, version, blob, name)
        except (ValueError, UnsupportedVersion):
            continue


def _read(name: str, version: int, data: bytes, what: str) -> dict[str, Any]:
    cls: type[m.Message] = getattr(m, name)
    try:
        read, _ = cls.decode(version, data, _I16.size)
    except MalformedMessage as error:
        raise ValueError(
            f"Could not read record with version {version} from {what}'s buffer due to: {error}."
        ) from None
    return as_json(read, version)


def _number(data: bytes, what: str) -> int:
    try:
        number: int = _I16.unpack_from(data)[0]
    except StructError:
        raise ValueError(f"Could not read version from {what}'s buffer.") from None
    return number
