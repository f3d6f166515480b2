"""What zookeeper.connect may say."""

from __future__ import annotations

import pytest

from replication.metadata.zookeeper_settings import ZookeeperSettings, split_connect


@pytest.mark.parametrize(
    ("text", "hosts", "chroot"),
    [
        ("localhost:2181", "localhost:2181", ""),
        (" zk1:2181, zk2 ,zk3:2183/kafka ", "zk1:2181,zk2,zk3:2183", "/kafka"),
        ("zk/kafka/one/", "zk", "/kafka/one"),
        ("[::1]:2181,[fe80::2]/", "[::1]:2181,[fe80::2]", ""),
    ],
)
def test_everything_after_the_first_slash_is_the_chroot(text, hosts, chroot):
    assert split_connect(text) == (hosts, chroot)


@pytest.mark.parametrize("text", ["", "/kafka", "host:port", ":2181", "::1", "a:1/x//y", "a:1/../x"])
def test_what_names_no_server_or_no_path_is_refused(text):
    with pytest.raises(ValueError, match=r"host|path"):
        split_connect(text)


def test_protection_needs_a_name():
    with pytest.raises(ValueError, match="says who it is"):
        ZookeeperSettings("h", secure=True)
    with pytest.raises(ValueError, match="user:password"):
        ZookeeperSettings("h", digest="name only")
    ZookeeperSettings("h", digest="a:b", secure=True)
