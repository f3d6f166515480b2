"""Requests about transactions that know who is who: producer ids and epochs that the broker gave."""

from __future__ import annotations

from typing import Any

from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.hostile.knowing_mutator import LONG, KnowingMutator

IDS = ("t1", "t2", "t3", "t4", "line\nbreak", "\0", "", "t" + LONG[1:], "é" * 16_000)
GROUPS = ("g1", "g2", "", "line\nbreak", "g" + LONG[1:])
EPOCHS = (0, 0, 1, 2, -1, 32_766, 32_767, -32_768)
TIMES = (5000, 5000, 1, 10_000, 10_001, 0, -1, 2**31 - 1)
STATES = ("Ongoing", "Empty", "PrepareCommit", "Nothing", "line\nbreak", LONG)
PATTERNS = ("", "t.*", "(", "(a*)*b", ".*" * 5000, "\\pL{1000}")
APIS = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.FIND_COORDINATOR,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.DELETE_RECORDS,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.UPDATE_FEATURES,
)
OFTEN = (
    ApiKey.PRODUCE,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
)
VALUES: dict[str, tuple[Any, ...]] = {
    "transactional_id": IDS,
    "transactional_ids": IDS,
    "v3_and_below_transactional_id": IDS,
    "key": IDS,
    "coordinator_keys": IDS,
    "key_type": (1, 1, 1, 0, 2, -1),
    "group_id": GROUPS,
    "member_id": ("", "", "nobody", LONG),
    "group_instance_id": ("i", LONG),
    "producer_id": (-1, 0, 1, 2, 3, 1000, 2**63 - 1, -(2**63)),
    "producer_epoch": EPOCHS,
    "coordinator_epoch": EPOCHS,
    "transaction_version": (0, 1, 2, 3, -1),
    "transaction_timeout_ms": TIMES,
    "state_filters": STATES,
    "producer_id_filters": (-1, 0, 1, 2**63 - 1),
    "duration_filter": (-1, 0, 1, 2**63 - 1, -(2**63)),
    "transactional_id_pattern": PATTERNS,
    "feature": ("transaction.version", "transaction.version", "line\nbreak"),
    "max_version_level": (0, 1, 2, 2, 3, -1),
    "isolation_level": (0, 1, 1, 2),
}


class TransactionMutator(KnowingMutator):
    """Makes requests about transactions."""

    apis, often = APIS, OFTEN
    values = VALUES
    mostly_not_said = ("group_instance_id", "transactional_id_pattern")

    def learn(self, key: int, version: int, body: bytes, response: Any) -> None:
        """Remember who has become a producer, or has a new epoch."""
        if key not in (ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN) or response.error_code != ErrorCode.NONE:
            return
        producer_id = getattr(response, "producer_id", -1)
        if producer_id < 0:
            return
        asked, _ = m.request_class(key).decode(version, body)
        known = {
            "transactional_id": asked.transactional_id,
            "producer_id": producer_id,
            "producer_epoch": response.producer_epoch,
        }
        self.remember("transactional_id", known | {f"v3_and_below_{name}": known[name] for name in known})
