"""Messages as objects, and what decoding does with bytes that mean harm."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from protocol import messages as m
from protocol.errors import MalformedMessage, UnsupportedVersion
from protocol.schema.defs import MESSAGES
from tests.support.random_messages import at_version, messages, versions_of
from tests.support.toy_messages import toy

HUGE = (
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff",
    b"\x7f",
)


def test_equality_compares_all_fields() -> None:
    broker = m.MetadataResponse.MetadataResponseBroker
    assert broker(node_id=1) == broker(node_id=1)
    assert broker(node_id=1) != broker(node_id=2)
    assert m.HeartbeatResponse() != m.LeaveGroupResponse()
    assert m.HeartbeatResponse() != "HeartbeatResponse"


def test_messages_are_not_hashable_since_they_change() -> None:
    with pytest.raises(TypeError):
        hash(m.HeartbeatRequest())


def test_the_representation_names_fields_and_hides_records() -> None:
    data = m.ProduceRequest.TopicProduceData.__qualname__
    assert data == "ProduceRequest.TopicProduceData"
    assert repr(m.HeartbeatResponse(error_code=3)) == "HeartbeatResponse(throttle_time_ms=0, error_code=3)"
    partition = m.ProduceRequest.PartitionProduceData(index=1, records=memoryview(b"abc"))
    assert repr(partition) == "ProduceRequest.PartitionProduceData(index=1, records=<3 bytes>)"


@pytest.mark.parametrize("version", [-1, 19, 32767])
def test_versions_that_do_not_exist_are_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersion, match="FetchRequest has versions 0-18"):
        m.FetchRequest.decode(version, b"")
    with pytest.raises(UnsupportedVersion, match="FetchRequest has versions 0-18"):
        m.FetchRequest().encode(version)


def test_nothing_at_the_end_or_after_it_is_read() -> None:
    encoded = m.SaslHandshakeRequest(mechanism="PLAIN").encode(1)
    with pytest.raises(MalformedMessage):
        m.SaslHandshakeRequest.decode(1, encoded + b"\0" * 10, 0, len(encoded) - 1)
    with pytest.raises(MalformedMessage):
        m.SaslHandshakeRequest.decode(1, bytearray(encoded), len(encoded))


def test_bytes_after_a_message_are_left_alone() -> None:
    encoded = m.SaslHandshakeRequest(mechanism="PLAIN").encode(1)
    assert m.SaslHandshakeRequest.decode(1, encoded + b"more")[1] == len(encoded)


def test_a_message_above_a_mebibyte_is_read_like_a_small_one() -> None:
    made = m.SyncGroupRequest.SyncGroupRequestAssignment
    request = m.SyncGroupRequest(
        group_id="é", assignments=[made(member_id=f"m{n}", assignment=bytes(1 << 19)) for n in range(3)]
    )
    for version in (3, 5):
        message, _ = m.SyncGroupRequest.decode(version, bytearray(request.encode(version)))
        assert message == request
        assert type(message.assignments[0].assignment) is bytes


def damaged(encoded: bytes, chance: random.Random) -> Iterator[bytes]:
    """Variants of valid bytes as an attacker or a broken client might send them."""
    size = len(encoded)
    yield encoded[: chance.randrange(size + 1)]
    for _ in range(3):
        at = chance.randrange(size + 1)
        yield encoded[:at] + bytes([chance.randrange(256)]) + encoded[at + 1 :]
        yield encoded[:at] + chance.choice(HUGE) + encoded[at:]
        yield encoded[:at] + encoded[at + chance.randrange(5) :]


@pytest.mark.parametrize("name", MESSAGES)
def test_damaged_bytes_decode_or_are_malformed(name: str) -> None:
    chance = random.Random(name)

    @settings(
        max_examples=2,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(messages(name), st.binary(max_size=40))
    def check(drawn: m.Message, noise: bytes) -> None:
        for version in versions_of(name):
            for data in (noise, *damaged(at_version(drawn, version).encode(version), chance)):
                try:
                    type(drawn).decode(version, data)
                except MalformedMessage:
                    continue

    check()


SMALL_ITEMS = """
    {kind} Toy 1 versions 0 flexible 0+
      Items: [Item]
        Parts: [int8]
"""
REQUEST = toy(SMALL_ITEMS.format(kind="request"))
RESPONSE = toy(SMALL_ITEMS.format(kind="response"))


def test_a_request_may_have_100000_elements_in_all_its_arrays() -> None:
    item, parts = REQUEST.Item, [0] * 999
    request = REQUEST(items=[item(parts=parts) for _ in range(100)])
    assert REQUEST.decode(0, request.encode(0))[0] == request
    request.items[0].parts = [0] * 1000
    with pytest.raises(MalformedMessage, match=r"Toy.Items.Parts of 999 elements exceeds"):
        REQUEST.decode(0, request.encode(0))


def test_a_response_may_have_1000000() -> None:
    response = RESPONSE(items=[RESPONSE.Item(parts=[0] * 999_999)])
    assert RESPONSE.decode(0, response.encode(0))[0] == response
    response.items.append(RESPONSE.Item())
    with pytest.raises(MalformedMessage, match="exceeds"):
        RESPONSE.decode(0, response.encode(0))


LONG_FIELDS = """
    request Toy 1 versions 0-1 flexible 1+
      Names: [string]
      Data: bytes
      Batch: records?
"""


@pytest.mark.parametrize("version", [0, 1])
def test_strings_and_bytes_count_as_an_element_for_each_256_bytes(version: int) -> None:
    cls = toy(LONG_FIELDS)
    short = cls(names=["x" * 256] * 99_999, data=b"", batch=bytes(40 << 20))
    assert cls.decode(version, short.encode(version))[0].names == short.names
    for names, data in (
        (["x" * 25_600] * 1000, b""),
        ([], bytes(256 * 100_001)),
        (["x" * 25_600] * 500, bytes(256 * 50_000)),
    ):
        with pytest.raises(MalformedMessage, match="exceeds the cap"):
            cls.decode(version, cls(names=names, data=data, batch=None).encode(version))


def test_a_message_may_have_10000_tagged_fields() -> None:
    tags = b"\x63\x00"
    assert REQUEST.decode(0, b"\x01\x90\x4e" + tags * 10_000)[1] == 20_003
    with pytest.raises(MalformedMessage, match="10001 tagged fields"):
        REQUEST.decode(0, b"\x01\x91\x4e" + tags * 10_001)
    with pytest.raises(MalformedMessage, match="1 tagged fields"):
        REQUEST.decode(0, b"\x02\x01" + b"\x90\x4e" + tags * 10_000 + b"\x01" + tags)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff\x07" + bytes(64),  # 2**31 - 2 elements in 64 bytes
        b"\x80\x80\x80\x04" + bytes(1 << 23),  # 8 MiB of elements of 2 bytes, announced honestly
        b"\x01\x80\x80\x80\x02" + bytes(1 << 23),  # 8 MiB of tagged fields
        b"\x02\x80\x80\x80\x04" + bytes(1 << 23),  # 8 MiB of numbers
    ],
)
def test_memory_stays_flat_whatever_is_announced(data: bytes) -> None:
    REQUEST.decode(0, b"\x01\0")
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessage):
            REQUEST.decode(0, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
