"""Regular expressions of members: RE2's syntax, matched against whole topic names, resolved beside requests.

A request only asks for it. All expressions of a group are resolved together: when there are others than were
resolved last, when topics have been added, once after a load (whose records count additions of topics from
another start), and every `regex_refresh_ms`; never sooner than 10 s after the last time, and one resolution
of a group at a time. That goes on in slices, a turn of the timer each, so neither a cluster with many topics
nor a group with many expressions holds up heartbeats; the outcome comes as a write of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

from coordinator.group.consumer.assign import update_epoch
from coordinator.group.consumer.change import GroupChange
from coordinator.group.consumer.environment import Environment
from coordinator.group.consumer.errors import Refused
from coordinator.group.consumer.expressions import compile_regex
from coordinator.group.consumer.tables import NOT_RESOLVED, Resolved
from protocol.errors import ErrorCode

MIN_INTERVAL_MS = 10_000
MATCHES_AT_ONCE = 5000  # names times expressions, about 8 ms
COMPILED_AT_ONCE = 20  # about 3 ms, where they are long

_log = logging.getLogger(__name__)
Done = Callable[[dict[str, frozenset[str]]], None]


class RegexResolver:
    """Resolutions that are on their way, for the groups of one shard."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._running: dict[str, None] = {}

    def clear(self) -> None:
        """Forget all, as at an unload."""
        self._running.clear()

    def refresh(self, change: GroupChange, allowed: Callable[[str], bool]) -> None:
        """Have the group's expressions resolved if it is time. `allowed` tells which topics may be seen by
        the member that asks.
        """
        group_id = change.group_id
        wanted = change.subscribed_regexes()
        if not wanted or group_id in self._running:
            return
        now_ms = self._env.now_ms()
        resolved = [change.regexes[regex] for regex in wanted if regex in change.regexes]
        last_ms = max((each.timestamp_ms for each in change.regexes.values()), default=None)
        if last_ms is not None and now_ms <= last_ms + MIN_INTERVAL_MS:
            return
        version = self._env.topics.names_version()
        if (
            group_id in self._env.resolved
            and len(resolved) == len(wanted)
            and all(each.version == version for each in resolved)
            and (last_ms is None or now_ms <= last_ms + self._env.settings.regex_refresh_ms)
        ):
            return
        self._running[group_id] = None

        def done(found: dict[str, frozenset[str]]) -> None:
            if self._running.pop(group_id, _MISSING) is not _MISSING:
                self._env.resolved[group_id] = None
                self._store(group_id, found, version)

        self._resolve(group_id, list(wanted), allowed, done)

    def _resolve(self, group_id: str, regexes: list[str], allowed: Callable[[str], bool], done: Done) -> None:
        found: dict[str, frozenset[str]] = {}
        steps = self._steps(group_id, regexes, allowed, found)
        timers = self._env.parts.context.timers

        def step() -> None:
            if next(steps, _MISSING) is _MISSING:
                done(found)
            else:
                timers.set(("consumer regex", group_id), 0, step)

        timers.set(("consumer regex", group_id), 0, step)

    def _steps(
        self,
        group_id: str,
        regexes: list[str],
        allowed: Callable[[str], bool],
        found: dict[str, frozenset[str]],
    ) -> Iterator[None]:
        """Fill `found`; each `next` does a bounded piece of the work."""
        names = list(self._env.topics.names())
        compiled = matches = 0
        for regex in regexes:
            if compiled == COMPILED_AT_ONCE:
                compiled = 0
                yield
            compiled += 1
            try:
                pattern = compile_regex(regex)
            except Refused as error:  # one that another broker took
                _log.error("Group %s: %s It matches nothing", group_id, error.text)
                found[regex] = frozenset()
                continue
            matched: list[str] = []
            for at in range(0, len(names), MATCHES_AT_ONCE):
                some = names[at : at + MATCHES_AT_ONCE]
                if matches + len(some) > MATCHES_AT_ONCE:
                    matches = 0
                    yield
                matches += len(some)
                matched += [name for name in some if pattern.fullmatch(name) is not None and allowed(name)]
            found[regex] = frozenset(matched)

    def _store(self, group_id: str, found: dict[str, frozenset[str]], version: int) -> None:
        def operation() -> Any:
            change = GroupChange(self._env.tables, group_id)
            store_resolved(self._env, change, found, version)
            return change.result(None)

        def decided(error: ErrorCode, _: Any) -> None:
            if error is not ErrorCode.NONE:
                _log.warning("Group %s: resolved topics were not written: %s", group_id, error.message)

        self._env.parts.context.write(operation, decided)


_MISSING = object()


def store_resolved(
    env: Environment, change: GroupChange, found: dict[str, frozenset[str]], version: int
) -> None:
    """Write what was found for expressions that still have a subscriber; the group's topics are looked at
    anew where that is something else than before.
    """
    now_ms = env.now_ms()
    wanted = change.subscribed_regexes()
    changed = False
    for regex, topics in found.items():
        if regex in wanted and env.tables.may_resolve(change.group_id, regex, topics):
            changed = changed or change.regexes.get(regex, NOT_RESOLVED).topics != topics
            change.put_regex(regex, Resolved(topics, version, now_ms))
    if changed:
        update_epoch(env, change, bump=True)
