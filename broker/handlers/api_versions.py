"""ApiVersions (18), versions 0-5: what this broker serves.

The range of each API is that of the handler table, Produce from 0 on (librdkafka probes it).
v3+: the client's software name and version are checked; failing gives 42 and no list (KIP-511).
v5+: a client that names the cluster id and node id it means to talk to gets 129 when it reached another
broker, so that it bootstraps anew; one without the other is 42 (KIP-1242).
A version above 5 never gets here: the dispatcher answers 35 in the form of version 0.
v3+: supported and finalized features. Below v4 those that can be at level 0 are not among the supported ones,
because old Java clients refuse such ranges (KAFKA-17011); a feature at level 0 is not finalized. That is also
one that a broker of the cluster does not know.
"""

from __future__ import annotations

import re
from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.metadata.features import SUPPORTED

MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
UNKNOWN_NODE: Final = -1
ZERO_LEVELS_FROM: Final = 4

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


def handle(ctx: BrokerContext, request: Request[m.ApiVersionsRequest]) -> m.ApiVersionsResponse:
    """The served APIs, or the error that sends the client elsewhere."""
    body = request.body
    error = ErrorCode.NONE
    if request.version >= 3 and not (
        _SOFTWARE.fullmatch(body.client_software_name) and _SOFTWARE.fullmatch(body.client_software_version)
    ):
        error = ErrorCode.INVALID_REQUEST
    elif request.version >= 5:
        error = check_destination(body.cluster_id, body.node_id, ctx.image.cluster_id, ctx.node_id)
    if error != ErrorCode.NONE:
        return m.ApiVersionsResponse(error_code=error)
    features = ctx.image.features
    return m.ApiVersionsResponse(
        api_keys=served_apis(ctx),
        supported_features=[
            m.ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SUPPORTED.items()
            if low > 0 or request.version >= ZERO_LEVELS_FROM
        ],
        finalized_features_epoch=features.epoch,
        finalized_features=[
            m.ApiVersionsResponse.FinalizedFeatureKey(
                name=name, max_version_level=level, min_version_level=level
            )
            for name, level in features.levels().items()
            if level > 0
        ],
    )


def check_destination(cluster_id: str | None, node_id: int, own_cluster: str, own_node: int) -> ErrorCode:
    """Whether the client reached the broker it meant; both parts are given or none."""
    if cluster_id is None and node_id == UNKNOWN_NODE:
        return ErrorCode.NONE
    if cluster_id is None or node_id == UNKNOWN_NODE:
        return ErrorCode.INVALID_REQUEST
    same = cluster_id == own_cluster and node_id == own_node
    return ErrorCode.NONE if same else ErrorCode.REBOOTSTRAP_REQUIRED


def served_apis(ctx: BrokerContext) -> list[m.ApiVersionsResponse.ApiVersion]:
    """One entry for each API, by key."""
    from broker.handlers.table import served_versions  # the table lists this handler too

    return [
        m.ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in served_versions(ctx).items()
    ]
