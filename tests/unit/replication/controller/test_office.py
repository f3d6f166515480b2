"""What the parts of a controller share."""

from __future__ import annotations

import pytest

from replication.controller.office import allows_unclean
from replication.metadata import payloads
from replication.metadata.configs import ConfigResource, ConfigType
from tests.unit.replication.controller.desk import Desk, story


@pytest.mark.parametrize(
    ("broker", "topic", "allowed"),
    [
        (False, None, False),
        (True, None, True),
        (False, "true", True),
        (True, "false", False),
        (False, "TRUE", True),
    ],
)
def test_the_topics_own_setting_decides_over_unclean_leaders(broker, topic, allowed):
    @story
    async def run():
        at = await Desk.with_topics(unclean=broker)
        values = {} if topic is None else {"unclean.leader.election.enable": topic}
        path = ConfigResource(ConfigType.TOPIC, "t").path
        await at.store.create(path, payloads.encode_config(values))
        assert await at.reign.office.unclean_allowed("t") is allowed
        assert await at.reign.office.unclean_allowed("other") is broker

    run()


def test_an_override_is_read_in_any_case_of_letters():
    assert allows_unclean({"unclean.leader.election.enable": "True"})
    assert not allows_unclean({"unclean.leader.election.enable": "false"})
    assert not allows_unclean({})


@story
async def test_metadata_alone_can_be_sent():
    at = await Desk.with_topics({"t": [(1, 2)]})
    await at.reign.office.update_metadata([2, 9], at.state.leaderships)
    assert at.told() == ["UMR 2 t-0 leader 1/0"]
    at.reign.office.drop(2)
    assert at.outbox.dropped == [2]
