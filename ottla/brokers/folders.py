"""The log directories of several brokers, before any of them is started.

A directory is either one broker's or holds one folder for each of several: data of the other kind are
refused, because topics would seem to be gone. A broker that is alone refuses the folders of several, but it
leaves its meta.properties beside them when it is tried.
"""

from __future__ import annotations

import os

from broker.config.values import ConfigError
from ottla.brokers.plan import FOLDER_PREFIX, ClusterPlan, folder_of
from storage.names import META_PROPERTIES


def prepare(plan: ClusterPlan) -> list[str]:
    """Make the folder of the cluster's file. Returns lines about what lies there and is not used. Raises
    ConfigError, OSError.
    """
    for folder in plan.folders:
        if os.path.exists(os.path.join(folder, META_PROPERTIES)) and not _folders_in(folder):
            raise ConfigError(
                f"{folder} holds the data of a broker that was alone. With --brokers each broker has a "
                "folder of its own there: name another directory in log.dirs."
            )
    os.makedirs(os.path.dirname(os.path.abspath(plan.cluster_file)), exist_ok=True)
    return [
        f"{path} holds the data of a broker that is not started: there are {len(plan.brokers)} this time"
        for folder in plan.folders
        for path in _folders_in(folder)
        if path not in [folder_of(broker.node_id, folder) for broker in plan.brokers]
    ]


def _folders_in(folder: str) -> list[str]:
    """Those of brokers."""
    if not os.path.isdir(folder):
        return []
    return [f"{folder}/{name}" for name in sorted(os.listdir(folder)) if name.startswith(FOLDER_PREFIX)]
