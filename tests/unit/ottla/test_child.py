"""The child's side of the two pipes."""

from __future__ import annotations

import io
import json
import os

from ottla import child
from ottla.client import ClientError


class Refusing:
    """A client whose broker refuses everything."""

    def __init__(self, address: str, client_id: str) -> None:
        self.address = address

    def __enter__(self) -> Refusing:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def create_topic(self, *_: object, **__: object) -> None:
        raise ClientError(f"no topics at {self.address}")


def test_an_answer_is_one_line_of_json() -> None:
    answers = io.BytesIO()
    child.answer(answers, {"port": 9092})
    child.answer(answers, {})
    assert [json.loads(line) for line in answers.getvalue().splitlines()] == [{"port": 9092}, {}]


def test_a_parent_that_has_gone_is_no_failure() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    answers = os.fdopen(writing, "wb", buffering=0)
    child.answer(answers, {"port": 9092})
    answers.close()


def test_a_refused_command_is_answered_with_the_brokers_words(monkeypatch) -> None:
    monkeypatch.setattr("ottla.client.KafkaClient", Refusing)
    answer = child.carry_out({"create_topic": "t", "partitions": 1, "config": {}}, "127.0.0.1", 9)
    assert answer == {"error": "no topics at 127.0.0.1:9"}
