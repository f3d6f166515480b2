"""A whole broker in the test's own process, with real sockets."""

import asyncio
import shutil

import pytest

from broker.config.load import load_config
from broker.metadata_dir import CannotStart
from broker.server import Broker
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from runtime.system import run
from storage import names
from storage.errors import DirectoryLocked
from tests.support.net_broker import decode, fetch_request, frame, produce_request


def config(path, *more):
    return load_config(None, [f"log.dirs={path}", "listeners=PLAINTEXT://127.0.0.1:0", *more])


async def call(broker, request, version):
    _, host, port = broker.addresses[0]
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(frame(request, version))
    size = int.from_bytes(await reader.readexactly(4), "big")
    data = await reader.readexactly(size)
    writer.close()
    await writer.wait_closed()
    return decode(type(request).API_KEY, version, data)


def with_broker(path, work, *more):
    async def whole(env):
        broker = Broker(config(path, *more), env, lambda: None)
        try:
            await broker.start()
            return await work(broker)
        finally:
            await broker.stop()

    return run(whole)


async def create(broker, name):
    topics = [m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=2, replication_factor=1)]
    answer = await call(broker, m.CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)
    assert answer.topics[0].error_code == 0


def test_what_was_written_is_there_after_a_clean_stop_and_a_start(tmp_path):
    async def write(broker):
        await create(broker, "orders")
        answer = await call(broker, produce_request("orders", 1, [b"a", b"b"], acks=-1), 9)
        assert answer.responses[0].partition_responses[0].base_offset == 0
        return (await call(broker, m.MetadataRequest(topics=None), 12)).cluster_id

    async def read(broker):
        assert not broker.logs.unclean
        answer = await call(broker, fetch_request("orders", {1: 0}), 12)
        assert answer.responses[0].partitions[0].high_watermark == 2
        return (await call(broker, m.MetadataRequest(topics=None), 12)).cluster_id

    cluster_id = with_broker(tmp_path / "data", write)
    assert (tmp_path / "data" / names.CLEAN_SHUTDOWN).exists()
    assert with_broker(tmp_path / "data", read) == cluster_id


def test_metadata_names_the_port_that_the_system_chose(tmp_path):
    async def look(broker):
        answer = await call(broker, m.MetadataRequest(topics=[]), 12)
        assert [("PLAINTEXT", b.host, b.port) for b in answer.brokers] == list(broker.addresses)
        assert broker.addresses[0][2] > 0

    with_broker(tmp_path, look)


def test_a_second_broker_on_the_same_directory_is_refused(tmp_path):
    async def second(broker):
        other = Broker(config(tmp_path), broker._env, lambda: None)
        with pytest.raises(DirectoryLocked, match="in use by another process"):
            await other.start()

    with_broker(tmp_path, second)


def test_a_taken_port_is_refused_before_anything_is_written(tmp_path):
    async def second(broker):
        port = broker.addresses[0][2]
        other = Broker(
            config(tmp_path / "b", f"listeners=PLAINTEXT://127.0.0.1:{port}"), broker._env, lambda: None
        )
        with pytest.raises(CannotStart, match="cannot be opened"):
            await other.start()
        other.logs.abandon()
        assert not (tmp_path / "b" / names.META_PROPERTIES).exists()

    with_broker(tmp_path / "a", second)


def test_the_loss_of_the_last_log_directory_is_reported(tmp_path):
    async def whole(env):
        told = []
        broker = Broker(config(tmp_path), env, lambda: told.append(True))
        await broker.start()
        generation = broker.hub.generation
        broker.logs.dirs[0].fail(OSError(5, "Input/output error"))
        await asyncio.sleep(0)
        assert told == [True]
        assert broker.hub.generation > generation
        await broker.stop()
        assert not (tmp_path / names.CLEAN_SHUTDOWN).exists()

    run(whole)


async def produced(broker, index):
    answer = await call(broker, produce_request("orders", index, [b"a"], acks=-1), 9)
    return answer.responses[0].partition_responses[0]


def test_partitions_whose_logs_are_gone_begin_empty_under_a_higher_epoch(tmp_path, caplog):
    async def write(broker):
        await create(broker, "orders")
        assert (await produced(broker, 0)).error_code == (await produced(broker, 1)).error_code == 0

    async def look(broker):
        assert not broker.logs.unclean
        topic = broker.holder.current.topics["orders"]
        assert [partition.leader_epoch for partition in topic.partitions] == [0, 1]
        assert (await produced(broker, 1)).base_offset == 0

    with_broker(tmp_path, write)
    shutil.rmtree(tmp_path / "orders-1")
    with_broker(tmp_path, look)
    assert "1 partition(s) have no log and begin empty under a higher leader epoch: orders-1" in caplog.text


def test_partitions_of_a_directory_that_is_offline_are_not_made_elsewhere(tmp_path):
    dirs = f"log.dirs={tmp_path / 'a'},{tmp_path / 'b'}"

    async def write(broker):
        await create(broker, "orders")
        assert [len(directory.logs) for directory in broker.logs.dirs] == [1, 1]

    async def look(broker):
        assert [directory.offline for directory in broker.logs.dirs] == [False, True]
        topic = broker.holder.current.topics["orders"]
        assert [partition.leader_epoch for partition in topic.partitions] == [0, 0]
        codes = [(await produced(broker, index)).error_code for index in (0, 1)]
        assert sorted(codes) == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
        await create(broker, "new")  # which goes to the directory that is left

    with_broker(tmp_path, write, dirs)
    (tmp_path / "b").rename(tmp_path / "away")
    (tmp_path / "b").write_text("no directory")
    with_broker(tmp_path, look, dirs)


def test_limits_come_from_the_configuration(tmp_path):
    async def look(broker):
        assert broker.hub.limits.max_connections == 7
        assert broker.hub.limits.per_ip_overrides == {"10.0.0.1": 2}
        assert broker.hub.max_frame_bytes == 5000
        _, host, port = broker.addresses[0]
        reader, writer = await asyncio.open_connection(host, port)
        writer.write((5001).to_bytes(4, "big") + bytes(100))
        assert await reader.read() == b""
        writer.close()
        assert ApiKey.PRODUCE in broker.hub.dispatcher._hot

    with_broker(
        tmp_path,
        look,
        "max.connections=7",
        "max.connections.per.ip.overrides=10.0.0.1:2",
        "socket.request.max.bytes=5000",
    )


def test_groups_are_loaded_before_anything_is_answered(tmp_path):
    async def find(broker):
        asked = m.FindCoordinatorRequest(coordinator_keys=["g"])
        [found] = (await call(broker, asked, 4)).coordinators
        return found.error_code, (found.host, found.port) == broker.addresses[0][1:]

    async def loaded(broker):
        return broker._groups.manager().runtime.active_partitions(), await find(broker)

    few = "offsets.topic.num.partitions=3"
    assert with_broker(tmp_path, find, few) == (0, True)
    assert with_broker(tmp_path, loaded, few) == ([0, 1, 2], (0, True))


def test_a_start_without_groups_makes_no_coordinator(tmp_path):
    async def look(broker):
        await create(broker, "orders")
        return broker._groups._manager

    assert with_broker(tmp_path, look) is None
