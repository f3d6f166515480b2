"""Documents into a search index over the Elasticsearch bulk HTTP API, as OpenSearch has it too.

Each document has an external version, the offset of its change: what arrives again or late is answered with
a conflict and does nothing. Bulks are bounded in bytes and documents. Sent again, with growing pauses: a bulk
refused as a whole with 429 or 5xx, the items of it that were, and everything where the connection was cut.
Given up with a clear error when nothing succeeds for `give_up_s`.

What runs on executors needs nothing but the standard library and pyspark.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import random
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from pyspark.sql import Column, DataFrame

from spark_jobs.changes import Refuse, Refused, Summary

ID_BYTES_MAX = 512  # of both products
EPOCH_VERSIONS = 2**48  # offsets of one life of a topic; versions have 63 bits
PASSING = {408, 429, 502, 503, 504}
PAUSE_FIRST_S, PAUSE_MAX_S = 0.1, 10.0
CONFLICT, NOT_FOUND, TOO_LARGE = 409, 404, 413


class SearchRefused(RuntimeError):
    """The index took nothing; the message says why."""


class Document(NamedTuple):
    """A row's state: `source` is its JSON, None where it is deleted."""

    id: str
    version: int
    source: str | None
    partition: int
    offset: int


class RefusedItem(NamedTuple):
    """A document that the index will never take."""

    partition: int
    offset: int
    reason: str


class Outcome(NamedTuple):
    """What became of documents. `already`: the index had their version, or a later one.

    `failure` is why not all of them were sent; told rather than raised, for Spark would try again by itself.
    """

    written: int
    already: int
    refused: tuple[RefusedItem, ...]
    failure: str = ""


@dataclass(slots=True, frozen=True)
class Index:
    """Where documents go. `url`: http(s)://[USER:PASSWORD@]HOST[:PORT]."""

    url: str = field(repr=False)
    name: str
    bulk_bytes_max: int = 5 << 20
    bulk_documents_max: int = 2_000
    request_timeout_s: float = 60.0
    give_up_s: float = 300.0
    ca_file: str | None = None


class Connection:
    """One HTTP connection that is kept open, and opened anew after a failure."""

    def __init__(self, index: Index) -> None:
        parts = urlsplit(index.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SearchRefused(
                f"search URL: expected http://HOST:PORT or https://, got scheme {parts.scheme!r}"
            )
        self.secure = parts.scheme == "https"
        self.host, self.port = parts.hostname, parts.port or (443 if self.secure else 9200)
        self.prefix = parts.path.rstrip("/")
        self.headers = {"Content-Type": "application/x-ndjson"}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self.headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        self.timeout_s = index.request_timeout_s
        self.context = ssl.create_default_context(cafile=index.ca_file) if self.secure else None
        self.http: http.client.HTTPConnection | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def post(self, path: str, body: bytes) -> tuple[int, str | None, bytes]:
        """Status, Retry-After and body; OSError or HTTPException where the connection fails."""
        if self.http is None:
            if self.context is not None:
                self.http = http.client.HTTPSConnection(
                    self.host, self.port, timeout=self.timeout_s, context=self.context
                )
            else:
                self.http = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout_s)
        try:
            self.http.request("POST", self.prefix + path, body, self.headers)
            response = self.http.getresponse()
            return response.status, response.getheader("Retry-After"), response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def close(self) -> None:
        if self.http is not None:
            self.http.close()
            self.http = None


def document_id(key: str) -> str:
    """A row's id: the value of a one-column key, the JSON list of several; a digest of a longer text."""
    values = list(json.loads(key).values())
    if len(values) == 1 and isinstance(values[0], (str, int, float)) and values[0] != "":
        text = str(values[0])
    else:
        text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode()) <= ID_BYTES_MAX:
        return text
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def encoded(document: Document, index: str) -> bytes:
    """The lines of one document in a bulk."""
    place = {"_index": index, "_id": document.id, "version": document.version, "version_type": "external"}
    action = "delete" if document.source is None else "index"
    lines = json.dumps({action: place}, ensure_ascii=False) + "\n"
    if document.source is not None:
        lines += document.source + "\n"
    return lines.encode()


def bulks(documents: Iterable[Document], index: Index) -> Iterator[list[Document]]:
    """Documents in bulks within both bounds; one that is larger than a bulk goes alone."""
    bulk: list[Document] = []
    size = 0
    for document in documents:
        length = len(encoded(document, index.name))
        if bulk and (size + length > index.bulk_bytes_max or len(bulk) >= index.bulk_documents_max):
            yield bulk
            bulk, size = [], 0
        bulk.append(document)
        size += length
    if bulk:
        yield bulk


@dataclass(slots=True)
class Writer:
    """Sends bulks until each document is settled."""

    index: Index
    connection: Connection
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    written: int = 0
    already: int = 0
    refused: list[RefusedItem] = field(default_factory=list)

    def write(self, documents: Iterable[Document]) -> Outcome:
        failure = ""
        try:
            for bulk in bulks(documents, self.index):
                self.settle(bulk)
        except SearchRefused as error:
            failure = str(error)
        return Outcome(self.written, self.already, tuple(self.refused), failure)

    def settle(self, bulk: list[Document]) -> None:
        """Sends a bulk, and what is left of it, until nothing is."""
        wait_s, last_success = PAUSE_FIRST_S, self.clock()
        while bulk:
            left, problem, retry_after = self.attempt(bulk)
            if len(left) < len(bulk):
                wait_s, last_success = PAUSE_FIRST_S, self.clock()
            bulk = left
            if not bulk:
                return
            if self.clock() - last_success > self.index.give_up_s:
                first = bulk[0]
                raise SearchRefused(
                    f"index {self.index.name} at {self.connection.address} took nothing for "
                    f"{self.index.give_up_s:g} s, from partition {first.partition}, offset {first.offset} "
                    f"on: {problem}"
                )
            self.pause(retry_after or wait_s * random.uniform(0.5, 1.0))
            wait_s = min(wait_s * 2, PAUSE_MAX_S)

    def attempt(self, bulk: list[Document]) -> tuple[list[Document], str, float | None]:
        """One request: what is left to be sent, why, and how long the index asks to wait."""
        body = b"".join(encoded(document, self.index.name) for document in bulk)
        try:
            status, retry_after, answer = self.connection.post("/_bulk", body)
        except (OSError, http.client.HTTPException) as error:
            return bulk, f"{type(error).__name__}: {error}", None
        if status == TOO_LARGE:
            return self.halves(bulk), "bulk too large", None
        if status in PASSING:
            return bulk, f"HTTP {status}", seconds(retry_after)
        if status != 200:
            raise SearchRefused(
                f"index {self.index.name} at {self.connection.address} refused with HTTP {status}: "
                f"{answer[:300].decode(errors='replace')}"
            )
        try:
            items = json.loads(answer)["items"]
        except (ValueError, KeyError, TypeError):
            self.connection.close()
            return bulk, "an answer that is no JSON", None
        if len(items) != len(bulk):
            raise SearchRefused(
                f"{self.connection.address} answered {len(items)} items for {len(bulk)} documents"
            )
        return self.sort_out(bulk, items)

    def halves(self, bulk: list[Document]) -> list[Document]:
        """Both halves of a bulk that was too large, settled each for itself."""
        if len(bulk) == 1:
            self.refuse(bulk[0], "the document alone is larger than the index takes (HTTP 413)")
        else:
            middle = len(bulk) // 2
            self.settle(bulk[:middle])
            self.settle(bulk[middle:])
        return []

    def sort_out(
        self, bulk: list[Document], items: Sequence[dict[str, Any]]
    ) -> tuple[list[Document], str, float | None]:
        """Settles the items of an answer; returns those to be sent again."""
        left: list[Document] = []
        problem = ""
        for document, item in zip(bulk, items, strict=True):
            result = next(iter(item.values()))
            status, error = int(result["status"]), result.get("error")
            gone = status == NOT_FOUND and document.source is None and error is None
            if status < 300 or gone:
                self.written += 1
            elif status == CONFLICT:
                self.already += 1
            elif status in PASSING:
                left.append(document)
                problem = f"HTTP {status} for {len(left)} of {len(bulk)} documents: {said(error)}"
            else:
                self.refuse(document, f"index {self.index.name}, document {document.id}: {said(error)}")
        return left, problem, None

    def refuse(self, document: Document, reason: str) -> None:
        self.refused.append(RefusedItem(document.partition, document.offset, reason))


def said(error: object) -> str:
    """The index's words on an item, with the cause where it names one."""
    if not isinstance(error, dict):
        return str(error)
    text = f"{error.get('type')}: {error.get('reason')}"
    cause = error.get("caused_by")
    return " ".join((f"{text} ({cause.get('reason')})" if isinstance(cause, dict) else text).split())


def seconds(retry_after: str | None) -> float | None:
    """A Retry-After of seconds; a date counts as none."""
    return min(float(retry_after), PAUSE_MAX_S) if retry_after and retry_after.isdigit() else None


def write_partition(index: Index, version_base: int, rows: Iterable[Any]) -> Iterator[Outcome]:
    """Writes the rows of one partition of Spark's (key, op, document, partition, offset)."""
    connection = Connection(index)
    documents = (
        Document(
            document_id(row["key"]),
            version_base + row["offset"],
            None if row["op"] == "d" else row["document"],
            row["partition"],
            row["offset"],
        )
        for row in rows
    )
    try:
        yield Writer(index, connection).write(documents)
    finally:
        connection.close()


class SearchSink:
    """Applies batches to an index."""

    def __init__(self, index: Index, topic_epoch: int = 0) -> None:
        self.index, self.version_base = index, topic_epoch * EPOCH_VERSIONS
        self.written = self.already = 0

    def problem(self) -> Column | None:
        """Only the index knows."""
        return None

    def write(self, topic: str, last: DataFrame, summary: Summary, refuse: Refuse) -> None:
        """Applies a batch: one row for each key (see changes.latest), each partition on its executor."""
        rows = last.select("key", "op", "document", "partition", "offset").rdd
        self.written = self.already = 0
        refused: list[Refused] = []
        failures: list[str] = []
        for outcome in rows.mapPartitions(partial(write_partition, self.index, self.version_base)).collect():
            self.written += outcome.written
            self.already += outcome.already
            refused += [Refused(topic, item.partition, item.offset, item.reason) for item in outcome.refused]
            failures += [outcome.failure] if outcome.failure else []
        if failures:
            raise SearchRefused(failures[0])
        if refused:
            refuse(refused)
