"""The way of handlers to share groups."""

from __future__ import annotations

from pathlib import Path

from broker.handlers.share_groups import share_requests
from tests.unit.broker.handlers.share_group_requests import share_broker, turn_off


def test_there_is_one_while_the_feature_is_on(tmp_path: Path) -> None:
    with share_broker(tmp_path) as broker:
        assert share_requests(broker.ctx) is broker.ctx.groups.manager().share
        turn_off(broker)
        assert share_requests(broker.ctx) is None
