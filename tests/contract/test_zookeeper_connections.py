"""Connections to a real ZooKeeper: the time-out that a session is granted, and TLS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from replication.metadata.store import ConnectionLost
from replication.metadata.zookeeper_settings import ZookeeperSettings
from replication.metadata.zookeeper_store import ZookeeperStore
from runtime.client_tls import ClientTls
from runtime.clock import SystemClock
from tests.conftest import LONGEST_SESSION_MS
from tests.support.certificates import Authority
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient
from tests.support.zookeeper_process import TICK_MS, ZookeeperProcess

pytestmark = [pytest.mark.zookeeper, pytest.mark.xdist_group("zookeeper")]

CONNECT_MS = 60_000
REFUSED_MS = 1_000
PASSWORD = "of the key"


@asynccontextmanager
async def opened(settings: ZookeeperSettings) -> AsyncIterator[ZookeeperStore]:
    loop = asyncio.get_running_loop()
    store = ZookeeperStore(loop, SystemClock(loop), settings)
    try:
        await store.open()
        yield store
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("asked_ms", "granted_ms"), [(100, 2 * TICK_MS), (5_000, 5_000), (600_000, LONGEST_SESSION_MS)]
)
def test_the_time_out_is_what_the_server_grants(
    zookeeper: ZookeeperProcess, caplog: pytest.LogCaptureFixture, asked_ms: int, granted_ms: int
) -> None:
    async def story() -> None:
        settings = ZookeeperSettings(
            zookeeper.address, "/granted", session_timeout_ms=asked_ms, connection_timeout_ms=CONNECT_MS
        )
        async with opened(settings) as store:
            assert store.session_timeout_ms == granted_ms

    asyncio.run(story())
    told = [each for each in caplog.records if "grants a session time-out" in each.getMessage()]
    assert len(told) == (asked_ms != granted_ms)


class Tls:
    """A server that asks for certificates, and what a client of its needs."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        self.server = ZookeeperProcess((authority.issue("server", "127.0.0.1"), authority.path))
        self.keys = authority.issue("broker", password=PASSWORD)
        self.trusted = authority.path
        (folder / "other").mkdir()
        other = Authority(folder / "other")
        self.other_keys, self.others_trusted = other.issue("stranger"), other.path

    def settings(self, timeout_ms: int = CONNECT_MS, **fields: object) -> ZookeeperSettings:
        tls = ClientTls(str(self.keys), PASSWORD, str(self.trusted))
        return ZookeeperSettings(
            self.server.secure_address,
            "/tls",
            connection_timeout_ms=timeout_ms,
            tls=replace(tls, **fields),  # type: ignore[arg-type]
        )


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tls]:
    made = Tls(tmp_path_factory.mktemp("certificates"))
    with made.server:
        yield made


@pytest.mark.parametrize("versions", [("TLSv1.2", "TLSv1.3"), ("TLSv1.3",)])
def test_a_session_over_tls_is_like_any_other(tls: Tls, versions: tuple[str, ...]) -> None:
    """Also where an answer is larger than a record of TLS, and several answers come in one."""
    values = [bytes([number]) * 100_000 for number in range(5)]

    async def story() -> None:
        async with opened(replace(tls.settings(versions=versions), secure=True)) as store:
            root = await store.create_sequential("/values-", b"")
            paths = [f"{root}/{number}" for number in range(len(values))]
            await asyncio.gather(*(store.create(p, v) for p, v in zip(paths, values, strict=True)))
            nodes = await asyncio.gather(*(store.get(path) for path in paths * 5))
            assert [node.value for node in nodes if node is not None] == values * 5
            await store.put(paths[0], b"by its creator")

    asyncio.run(asyncio.wait_for(story(), 60))


def test_the_name_in_the_certificate_counts_unless_told_otherwise(tls: Tls) -> None:
    by_name = f"localhost:{tls.server.secure_port}"

    async def story() -> None:
        async with opened(replace(tls.settings(check_host_name=False), hosts=by_name)):
            pass
        with pytest.raises(ConnectionLost):
            async with opened(replace(tls.settings(REFUSED_MS), hosts=by_name)):
                pass

    asyncio.run(story())


@pytest.mark.parametrize("whose", ["no certificate", "a stranger's certificate", "a stranger's authority"])
def test_who_cannot_show_or_trust_a_certificate_gets_no_session(tls: Tls, whose: str) -> None:
    fields: dict[str, object] = {
        "no certificate": {"key_store": None},
        "a stranger's certificate": {"key_store": str(tls.other_keys)},
        "a stranger's authority": {"trust_store": str(tls.others_trusted)},
    }[whose]

    async def story() -> None:
        async with opened(tls.settings(REFUSED_MS, **fields)):
            pass

    with pytest.raises(ConnectionLost):
        asyncio.run(story())


def test_a_broker_meets_its_cluster_over_tls(tls: Tls) -> None:
    keys = {
        "broker.id": "7",
        "zookeeper.connect": f"{tls.server.secure_address}/kafka",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.keystore.location": str(tls.keys),
        "zookeeper.ssl.keystore.password": PASSWORD,
        "zookeeper.ssl.truststore.location": str(tls.trusted),
        "zookeeper.ssl.truststore.type": "PEM",
        "zookeeper.set.acl": "true",
    }
    with OttlaProcess(keys) as broker, WireClient(broker.bootstrap_servers) as client:
        wait_until(lambda: client.metadata().controller_id == 7, "the broker to be the controller")
        client.create_topic("t")
