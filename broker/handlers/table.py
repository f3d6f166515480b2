"""Which APIs this broker serves, at which versions, and who answers them.

Owns `HANDLERS` (everything but the hot APIs) and `SERVED_VERSIONS`, what ApiVersions tells: the handlers'
ranges and those of Produce and Fetch, which work on raw frames. An API is listed when it works end to end.

The handlers of groups, and of what is asked seldom, are imported with the first request for them, so that a
broker without groups starts without the coordinator; their versions stand here instead of in their modules.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from broker.context import BrokerContext
from broker.handlers import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_topic_partitions,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_config_resources,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    update_features,
)
from broker.handlers.request import Request
from protocol.api_keys import ApiKey


@dataclass(slots=True, frozen=True)
class Handler:
    """One API: `handle(ctx, request)` returns the response, or a coroutine that does."""

    api_key: ApiKey
    min_version: int
    max_version: int
    handle: Callable[[BrokerContext, Request[Any]], Any]


_MODULES: Final = {
    ApiKey.LIST_OFFSETS: list_offsets,
    ApiKey.METADATA: metadata,
    ApiKey.FIND_COORDINATOR: find_coordinator,
    ApiKey.API_VERSIONS: api_versions,
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.DELETE_RECORDS: delete_records,
    ApiKey.INIT_PRODUCER_ID: init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch,
    ApiKey.DESCRIBE_CONFIGS: describe_configs,
    ApiKey.ALTER_CONFIGS: alter_configs,
    ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs,
    ApiKey.UPDATE_FEATURES: update_features,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
    ApiKey.LIST_CONFIG_RESOURCES: list_config_resources,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions,
}

LATE: Final[dict[ApiKey, tuple[str, int, int]]] = {
    ApiKey.ALTER_REPLICA_LOG_DIRS: ("alter_replica_log_dirs", 0, 2),
    ApiKey.OFFSET_COMMIT: ("offset_commit", 0, 10),
    ApiKey.OFFSET_FETCH: ("offset_fetch", 0, 10),
    ApiKey.JOIN_GROUP: ("join_group", 0, 9),
    ApiKey.HEARTBEAT: ("heartbeat", 0, 4),
    ApiKey.LEAVE_GROUP: ("leave_group", 0, 5),
    ApiKey.SYNC_GROUP: ("sync_group", 0, 5),
    ApiKey.DESCRIBE_GROUPS: ("describe_groups", 0, 6),
    ApiKey.LIST_GROUPS: ("list_groups", 0, 5),
    ApiKey.DELETE_GROUPS: ("delete_groups", 0, 3),
    ApiKey.OFFSET_DELETE: ("offset_delete", 0, 0),
    ApiKey.ADD_PARTITIONS_TO_TXN: ("add_partitions_to_txn", 0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: ("add_offsets_to_txn", 0, 4),
    ApiKey.END_TXN: ("end_txn", 0, 5),
    ApiKey.WRITE_TXN_MARKERS: ("write_txn_markers", 0, 2),
    ApiKey.TXN_OFFSET_COMMIT: ("txn_offset_commit", 0, 6),
    ApiKey.DESCRIBE_PRODUCERS: ("describe_producers", 0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: ("describe_transactions", 0, 0),
    ApiKey.LIST_TRANSACTIONS: ("list_transactions", 0, 2),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ("consumer_group_heartbeat", 0, 1),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ("consumer_group_describe", 0, 1),
    ApiKey.SHARE_GROUP_HEARTBEAT: ("share_group_heartbeat", 1, 1),
    ApiKey.SHARE_GROUP_DESCRIBE: ("share_group_describe", 1, 1),
    ApiKey.SHARE_FETCH: ("share_fetch", 1, 2),
    ApiKey.SHARE_ACKNOWLEDGE: ("share_acknowledge", 1, 2),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: ("initialize_share_group_state", 0, 0),
    ApiKey.READ_SHARE_GROUP_STATE: ("read_share_group_state", 0, 0),
    ApiKey.WRITE_SHARE_GROUP_STATE: ("write_share_group_state", 0, 1),
    ApiKey.DELETE_SHARE_GROUP_STATE: ("delete_share_group_state", 0, 0),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: ("read_share_group_state_summary", 0, 1),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: ("describe_share_group_offsets", 0, 1),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: ("alter_share_group_offsets", 0, 0),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: ("delete_share_group_offsets", 0, 0),
}
"""Module in this package, lowest and highest version."""


def _late(name: str) -> Callable[[BrokerContext, Request[Any]], Any]:
    """The `handle` of a module that is imported when it is called."""

    imported: list[Callable[[BrokerContext, Request[Any]], Any]] = []

    def handle(ctx: BrokerContext, request: Request[Any]) -> Any:
        if not imported:
            imported.append(importlib.import_module(f"broker.handlers.{name}").handle)
        return imported[0](ctx, request)

    return handle


HANDLERS: Final[dict[ApiKey, Handler]] = {
    **{
        key: Handler(key, module.MIN_VERSION, module.MAX_VERSION, module.handle)
        for key, module in _MODULES.items()
    },
    **{key: Handler(key, low, high, _late(name)) for key, (name, low, high) in LATE.items()},
}

HOT_VERSIONS: Final = {ApiKey.PRODUCE: (0, 13), ApiKey.FETCH: (0, 18)}

SERVED_VERSIONS: Final[dict[ApiKey, tuple[int, int]]] = dict(
    sorted([*HOT_VERSIONS.items(), *((h.api_key, (h.min_version, h.max_version)) for h in HANDLERS.values())])
)

CLUSTER: Final[dict[ApiKey, tuple[str, int, int]]] = {
    ApiKey.LEADER_AND_ISR: ("leader_and_isr", 0, 7),
    ApiKey.STOP_REPLICA: ("stop_replica", 0, 4),
    ApiKey.UPDATE_METADATA: ("update_metadata", 0, 8),
    ApiKey.CONTROLLED_SHUTDOWN: ("controlled_shutdown", 0, 3),
    ApiKey.ELECT_LEADERS: ("elect_leaders", 0, 2),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ("alter_partition_reassignments", 0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ("list_partition_reassignments", 0, 0),
    ApiKey.ALTER_PARTITION: ("alter_partition", 0, 3),
    ApiKey.ALLOCATE_PRODUCER_IDS: ("allocate_producer_ids", 0, 0),
}
"""Of a broker that is one of several. Module in this package, lowest and highest version."""


def handlers_of(context: BrokerContext) -> dict[ApiKey, Handler]:
    """The handlers of a broker, all but those of the hot APIs."""
    if context.cluster is None:
        return HANDLERS
    return HANDLERS | {
        key: Handler(key, low, high, _late(name)) for key, (name, low, high) in CLUSTER.items()
    }


def served_versions(context: BrokerContext) -> dict[ApiKey, tuple[int, int]]:
    """What ApiVersions tells, by key."""
    if context.cluster is None:
        return SERVED_VERSIONS
    return dict(
        sorted({**SERVED_VERSIONS, **{key: (low, high) for key, (_, low, high) in CLUSTER.items()}}.items())
    )
