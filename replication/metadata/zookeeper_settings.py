"""How a ZooKeeper is reached: what the broker's keys beginning with `zookeeper.` say, checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from replication.metadata.store import check_path
from runtime.client_tls import ClientTls

_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^\[\]:\s]+)(:[0-9]{1,5})?")


@dataclass(slots=True, frozen=True)
class ZookeeperSettings:
    """`hosts` is a comma-separated list of host:port; `chroot` is empty or a path below which the whole tree
    lies. `digest` is `user:password` of the scheme of that name, None for an anonymous session. `secure`
    (zookeeper.set.acl) lets the creator alone change the nodes, and needs a digest or a certificate to be
    one. `tls` is None for plain connections.
    """

    hosts: str
    chroot: str = ""
    session_timeout_ms: int = 18_000
    connection_timeout_ms: int = 18_000
    max_in_flight: int = 10
    digest: str | None = None
    secure: bool = False
    tls: ClientTls | None = None

    def __post_init__(self) -> None:
        if self.digest is not None and not all(self.digest.partition(":")):
            raise ValueError("the digest of a ZooKeeper session is user:password")
        has_certificate = self.tls is not None and self.tls.key_store is not None
        if self.secure and self.digest is None and not has_certificate:
            raise ValueError("ZooKeeper nodes can be protected only by a session that says who it is")


def split_connect(text: str) -> tuple[str, str]:
    """Hosts and chroot of `zookeeper.connect`, `host:port,host:port/chroot/path`. Raises ValueError."""
    hosts_text, slash, rest = text.strip().partition("/")
    hosts = [host.strip() for host in hosts_text.split(",") if host.strip()]
    if not hosts:
        raise ValueError(f"no host in {text!r}")
    for host in hosts:
        if _HOST.fullmatch(host) is None:
            raise ValueError(f"{host!r} is not host:port")
    chroot = "/" + rest.strip("/") if slash and rest.strip("/") else ""
    if chroot:
        check_path(chroot)
    return ",".join(hosts), chroot
