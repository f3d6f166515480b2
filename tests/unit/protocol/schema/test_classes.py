"""The classes made from definitions."""

from __future__ import annotations

import pytest

from protocol import messages as m
from protocol.schema.classes import make_class
from protocol.schema.notation import parse_message
from tests.support.toy_messages import toy

TOY = toy("""
    request ToyRequest 7 versions 1-4 flexible 3+
      Name: string
      Note: string? = null
      Topics: [Topic]
        Place: Place
          Port: int32 = -1
      Cursor: Cursor? = null
        At: int32
""")


def test_a_message_tells_its_key_and_versions() -> None:
    assert (TOY.API_KEY, TOY.MIN_VERSION, TOY.MAX_VERSION, TOY.FLEXIBLE_FROM) == (7, 1, 4, 3)


def test_a_message_that_is_never_flexible_says_so() -> None:
    assert m.SaslHandshakeRequest.FLEXIBLE_FROM == 2
    assert m.OffsetDeleteRequest.FLEXIBLE_FROM == 1


def test_structs_are_attributes_of_the_message_however_deep() -> None:
    assert TOY.Place(port=5).port == 5
    assert TOY.Topic().place == TOY.Place(port=-1)
    assert TOY.Topic.__qualname__ == "ToyRequest.Topic"
    assert TOY.__module__ == "protocol.messages"


def test_defaults_are_those_of_the_schema_and_new_for_each_object() -> None:
    one, two = TOY(), TOY()
    assert (one.name, one.note, one.topics, one.cursor) == ("", None, [], None)
    assert one.topics is not two.topics
    assert TOY.Topic().place is not TOY.Topic().place


def test_fields_are_given_by_keyword_only() -> None:
    with pytest.raises(TypeError):
        TOY("name")
    with pytest.raises(TypeError):
        TOY(nam="name")


def test_objects_have_slots_and_no_other_attributes() -> None:
    with pytest.raises(AttributeError):
        TOY().nam = "name"
    assert not hasattr(TOY(), "__dict__")


def test_a_message_without_fields_can_be_made() -> None:
    made = make_class(parse_message(["request EmptyRequest 1 versions 0"]))
    assert made() == made()
