"""A broker's registration: the ephemeral node /brokers/ids/ID, and the broker epoch that comes with it.

The node is made by one transaction, an empty creation and a put of version 5 of Kafka's JSON. The broker
epoch is the id of the transaction: it changes with each registration and with nothing else.

- A node of another session stands in the way: of this broker's process before a kill, most likely. It is left
  alone until that session ends, however long it takes; the start waits for twice a session time-out and then
  gives up. (Kafka gives up at once, so it cannot be restarted faster than its session ends.) Only a node of a
  session that this object itself has had is deleted.
- After the end of a session the broker is invisible to the others. `renew` opens the next one and registers
  again, and does not give up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from replication.metadata import paths
from replication.metadata.payloads import BadPayload, BrokerPayload, decode_broker, encode_broker
from replication.metadata.retry import retried
from replication.metadata.store import (
    NO_SESSION,
    BadVersion,
    ConnectionLost,
    Create,
    MetadataStore,
    Node,
    NodeExists,
    NoNode,
    Put,
    StoreError,
    ensure_path,
)

log = logging.getLogger("ottla.registration")

NOT_REGISTERED = -1
LOOK_AGAIN_S = 1.0
PAUSE_FIRST_S = 0.1
PAUSE_MAX_S = 2.0


class RegistrationRefused(Exception):
    """The broker cannot join the cluster; the text is for the user."""


class Registration:
    """See the module. `describe` gives what the node shall say, each time anew."""

    def __init__(self, store: MetadataStore, broker_id: int, describe: Callable[[], BrokerPayload]) -> None:
        self._store = store
        self._broker_id = broker_id
        self._describe = describe
        self._path = paths.broker(broker_id)
        self._own_session = NO_SESSION
        self._renewing = asyncio.Lock()
        self.epoch = NOT_REGISTERED

    async def register(self) -> int:
        """The broker epoch of a broker that starts. Raises RegistrationRefused, StoreError."""
        await retried(self._store, lambda: ensure_path(self._store, paths.BROKER_IDS))
        await retried(self._store, self._refuse_a_taken_address)
        limit_s = 2 * self._store.session_timeout_ms / 1000
        try:
            async with asyncio.timeout(limit_s):
                return await self._claim()
        except TimeoutError:
            raise RegistrationRefused(
                f"Broker id {self._broker_id} could not be registered within {limit_s:g} s. Another broker "
                "has it and lives; or the metadata store cannot be reached."
            ) from None

    async def renew(self) -> int:
        """Open the store again after its session has expired, register, and return the new epoch. Who asks
        while that goes on gets the same one.
        """
        async with self._renewing:
            if self.epoch == NOT_REGISTERED or self._own_session != self._store.session_id:
                await self._renew()
            return self.epoch

    async def _renew(self) -> None:
        self.epoch = NOT_REGISTERED
        pause_s = PAUSE_FIRST_S
        while True:
            try:
                await self._store.open()
                await self._claim()
                return
            except StoreError as error:
                log.warning("Broker %d is not registered yet: %s", self._broker_id, error)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    async def update(self) -> None:
        """Write a changed description; the epoch stays. Raises StoreError."""
        await retried(self._store, lambda: self._store.put(self._path, encode_broker(self._describe())))

    async def _claim(self) -> int:
        """Register as soon as the node's place is free."""
        changed = asyncio.Event()
        cancel = self._store.watch(self._path, lambda path, event: changed.set())
        told_of: int | None = None
        try:
            while True:
                changed.clear()
                node = await self._try()
                if node is not None and node.owner == self._store.session_id:
                    self._own_session = node.owner
                    self.epoch = node.created_id
                    return node.created_id
                if node is None:
                    continue
                if node.owner == self._own_session:
                    await self._remove(node)
                    continue
                if node.owner != told_of:
                    told_of = node.owner
                    log.warning(
                        "Broker id %d is registered by session %#x; waiting for that session to end",
                        self._broker_id,
                        node.owner & (1 << 64) - 1,
                    )
                await _wait(changed)
        finally:
            cancel()

    async def _try(self) -> Node | None:
        """Make the node, and read whichever is there now."""
        value = encode_broker(self._describe())
        try:
            await self._store.multi([Create(self._path, b"", ephemeral=True), Put(self._path, value, 0)])
        except NodeExists:
            log.debug("%s is there already", self._path)
        except ConnectionLost:
            await self._store.connected()  # it may be there: the read tells
        return await retried(self._store, lambda: self._store.get(self._path))

    async def _remove(self, node: Node) -> None:
        """Of a session of ours that is over, although the store has not noticed yet."""
        try:
            await self._store.delete(self._path, node.version)
        except (NoNode, BadVersion, ConnectionLost) as error:
            log.debug("%s was not removed: %s", self._path, error)

    async def _refuse_a_taken_address(self) -> None:
        """Raises RegistrationRefused where another broker tells clients an address of ours."""
        own = list(self._describe().endpoints.values())
        for name in await self._store.children(paths.BROKER_IDS):
            path = f"{paths.BROKER_IDS}/{name}"
            node = None if name == str(self._broker_id) else await self._store.get(path)
            if node is None:
                continue
            try:
                others = decode_broker(path, node.value).endpoints.values()
            except BadPayload as error:
                log.warning("%s", error)
                continue
            for host, port in others:
                if (host, port) in own:
                    raise RegistrationRefused(
                        f"The address {host}:{port} in advertised.listeners is registered by broker {name}. "
                        "Give this broker an address of its own, or wait until that one is gone."
                    )


async def _wait(changed: asyncio.Event) -> None:
    """For the watch; and look again now and then, in case the session has ended meanwhile."""
    try:
        async with asyncio.timeout(LOOK_AGAIN_S):
            await changed.wait()
    except TimeoutError:
        return
