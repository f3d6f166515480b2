"""Configurations and levels of features: from the store of a cluster into the image.

Whoever changes a configuration leaves a note in /config/changes that names what to read again; notes are
read in their order, and removed a quarter of an hour after they were seen first, by whichever broker comes to
it. A topic is made together with its configuration, without a note: what LeaderAndIsr names for the first
time is read then (`read_topics`). After the session was lost everything is read again.

The levels in force depend on the registered brokers, too: what one of them does not know is off
(replication.metadata.features). Who is the controller does not matter for it; each broker looks for itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final

from replication.metadata import controller_payloads, paths, payloads
from replication.metadata.configs import ConfigResource, ConfigType, resource_at
from replication.metadata.features import common_levels, read_features
from replication.metadata.image import ImageHolder
from replication.metadata.load import read_configs
from replication.metadata.retry import outlasting, retried
from replication.metadata.store import (
    Cancel,
    MetadataStore,
    Node,
    NoNode,
    SessionEvent,
    SessionExpired,
    StoreError,
    WatchEvent,
)

NOTE_LIFE_MS: Final = 15 * 60_000
RETRY_S: Final = 1.0

_log = logging.getLogger(__name__)


class StoreChanges:
    """See the module. `now_ms` is monotonic. `load` first; then `run` is a task."""

    def __init__(self, store: MetadataStore, holder: ImageHolder, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._holder = holder
        self._now_ms = now_ms
        self._woken = asyncio.Event()
        self._everything = False
        self._brokers_changed = False
        self._limits: Mapping[str, int] = {}
        self._reads = 0
        self._seen: dict[str, int] = {}  # notes that were read, and when
        self._cancels: list[Cancel] = []

    async def load(self) -> None:
        """Everything, with what is noted so far; changes from now on wake `run`. May be done again."""
        self.close()
        self._cancels = [
            self._store.watch(paths.CONFIG_CHANGES, self._changed),
            self._store.watch(paths.FEATURES, self._changed),
            self._store.watch(paths.BROKER_IDS, self._brokers),
            self._store.on_session(self._session),
        ]
        await self._load()

    async def run(self) -> None:
        """Follow what changes, for ever. What the store refuses is tried again."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                if self._everything:
                    self._everything = False
                    await self._load()
                else:
                    await self._read_notes()
                    if self._brokers_changed:
                        await self._read_limits()
                    await self._read_features()
            except (StoreError, payloads.BadPayload) as error:
                _log.warning("Configurations cannot be read and may be old for a while: %s", error)
                self._read_everything()
                await asyncio.sleep(RETRY_S)

    def close(self) -> None:
        """Follow no more."""
        for cancel in self._cancels:
            cancel()

    async def read_topics(self, names: Iterable[str]) -> None:
        """The configurations of topics, before their first partition is hosted; in the next session, where
        this one ends meanwhile. Where the store has none to give, the defaults hold until it can.
        """
        resources = [ConfigResource(ConfigType.TOPIC, name) for name in names]
        try:
            await asyncio.gather(*(outlasting(self._store, partial(self._read, each)) for each in resources))
        except StoreError as error:
            _log.warning("New topics have default settings for a while: %s", error)
            self._read_everything()

    def _read_everything(self) -> None:
        self._everything = True
        self._woken.set()

    def _changed(self, path: str, event: WatchEvent) -> None:
        self._woken.set()

    def _brokers(self, path: str, event: WatchEvent) -> None:
        self._brokers_changed = True
        self._woken.set()

    def _session(self, event: SessionEvent) -> None:
        if event is SessionEvent.CONNECTED:
            self._read_everything()

    async def _load(self) -> None:
        notes = await self._notes()
        node = await self._get(paths.FEATURES)
        await self._read_limits()
        configs = await self._all_configs()
        now_ms = self._now_ms()
        self._seen = {note: self._seen.get(note, now_ms) for note in notes}
        self._holder.publish(
            replace(
                self._holder.current,
                configs=MappingProxyType(configs),
                features=replace(read_features(paths.FEATURES, node), limits=self._limits),
            )
        )

    async def _all_configs(self) -> dict[ConfigResource, MappingProxyType[str, str]]:
        """Not older than what `_read` has published: that of a new topic is told by no note."""
        while True:
            reads = self._reads
            nodes = await retried(self._store, lambda: self._store.subtree(paths.CONFIG))
            if reads == self._reads:
                return read_configs(nodes)

    async def _read_features(self) -> None:
        stored = read_features(paths.FEATURES, await self._get(paths.FEATURES))
        features = replace(stored, limits=self._limits)
        if features != self._holder.current.features:
            self._holder.publish(replace(self._holder.current, features=features))
            _log.info("Features are now on these levels: %s", features.levels())

    async def _read_limits(self) -> None:
        self._brokers_changed = False
        nodes = await retried(self._store, lambda: self._store.subtree(paths.BROKER_IDS))
        known = [_levels_of(path, node) for path, node in nodes.items()]
        self._limits = MappingProxyType(common_levels(known))

    async def _read_notes(self) -> None:
        notes = await self._notes()
        for note in notes:
            if note not in self._seen:
                node = await self._get(f"{paths.CONFIG_CHANGES}/{note}")
                if node is not None:
                    await self._follow(note, node)
                self._seen[note] = self._now_ms()
        self._seen = {note: self._seen[note] for note in notes if note in self._seen}
        await self._purge()

    async def _follow(self, note: str, node: Node) -> None:
        try:
            entity = controller_payloads.decode_config_change(note, node.value)
        except payloads.BadPayload as error:
            _log.error("A note of a change of configuration is not understood: %s", error)
            return
        resource = resource_at(f"{paths.CONFIG}/{entity}")
        if resource is not None:
            await self._read(resource)

    async def _read(self, resource: ConfigResource) -> None:
        """A node that holds something else than a configuration leaves the one that is known."""
        node = await self._get(resource.path)
        try:
            values = {} if node is None else payloads.decode_config(resource.path, node.value)
        except payloads.BadPayload as error:
            _log.error("A configuration is left as it was: %s", error)
            return
        self._reads += 1
        image = self._holder.current
        if dict(image.overrides(resource)) != values:
            self._holder.publish(image.with_configs({resource: values}))

    async def _purge(self) -> None:
        before = self._now_ms() - NOTE_LIFE_MS
        for note, seen_ms in list(self._seen.items()):
            if seen_ms > before:
                break  # they stand in the order in which they were seen
            try:
                await self._store.delete(f"{paths.CONFIG_CHANGES}/{note}")
            except NoNode:
                pass  # another broker was faster
            except SessionExpired:
                raise
            except StoreError as error:
                _log.info("An old note of a change stays for a while: %s", error)
                return
            self._seen.pop(note, None)

    async def _notes(self) -> list[str]:
        return await retried(self._store, lambda: self._store.children(paths.CONFIG_CHANGES))

    async def _get(self, path: str) -> Node | None:
        return await retried(self._store, lambda: self._store.get(path))


def _levels_of(path: str, node: Node) -> Mapping[str, int]:
    """What a registered broker knows; nothing where its node is not understood."""
    try:
        return payloads.decode_broker(path, node.value).features
    except payloads.BadPayload as error:
        _log.warning("%s", error)
        return {}
