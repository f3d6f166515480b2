"""Later: the response by whoever comes last."""

from __future__ import annotations

import asyncio

import pytest

from broker.handlers.later import Later


def test_what_is_given_within_the_call_is_the_result() -> None:
    later = Later()
    later.give("now")
    assert later.now_or_later() == "now"


def test_what_comes_later_is_told() -> None:
    later = Later()
    assert later.now_or_later() is later
    told: list[str] = []
    later.then(told.append)
    assert told == []
    later.give("later")
    assert told == ["later"]


def test_one_response_only() -> None:
    later = Later()
    later.give("one")
    with pytest.raises(AssertionError):
        later.give("two")


def test_a_task_may_wait_for_it() -> None:
    async def main() -> list[str]:
        early, late = Later(), Later()
        early.give("early")
        asyncio.get_running_loop().call_soon(late.give, "late")
        return [await early.response(), await late.response()]

    assert asyncio.run(main()) == ["early", "late"]
