"""`ottla console-producer` and `ottla console-consumer` beside Kafka's, on Ottla and on Apache Kafka."""

from __future__ import annotations

import itertools

import pytest
from confluent_kafka import Consumer

from tests.support.tools import assert_same, background_tool, kafka_tool, ottla_tool
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

_names = itertools.count(1)

HEARTBEAT_MS = 300  # of the classic protocol: who has to rejoin hears it so soon

EVERYTHING = tuple(
    part
    for field in ("timestamp", "partition", "offset", "epoch", "headers", "key", "value")
    for part in ("--formatter-property", f"print.{field}=true")
)


@pytest.fixture
def option(either_broker) -> tuple[str, str]:
    """--bootstrap-server of the broker at hand."""
    return ("--bootstrap-server", either_broker.bootstrap_servers)


@pytest.fixture
def topic(option) -> str:
    """A new topic with one partition."""
    return new_topic(option, 1)


def new_topic(option: tuple[str, str], partitions: int) -> str:
    name = f"console-{next(_names)}"
    with WireClient(option[1]) as wire:
        wire.create_topic(name, partitions)
    return name


READER_CASES = {
    "lines": ((), "one\ntwo\n\nno newline at the end"),
    "line endings": ((), "crlf\r\ncr\rlf\nü€\n"),
    "keys": (("parse.key=true",), "k1\tv1\nk2\tv2\textra\n\tempty key\n"),
    "key missing": (("parse.key=true",), "k\tv\nnokey\n"),
    "key missing, ignored": (("parse.key=true", "ignore.error=true"), "nokey\n"),
    "headers, nulls": (
        ("parse.key=true", "key.separator=:", "parse.headers=true", "null.marker=NULL"),
        "h1:v1,h2:v2\tk:v\nNULL\tk:v\nh:NULL\tNULL:NULL\n",
    ),
    "headers broken": (("parse.headers=true",), "h:v\tfine\nbad\tv\n"),
    "headers missing": (("parse.headers=true",), "novalue\n"),
}


@pytest.mark.parametrize(("properties", "lines"), READER_CASES.values(), ids=READER_CASES)
def test_both_producers_make_the_same_records_of_the_same_lines(option, topic, properties, lines) -> None:
    settings = [part for each in properties for part in ("--reader-property", each)]
    codes = []
    for tool in (ottla_tool, kafka_tool):
        done = tool("console-producer", *option, "--topic", topic, *settings, stdin=lines)
        codes.append((done.returncode, done.stdout))
    assert codes[0] == codes[1]
    with WireClient(option[1]) as wire:
        count = wire.list_offset(topic, -1).offset
    if not count:
        return
    shown = ("--formatter-property", "print.headers=true", "--formatter-property", "print.key=true")
    whole = ("--from-beginning", "--max-messages", str(count))
    records = ottla_tool("console-consumer", *option, "--topic", topic, *whole, *shown).stdout.splitlines()
    half = len(records) // 2
    assert records[:half] == records[half:]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kafkas_consumer_reads_what_our_producer_writes_in_each_codec(option, topic, codec) -> None:
    lines = "".join(f"line {number} of some text that repeats\n" for number in range(300))
    done = ottla_tool(
        "console-producer", *option, "--topic", topic, "--compression-codec", codec, stdin=lines
    )
    assert done.returncode == 0
    where = ("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "300")
    assert assert_same("console-consumer", *option, *where) == lines


@pytest.mark.parametrize(
    "arguments",
    [
        ("--offset", "earliest", "--max-messages", "4", *EVERYTHING),
        (
            "--offset",
            "1",
            "--max-messages",
            "3",
            *EVERYTHING,
            *("--formatter-property", "key.separator=|", "--formatter-property", "null.literal=NIL"),
            *("--formatter-property", "line.separator=;", "--formatter-property", "headers.separator=/"),
        ),
        ("--from-beginning", "--max-messages", "2"),
        ("--timeout-ms", "500"),
        ("--offset", "9999", "--timeout-ms", "500"),
        ("--offset", "abc"),
        ("--offset", "-3"),
        ("--offset", "earliest", "--from-beginning"),
        (
            "--offset",
            "earliest",
            "--formatter",
            "org.apache.kafka.tools.consumer.NoOpMessageFormatter",
            "--max-messages",
            "2",
        ),
        ("--offset", "earliest", "--formatter", "nope", "--max-messages", "2"),
        ("--offset", "earliest", "--property", "print.offset=true", "--max-messages", "2"),
        ("--offset", "earliest", "--group", "g"),
        ("--offset", "earliest", "--command-property", "group.id=g"),
    ],
    ids=lambda arguments: " ".join(arguments[:4]),
)
def test_both_consumers_print_the_same(option, topic, arguments) -> None:
    lines = "h1:a,h2:b\tk1\tv1\nNULL\tNULL\tv2\nh:NULL\tk3\tNULL\nh:v\tk4\tv4\n"
    settings = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    marker = ("--reader-property", "null.marker=NULL")
    sent = kafka_tool("console-producer", *option, "--topic", topic, *settings, *marker, stdin=lines)
    assert sent.returncode == 0
    assert_same("console-consumer", *option, "--topic", topic, "--partition", "0", *arguments)


def test_both_producers_send_the_same_key_to_the_same_partition(option) -> None:
    topic = new_topic(option, 5)
    lines = "".join(f"key-{number}-{'x' * (number % 9)}\t{number}\n" for number in range(200))
    for tool in (ottla_tool, kafka_tool):
        done = tool(
            "console-producer", *option, "--topic", topic, "--reader-property", "parse.key=true", stdin=lines
        )
        assert done.returncode == 0
    shown = ("--formatter-property", "print.partition=true", "--formatter-property", "print.key=true")
    read = ottla_tool(
        "console-consumer", *option, "--topic", topic, "--from-beginning", "--max-messages", "400", *shown
    )
    placed: dict[str, list[str]] = {}
    for line in read.stdout.splitlines():
        partition, key, _ = line.split("\t")
        placed.setdefault(key, []).append(partition)
    assert len(placed) == 200
    assert all(len(partitions) == 2 and len(set(partitions)) == 1 for partitions in placed.values())


@pytest.fixture
def filled(option, topic) -> str:
    """A topic with lines 0 to 9."""
    lines = "".join(f"{number}\n" for number in range(10))
    assert ottla_tool("console-producer", *option, "--topic", topic, stdin=lines).returncode == 0
    return topic


def lines_from(first: int, end: int) -> str:
    return "".join(f"{number}\n" for number in range(first, end))


@pytest.mark.parametrize(
    "tools", [(ottla_tool, kafka_tool), (kafka_tool, ottla_tool)], ids=["ours", "theirs"]
)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_with_the_other_tool_where_the_first_one_ended(
    option, filled, tools, protocol
) -> None:
    first, second = tools
    group = ("console-consumer", *option, "--topic", filled, "--group", f"group-of-{filled}")
    group += ("--command-property", f"group.protocol={protocol}")
    done = first(*group, "--from-beginning", "--max-messages", "4")
    assert (done.stdout, done.returncode) == (lines_from(0, 4), 0)
    done = second(*group, "--from-beginning", "--max-messages", "6", "--timeout-ms", "60000")
    assert (done.stdout, done.returncode) == (lines_from(4, 10), 0)
    # nothing is left, and a group that has offsets does not begin anew
    done = first(*group, "--from-beginning", "--timeout-ms", "1500")
    assert (done.stdout, done.returncode) == ("", 0)
    assert done.stderr.endswith("Processed a total of 0 messages\n")


def test_without_group_everything_is_read_again(option, filled) -> None:
    for _ in range(2):
        done = ottla_tool(
            "console-consumer", *option, "--topic", filled, "--from-beginning", "--max-messages", "10"
        )
        assert done.stdout == lines_from(0, 10)


def test_topics_are_chosen_by_a_regular_expression(option, filled) -> None:
    arguments = ("--include", f"x|{filled}", "--from-beginning", "--max-messages", "10")
    assert assert_same("console-consumer", *option, *arguments) == lines_from(0, 10)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--topic", "t", "--group", "a", "--command-property", "group.id=b"),
        ("--topic", "t", "--from-beginning", "--command-property", "auto.offset.reset=latest"),
        ("--include", "t", "--partition", "0"),
    ],
    ids=" ".join,
)
@pytest.mark.kafka
def test_groups_that_make_no_sense_are_refused_as_kafkas_tool_does(arguments) -> None:
    ours, theirs = (
        tool("console-consumer", "--bootstrap-server", "127.0.0.1:1", *arguments)
        for tool in (ottla_tool, kafka_tool)
    )
    assert sorted(ours.stderr.split()) == sorted(theirs.stderr.partition("\nOption  ")[0].split())
    assert (ours.returncode, theirs.returncode) == (1, 1)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "group.protocol=consumer"])
def test_our_console_consumer_shares_a_group_with_another_client(option, strategy) -> None:
    topic, group = new_topic(option, 4), f"shared-{strategy}"
    newer = strategy == "group.protocol=consumer"
    other = Consumer(
        {
            "bootstrap.servers": option[1],
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
        | (
            {"group.protocol": "consumer"}
            if newer
            else {
                "partition.assignment.strategy": strategy,
                "session.timeout.ms": 30_000,
                "heartbeat.interval.ms": HEARTBEAT_MS,
            }
        )
    )
    other.subscribe([topic])

    def other_has(count: int) -> bool:
        other.poll(0.1)
        return len(other.assignment()) == count

    try:
        wait_until(lambda: other_has(4), "the other client to be alone")
        reads = ("console-consumer", *option, "--topic", topic, "--group", group, "--from-beginning")
        setting = strategy if newer else f"heartbeat.interval.ms={HEARTBEAT_MS}"
        reads += ("--command-property", setting)
        with background_tool(*reads) as ours:
            wait_until(lambda: other_has(2), "the two to share")
            lines = lines_from(0, 40)
            keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=,")
            pairs = "".join(f"{line},{line}\n" for line in lines.split())
            ottla_tool("console-producer", *option, "--topic", topic, *keyed, stdin=pairs)
            read = []

            def all_read() -> bool:
                message = other.poll(0.1)
                if message is not None and message.error() is None:
                    read.append(message.value().decode())
                return len(read) + ours.lines() >= 40

            wait_until(all_read, "both to have read everything")
            ours.interrupt()
            printed = ours.output().split()
        assert sorted([*read, *printed], key=int) == lines.split()
        assert 0 < len(read) < 40
        wait_until(lambda: other_has(4), "the other client to be alone again")
    finally:
        other.close()
