"""In which log directory a new partition's log is made.

The one that was chosen for it (AlterReplicaLogDirs, before the partition was there), else the one with the
fewest logs, copies under way included, of those that are not cordoned; the others are tried after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage.log_dirs import LogDir

CHOSEN_MAX = 10_000  # anybody may name partitions that never come; what was chosen first is forgotten
Key = tuple[str, int]


class Placement:
    """See the module."""

    def __init__(self, dirs: Sequence[LogDir]) -> None:
        self._dirs = dirs
        self._chosen: dict[Key, LogDir] = {}

    def choose(self, topic: str, partition: int, directory: LogDir) -> None:
        """Have the log of a partition that is not there yet made in this directory."""
        self._chosen.pop((topic, partition), None)
        if len(self._chosen) >= CHOSEN_MAX:
            del self._chosen[next(iter(self._chosen))]
        self._chosen[topic, partition] = directory

    def places_for(self, key: Key) -> list[LogDir]:
        """Online directories to try, in this order."""
        chosen = self._chosen.get(key)
        if chosen is not None:
            return [] if chosen.offline else [chosen]
        online = [directory for directory in self._dirs if not directory.offline]
        open_ones = [directory for directory in online if not directory.cordoned] or online
        return sorted(open_ones, key=lambda each: len(each.logs) + len(each.futures))

    def done(self, key: Key) -> None:
        """The log is made."""
        self._chosen.pop(key, None)
