"""`ottla dump-log` beside Kafka's DumpLogSegments, on files of either broker, whole and damaged."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from protocol.records.batch import Record
from protocol.records.control import build_end_marker
from protocol.records.legacy import build_message_set
from tests.support.ottla_process import OttlaProcess
from tests.support.tools import assert_same, kafka_tool, ottla_tool
from tests.support.wire_client import WireClient


@pytest.fixture(scope="module")
def written() -> dict[str, bool]:
    """Which brokers have the topic of this module already."""
    return {}


@pytest.fixture
def partition(either_broker, written, tmp_path) -> Path:
    """A copy of a partition's folder with batches of both producers in several codecs."""
    option = ("--bootstrap-server", either_broker.bootstrap_servers)
    if option[1] not in written:
        written[option[1]] = True
        with WireClient(option[1]) as wire:
            wire.create_topic("dumped")
        properties = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
        marker = ("--reader-property", "null.marker=NULL")
        lines = "".join(f"h:{number}\tk{number}\tsome text {number}\n" for number in range(400))
        for tool in (ottla_tool, kafka_tool):
            for codec in ("none", "zstd", "snappy"):
                codec_option = ("--compression-codec", codec, "--batch-size", "2000")
                sent = tool(
                    "console-producer",
                    *(*option, "--topic", "dumped", *properties, *marker, *codec_option),
                    stdin=lines + "NULL\tNULL\tNULL\n",
                )
                assert sent.returncode == 0
    copy = tmp_path / "dumped-0"
    shutil.copytree(either_broker.log_dir / "dumped-0", copy)
    return copy


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--deep-iteration",),
        ("--print-data-log",),
        ("--print-data-log", "--skip-record-metadata"),
        ("--max-bytes", "5000"),
    ],
    ids=lambda arguments: " ".join(arguments) or "plain",
)
def test_a_log_is_printed_as_kafkas_tool_prints_it(partition, arguments) -> None:
    printed = assert_same("dump-log", "--files", str(partition / f"{0:020}.log"), *arguments)
    assert "isvalid: false" not in printed


@pytest.fixture(scope="module")
def closed(tmp_path_factory) -> Path:
    """The partition's folder of a broker of ours that was stopped, so that its indexes are on disk."""
    directory = tmp_path_factory.mktemp("closed")
    with OttlaProcess(directory=directory) as broker:
        option = ("--bootstrap-server", broker.bootstrap_servers)
        with WireClient(option[1]) as wire:
            wire.create_topic("closed")
        lines = "".join(f"line {number} {'x' * 200}\n" for number in range(500))
        for tool in (ottla_tool, kafka_tool):
            assert tool("console-producer", *option, "--topic", "closed", stdin=lines).returncode == 0
    return broker.log_dir / "closed-0"


@pytest.mark.kafka
@pytest.mark.parametrize("arguments", [(), ("--index-sanity-check",), ("--verify-index-only",)], ids=str)
def test_indexes_are_printed_as_kafkas_tool_prints_them(closed, arguments) -> None:
    files = ",".join(str(closed / f"{0:020}.{suffix}") for suffix in ("index", "timeindex"))
    printed = assert_same("dump-log", "--files", files, *arguments)
    assert arguments or printed.count("\noffset: ") > 10


@pytest.mark.kafka
def test_kafkas_tool_has_no_complaint_about_our_files(closed) -> None:
    files = [str(closed / f"{0:020}.{suffix}") for suffix in ("log", "index", "timeindex")]
    done = kafka_tool("dump-log", "--files", ",".join(files), "--print-data-log")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("isvalid: true") > 10


def damaged(log: Path, name: str) -> None:
    content = bytearray(log.read_bytes())
    if name == "torn":
        del content[150:]
    elif name == "garbage at the end":
        content += bytes(7)
    elif name == "empty":
        content.clear()
    else:
        content[40] ^= 1
    log.write_bytes(content)


@pytest.mark.parametrize("damage", ["torn", "garbage at the end", "empty", "flipped bit"])
def test_damage_is_told_as_kafkas_tool_tells_it(partition, damage) -> None:
    log = partition / f"{0:020}.log"
    damaged(log, damage)
    assert_same("dump-log", "--files", str(log))


@pytest.mark.kafka
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3], ids=["none", "gzip", "snappy", "lz4"])
def test_old_formats_are_printed_as_kafkas_tool_prints_them(tmp_path, magic, codec) -> None:
    records = [
        Record(offset, 1_700_000_000_000 + offset, b"k%d" % offset if offset % 2 else None, b"v%d" % offset)
        for offset in range(4)
    ]
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(build_message_set(records, magic=magic, codec=codec))
    assert_same("dump-log", "--files", str(log), "--print-data-log")


@pytest.mark.kafka
@pytest.mark.parametrize("arguments", [(), ("--skip-record-metadata",)], ids=str)
def test_control_records_are_printed_as_kafkas_tool_prints_them(tmp_path, arguments) -> None:
    log = tmp_path / f"{0:020}.log"
    markers = [
        build_end_marker(
            commit, producer_id=5, producer_epoch=1, coordinator_epoch=3, timestamp=17, base_offset=offset
        )
        for offset, commit in enumerate((True, False))
    ]
    log.write_bytes(b"".join(markers))
    assert_same("dump-log", "--files", str(log), "--print-data-log", *arguments)


@pytest.mark.kafka
def test_the_aborted_transaction_index_is_printed_as_kafkas_tool_prints_it(tmp_path) -> None:
    index = tmp_path / f"{0:020}.txnindex"
    index.write_bytes(struct.pack(">hqqqq", 0, 7, 10, 20, 15) + struct.pack(">hqqqq", 0, 8, 30, 40, 31))
    assert_same("dump-log", "--files", str(index))


@pytest.mark.kafka
def test_unknown_and_missing_files_are_told_apart(tmp_path) -> None:
    (tmp_path / "partition.metadata").write_text("version: 0\n")
    assert_same("dump-log", "--files", str(tmp_path / "partition.metadata"))
    assert_same("dump-log", "--files", str(tmp_path / f"{77:020}.log"))
