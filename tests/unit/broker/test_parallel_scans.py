import asyncio
import os
import signal

import pytest

from broker import parallel_scans
from broker.parallel_scans import grouped
from runtime.os_files import OsFileSystem
from runtime.workers import Workers
from storage.segment_scan import ScanRequest, scan_in_worker, scan_inline
from tests.support.logs import batch


def request(number: int, size: int) -> ScanRequest:
    return ScanRequest(f"/{number}.log", number, size, 4096)


def test_small_files_travel_together_and_order_is_kept():
    sizes = [10, 20, parallel_scans.GROUP_BYTES - 30, 1, parallel_scans.GROUP_BYTES * 3, 7, 7]
    requests = [request(number, size) for number, size in enumerate(sizes)]
    groups = list(grouped(requests))
    assert [each for group in groups for each in group] == requests
    assert [len(group) for group in groups] == [3, 1, 1, 2]
    assert [len(group) for group in grouped([request(n, 0) for n in range(600)])] == [256, 256, 88]


@pytest.fixture
def requests(tmp_path):
    made = []
    for base in range(0, 900, 3):
        path = tmp_path / f"{base:020d}.log"
        path.write_bytes(bytes(batch(3, base=base)))
        made.append(ScanRequest(str(path), base, path.stat().st_size, 4096))
    return made


def scanned(requests, count):
    async def main():
        workers = Workers(count)
        try:
            loop, here = asyncio.get_running_loop(), scan_inline(OsFileSystem())
            scans = parallel_scans.parallel_scans(workers, count, loop, here)
            return await asyncio.to_thread(lambda: list(scans(requests)))
        finally:
            await workers.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize("worth", [0, 1 << 40])
def test_answers_come_in_the_order_of_the_requests(requests, worth, monkeypatch):
    monkeypatch.setattr(parallel_scans, "WORTH_BYTES", worth)
    monkeypatch.setattr(parallel_scans, "GROUP_FILES", 7)
    assert scanned(requests, 2) == scan_in_worker(requests)


def kill_once(requests):
    """Ends a worker; in the process of the test it does the work."""
    if os.environ["PARENT"] != str(os.getpid()):
        os.kill(os.getpid(), signal.SIGKILL)
    return scan_in_worker(requests)


def test_what_a_dead_worker_had_is_read_again(requests, monkeypatch, caplog):
    monkeypatch.setattr(parallel_scans, "WORTH_BYTES", 0)
    monkeypatch.setattr(parallel_scans, "scan_in_worker", kill_once)
    monkeypatch.setenv("PARENT", str(os.getpid()))
    assert scanned(requests, 2) == scan_in_worker(requests)
    assert "are read again" in caplog.text
