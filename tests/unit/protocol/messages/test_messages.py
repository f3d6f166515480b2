"""All messages at all versions: what is encoded decodes to the same, and kafka-python reads and writes it as
we do.
"""

from __future__ import annotations

import io

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import UnsupportedVersion
from protocol.schema.cache import definition
from protocol.schema.defs import MESSAGES
from tests.support.kafka_python import (
    as_lists,
    from_theirs,
    plain,
    their_classes,
    their_old_schemas,
    their_versions,
    to_theirs,
)
from tests.support.random_messages import at_version, messages, versions_of

quick = settings(
    max_examples=3,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # a failing message is found as readily as a least one
    suppress_health_check=list(HealthCheck),
)
THEIRS = their_classes()


@pytest.mark.parametrize("name", MESSAGES)
def test_what_is_encoded_decodes_to_the_same(name: str) -> None:
    @quick
    @given(messages(name))
    def check(drawn: m.Message) -> None:
        for version in versions_of(name):
            message = at_version(drawn, version)
            encoded = message.encode(version)
            decoded, stop = type(message).decode(version, encoded)
            assert decoded == message, version
            assert stop == len(encoded)
            framed = memoryview(b"ab" + encoded + b"cd")
            assert type(message).decode(version, framed, 2, 2 + len(encoded)) == (message, stop + 2)

    check()


@pytest.mark.parametrize("name", sorted(THEIRS))
def test_kafka_python_reads_and_writes_the_same(name: str) -> None:
    theirs, group = THEIRS[name], definition(name).root
    versions = [version for version in versions_of(name) if version in their_versions(theirs)]
    assert versions

    @quick
    @given(messages(name))
    def check(drawn: m.Message) -> None:
        made = type(drawn)
        for version in versions:
            message = at_version(drawn, version)
            if isinstance(message, m.ApiVersionsResponse):
                message.error_code = 0  # it reads every other one as version 0
            read = theirs.decode(message.encode(version), version=version, header=False)
            assert from_theirs(read, group, version, made, made) == message, version
            written = to_theirs(message, group, version, theirs).encode(version=version, header=False)
            assert made.decode(version, written) == (message, len(written)), version

    check()


#: its schema takes one partition where Kafka has an array of them
WRONG_IN_KAFKA_PYTHON = ("DescribeLogDirsRequest", 0)
OLD = {
    (name, version): schema
    for name, theirs in THEIRS.items()
    for version, schema in their_old_schemas(name).items()
    if version in versions_of(name) and version not in their_versions(theirs)
    if (name, version) != WRONG_IN_KAFKA_PYTHON
}


@pytest.mark.parametrize(("name", "version"), OLD)
def test_kafka_python_reads_and_writes_versions_that_kafka_4_dropped(name: str, version: int) -> None:
    schema, group = OLD[name, version], definition(name).root

    @quick
    @given(messages(name))
    def check(drawn: m.Message) -> None:
        message = at_version(drawn, version)
        encoded, values = message.encode(version), plain(message, group, version)
        assert as_lists(schema.decode(io.BytesIO(encoded))) == values
        assert schema.encode(values) == encoded

    check()


def test_kafka_python_knows_most_of_the_client_apis() -> None:
    assert len(THEIRS) >= 100
    assert len(OLD) >= 30


def test_messages_are_found_by_api_key_and_by_name() -> None:
    assert m.request_class(ApiKey.LIST_OFFSETS) is m.ListOffsetsRequest
    assert m.response_class(18) is m.ApiVersionsResponse
    assert m.ListOffsetsRequest.API_KEY == 2
    assert (m.FetchRequest.MIN_VERSION, m.FetchRequest.MAX_VERSION) == (0, 18)
    assert m.OffsetCommitKey.API_KEY == 1
    assert "MetadataRequest" in dir(m)


@pytest.mark.parametrize("api_key", [-1, 52, 95, 32767])
def test_an_api_without_messages_is_refused(api_key: int) -> None:
    with pytest.raises(UnsupportedVersion, match=f"key {api_key}"):
        m.request_class(api_key)


def test_a_name_that_is_no_message_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NoSuchRequest"):
        m.NoSuchRequest  # noqa: B018
