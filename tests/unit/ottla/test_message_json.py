"""Messages as JSON. Beside Kafka's own text: tests/tools/test_dump_share_state.py."""

from __future__ import annotations

import pytest

from ottla.message_json import as_json, json_text
from protocol import messages as m


def test_names_order_and_types() -> None:
    value = m.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=3,
        assigned_partitions=[
            m.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(
                topic_id=bytes(15) + b"\1", partitions=[1, 2]
            )
        ],
    )
    assert json_text(as_json(value, 0)) == (
        '{"memberEpoch":3,"previousMemberEpoch":0,"state":0,'
        '"assignedPartitions":[{"topicId":"AAAAAAAAAAAAAAAAAAAAAQ","partitions":[1,2]}],'
        '"partitionsPendingRevocation":[]}'
    )


def test_fields_that_a_version_lacks_are_left_out() -> None:
    value = m.OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=7)
    assert as_json(value, 0) == {"offset": 5, "metadata": "m", "commitTimestamp": 7}
    assert as_json(value, 3) == {"offset": 5, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 7}


@pytest.mark.parametrize(("count", "shown"), [(-1, False), (0, True)])
def test_a_tagged_field_is_shown_where_it_is_not_its_default(count: int, shown: bool) -> None:
    value = m.ShareUpdateValue(delivery_complete_count=count)
    assert ("deliveryCompleteCount" in as_json(value, 0)) is shown


def test_bytes_and_nulls() -> None:
    member = m.GroupMetadataValue.MemberMetadata(subscription=b"\xff\xfe", assignment=b"", member_id="a")
    shown = as_json(m.GroupMetadataValue(protocol_type="consumer", protocol=None, members=[member]), 3)
    assert shown["protocol"] is None
    assert (shown["members"][0]["subscription"], shown["members"][0]["assignment"]) == ("//4=", "")


def test_text_is_escaped_as_javas_library_does() -> None:
    assert json_text({"a": 'ü"\\\x1f\n\\u00ab'}) == '{"a":"ü\\"\\\\\\u001F\\n\\\\u00ab"}'


def test_a_tagged_struct_that_is_null_is_shown_where_its_default_is_an_empty_one() -> None:
    assert (
        as_json(m.ConsumerGroupMemberMetadataValue(classic_member_metadata=None), 0)["classicMemberMetadata"]
        is None
    )
    assert "classicMemberMetadata" not in as_json(m.ConsumerGroupMemberMetadataValue(), 0)
