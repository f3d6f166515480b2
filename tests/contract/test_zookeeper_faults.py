"""What ZooKeeper adds to the contract: servers that stop, hang or are cut off, chroots, access lists."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from replication.metadata import zookeeper_session
from replication.metadata.retry import retried
from replication.metadata.store import (
    ConnectionLost,
    Create,
    NodeExists,
    SessionEvent,
    SessionExpired,
    StoreFailed,
    WatchEvent,
)
from replication.metadata.zookeeper_settings import ZookeeperSettings
from replication.metadata.zookeeper_store import ZookeeperStore
from runtime.clock import SystemClock
from runtime.zookeeper_farewell import execute
from tests.contract.metadata_worlds import LIMIT_S, Heard, eventually
from tests.support.ports import free_port
from tests.support.tcp_proxy import TcpProxy
from tests.support.zookeeper_process import ZookeeperProcess

TIMEOUT_MS = 4_000
SOON_MS = 10_000  # of one that pings, or tries to connect again, after a part of that
LONG_MS = 40_000
"""Of sessions that nobody shall take for dead, however busy the machine is. They outlast the server's start,
and a try to connect that came too early.
"""


@pytest.fixture(scope="module")
def own_zookeeper():
    """A server that may be stopped."""
    with ZookeeperProcess(max_session_ms=LONG_MS) as server:
        yield server


def make_store(address, chroot="", **more):
    loop = asyncio.get_running_loop()
    settings = ZookeeperSettings(
        address,
        chroot,
        **{"session_timeout_ms": LONG_MS, "connection_timeout_ms": int(LIMIT_S * 1000), **more},
    )
    return ZookeeperStore(loop, SystemClock(loop), settings)


@asynccontextmanager
async def opened(address, chroot="", **more):
    store = make_store(address, chroot, **more)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.mark.zookeeper
@pytest.mark.xdist_group("zookeeper")
def test_a_farewell_ends_the_session_at_once(own_zookeeper):
    """Its owner goes on asking here, so that nothing but the farewell can have ended it. As it lives, it may
    take the session back before the farewell has closed it: then that is said once more.
    """

    async def main():
        address = own_zookeeper.address
        async with opened(address, "/farewell") as store, opened(address, "/farewell") as other:
            states, heard = Heard(), Heard()
            store.on_session(states.note)
            other.watch("/here", heard.watcher)
            assert await other.get("/here") is None  # the watch is set
            await store.create("/here", b"", ephemeral=True)
            await heard.equals([("/here", WatchEvent.CREATED)])
            will = store._session.farewell()
            assert await asyncio.to_thread(execute, will)
            while await asyncio.to_thread(execute, will):
                pass
            await heard.equals([("/here", WatchEvent.CREATED), ("/here", WatchEvent.DELETED)])
            await states.until(lambda told: SessionEvent.EXPIRED in told, "an end of the session told")
            assert not await asyncio.to_thread(execute, will)

    asyncio.run(main())


@pytest.mark.zookeeper
@pytest.mark.xdist_group("zookeeper")
def test_a_server_that_is_killed_and_comes_back_still_knows_the_session(own_zookeeper):
    async def main():
        address = own_zookeeper.address
        async with opened(address, "/killed") as store:
            states, heard = Heard(), Heard()
            store.on_session(states.note)
            store.watch("/kept", heard.watcher)
            await store.create("/kept", b"1")
            await heard.equals([("/kept", WatchEvent.CREATED)])
            await store.create("/me", b"", ephemeral=True)
            session = store.session_id
            await asyncio.to_thread(own_zookeeper.kill)
            await states.equals([SessionEvent.SUSPENDED])
            with pytest.raises(ConnectionLost):
                await store.put("/kept", b"2")
            await asyncio.to_thread(own_zookeeper.start)
            assert await retried(store, lambda: store.put("/kept", b"2", 0)) == 1
            await heard.equals([("/kept", WatchEvent.CREATED), ("/kept", WatchEvent.CHANGED)])
            assert (await store.get("/me")).owner == session
            assert states.events == [SessionEvent.SUSPENDED, SessionEvent.CONNECTED]

    asyncio.run(main())


@pytest.mark.zookeeper
@pytest.mark.xdist_group("zookeeper")
def test_a_server_that_hangs_for_less_than_a_session_changes_nothing(own_zookeeper):
    async def main():
        async with opened(own_zookeeper.address, "/hung", session_timeout_ms=SOON_MS) as store:
            states = Heard()
            store.on_session(states.note)
            await store.create("/me", b"", ephemeral=True)
            own_zookeeper.pause()
            asked = asyncio.ensure_future(retried(store, lambda: store.get("/me")))
            await eventually(lambda: store.contact_age_ms() > 1_500, "no contact for long")
            assert not asked.done()
            own_zookeeper.resume()
            assert (await asked).owner == store.session_id
            await eventually(lambda: store.contact_age_ms() < 1_500, "contact again")
            assert SessionEvent.EXPIRED not in states.events

    asyncio.run(main())


@pytest.mark.zookeeper
@pytest.mark.xdist_group("zookeeper")
def test_a_session_that_is_cut_off_knows_how_long_and_hears_of_its_end_afterwards(zookeeper):
    async def main(proxy):
        async with opened(zookeeper.address, "/cut") as other:
            states, heard = Heard(), Heard()
            other.watch("/me", heard.watcher)
            assert await other.get("/me") is None  # the watch is set
            async with opened(proxy.address, "/cut", session_timeout_ms=TIMEOUT_MS) as cut:
                cut.on_session(states.note)
                await cut.create("/me", b"", ephemeral=True)
                proxy.freeze()  # at once: whoever stands still before that has lost the session already
                asked = asyncio.ensure_future(cut.put("/me", b"x"))
                was_there = [("/me", WatchEvent.CREATED), ("/me", WatchEvent.DELETED)]
                await heard.equals(was_there)
                # Ours must have been able to know before the others could: it counts from when it asked.
                assert cut.contact_age_ms() >= TIMEOUT_MS
                with pytest.raises(ConnectionLost):
                    await asked
                assert other.contact_age_ms() < LONG_MS
                assert SessionEvent.EXPIRED not in states.events
                proxy.heal()
                await states.equals([SessionEvent.SUSPENDED, SessionEvent.EXPIRED])
                with pytest.raises(SessionExpired):
                    await cut.get("/me")
                await cut.open()
                await cut.create("/me", b"again", ephemeral=True)
                await heard.until(
                    lambda told: told[:3] == [*was_there, ("/me", WatchEvent.CREATED)], "told of it again"
                )
                await eventually(lambda: cut.contact_age_ms() < TIMEOUT_MS, "contact again")

    with TcpProxy(zookeeper.host, zookeeper.port) as proxy:
        asyncio.run(main(proxy))


@pytest.mark.zookeeper
@pytest.mark.xdist_group("zookeeper")
def test_a_connection_on_which_nothing_comes_back_does_not_cost_the_session(zookeeper):
    async def main(proxy):
        async with opened(proxy.address, "/silent", session_timeout_ms=SOON_MS) as store:
            began = time.monotonic()
            states = Heard()
            store.on_session(states.note)
            await store.create("/me", b"", ephemeral=True)
            session = store.session_id
            proxy.cut()
            await states.equals([SessionEvent.SUSPENDED])
            proxy.freeze()
            before = proxy.accepted
            await eventually(lambda: proxy.accepted >= before + 2, "another try to connect")
            proxy.heal()
            try:
                assert await retried(store, lambda: store.put("/me", b"here", 0)) == 1
                assert (await store.get("/me")).owner == session
                assert SessionEvent.EXPIRED not in states.events
            except (AssertionError, SessionExpired):  # where somebody has stood still for the rest of it
                if time.monotonic() - began < SOON_MS / 1000:
                    raise

    with TcpProxy(zookeeper.host, zookeeper.port) as proxy:
        asyncio.run(main(proxy))


@pytest.mark.zookeeper
@pytest.mark.xdist_group("zookeeper")
def test_a_call_whose_answer_is_lost_may_have_been_applied(zookeeper):
    async def main(proxy):
        async with opened(proxy.address, "/lost") as store:
            proxy.freeze_answers()
            created = asyncio.ensure_future(store.create("/me", b"", ephemeral=True))
            async with opened(zookeeper.address, "/lost") as other:
                heard = Heard()
                other.watch("/me", heard.watcher)
                while await other.get("/me") is None:
                    await heard.until(bool, "anything told")
            proxy.cut()
            with pytest.raises(ConnectionLost):
                await created
            proxy.heal()
            with pytest.raises(NodeExists):
                await retried(store, lambda: store.create("/me", b"", ephemeral=True))
            assert (await store.get("/me")).owner == store.session_id

    with TcpProxy(zookeeper.host, zookeeper.port) as proxy:
        asyncio.run(main(proxy))


@pytest.mark.zookeeper
@pytest.mark.xdist_group("zookeeper")
def test_open_gives_up_after_the_connection_time_out():
    async def main():
        store = make_store(f"127.0.0.1:{free_port()}", connection_timeout_ms=200)
        with pytest.raises(ConnectionLost, match="within 200 ms"):
            await store.open()
        with pytest.raises(SessionExpired):
            await store.get("/")
        await store.close()

    asyncio.run(main())


@pytest.mark.zookeeper
@pytest.mark.xdist_group("zookeeper")
def test_close_does_not_wait_for_a_server_that_does_not_answer(zookeeper, monkeypatch):
    async def main(proxy):
        async with opened(proxy.address, "/closing") as store:
            proxy.freeze()
            await store.close()
            with pytest.raises(SessionExpired):
                await store.get("/")

    monkeypatch.setattr(zookeeper_session, "CLOSE_TIMEOUT_S", 0.1)
    with TcpProxy(zookeeper.host, zookeeper.port) as proxy:
        asyncio.run(main(proxy))


@pytest.mark.zookeeper
@pytest.mark.xdist_group("zookeeper")
def test_a_chroot_is_made_and_nothing_outside_is_seen(zookeeper):
    async def main():
        async with opened(zookeeper.address, "/deep/er/root") as inner, opened(zookeeper.address) as outer:
            await inner.create("/a", b"x")
            assert (await outer.get("/deep/er/root/a")).value == b"x"
            assert list(await outer.subtree("/deep")) == ["/deep/er", "/deep/er/root", "/deep/er/root/a"]
            assert "zookeeper" not in await outer.children("/")
            assert await outer.get("/zookeeper") is not None
            async with opened(zookeeper.address, "/deep/er/root") as again:
                assert await again.children("/") == ["a"]

    asyncio.run(main())


@pytest.mark.zookeeper
@pytest.mark.xdist_group("zookeeper")
def test_protected_nodes_belong_to_who_says_the_password(zookeeper):
    async def main():
        more = {"digest": "ottla:secret", "secure": True}
        async with opened(zookeeper.address, "/protected", **more) as owner:
            for path in ("/config", "/config/users", "/consumers"):
                await owner.create(path, b"x")
            await owner.multi([Create("/config/users/u", b"hidden"), Create("/t", b"seen")])
            await owner.put("/t", b"still seen")
            async with opened(zookeeper.address, "/protected", digest="ottla:wrong") as stranger:
                assert (await stranger.get("/t")).value == b"still seen"
                with pytest.raises(StoreFailed, match="NoAuth"):
                    await stranger.put("/t", b"mine")
                with pytest.raises(StoreFailed, match="NoAuth"):
                    await stranger.multi([Create("/t/x", b"")])
                with pytest.raises(StoreFailed, match="NoAuth"):
                    await stranger.get("/config/users/u")
                await stranger.create("/consumers/c", b"")
            async with opened(zookeeper.address, "/protected", **more) as again:
                assert (await again.get("/config/users/u")).value == b"hidden"

    asyncio.run(main())
    anonymous = KazooClient(zookeeper.address, timeout=TIMEOUT_MS / 1000)
    anonymous.start(LIMIT_S)
    with pytest.raises(NoAuthError):
        anonymous.delete("/protected/t")
    anonymous.stop()
    anonymous.close()


@pytest.mark.zookeeper
@pytest.mark.xdist_group("zookeeper")
def test_no_more_calls_are_out_than_allowed_and_they_end_in_order(zookeeper):
    async def main():
        async with opened(zookeeper.address, "/flight", max_in_flight=3) as store:
            session, ended, most = store._session, [], 0
            calls = [session.call(lambda client: client.exists_async("/flight")) for _ in range(50)]
            for number, call in enumerate(calls):
                call.add_done_callback(lambda _, number=number: ended.append(number))
            while not calls[-1].done():
                most = max(most, len(session._in_flight))
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert most == 3
            assert ended == list(range(50))

    asyncio.run(main())
