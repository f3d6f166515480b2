from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.batch import Record
from protocol.records.builder import build_batch
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.partition_log import PartitionLog
from tests.simulation.files import SimFileSystem
from tests.support.cleaning import clean_log
from tests.support.logs import START_MS, TOPIC_ID, FixedClock, append, open_manager, read_records


def compacted_log(
    segment_bytes: int = 500, **settings: object
) -> tuple[LogManager, PartitionLog, FixedClock]:
    clock = FixedClock()
    config = LogConfig(
        segment_bytes=segment_bytes, cleanup_policy=("compact",), index_interval_bytes=100, **settings
    )
    manager = open_manager(SimFileSystem(clock.now_ms), config=config, clock=clock)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    log.set_high_watermark(0)
    return manager, log, clock


def put(log: PartitionLog, *pairs: tuple[bytes, bytes | None], codec: int = 0, ts: int = START_MS) -> int:
    rows = [Record(i, ts, key, value) for i, (key, value) in enumerate(pairs)]
    return append(log, build_batch(rows, codec=codec))


def test_a_pass_keeps_the_newest_record_of_each_key() -> None:
    manager, log, clock = compacted_log()
    for number in range(30):
        put(log, (b"k%d" % (number % 3), b"v%d" % number), (b"only%d" % number, b"x"))
    log.roll(clock.now_ms())
    clean_log(manager, log, clock)
    kept = {record.key: record.value for record in read_records(log)}
    assert kept[b"k0"] == b"v27"
    assert kept[b"k1"] == b"v28"
    assert kept[b"k2"] == b"v29"
    assert len(read_records(log)) == 33
    assert log.end_offset == 60


rows = st.lists(
    st.lists(st.tuples(st.integers(0, 6), st.one_of(st.none(), st.integers(0, 60))), min_size=1, max_size=12),
    min_size=1,
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(rows, st.sampled_from([0, 0, 1, 3]), st.integers(0, 20), st.sampled_from([1000, 2000, 9000]))
def test_passes_over_any_log_leave_what_a_plain_model_keeps(rows, codec, between, segment_bytes) -> None:
    manager, log, clock = compacted_log(segment_bytes, delete_retention_ms=1000)
    written: list[tuple[int, bytes, bytes | None]] = []
    for number, each in enumerate(rows):
        pairs = [(b"key-%d" % key, None if size is None else b"v" * size) for key, size in each]
        base = put(log, *pairs, codec=codec, ts=START_MS + number)
        written += [(base + i, key, value) for i, (key, value) in enumerate(pairs)]
        if number == between:
            log.roll(clock.now_ms())
            clean_log(manager, log, clock)
    log.roll(clock.now_ms())
    clean_log(manager, log, clock)
    newest = {key: offset for offset, key, _ in written}
    expected = [row for row in written if newest[row[1]] == row[0]]
    assert [(r.offset, r.key, r.value) for r in read_records(log)] == expected
    put(log, (b"other", b""))
    clock.ms += 2000
    log.roll(clock.now_ms())
    clean_log(manager, log, clock)
    expected = [row for row in expected if row[2] is not None]
    assert [(r.offset, r.key, r.value) for r in read_records(log)][:-1] == expected
    assert log.end_offset == len(written) + 1
