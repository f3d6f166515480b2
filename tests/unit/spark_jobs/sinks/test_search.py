"""Bulks, what is sent again, what is given up. A real OpenSearch is in tests/spark/jobs/test_cdc_sync.py."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from spark_jobs.sinks.search import (
    ID_BYTES_MAX,
    Connection,
    Document,
    Index,
    SearchRefused,
    Writer,
    bulks,
    document_id,
    encoded,
    write_partition,
)

Answer = tuple[int, str | None, bytes]


def document(number: int, text: str = "x") -> Document:
    return Document(str(number), number, json.dumps({"v": text}), 2, number)


@dataclass
class Scripted:
    """Answers requests by a list of functions of the ids in the bulk; then takes everything."""

    script: list[Callable[[list[str]], Answer]] = field(default_factory=list)
    asked: list[list[str]] = field(default_factory=list)
    address: str = "h:9200"
    closed: int = 0

    def post(self, path: str, body: bytes) -> Answer:
        assert path == "/_bulk"
        lines = [json.loads(line) for line in body.decode().splitlines()]
        ids = [next(iter(line.values()))["_id"] for line in lines if {"index", "delete"} & line.keys()]
        self.asked.append(ids)
        return self.script.pop(0)(ids) if self.script else items(201)(ids)

    def close(self) -> None:
        self.closed += 1


def items(*statuses: int) -> Callable[[list[str]], Answer]:
    """An answer with a status for each document, the last one for all further ones."""

    def answer(ids: list[str]) -> Answer:
        found = []
        for number, name in enumerate(ids):
            status = statuses[min(number, len(statuses) - 1)]
            error = {"type": f"t{status}", "reason": f"no {name}\n here", "caused_by": {"reason": "why"}}
            found.append(
                {"index": {"_id": name, "status": status, **({"error": error} if status > 300 else {})}}
            )
        return 200, None, json.dumps({"errors": True, "items": found}).encode()

    return answer


def status(code: int, retry_after: str | None = None) -> Callable[[list[str]], Answer]:
    return lambda ids: (code, retry_after, b'{"error": "said"}')


def cut(ids: list[str]) -> Answer:
    raise http.client.RemoteDisconnected("gone")


def writer(
    script: list[Callable[[list[str]], Answer]], **settings: object
) -> tuple[Writer, Scripted, list[float]]:
    connection, pauses = Scripted(script), []
    seconds: Iterator[float] = iter(range(10_000))
    made = Writer(
        Index("http://h", "items", **settings), connection, pauses.append, lambda: float(next(seconds))
    )
    return made, connection, pauses


def test_a_document_has_its_version_and_a_deletion_has_no_source() -> None:
    lines = encoded(document(7), "items").splitlines()
    assert json.loads(lines[0]) == {
        "index": {"_index": "items", "_id": "7", "version": 7, "version_type": "external"}
    }
    assert json.loads(lines[1]) == {"v": "x"}
    assert list(json.loads(encoded(Document("é", 1, None, 0, 1), "items"))) == ["delete"]


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ('{"id":7}', "7"),
        ('{"id":"é x"}', "é x"),
        ('{"id":""}', '[""]'),
        ('{"id":null}', "[null]"),
        ('{"a":1,"b":"x"}', '[1,"x"]'),
    ],
)
def test_ids(key: str, found: str) -> None:
    assert document_id(key) == found


def test_a_long_key_has_a_digest_for_id() -> None:
    one, other = (document_id(json.dumps({"id": "é" * 300 + end})) for end in "ab")
    assert one != other
    assert len(one.encode()) <= ID_BYTES_MAX
    assert one.startswith("sha256:")


def test_bulks_are_bounded_in_documents_and_bytes() -> None:
    many = [document(number) for number in range(10)]
    assert [len(bulk) for bulk in bulks(many, Index("http://h", "i", bulk_documents_max=4))] == [4, 4, 2]
    bound = len(encoded(document(0), "i")) * 3
    assert [len(bulk) for bulk in bulks(many, Index("http://h", "i", bulk_bytes_max=bound))] == [3, 3, 3, 1]
    large = [document(1), document(2, "x" * 500), document(3)]
    assert [len(bulk) for bulk in bulks(large, Index("http://h", "i", bulk_bytes_max=bound))] == [1, 1, 1]
    assert list(bulks([], Index("http://h", "i"))) == []


def test_what_is_taken_and_what_was_there() -> None:
    made, _, pauses = writer([items(201, 409, 200)])
    assert made.write([document(1), document(2), document(3)]) == (2, 1, (), "")
    assert pauses == []


def test_a_deletion_of_what_is_not_there_is_done() -> None:
    gone = {"delete": {"_id": "1", "status": 404, "result": "not_found"}}
    made, _, _ = writer([lambda ids: (200, None, json.dumps({"items": [gone]}).encode())])
    assert made.write([Document("1", 1, None, 0, 1)]) == (1, 0, (), "")


def test_only_the_items_that_were_pushed_back_are_sent_again() -> None:
    made, connection, pauses = writer([items(201, 429, 201, 503), items(429, 201)])
    assert made.write([document(number) for number in range(4)]) == (4, 0, (), "")
    assert connection.asked == [["0", "1", "2", "3"], ["1", "3"], ["1"]]
    assert len(pauses) == 2


@pytest.mark.parametrize(
    "trouble", [status(429), status(503), status(502), cut, lambda ids: (200, None, b"{")]
)
def test_a_bulk_that_failed_as_a_whole_is_sent_again(trouble: Callable[[list[str]], Answer]) -> None:
    made, connection, pauses = writer([trouble, trouble])
    assert made.write([document(1), document(2)]) == (2, 0, (), "")
    assert connection.asked == [["1", "2"]] * 3
    assert 0.05 <= pauses[0] <= 0.1 < 2 * pauses[0] + pauses[1]


def test_the_index_says_how_long_to_wait() -> None:
    made, _, pauses = writer(
        [status(429, "3"), status(429, "999"), status(429, "Wed, 21 Oct 2015 07:28:00 GMT")]
    )
    made.write([document(1)])
    assert pauses[:2] == [3.0, 10.0]
    assert pauses[2] < 1


def test_it_is_given_up_with_the_place_where_nothing_succeeds() -> None:
    made, _, _ = writer([status(429)] * 100, give_up_s=20.0)
    failure = made.write([document(5)]).failure
    assert failure.startswith(
        "index items at h:9200 took nothing for 20 s, from partition 2, offset 5 on: HTTP 429"
    )


def test_progress_keeps_it_going() -> None:
    made, _, _ = writer([items(201, 429)] * 60, give_up_s=5.0)
    assert made.write([document(number) for number in range(60)]).written == 60


def test_a_bulk_that_is_too_large_goes_in_halves() -> None:
    made, connection, _ = writer([status(413), items(201), status(413), items(201), status(413)])
    outcome = made.write([document(number) for number in range(4)])
    assert connection.asked == [["0", "1", "2", "3"], ["0", "1"], ["2", "3"], ["2"], ["3"]]
    assert outcome.written == 3
    assert [(each.partition, each.offset) for each in outcome.refused] == [(2, 3)]
    assert "larger than the index takes" in outcome.refused[0].reason


def test_what_the_mapping_refuses_is_told_in_one_line() -> None:
    made, _, _ = writer([items(201, 400)])
    outcome = made.write([document(1), document(2)])
    assert outcome.written == 1
    assert outcome.refused == ((2, 2, "index items, document 2: t400: no 2 here (why)"),)


@pytest.mark.parametrize("code", [400, 401, 403, 404])
def test_other_answers_end_it(code: int) -> None:
    made, _, _ = writer([status(code)])
    failure = made.write([document(1), document(2)]).failure
    assert re.search(f"refused with HTTP {code}: .*said", failure)


def test_an_answer_for_another_number_of_documents_ends_it() -> None:
    made, _, _ = writer([lambda ids: items(201)([*ids, "extra"])])
    assert "answered 2 items for 1 documents" in made.write([document(1)]).failure


def test_addresses_and_credentials() -> None:
    plain = Connection(Index("http://search", "i"))
    assert (plain.address, plain.secure, plain.prefix) == ("search:9200", False, "")
    secure = Connection(Index("https://me:p%40ss@search/base/", "i"))
    assert (secure.address, secure.secure, secure.prefix) == ("search:443", True, "/base")
    assert secure.headers["Authorization"] == "Basic bWU6cEBzcw=="
    assert "p%40ss" not in repr(Index("https://me:p%40ss@search", "i"))
    with pytest.raises(SearchRefused, match="expected http"):
        Connection(Index("search:9200", "i"))


def test_a_partition_of_rows_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Scripted()
    monkeypatch.setattr("spark_jobs.sinks.search.Connection", lambda index: connection)
    rows = [
        {"key": '{"id":1}', "op": "u", "document": "{}", "partition": 0, "offset": 5},
        {"key": '{"id":2}', "op": "d", "document": None, "partition": 0, "offset": 6},
    ]
    assert [tuple(each) for each in write_partition(Index("http://h", "i"), 0, rows)] == [(2, 0, (), "")]
    assert connection.asked == [["1", "2"]]
    assert connection.closed == 1
