"""What went wrong, as one line that names topic, partition and offset where they are known, and what to do.

Spark wraps the reason in layers of its own: Python exception, StreamingQueryException, SparkException, the
Kafka client's. `explain` looks through all of them and says the first thing that helps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple


class JobFailed(Exception):
    """A job can't go on; the text is the whole line for the user."""


@dataclass(slots=True)
class About:
    """What is read and where, for errors of Spark's that don't say it; reading a topic sets it."""

    what: str = "the topic"
    bootstrap: str = "the broker"


ABOUT = About()


class Layer(NamedTuple):
    """One exception of the chain: its class (Java's with the package), and its message."""

    kind: str
    text: str


LOST_ADVICE = (
    "Retention, delete-records or a deletion of the topic took what was not read yet, and Spark ends rather "
    "than pass over it (failOnDataLoss=true). To go on with what is left: --no-fail-on-data-loss; to begin "
    "anew: another --checkpoint."
)

# (what a layer's `kind: text` must match, what is said; {0}, {1} ... are its groups)
KNOWN: list[tuple[re.Pattern[str], str]] = [
    (re.compile(pattern, re.DOTALL), told)
    for pattern, told in (
        (
            r"Could not read records in offset \[(\d+), (\d+)\) for topic partition (\S+)-(\d+)",
            "topic {2}, partition {3}: offsets {0} to {1} (exclusive) can't be read, some or all of them are "
            f"gone. {LOST_ADVICE}",
        ),
        (
            r"(\S+)-(\d+) offset was changed from (\d+) to (\d+)",
            "topic {0}, partition {1}: it was read up to offset {2}, but ends at {3} now: the topic was made "
            f"anew or lost its end. {LOST_ADVICE}",
        ),
        (
            r"Partitions (?:\w*Set\d*\()?([^()]+?)\)? have been deleted",
            f"partitions {{0}} are gone. {LOST_ADVICE}",
        ),
        (
            r"Added partition (\S+)-(\d+) starts from (\d+) instead of 0",
            "topic {0}, partition {1}: new, and its first records are gone: it starts at offset {2}. "
            f"{LOST_ADVICE}",
        ),
        (
            r"initial offsets for partitions (?:\w*Set\d*\()?([^()]+?)\)?\. They may have been deleted",
            f"partitions {{0}} are gone. {LOST_ADVICE}",
        ),
        (
            r"Starting offset for (\S+)-(\d+) was (\d+) but consumer reset to (\d+)",
            f"topic {{0}}, partition {{1}}: offset {{2}} is gone, the first one left is {{3}}. {LOST_ADVICE}",
        ),
        (
            r"start offset (\d+) is greater than the \w*\s?end offset (\d+) for topic (\S+) "
            r"partition (\d+)",
            "topic {2}, partition {3}: the range begins at offset {0} and ends at {1}, before it: the topic "
            "is shorter than the range says, or was made anew.",
        ),
        (
            r"Record at topic (\S+) partition (\d+) offset (\d+) has timestamp value (-?\d+)",
            "topic {0}, partition {1}, offset {2}: the record's timestamp {3} is no time in milliseconds.",
        ),
        (
            r"OffsetOutOfRangeException: .*?\{(\S+)-(\d+)=(\d+)\}",
            f"topic {{0}}, partition {{1}}: offset {{2}} is not there. {LOST_ADVICE}",
        ),
        (
            r"No offset matched from request of topic-partition (\S+)-(\d+) and timestamp (\d+)",
            "topic {0}, partition {1}: no record at or after the time {2}. Take an earlier time, or "
            "--no-record-at-time latest to begin at the end there.",
        ),
        (
            r"Timed out while waiting for the Python worker|Python worker exited unexpectedly|"
            r"Failed to start .*Python|Cannot run program \"(\S+)\"",
            "Python workers don't start: the reason is above. They need this Python's version and the "
            "packages of 'ottla[spark]': PYSPARK_PYTHON says which Python they are.",
        ),
        (
            r"LinesGone: (file [^\n]*)",
            "{0}. To go on without them: --no-fail-on-data-loss.",
        ),
        (
            r"RecordTooLargeException: (.*)",
            "the broker takes no record of this size: {0} Raise max.message.bytes of the topic, and "
            "max.request.size by --kafka-option for what the producer sends.",
        ),
        (
            r"InvalidRecordException: (.*)|InvalidTimestampException: (.*)",
            "the broker refused a record: {0}{1}",
        ),
        (
            r"TopicAuthorizationException: .*?\[(.*?)\]",
            "topic {0}: not authorized. The principal needs READ and DESCRIBE (source) or WRITE (sink).",
        ),
        (r"(?:Sasl|Ssl)(?:Authentication|Handshake)Exception: (.*)", "the broker refused who we are: {0}"),
        (
            r"NotEnoughReplicas\w*Exception: (.*)",
            "the broker has too few replicas in sync for acks=all: {0} Nothing is lost: the batch is "
            "repeated at the next start.",
        ),
        (r"InvalidTopicException: (.*)", "{0}: no valid name of a topic."),
        (
            r"No resolvable bootstrap urls given|Invalid url in bootstrap.servers: (\S+)",
            "{bootstrap}: no such host (--bootstrap).",
        ),
        (
            r"not a Parquet file|FAILED_READ_FILE|Encountered error while reading file|"
            r"Could not read footer|ZipException|Not in GZIP format|Unexpected end of input",
            "{file}the file can't be read: {text}",
        ),
        (r"PATH_NOT_FOUND\S* Path does not exist: (\S+?)\.?(?: SQLSTATE.*)?$", "{0}: no such file."),
        (r"PATH_ALREADY_EXISTS\S* Path (\S+) already exists", "{0}: exists already (see --overwrite)."),
        (
            r"UNABLE_TO_INFER_SCHEMA|Unable to infer schema for (\S+)",
            "no columns can be told from the files: there is none with data yet. Say them with --schema.",
        ),
        (r"AccessControlException: (.*)|Permission denied(.*)", "not permitted: {0}{1}"),
        (
            r"(?:No space left on device|Disk quota exceeded)",
            "the disk is full ({text}). Nothing is lost: the batch is repeated at the next start.",
        ),
        (
            r"Failed to find data source: kafka|DATA_SOURCE_NOT_FOUND.*kafka",
            "Spark has no Kafka connector: run spark-submit with --packages "
            "org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION, or give --jars.",
        ),
    )
]
UNKNOWN_TOPIC = re.compile(r"UnknownTopicOrPartitionException")
UNREACHABLE = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect)Exception|"
    r"Timed out waiting for a node assignment|"
    r"Timeout of \d+ms expired before .*metadata"
)
SINK_TIMEOUT = re.compile(r"TimeoutException: (?:Topic (\S+) not present in metadata|Expiring \d+ record)")
FILE = re.compile(r"((?:file|hdfs|s3a?|abfss?|gs):/[^\s,\]]+)")


def explain(error: BaseException) -> str:
    """One line for the user."""
    layers = list(layers_of(error))
    everything = "\n".join(f"{layer.kind}: {layer.text}" for layer in layers)
    for layer in layers:
        if layer.kind == "JobFailed":
            return layer.text
    found = known(layers, everything)
    if found:
        return found
    if UNKNOWN_TOPIC.search(everything):
        return (
            f"{ABOUT.what}: does not exist on {ABOUT.bootstrap}, or not all of its partitions do. Spark's "
            "source makes no topics: create it first (ottla topics --create), or correct the name."
        )
    sink = SINK_TIMEOUT.search(everything)
    if sink:
        topic = f"topic {sink[1]}: " if sink[1] else ""
        return (
            f"{topic}the broker at {ABOUT.bootstrap} took no records within the producer's time-out. Nothing "
            "is lost: the batch is repeated at the next start, so some records may come twice."
        )
    if UNREACHABLE.search(everything):
        return (
            f"the broker at {ABOUT.bootstrap} does not answer. Nothing is lost: the job goes on from its "
            "checkpoint at the next start."
        )
    inner = layers[-1]
    return f"{inner.kind.rpartition('.')[2]}: {first_line(inner.text)}"


def known(layers: list[Layer], everything: str) -> str | None:
    """What is said of the innermost layer that is known."""
    file = FILE.search(everything)
    for layer in reversed(layers):
        line = f"{layer.kind}: {layer.text}"
        for pattern, told in KNOWN:
            match = pattern.search(line)
            if match:
                groups = [first_line(group or "") for group in match.groups()]
                return told.format(
                    *groups,
                    bootstrap=ABOUT.bootstrap,
                    text=first_line(layers[-1].text),
                    file=f"{file[1]}: " if file else "",
                )
    return None


def layers_of(error: BaseException) -> Iterator[Layer]:
    """The chain from the outside in, Python's exceptions and Java's."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield Layer(type(current).__name__, str(current))
        java: Any = getattr(current, "_origin", None) or getattr(current, "java_exception", None)
        if java is not None:
            yield from java_layers(java)
        current = current.__cause__ or current.__context__


def java_layers(java: Any) -> Iterator[Layer]:
    """A Java exception and its causes; the reason of a failed task is in the text of its exception."""
    for _ in range(20):
        if java is None:
            return
        yield Layer(str(java.getClass().getName()), str(java.getMessage() or ""))
        java = java.getCause()


def first_line(text: str) -> str:
    """The first line that says something, without Spark's closing SQLSTATE."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return re.sub(r" SQLSTATE: \w+$", "", line)
