"""Where to begin and end, and the source's options."""

from __future__ import annotations

import pytest

from spark_jobs.kafka import Kafka, Source, offsets, sink_options, time_ms


@pytest.mark.parametrize(
    ("told", "option", "value"),
    [
        ("earliest", "startingOffsets", "earliest"),
        (" Latest ", "startingOffsets", "latest"),
        ('{"a": {"0": 5}}', "startingOffsets", '{"a": {"0": 5}}'),
        ('timestamps:{"a": {"0": 5}}', "startingOffsetsByTimestamp", '{"a": {"0": 5}}'),
        ("1356998400000", "startingTimestamp", "1356998400000"),
        ("2013-01-01", "startingTimestamp", "1356998400000"),
        ("2013-01-01T01:00:00+01:00", "startingTimestamp", "1356998400000"),
        ("2013-01-01T00:00:00.250Z", "startingTimestamp", "1356998400250"),
    ],
)
def test_a_place_is_an_option_of_the_source(told: str, option: str, value: str) -> None:
    assert offsets("starting", told) == {option: value}


def test_what_is_no_place_is_refused() -> None:
    with pytest.raises(ValueError, match="'yesterday' is none of earliest, latest"):
        offsets("starting", "yesterday")


def test_a_time_without_zone_is_utc() -> None:
    assert time_ms("2013-01-01T00:00:01") == time_ms("2013-01-01T00:00:01Z") == 1_356_998_401_000


def test_the_source_gets_what_it_takes() -> None:
    source = Source(
        ("a", "b"),
        starting="2013-01-01",
        ending="latest",
        max_offsets_per_trigger=5,
        min_partitions=2,
        no_record_at_time="latest",
        options={"maxTriggerDelay": "1m"},
    )
    common = {
        "subscribe": "a,b",
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        "startingTimestamp": "1356998400000",
        "startingOffsetsByTimestampStrategy": "latest",
        "minPartitions": "2",
        "maxTriggerDelay": "1m",
    }
    assert source.spark_options(streaming=True) == {**common, "maxOffsetsPerTrigger": "5"}
    assert source.spark_options(streaming=False) == {**common, "endingOffsets": "latest"}


def test_patterns_and_partitions_instead_of_topics() -> None:
    assert Source(pattern="a.*").chosen() == {"subscribePattern": "a.*"}
    assert Source(assign='{"a": [0]}').chosen() == {"assign": '{"a": [0]}'}
    assert [str(Source(("a", "b"))), str(Source(pattern="a.*")), str(Source(assign="{}"))] == [
        "topic a, b",
        "topics that match a.*",
        "partitions {}",
    ]


def test_client_settings_go_through_with_and_without_their_prefix() -> None:
    kafka = Kafka("h:1", {"security.protocol": "SSL", "kafka.ssl.keystore.location": "/k"})
    told = {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.keystore.location": "/k",
        "kafka.bootstrap.servers": "h:1",
    }
    assert kafka.spark_options() == told
    assert sink_options(kafka, "t") == {**told, "includeHeaders": "true", "topic": "t"}
