"""Authorised operations as a bit field: bit n stands for Kafka's AclOperation n (KIP-430).

Without an authorizer every operation that a resource type knows is allowed.
"""

from __future__ import annotations

from typing import Final

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = range(3, 9)
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = range(9, 13)

NOT_ASKED: Final = -(1 << 31)


def bits(*operations: int) -> int:
    """The field that allows exactly these operations."""
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS: Final = bits(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
CLUSTER_OPERATIONS: Final = bits(
    CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE
)
GROUP_OPERATIONS: Final = bits(READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
