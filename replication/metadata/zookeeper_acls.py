"""Who may do what with a node of ZooKeeper (`zookeeper.set.acl`), as Kafka decides it (kafka.zk.ZkData).

Without protection everybody may do everything. With it the creator may, and everybody may read, but for
nodes that hold secrets. Consumers of old write below /consumers themselves, so it stays open.
"""

from __future__ import annotations

from typing import Final

from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

SENSITIVE: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")
OPEN: Final = "/consumers"


def acl_of(path: str, secure: bool) -> list[ACL]:
    """The access list that the node at `path` is created with."""
    if not secure or path == OPEN:
        return list(OPEN_ACL_UNSAFE)
    if path.startswith(SENSITIVE):
        return list(CREATOR_ALL_ACL)
    return [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]
