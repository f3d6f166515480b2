"""Requests about groups that know who is who: ids and epochs that the broker gave, numbers at their edges.

What it learned is mixed with names that are as long as a name can be, or hold what no name should.
"""

from __future__ import annotations

from typing import Any

from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.schema.model import Field
from tests.hostile.knowing_mutator import LONG, KnowingMutator

GROUPS = ("g1", "g2", "g3", "g4", "g5", "line\nbreak", "\0", "", " ", "g" + LONG[1:], "é" * 16000)
MEMBERS = ("", "nobody", "line\nbreak", "m" + LONG[1:])
INSTANCES = ("i1", "i2", "", "i" + LONG[1:], "i" * 16000, "line\nbreak")
PROTOCOLS = ("range", "range", "uniform", "", "p" + LONG[1:], "line\nbreak")
TYPES = ("consumer", "consumer", "connect", "", "t" + LONG[1:])
REGEXES = ("", "fuzz-.*", "(", "(a*)*b", "((x{100}){100}){100}", "line\nbreak", ".*" * 5000, "\\pL{1000}")
SMALL = (0, 0, 1, 1, 2, 3, -1, -2)
TIMES = (6000, 6000, 10_000, 30_000, 0, -1, 2**31 - 1, -(2**31))
GROUP_APIS = (
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_DELETE,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    ApiKey.FIND_COORDINATOR,
    ApiKey.UPDATE_FEATURES,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.DESCRIBE_CONFIGS,
)
OFTEN = (
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.OFFSET_COMMIT,
    ApiKey.SHARE_FETCH,
)
CONFIGS = ("consumer.session.timeout.ms", "share.auto.offset.reset", "share.record.lock.duration.ms", LONG)
NAMES_OF_PROTOCOLS = ("JoinGroupRequest", "JoinGroupRequestProtocol")
MOSTLY_NOT_SAID = ("rack_id", "server_assignor", "instance_id", "group_instance_id", "topic_partitions")
VALUES: dict[str, tuple[Any, ...]] = {
    "group_id": GROUPS,
    "groups": GROUPS,
    "group_ids": GROUPS,
    "groups_names": GROUPS,
    "key": GROUPS,
    "coordinator_keys": GROUPS,
    "resource_name": GROUPS,
    "member_id": MEMBERS,
    "group_instance_id": INSTANCES,
    "instance_id": INSTANCES,
    "protocol_type": TYPES,
    "protocol_name": PROTOCOLS,
    "subscribed_topic_regex": REGEXES,
    "rack_id": INSTANCES,
    "server_assignor": ("uniform", "range", "other", LONG),
    "reason": ("", "why", LONG, "line\nbreak"),
    "feature": ("group.version", "share.version", "metadata.version", LONG, "line\nbreak"),
    "committed_metadata": ("", "note", "n" * 5000, "line\nbreak", "\0"),
    "value": ("1000", "-1", "", "line\nbreak", LONG),
    "generation_id": SMALL,
    "generation_id_or_member_epoch": SMALL,
    "member_epoch": SMALL,
    "share_session_epoch": SMALL,
    "state_epoch": SMALL,
    "leader_epoch": SMALL,
    "session_timeout_ms": TIMES,
    "rebalance_timeout_ms": TIMES,
    "retention_time_ms": (-1, -1, 0, 1, 2**63 - 1, -(2**63), -2),
    "commit_timestamp": (-1, -1, 0, 2**63 - 1, -(2**63)),
    "key_type": (0, 0, 0, 1, 2, 2, 3, -1),
    "resource_type": (32, 32, 2, 4),
    "max_version_level": (1, 1, 1, 2, -1, 32767),
    "acknowledge_types": (0, 1, 2, 3, 4, 5, -1),
    "delivery_state": (0, 2, 4, 1, -1),
}


class GroupMutator(KnowingMutator):
    """Makes requests about groups."""

    apis, often = GROUP_APIS, OFTEN
    values, mostly_not_said = VALUES, MOSTLY_NOT_SAID

    def learn(self, key: int, version: int, body: bytes, response: Any) -> None:
        """Remember who has joined, and at which epoch it is."""
        member_id = getattr(response, "member_id", "")
        request = m.request_class(key)
        if not member_id or not hasattr(request(), "group_id"):
            return
        asked, _ = request.decode(version, body)
        epoch = getattr(response, "generation_id", getattr(response, "member_epoch", 0))
        self.remember(
            "member_id",
            {
                "group_id": asked.group_id,
                "member_id": member_id,
                "generation_id": epoch,
                "member_epoch": epoch,
                "generation_id_or_member_epoch": epoch,
                "group_instance_id": getattr(asked, "group_instance_id", None),
                "instance_id": getattr(asked, "instance_id", None),
            },
        )

    def values_of(self, name: str, field: Field) -> tuple[Any, ...] | None:
        if field.attribute == "name":
            if "Configs" in name:
                return CONFIGS
            return PROTOCOLS if name in NAMES_OF_PROTOCOLS else None
        return super().values_of(name, field)
