"""What the handlers of share groups' requests have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.context import BrokerContext
    from coordinator.group.share.requests import ShareRequests


def share_requests(ctx: BrokerContext) -> ShareRequests | None:
    """The coordinator's side of share groups; None while the feature share.version is off."""
    if not ctx.share_data.enabled():
        return None
    return ctx.groups.manager().share
