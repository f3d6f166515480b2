"""`ottla consumer-groups --reset-offsets`: which group's offsets of which partitions move to where."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Sequence
from pathlib import Path

from ottla.cli.consumer_group_options import SCENARIOS, Arguments
from ottla.cli.group_errors import Failed, Refused, print_error
from ottla.cli.java_errors import FUTURE, nested
from ottla.cli.offset_strategies import Offsets, Strategies, check_places, place_text, topic_places
from ottla.cli.reset_times import parse_datetime, parse_duration_ms
from ottla.client import ClientError
from ottla.groups.admin import GroupAdmin, Place
from ottla.groups.descriptions import DEAD, GroupDescription, NotAConsumerGroup, describe_consumer_groups
from protocol.errors import ErrorCode


def reset(admin: GroupAdmin, group_ids: Sequence[str], arguments: Arguments) -> dict[str, Offsets]:
    """The new offsets of each group, written already where --execute says so."""
    numbers(arguments)
    plan: dict[str, Offsets] = {}
    for group_id, outcome in describe_consumer_groups(admin, group_ids).items():
        plan[group_id] = {}
        if isinstance(outcome, GroupDescription) and outcome.state not in ("Empty", DEAD):
            print_error(
                f"Assignments can only be reset if the group '{group_id}' is inactive, but the current "
                f"state is {outcome.state}."
            )
            continue
        if isinstance(outcome, NotAConsumerGroup):
            raise Failed(f"{FUTURE}java.lang.IllegalArgumentException: {outcome}")
        if isinstance(outcome, ClientError) and outcome.error != ErrorCode.GROUP_ID_NOT_FOUND:
            raise Failed(nested(outcome))
        plan[group_id] = new_offsets(admin, group_id, arguments)
        if arguments.execute:
            write(admin, group_id, plan[group_id])
    return plan


def write(admin: GroupAdmin, group_id: str, offsets: Offsets) -> None:
    """Commits the new offsets."""
    failed = {
        place: error for place, error in admin.commit(group_id, offsets).items() if error != ErrorCode.NONE
    }
    if failed:
        listed = ", ".join(place_text(place) for place in sorted(failed))
        raise Failed(f"Failed altering group offsets for the following partitions: [{listed}]")


def new_offsets(admin: GroupAdmin, group_id: str, arguments: Arguments) -> Offsets:
    """The offsets that the chosen strategy gives to the chosen partitions of a group."""
    places = chosen_places(admin, group_id, arguments)
    check_places(admin.client, places)
    strategies = Strategies(admin.client, admin.coordinators.timeout_s)
    if arguments.to_offset is not None:
        return strategies.inside(dict.fromkeys(places, int(arguments.to_offset)))
    if arguments.to_earliest:
        return strategies.earliest(places)
    if arguments.to_latest:
        return strategies.latest(places)
    if arguments.shift_by is not None:
        return strategies.shifted(places, int(arguments.shift_by), committed(admin, group_id))
    if arguments.to_datetime is not None:
        return strategies.at_time(places, parse_datetime(arguments.to_datetime))
    if arguments.by_duration is not None:
        return strategies.at_time(places, int(time.time() * 1000) - parse_duration_ms(arguments.by_duration))
    if arguments.from_file is not None:
        only_group = arguments.group[0] if len(arguments.group) == 1 else None
        return from_file(strategies, group_id, arguments.from_file, only_group)
    if arguments.to_current:
        return strategies.current(places, committed(admin, group_id))
    scenarios = ", ".join(f"[{name}]" for name in SCENARIOS)
    raise Refused(f"Option '[reset-offsets]' requires one of the following scenarios: [{scenarios}]")


def chosen_places(admin: GroupAdmin, group_id: str, arguments: Arguments) -> list[Place]:
    """The partitions that --all-topics or --topic means; none with --from-file, which names them."""
    if arguments.all_topics:
        return sorted(committed(admin, group_id))
    if not arguments.topic:
        if arguments.from_file is None:
            raise Refused("One of the reset scopes should be defined: --all-topics, --topic.")
        return []
    return topic_places(admin.client, arguments.topic)


def committed(admin: GroupAdmin, group_id: str) -> Offsets:
    """The committed offsets of a group."""
    try:
        return {place: found.offset for place, found in admin.committed(group_id).items()}
    except ClientError as error:
        raise Failed(nested(error)) from error


def numbers(arguments: Arguments) -> None:
    """Refuses offsets that are no numbers, as Kafka does: not before the broker is asked."""
    for option, text in (("to-offset", arguments.to_offset), ("shift-by", arguments.shift_by)):
        if text is not None and not re.fullmatch(r"[-+]?\d+", text):
            raise Failed(f"Cannot parse argument '{text}' of option {option}")


def from_file(strategies: Strategies, group_id: str, path: str, only_group: str | None) -> Offsets:
    """The offsets that a CSV file holds for a group, kept inside the log."""
    plan = parse_plan(path, only_group)
    if group_id not in plan:
        print_error(f"No reset plan for group {group_id} found.")
        return {}
    try:
        return strategies.inside(plan[group_id])
    except KeyError as error:
        raise Failed(f"{path} names a partition that does not exist: {error}") from error


def parse_plan(path: str, only_group: str | None) -> dict[str, Offsets]:
    """Offsets by group: lines `topic,partition,offset` for only_group, else with the group before."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"java.io.IOException: Unable to read file {path}") from error
    plan: dict[str, Offsets] = {}
    for row in csv.reader(line for line in text.splitlines() if line):
        cells = [only_group, *row] if only_group is not None and len(row) == 3 else row
        try:
            group_id, topic, partition, offset = cells
            plan.setdefault(group_id, {})[topic, int(partition)] = int(offset)
        except ValueError as error:
            raise Failed(f"{path}: '{','.join(row)}' is no line [group,]topic,partition,offset") from error
    return plan
