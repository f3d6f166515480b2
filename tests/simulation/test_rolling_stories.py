"""All brokers go one after the other, each when the one before is in sync again, under an idempotent load."""

from __future__ import annotations

import pytest

from tests.simulation.story import Story

pytestmark = pytest.mark.xdist_group("simulation: stories")


def stop(story, number):
    story.machines[number].stop()
    story.until(lambda: story.machines[number].process is None, f"broker {number} to end")


@pytest.mark.parametrize("end", [stop, Story.kill], ids=["stopped", "killed"])
def test_nothing_is_lost_or_twice_or_in_another_order(end):
    """What the load was promised is compared at the end with what is in the logs, and where."""
    with Story() as story:
        story.create("t", (1, 2, 3), (2, 3, 1), (3, 1, 2))
        story.load("t")
        for number in (1, 2, 3):
            story.await_acks()
            epoch = story.broker_epoch(number)
            end(story, number)
            story.start(number)
            story.until(
                lambda number=number, epoch=epoch: (
                    story.is_registered(number) and story.broker_epoch(number) > epoch
                ),
                "it to be registered again",
            )
            story.until(
                lambda: all(story.isr("t", index) == (1, 2, 3) for index in range(3)),
                "all replicas to be in sync",
            )
        story.await_acks()
        story.settle()
