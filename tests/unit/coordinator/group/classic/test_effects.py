"""Outcomes collect effects in their order."""

from __future__ import annotations

from coordinator.group.classic.effects import (
    JOIN_TIMER,
    CancelTimer,
    Outcome,
    Reply,
    SetTimer,
    session_timer,
)
from coordinator.group.classic.events import RebalanceDeadline
from protocol import messages as m


def test_timers_keep_their_order_and_never_lie_in_the_past() -> None:
    out = Outcome()
    out.set_timer(JOIN_TIMER, -5, RebalanceDeadline())
    out.cancel_timer(session_timer("a"))
    assert out.timers == [
        SetTimer(JOIN_TIMER, 0, RebalanceDeadline()),
        CancelTimer(session_timer("a")),
    ]


def test_replies_carry_their_token() -> None:
    out = Outcome()
    out.reply(7, m.HeartbeatResponse())
    assert out.replies == [Reply(7, m.HeartbeatResponse())]


def test_outcomes_share_nothing() -> None:
    Outcome().notes.append("one")
    assert Outcome().notes == []


def test_a_note_is_one_line_whatever_a_client_calls_itself() -> None:
    out = Outcome()
    out.note("new member a\nGroup x: is empty")
    out.note("new member grüppe-1")
    assert out.notes == ["new member a\\nGroup x: is empty", "new member grüppe-1"]
