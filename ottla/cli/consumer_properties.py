"""The client properties of `ottla console-consumer`: those of Java's consumer that mean something here.

Properties that are not read are of no concern to a tool that speaks PLAINTEXT; what would change which
records are seen or by whom is read or refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ottla.cli.options import ToolFailed, is_true, number
from ottla.client import KafkaClient
from ottla.groups.consumer import NO_RESET, ConsumerSettings
from ottla.groups.heartbeat_member import HeartbeatMember, HeartbeatMemberSettings
from ottla.groups.member import Member, MemberSettings
from ottla.groups.membership import Membership
from ottla.reader import EARLIEST, LATEST

DEFAULT_CLIENT_ID = "console-consumer"
RESETS = {"earliest": EARLIEST, "latest": LATEST, "none": NO_RESET}
ASSIGNORS = {"RangeAssignor": "range", "CooperativeStickyAssignor": "cooperative-sticky"}
GENERATED_IDS = 100_000
CLASSIC = "CLASSIC"
_SHARE = ("share.acknowledgement.mode", "share.acquire.mode")
ONLY_ELSEWHERE = {
    CLASSIC: ("group.remote.assignor", *_SHARE),
    "CONSUMER": ("partition.assignment.strategy", "heartbeat.interval.ms", "session.timeout.ms", *_SHARE),
}
"""What a group protocol has no use for, and Java's consumer refuses."""


class GroupChoice(NamedTuple):
    """The group to join; a generated one is for this run only, so nothing is committed for it unasked."""

    group_id: str
    generated: bool


def choose_group(option: str | None, *sources: Mapping[str, str]) -> GroupChoice:
    """The group of --group and of client properties, which must agree, or a generated one."""
    named = [option] if option is not None else []
    named += [source["group.id"] for source in sources if source.get("group.id")]
    ids = list(dict.fromkeys(named))
    if len(ids) > 1:
        listed = ", ".join(f"'{each}'" for each in sorted(ids))
        raise ToolFailed(
            "The group ids provided in different places (directly using '--group', via "
            "'--consumer-property', or via '--consumer.config') do not match. Detected group ids: "
            f"{listed}"
        )
    if ids:
        return GroupChoice(ids[0], generated=False)
    return GroupChoice(f"console-consumer-{random.randrange(GENERATED_IDS)}", generated=True)


def reset_policy(properties: Mapping[str, str], from_beginning: bool) -> int:
    """Where to begin without a committed offset: auto.offset.reset, or what --from-beginning says."""
    given = properties.get("auto.offset.reset", "").strip().lower()
    if not given:
        return EARLIEST if from_beginning else LATEST
    if given not in RESETS:
        raise ToolFailed(f"auto.offset.reset is one of {', '.join(RESETS)}, not '{given}'")
    if from_beginning and given != "earliest":
        raise ToolFailed(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={given}', please remove "
            "one option"
        )
    return RESETS[given]


def member_maker(group_id: str, properties: Mapping[str, str]) -> Callable[[KafkaClient], Membership]:
    """What makes a membership in the protocol that group.protocol names, on a client of its own."""
    given = properties.get("group.protocol", CLASSIC)
    protocol = given.strip().upper()
    if protocol not in ONLY_ELSEWHERE:
        raise ToolFailed(
            f"Invalid value {given} for configuration group.protocol: String must be one of "
            "(case insensitive): CLASSIC, CONSUMER"
        )
    for key in ONLY_ELSEWHERE[protocol]:
        if properties.get(key):
            raise ToolFailed(f"{key} cannot be set when group.protocol={protocol}")
    if protocol == CLASSIC:
        classic = member_settings(group_id, properties)
        return lambda client: Member(client, classic)
    settings = HeartbeatMemberSettings(
        group_id,
        _milliseconds(
            properties, "max.poll.interval.ms", HeartbeatMemberSettings(group_id).rebalance_timeout_ms
        ),
        properties.get("group.instance.id") or None,
        properties.get("group.remote.assignor") or None,
    )
    return lambda client: HeartbeatMember(client, settings)


def member_settings(group_id: str, properties: Mapping[str, str]) -> MemberSettings:
    """How a membership of the classic protocol is held."""
    defaults = MemberSettings(group_id)
    return MemberSettings(
        group_id,
        _milliseconds(properties, "session.timeout.ms", defaults.session_timeout_ms),
        _milliseconds(properties, "heartbeat.interval.ms", defaults.heartbeat_interval_ms),
        _milliseconds(properties, "max.poll.interval.ms", defaults.rebalance_timeout_ms),
        properties.get("group.instance.id") or None,
        assignors(properties.get("partition.assignment.strategy")) or defaults.assignors,
    )


def _milliseconds(properties: Mapping[str, str], key: str, default: int) -> int:
    return number(properties.get(key, str(default)), key)


def assignors(class_names: str | None) -> tuple[str, ...]:
    """The assignors that Java classes stand for; none for None."""
    names = []
    for class_name in filter(None, (part.strip() for part in (class_names or "").split(","))):
        short = class_name.rpartition(".")[2]
        if short not in ASSIGNORS:
            raise ToolFailed(f"{class_name} is no assignor of this tool: {', '.join(ASSIGNORS)}")
        names.append(ASSIGNORS[short])
    return tuple(names)


def consumer_settings(
    properties: Mapping[str, str], group: GroupChoice, reset: int, read_committed: bool
) -> ConsumerSettings:
    """How the group's consumer reads and commits."""
    interval_ms = number(properties.get("auto.commit.interval.ms", "5000"), "auto.commit.interval.ms")
    commits = is_true(properties, "enable.auto.commit", default=not group.generated)
    return ConsumerSettings(
        reset,
        read_committed,
        interval_ms if commits else None,
        number(properties.get("metadata.max.age.ms", "300000"), "metadata.max.age.ms"),
    )


def lines_about_old_options(given: Iterable[tuple[str, str, object]]) -> list[str]:
    """What to say of options under their old names: (old name, new name, value)."""
    return [
        f"Option --{old} is deprecated and will be removed in a future version. Use --{new} instead."
        for old, new, value in given
        if value
    ]
