"""Access lists as Kafka's ZkData gives them."""

from __future__ import annotations

import pytest
from kazoo.security import ACL, Id, Permissions

from replication.metadata.zookeeper_acls import acl_of

EVERYBODY_ALL = ACL(Permissions.ALL, Id("world", "anyone"))
EVERYBODY_READS = ACL(Permissions.READ, Id("world", "anyone"))
CREATOR_ALL = ACL(Permissions.ALL, Id("auth", ""))


@pytest.mark.parametrize(
    ("path", "secure", "expected"),
    [
        ("/brokers/topics/t", False, [EVERYBODY_ALL]),
        ("/config/users/u", False, [EVERYBODY_ALL]),
        ("/brokers/topics/t", True, [CREATOR_ALL, EVERYBODY_READS]),
        ("/config/topics/t", True, [CREATOR_ALL, EVERYBODY_READS]),
        ("/config/users", True, [CREATOR_ALL]),
        ("/config/users/u/clients/c", True, [CREATOR_ALL]),
        ("/config/brokers/1", True, [CREATOR_ALL]),
        ("/delegation_token/tokens/x", True, [CREATOR_ALL]),
        ("/delegation_token", True, [CREATOR_ALL, EVERYBODY_READS]),
        ("/consumers", True, [EVERYBODY_ALL]),
    ],
)
def test_who_may_do_what(path, secure, expected):
    assert acl_of(path, secure) == expected
