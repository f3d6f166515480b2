"""Writes SUPPORTED.md: every API of the Kafka protocol, and which versions of it a broker serves.

    python -m tests.support.supported > SUPPORTED.md

What is served comes from the broker's own handler table; `tests/tidy/test_supported.py` compares the file
with what a running broker tells its clients. An API that is not served stands under the reason why.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from textwrap import fill

from broker.handlers.table import SERVED_VERSIONS
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import UnsupportedVersion

_HEAD = """\
# What Ottla serves

Written by `python -m tests.support.supported > SUPPORTED.md`. A test compares this page with what a running
broker answers to ApiVersions, so clients find exactly these versions. `all` means every version that Apache
Kafka 3.9 or 4.4 has; versions that a Kafka release marks unstable do not count.

## Served

| key | API | versions | of Kafka's |
|--:|--|--|--|
"""

_WITHOUT_GROUPS = """
FindCoordinator is there because clients take a broker without it for an ancient one; it answers that no
coordinator is available. InitProducerId serves idempotent producers, not transactional ones.
"""

# Why an API is not served, and which they are.
_REASONS = {
    "Groups: consumer, share and streams groups, committed offsets": """
        OFFSET_COMMIT OFFSET_FETCH JOIN_GROUP HEARTBEAT LEAVE_GROUP SYNC_GROUP DESCRIBE_GROUPS LIST_GROUPS
        DELETE_GROUPS OFFSET_DELETE CONSUMER_GROUP_HEARTBEAT CONSUMER_GROUP_DESCRIBE SHARE_GROUP_HEARTBEAT
        SHARE_GROUP_DESCRIBE SHARE_FETCH SHARE_ACKNOWLEDGE INITIALIZE_SHARE_GROUP_STATE READ_SHARE_GROUP_STATE
        WRITE_SHARE_GROUP_STATE DELETE_SHARE_GROUP_STATE READ_SHARE_GROUP_STATE_SUMMARY
        DESCRIBE_SHARE_GROUP_OFFSETS ALTER_SHARE_GROUP_OFFSETS DELETE_SHARE_GROUP_OFFSETS
        STREAMS_GROUP_HEARTBEAT STREAMS_GROUP_DESCRIBE STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE
        """,
    "Transactions": """
        ADD_PARTITIONS_TO_TXN ADD_OFFSETS_TO_TXN END_TXN WRITE_TXN_MARKERS TXN_OFFSET_COMMIT
        DESCRIBE_PRODUCERS DESCRIBE_TRANSACTIONS LIST_TRANSACTIONS
        """,
    "Security: authentication, authorisation and quotas": """
        SASL_HANDSHAKE SASL_AUTHENTICATE DESCRIBE_ACLS CREATE_ACLS DELETE_ACLS CREATE_DELEGATION_TOKEN
        RENEW_DELEGATION_TOKEN EXPIRE_DELEGATION_TOKEN DESCRIBE_DELEGATION_TOKEN DESCRIBE_CLIENT_QUOTAS
        ALTER_CLIENT_QUOTAS DESCRIBE_USER_SCRAM_CREDENTIALS ALTER_USER_SCRAM_CREDENTIALS
        """,
    "Cluster: several brokers, moving replicas, feature levels": """
        LEADER_AND_ISR STOP_REPLICA UPDATE_METADATA CONTROLLED_SHUTDOWN ALTER_PARTITION ENVELOPE
        ALLOCATE_PRODUCER_IDS ELECT_LEADERS ALTER_PARTITION_REASSIGNMENTS LIST_PARTITION_REASSIGNMENTS
        ALTER_REPLICA_LOG_DIRS UPDATE_FEATURES
        """,
    "Client telemetry, as in Kafka without a receiver for it": "GET_TELEMETRY_SUBSCRIPTIONS PUSH_TELEMETRY",
    "KRaft only: traffic of Kafka's own metadata quorum, which Ottla does not have": """
        VOTE BEGIN_QUORUM_EPOCH END_QUORUM_EPOCH DESCRIBE_QUORUM FETCH_SNAPSHOT BROKER_REGISTRATION
        BROKER_HEARTBEAT UNREGISTER_BROKER CONTROLLER_REGISTRATION ASSIGN_REPLICAS_TO_DIRS ADD_RAFT_VOTER
        REMOVE_RAFT_VOTER UPDATE_RAFT_VOTER UNREGISTER_CONTROLLER
        """,
}


def supported_page(served: Mapping[int, tuple[int, int]]) -> str:
    """The whole page, for a broker that serves these (oldest, newest) versions by API key."""
    rows = "".join(_row(key, *served[key]) for key in ApiKey if key in served)
    remark = "" if ApiKey.JOIN_GROUP in served else _WITHOUT_GROUPS
    return _HEAD + rows + remark + "\n## Not served\n" + "".join(_reasons(served))


def without_reason(served: Mapping[int, tuple[int, int]]) -> list[str]:
    """APIs that are neither served nor under exactly one reason."""
    named = [name for names in _REASONS.values() for name in names.split()]
    return [key.name for key in ApiKey if key not in served and named.count(key.name) != 1]


def _row(key: ApiKey, oldest: int, newest: int) -> str:
    of_kafka = _range_of(key)
    whole = of_kafka == _range(oldest, newest)
    return f"| {key:d} | {key.title} | {_range(oldest, newest)} | {'all' if whole else of_kafka} |\n"


def _reasons(served: Mapping[int, tuple[int, int]]) -> Iterator[str]:
    for reason, names in _REASONS.items():
        missing = [ApiKey[name] for name in names.split() if ApiKey[name] not in served]
        if missing:
            listed = ", ".join(f"{key.title} ({key:d})" for key in sorted(missing))
            yield f"\n{fill(f'**{reason}.** {listed}.', 110)}\n"


def _range_of(key: ApiKey) -> str:
    """The versions of Kafka 3.9 and 4.4 together, as the message definitions have them."""
    try:
        request = m.request_class(key)
    except UnsupportedVersion:
        return ""
    return _range(request.MIN_VERSION, request.MAX_VERSION)


def _range(oldest: int, newest: int) -> str:
    return str(oldest) if oldest == newest else f"{oldest}-{newest}"


if __name__ == "__main__":
    sys.stdout.write(supported_page(SERVED_VERSIONS))
