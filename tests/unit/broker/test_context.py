"""The bundle that handlers get."""

from __future__ import annotations

from pathlib import Path

from tests.support.handler_broker import HandlerBroker


def test_image_and_id_are_the_current_ones(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path) as broker:
        before = broker.ctx.image
        broker.create("t")
        assert broker.ctx.image is broker.ctx.holder.current
        assert broker.ctx.image is not before
        assert broker.ctx.node_id == 1
