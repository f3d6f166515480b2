"""The benchmark's own parts: a wrong client would make every figure wrong."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading

import pytest

from bench import job, machine, report, wire
from bench.driver import Ring, call, connect, drive
from bench.floors import Floor
from bench.rounds import Row, Sample, measure
from protocol import messages as m
from protocol.headers import decode_request_header
from protocol.records.batch import read_header


def test_frames_decode_to_the_requests_they_stand_for():
    batch = wire.make_batch(100, 3, 1_700_000_000_000)
    frame = wire.produce_frame("t", 5, batch)
    assert struct.unpack(">i", frame[:4])[0] == len(frame) - 4
    header, at = decode_request_header(frame, 4, len(frame))
    assert (header.api_key, header.api_version) == (0, wire.PRODUCE_VERSION)
    request, _ = m.ProduceRequest.decode(wire.PRODUCE_VERSION, frame, at)
    partition = request.topic_data[0].partition_data[0]
    assert (request.acks, request.topic_data[0].name, partition.index) == (1, "t", 5)
    assert bytes(partition.records) == batch.data
    assert read_header(batch.data).record_count == 3

    frame = wire.fetch_frame("t", 2, 77, 1)
    header, at = decode_request_header(frame, 4, len(frame))
    fetch, _ = m.FetchRequest.decode(wire.FETCH_VERSION, frame, at)
    asked = fetch.topics[0].partitions[0]
    assert (asked.partition, asked.fetch_offset, asked.partition_max_bytes) == (2, 77, 1)


def test_batches_fill_the_size_they_are_given():
    batch = wire.batch_of_size(1024, 1_048_588, 0)
    assert 1_048_588 - 1100 < len(batch.data) <= 1_048_588


@pytest.mark.parametrize(("connections", "depth"), [(1, 1), (5, 16)])
def test_driver_counts_every_answer_of_an_echo_server(connections, depth):
    frames = [struct.pack(">i", 96) + os.urandom(96) for _ in range(7)]
    with Floor("echo") as floor:
        totals = drive(floor.address, [Ring(frames, depth)] * connections, depth, 1.0, len)
    assert totals.answers > 0
    assert totals.answers * 100 <= totals.answer_bytes < (totals.answers + depth * connections) * 100


def test_driver_sends_frames_larger_than_the_socket_takes(tmp_path):
    frame = struct.pack(">i", 3_000_000) + bytes(3_000_000)
    with Floor("write", str(tmp_path / "f")) as floor:
        totals = drive(floor.address, [Ring([frame], 2)] * 2, 2, 30, len, max_request_bytes=40_000_000)
    assert totals.answers >= 13
    assert totals.request_bytes == totals.answers * len(frame)


def test_sendfile_floor_gives_the_bytes_of_the_file(tmp_path):
    content = os.urandom(50_000)
    (tmp_path / "f").write_bytes(content)
    with Floor("sendfile", str(tmp_path / "f"), "20000") as floor, connect(*floor.address) as sock:
        answers = [call(sock, b"\0\0\0\1x") for _ in range(3)]
    assert [answer[4:] for answer in answers] == [content[:20_000], content[20_000:40_000], content[:20_000]]


def test_driver_notices_answers_of_another_size():
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listening.accept()
        with connection, contextlib.suppress(ConnectionError):
            size = 8
            while connection.recv(100):
                connection.sendall(struct.pack(">i", size) + bytes(size))
                size = 9

    thread = threading.Thread(target=serve)
    thread.start()
    with pytest.raises((RuntimeError, TimeoutError)):
        drive(listening.getsockname(), [Ring([b"\0\0\0\4abcd"], 1)], 1, 0.1, len)
    thread.join()
    listening.close()


def test_a_job_runs_elsewhere_and_its_failure_is_told():
    assert job.run("os:getpid") != os.getpid()
    with pytest.raises(job.JobFailed, match="ZeroDivisionError"):
        job.run("tests.bench.test_bench:fail")


def fail():
    raise ZeroDivisionError


def test_columns_are_measured_in_turns_and_a_failing_one_is_left_out(capsys):
    order = []

    def column(name, fails=False):
        def run():
            order.append(name)
            if fails:
                raise RuntimeError("broken\nlast line")
            return Sample(10.0 * len(order), 2.0)

        return run

    row = measure(Row("s", "l", "u"), {"a": column("a"), "b": column("b"), "c": column("c", True)}, 2)
    assert order == ["a", "b", "c", "a", "b"]
    assert row.value("a") == 25.0
    assert row.value("b") == 35.0
    assert row.spread("a") == (10.0, 40.0)
    assert row.value("c") is None
    assert row.notes == ["c: last line"]


def test_report_shows_ratio_and_costs_and_keeps_every_round():
    row = Row("s", "64 x 1", "requests/s", "us/request")
    row.samples = {
        "ottla": [Sample(120_000, 7.5)],
        "kafka": [Sample(60_000, 24.0)],
        "floor": [Sample(150_000)],
    }
    columns = ["ottla", "kafka", "floor"]
    line = report.line(row, columns)
    assert "120,000" in line
    assert "2.00x" in line
    assert "0.80" in line
    assert "7.5 / 24 us/request" in line
    kept = json.loads(report.as_json([row], columns, {"quick": True}))
    assert kept["rows"][0]["ratio"] == 2.0
    assert kept["rows"][0]["rounds"]["kafka"] == [60_000]


def test_machine_sees_this_process():
    assert machine.rss_bytes(os.getpid()) > 5_000_000
    assert machine.cpu_seconds(os.getpid()) > 0
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert machine.listener_pid(listening.getsockname()[1]) == os.getpid()
