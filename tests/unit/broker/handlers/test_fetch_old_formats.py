import pytest

from broker.handlers.fetch_old_formats import to_old_format, unsupported_zstd
from protocol.errors import ErrorCode
from protocol.records.batch import Record, batches
from protocol.records.builder import build_batch
from protocol.records.legacy import legacy_records
from replication.fetch import Row, Wanted
from storage.log_config import LogConfig


def batch(codec=0, base_offset=10):
    return bytes(
        build_batch([Record(0, 5, b"k", b"v%d" % i) for i in range(3)], base_offset=base_offset, codec=codec)
    )


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_each_version_gets_its_format_from_bytes_and_from_pieces(version, magic):
    whole = to_old_format(batch() + batch(base_offset=13), 0, version, 1 << 20)
    pieces = to_old_format([batch(), batch(base_offset=13)], 0, version, 1 << 20)
    assert whole == pieces
    assert {whole[at + 16] for at, _ in batches(whole)} == {magic}
    offsets = [record.offset for at, size in batches(whole) for record in legacy_records(whole, at, size)]
    assert offsets == list(range(10, 16))


def test_only_the_oldest_versions_are_cut():
    assert len(to_old_format(batch(), 0, 2, 50)) == 50
    assert len(to_old_format(batch(), 0, 3, 50)) > 50


def test_zstd_has_no_old_form():
    assert to_old_format(batch(codec=4), 0, 3, 1 << 20) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_zstd_is_seen_in_the_first_batch_or_in_the_topics_setting():
    row = Row(Wanted("t", bytes(16), 0, 0, 0))
    for data, expected in (
        (batch(), False),
        (batch(codec=4), True),
        ([batch(codec=4), batch()], True),
        (b"", False),
    ):
        row.data = data
        assert unsupported_zstd(row, LogConfig()) is expected
    assert unsupported_zstd(row, LogConfig(compression_type="zstd"))
