"""Apache Kafka's own dump tool reads what we wrote, without a complaint."""

import re
from pathlib import Path

import pytest

from runtime.os_files import OsFileSystem
from tests.storage_oracle.filled import CONFIG, filled_directory
from tests.support.kafka_process import run_tool
from tests.support.logs import open_manager

pytestmark = pytest.mark.kafka

COMPLAINTS = (
    "mismatch",
    "out of order",
    "not found",
    "isvalid: false",
    "invalid bytes",
    "corrupt",
    "exception",
)


def dump(directory: Path, *flags: str) -> str:
    """Kafka's output for all files of the partition, which must not hold a complaint."""
    kinds = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    files = [p for p in sorted(directory.iterdir()) if p.suffix in kinds]
    done = run_tool("DumpLogSegments", "--files", ",".join(map(str, files)), *flags)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text[-3000:]
    found = [line for line in text.splitlines() if any(c in line.lower() for c in COMPLAINTS)]
    assert not found, found[:10]
    # The tool takes the start of any segment but that at 0 for a gap behind offset -1.
    bases = {int(p.stem) for p in files if p.suffix == ".log"}
    gaps = re.findall(r"(-?\d+) is followed by (\d+)", text)
    assert all(before == "-1" and int(after) in bases for before, after in gaps), gaps
    return text


@pytest.fixture(scope="module", params=["closed", "flushed", "recovered"])
def partition(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp(request.param)
    manager = filled_directory(str(path), close=request.param == "closed")
    if request.param == "recovered":
        manager.abandon()
        with (path / "t-0" / "00000000000000000000.index").open("wb") as index:
            index.write(b"garbage!" * 5)
        (path / "recovery-point-offset-checkpoint").unlink()
        again = open_manager(OsFileSystem(), (str(path),), CONFIG)
        assert again.unclean
        again.close()
    return path / "t-0"


def test_deep_iteration_finds_every_record(partition: Path) -> None:
    text = dump(partition, "--deep-iteration")
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", text, re.MULTILINE)]
    assert offsets == list(range(len(offsets)))
    assert len(offsets) > 1000
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert f"compresscodec: {codec} " in text
    assert text.count("Log starting offset") >= 3
    assert "producerId: 7 producerEpoch: 0" in text
    assert text.count("endTxnMarker: ABORT") >= 10
    assert text.count("endTxnMarker: COMMIT") >= 10
    told = re.findall(r"version: 0 producerId: (\d+) firstOffset: \d+ lastOffset: (\d+)", text)
    assert len(told) == text.count("endTxnMarker: ABORT"), "every aborted transaction is indexed"


def test_index_sanity(partition: Path) -> None:
    text = dump(partition, "--index-sanity-check")
    assert text.count("passed sanity check") == 2 * len(list(partition.glob("*.log")))


def test_indexes_agree_with_the_log(partition: Path) -> None:
    dump(partition, "--verify-index-only")
