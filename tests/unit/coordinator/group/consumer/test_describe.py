"""What is shown of groups: by committed records, in every state."""

from __future__ import annotations

from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.consumer.play import GROUP, Play, together


def test_a_group_is_shown_when_it_is_committed() -> None:
    play = Play()
    a = play.client("a", "t")
    play.auto_commit = False
    a.join()
    assert play.described().error_code == E.GROUP_ID_NOT_FOUND
    assert play.manager.list_groups() == []
    play.commit()
    assert play.described().group_state == "Stable"
    [listed] = play.manager.list_groups()
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
        GROUP, "consumer", "Stable", "consumer",
    )  # fmt: skip


def test_all_states() -> None:
    play = Play()
    a, b = play.client("a", "t"), play.client("b", "t")
    a.join()
    play.configs["consumer.assignment.interval.ms"] = 1000
    b.join()
    assert play.described().group_state == "Assigning"
    play.advance(1000)
    b.beat()
    assert play.described().group_state == "Reconciling"
    together(a, b)
    assert play.described().group_state == "Stable"
    a.leave()
    b.leave()
    assert play.described().group_state == "Empty"


def test_topics_that_are_gone_have_no_name_to_show() -> None:
    play = Play()
    a = play.client("a", "t")
    a.join()
    play.topics.delete("t")
    [member] = play.described().members
    assert member.assignment.topic_partitions == []
    assert member.subscribed_topic_names == ["t"]


def test_target_and_assignment_differ_on_the_way() -> None:
    play = Play()
    a, b = play.client("a", "t"), play.client("b", "t")
    a.join()
    b.join()
    shown = {member.member_id: member for member in play.described().members}
    assert [len(each.partitions) for each in shown["a"].assignment.topic_partitions] == [4]
    assert [len(each.partitions) for each in shown["a"].target_assignment.topic_partitions] == [2]
    assert shown["b"].assignment.topic_partitions == []
