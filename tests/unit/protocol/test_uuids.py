"""The text form of uuids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.uuids import ZERO_UUID, uuid_from_text, uuid_to_text


def test_zero_is_22_letters_a() -> None:
    assert uuid_to_text(ZERO_UUID) == "A" * 22


def test_the_alphabet_is_that_of_urls() -> None:
    assert uuid_to_text(b"\xfb\xff" * 8) == "-__7__v_-__7__v_-__7_w"
    assert uuid_from_text("-__7__v_-__7__v_-__7_w") == b"\xfb\xff" * 8


@given(st.binary(min_size=16, max_size=16))
def test_every_uuid_comes_back(uuid: bytes) -> None:
    text = uuid_to_text(uuid)
    assert len(text) == 22
    assert uuid_from_text(text) == uuid
    assert uuid_from_text(text + "==") == uuid


@pytest.mark.parametrize("text", ["", "A" * 21, "A" * 23, "A" * 21 + "!", "A" * 21 + "é", "+/" * 11])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="uuid"):
        uuid_from_text(text)


def test_a_uuid_of_another_size_has_no_text() -> None:
    with pytest.raises(ValueError, match="16 bytes, not 15"):
        uuid_to_text(bytes(15))
