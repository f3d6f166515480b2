"""Decoders of records. Beside Kafka's own: tests/tools/test_dump_share_state.py."""

from __future__ import annotations

import pytest

from ottla.cli.record_decoders import GROUP_RECORDS, SHARE_GROUP_STATE, coordinator_decoder
from protocol import messages as m
from protocol.consumer_blobs import encode_subscription
from protocol.records.batch import Record

KEY = b"\0\1g" + bytes(15) + b"\1" + b"\0\0\0\2"
decode = coordinator_decoder(SHARE_GROUP_STATE)


def test_key_and_value_are_shown_as_json() -> None:
    value = b"\0\0" + bytes(4 + 4) + b"\xff" * 8 + b"\1\0"
    assert decode(Record(3, 0, b"\0\1" + KEY, value)) == (
        '{"type":"1","data":{"groupId":"g","topicId":"AAAAAAAAAAAAAAAAAAAAAQ","partition":2}}',
        '{"version":"0","data":{"snapshotEpoch":0,"leaderEpoch":0,"startOffset":-1,"stateBatches":[]}}',
    )
    assert decode(Record(3, 0, b"\0\0" + KEY, None))[1] == "<DELETE>"


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        (b"\0\7", b"", "Unknown record type 7 at offset 3, skipping."),
        (b"\0", b"", "Error at offset 3, skipping. Could not read version from key's buffer."),
        (
            b"\0\1" + KEY,
            b"\0\4",
            "Error at offset 3, skipping. Found an unknown record version 4 for 1 type",
        ),
    ],
)
def test_what_is_not_known_is_one_line(key: bytes, value: bytes, line: str) -> None:
    assert decode(Record(3, 0, key, value)) == (line, None)


def test_bytes_that_do_not_parse_are_one_line() -> None:
    told, nothing = decode(Record(3, 0, b"\0\1" + KEY, b"\0\0\0"))
    assert nothing is None
    assert told is not None
    assert told.startswith(
        "Error at offset 3, skipping. Could not read record with version 0 from value's buf"
    )


def test_a_record_without_a_key_is_an_error() -> None:
    with pytest.raises(ValueError, match="message had a missing key"):
        decode(Record(3, 0, None, b""))


def test_what_a_classic_consumer_told_its_group_is_shown_instead_of_its_bytes() -> None:
    subscription = encode_subscription(m.ConsumerProtocolSubscription(topics=["t"]), 0)
    value = m.GroupMetadataValue(
        protocol_type="consumer",
        members=[m.GroupMetadataValue.MemberMetadata(subscription=subscription, assignment=b"\x00")],
    )
    key = b"\x00\x02" + m.GroupMetadataKey(group="g").encode(0)
    record = Record(0, 0, key, b"\x00\x03" + value.encode(3), ())
    _, payload = coordinator_decoder(GROUP_RECORDS)(record)
    assert '"subscription":{"topics":["t"],"userData":null}' in (payload or "")
    assert '"assignment":"AA=="' in (payload or "")
