"""Where new offsets of groups come from: the strategies of `--reset-offsets`, and for which partitions.

For consumer groups and share groups alike. A strategy maps partitions to new offsets. Those that take an
offset from the user or from what is committed keep it inside the log, with a warning. Times are those of
records; a partition without a record that young gets its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from ottla.cli.group_errors import Failed, Refused
from ottla.cli.java_errors import nested
from ottla.client import ClientError, KafkaClient
from ottla.groups.admin import Place
from ottla.groups.log_offsets import EARLIEST, LATEST, NO_LEADER, list_offsets, partition_leaders

Offsets = dict[Place, int]


def topic_places(client: KafkaClient, topics: Sequence[str]) -> list[Place]:
    """The partitions of `t:0,1` and of whole topics `t`."""
    places = [place for topic in topics if ":" in topic for place in parse_places(topic)]
    whole = [topic for topic in topics if ":" not in topic]
    try:
        places += partition_leaders(client, whole)
    except ClientError as error:
        raise Failed(str(error)) from error
    return list(dict.fromkeys(places))


def parse_places(text: str) -> list[Place]:
    """`t:0,1`."""
    parts = text.split(":")
    if len(parts) != 2 or not parts[1]:
        raise Refused(f"Invalid topic arg '{text}', expected topic name and partitions")
    topic, partitions = parts
    found = []
    for partition in partitions.rstrip(",").split(","):
        try:
            found.append((topic, int(partition)))
        except ValueError as error:
            raise Refused(f"Invalid partition '{partition}' specified in topic arg '{text}''") from error
    return found


def check_places(client: KafkaClient, places: Sequence[Place]) -> None:
    """Refuses partitions that do not exist or have no leader."""
    try:
        leaders = partition_leaders(client, (topic for topic, _ in places))
    except ClientError as error:
        raise Failed(nested(error)) from error
    for found, complaint in (
        ([place for place in places if place not in leaders], "do not exist"),
        ([place for place in places if leaders.get(place) == NO_LEADER], "have no leader"),
    ):
        if found:
            listed = ",".join(place_text(place) for place in found)
            raise Failed(f'The partitions "{listed}" {complaint}')


def place_text(place: Place) -> str:
    """`topic-0`."""
    return f"{place[0]}-{place[1]}"


class Strategies:
    """Where new offsets come from."""

    def __init__(self, client: KafkaClient, timeout_s: float) -> None:
        self._client = client
        self._timeout_s = timeout_s

    def earliest(self, places: Sequence[Place]) -> Offsets:
        """The first offsets."""
        return self._listed(places, EARLIEST)

    def latest(self, places: Sequence[Place]) -> Offsets:
        """The ends."""
        return self._listed(places, LATEST)

    def at_time(self, places: Sequence[Place], timestamp_ms: int) -> Offsets:
        """The first records with that timestamp or a later one; the end, with a warning, where none is."""
        found = self._listed(places, timestamp_ms)
        without = [place for place in places if found[place] < 0]
        for topic, partition in without:
            click.echo(
                f"\nWarn: Partition {partition} from topic {topic} is empty. "
                "Falling back to latest known offset."
            )
        return {**found, **self.latest(without)}

    def shifted(self, places: Sequence[Place], by: int, current: Mapping[Place, int]) -> Offsets:
        """The committed offsets, moved; each partition must have one."""
        for place in places:
            if place not in current:
                raise Refused(
                    f"Cannot shift offset for partition {place_text(place)} since there is no current "
                    "committed offset"
                )
        return self.inside({place: current[place] + by for place in places})

    def current(self, places: Sequence[Place], current: Mapping[Place, int]) -> Offsets:
        """The committed offsets, and the ends where there is none."""
        return {
            **{place: current[place] for place in places if place in current},
            **self.latest([place for place in places if place not in current]),
        }

    def inside(self, wanted: Mapping[Place, int]) -> Offsets:
        """The offsets, those outside the log moved to its nearer end."""
        places = list(wanted)
        starts, ends = self.earliest(places), self.latest(places)
        found = {}
        for place, offset in wanted.items():
            found[place] = max(min(offset, ends[place]), starts[place])
            if found[place] != offset:
                where = "higher than latest" if offset > ends[place] else "lower than earliest"
                click.echo(
                    f"WARN New offset ({offset}) is {where} offset for topic partition {place_text(place)}. "
                    f"Value will be set to {found[place]}.",
                    err=True,
                )
        return found

    def _listed(self, places: Sequence[Place], timestamp: int) -> Offsets:
        try:
            return list_offsets(self._client, places, timestamp, self._timeout_s)
        except ClientError as error:
            raise Failed(nested(error)) from error
