import errno

from storage.producers.state import ProducerState
from storage.recovery import replay_batch
from storage.scan import facts_at
from storage.segment_scan import ScanRequest, scan_inline, scan_log
from tests.simulation.files import SimFileSystem
from tests.support.logs import START_MS, batch, facts, marker

PATH = "/00000000000000000100.log"
ONE = len(batch(1))


def file_of(*parts: bytes | bytearray) -> tuple[SimFileSystem, ScanRequest]:
    files = SimFileSystem()
    files.open(PATH, create=True).append(list(parts))
    return files, ScanRequest(PATH, 100, files.size(PATH), ONE)


def test_indexes_epochs_and_bounds():
    times = (5, 9, 7, 9, 12)
    files, request = file_of(
        *(batch(1, base=100 + n, ts=START_MS + at, leader_epoch=n // 2) for n, at in enumerate(times))
    )
    found = scan_log(files, request)
    assert (found.end, found.next_offset, found.reason, found.whole) == (5 * ONE, 105, "", True)
    assert (found.first_timestamp, found.max_timestamp, found.max_timestamp_offset) == (
        START_MS + 5, START_MS + 12, 104,
    )  # fmt: skip
    entries = [(2, 2 * ONE), (4, 4 * ONE)]
    assert found.offset_entries == b"".join(o.to_bytes(4) + p.to_bytes(4) for o, p in entries)
    assert found.time_entries == (START_MS + 9).to_bytes(8) + (1).to_bytes(4) + (START_MS + 12).to_bytes(
        8
    ) + (4).to_bytes(4)
    assert found.last_indexed_position == 4 * ONE
    assert found.epochs == [(0, 100), (1, 102), (2, 104)]


def test_the_first_bad_batch_ends_it_and_says_why():
    bad = batch(1, base=101)
    bad[70] ^= 1
    files, request = file_of(batch(1, base=100), bad, batch(1, base=102))
    found = scan_log(files, request)
    assert (found.end, found.next_offset, found.whole, found.reason) == (ONE, 101, False, "wrong CRC")
    files, request = file_of(batch(1, base=103), batch(1, base=102))
    assert scan_log(files, request).reason == "offset 102 after 103"
    files, request = file_of(batch(1, base=100), batch(1, base=101)[:-1])
    assert scan_log(files, request).next_offset == 101


def test_offsets_that_the_index_cannot_express_end_it():
    files, request = file_of(batch(1, base=100), batch(1, base=100 + (1 << 31)))
    assert scan_log(files, request).next_offset == 101


def test_an_empty_file_has_nothing():
    files, request = file_of()
    found = scan_log(files, request)
    assert (found.whole, found.next_offset, found.max_timestamp) == (True, 100, -1)


def test_the_kept_batches_give_the_state_that_all_would_give():
    parts, base, sequence = [], 100, {1: 0, 2: 0, 3: 0}
    for number in range(60):
        producer = 1 + number % 3
        if producer == 3 and number % 4 == 0:
            parts.append(marker(3, number // 30, commit=number % 8 == 0, base=base))
            base += 1
        data = batch(
            2, base=base, producer=producer, epoch=number // 30, sequence=sequence[producer],
            transactional=producer == 3, ts=START_MS + number,
        )  # fmt: skip
        sequence[producer] += 2
        base += 2
        parts.append(data)
    files, request = file_of(*parts)
    found = scan_log(files, request)
    every, kept = ProducerState(files, "/"), ProducerState(files, "/")
    at, data = 0, files.read_bytes(PATH)
    while at < len(data):
        header = facts_at(data, at, at)
        replay_batch(every, header, data[at : at + header.size])
        at += header.size
    for header, whole in found.producers:
        replay_batch(kept, header, whole)
    assert {p: facts(e) for p, e in kept.entries.items()} == {p: facts(e) for p, e in every.entries.items()}
    assert len(found.producers) < 60


def test_a_disk_that_fails_is_an_answer():
    files, request = file_of(batch(1, base=100))
    files.fail_next("read_at", errno.EIO)
    failed, good = scan_inline(files)([request, request])
    assert isinstance(failed, OSError)
    assert good.whole
