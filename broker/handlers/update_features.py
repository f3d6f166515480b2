"""UpdateFeatures (57), versions 0-2: finalize levels of features for the whole cluster.

All or nothing: the first update that is refused is the answer's error. v0: every update is an upgrade, as in
Kafka 4, which does not look at allow_downgrade any more. v1+: upgrade type and validate_only. v0-1: on
success also a result for each feature.
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.feature_changes import FeatureUpdate

MIN_VERSION: Final = 0
MAX_VERSION: Final = 2

RESULTS_UNTIL: Final = 1

_Result = m.UpdateFeaturesResponse.UpdatableFeatureResult


async def handle(ctx: BrokerContext, request: Request[m.UpdateFeaturesRequest]) -> m.UpdateFeaturesResponse:
    """One error for all; a feature that is named twice counts once, with its last update."""
    body = request.body
    updates = {each.feature: each for each in body.feature_updates}
    error, message = await ctx.controller.update_features(
        (
            FeatureUpdate(each.feature, each.max_version_level, each.upgrade_type)
            for each in updates.values()  # one by one: the first that is refused is the last
        ),
        validate_only=body.validate_only,
    )
    response = m.UpdateFeaturesResponse(error_code=error, error_message=message)
    if error == ErrorCode.NONE and request.version <= RESULTS_UNTIL:
        response.results = [
            _Result(feature=feature, error_message=ErrorCode.NONE.name) for feature in updates
        ]
    return response
