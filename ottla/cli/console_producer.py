"""`ottla console-producer`: a record for each line of standard input, with Kafka's ConsoleProducer's flags.

Lines are sent when a batch is full or as soon as no further line is waiting, so that typing and pipes are
both served at once. Flags that only tune Java's buffers are accepted and change nothing.
"""

from __future__ import annotations

import queue
import re
import sys
import threading
import time
from collections.abc import Iterator
from io import FileIO, RawIOBase
from pathlib import Path

import click

from ottla.cli.line_reader import READERS, LineReader
from ottla.cli.options import ToolFailed, bootstrap_option, connect, properties_of
from ottla.client import ClientError
from ottla.version import __version__
from ottla.writer import Delivery, Writer

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}
WAITING_LINES_MAX = 10_000
READ_BYTES = 65536
ENDING = re.compile(rb"\r\n|\n|\r(?!\Z)")  # a CR at the end may be half of a CR LF
OLD_OPTIONS = {
    "property": "reader-property",
    "producer-property": "command-property",
    "producer.config": "command-config",
}


@click.command(name="console-producer", short_help="Send lines from standard input.")
@bootstrap_option
@click.option("--topic", metavar="NAME", help="The topic to write to.")
@click.option("--sync", is_flag=True, help="Send every record on its own and wait for its answer.")
@click.option(
    "--compression-codec",
    is_flag=False,
    flag_value="gzip",
    metavar="[CODEC]",
    help="gzip, snappy, lz4 or zstd.",
)
@click.option("--batch-size", type=int, default=16384, metavar="BYTES", help="A batch is sent at this size.")
@click.option("--request-required-acks", default="-1", metavar="ACKS", help="-1 (all), 0 or 1.")
@click.option(
    "--request-timeout-ms", type=int, default=1500, metavar="MS", help="How long replicas may take."
)
@click.option(
    "--message-send-max-retries", type=int, default=3, metavar="N", help="Attempts after a refusal."
)
@click.option("--retry-backoff-ms", type=int, default=100, metavar="MS", help="The pause between attempts.")
@click.option("--line-reader", default=READERS[0], metavar="CLASS", help="The only one is LineMessageReader.")
@click.option("--reader-property", multiple=True, metavar="K=V", help="parse.key=true, key.separator=| ...")
@click.option("--reader-config", type=click.Path(path_type=Path), metavar="FILE", help="The same in a file.")
@click.option(
    "--property", "old_property", multiple=True, metavar="K=V", help="Old name of --reader-property."
)
@click.option("--command-property", multiple=True, metavar="K=V", help="A client property.")
@click.option("--command-config", type=click.Path(path_type=Path), metavar="FILE", help="Client properties.")
@click.option("--producer-property", multiple=True, metavar="K=V", help="Old name of --command-property.")
@click.option(
    "--producer.config",
    "producer_config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Old name of --command-config.",
)
@click.option("--timeout", type=int, hidden=True)
@click.option("--max-block-ms", type=int, hidden=True)
@click.option("--max-memory-bytes", type=int, hidden=True)
@click.option("--max-partition-memory-bytes", type=int, hidden=True)
@click.option("--metadata-expiry-ms", type=int, hidden=True)
@click.option("--socket-buffer-size", type=int, hidden=True)
@click.version_option(__version__, message="%(version)s")
def command(
    bootstrap_server: str,
    topic: str | None,
    sync: bool,
    compression_codec: str | None,
    batch_size: int,
    request_required_acks: str,
    request_timeout_ms: int,
    message_send_max_retries: int,
    retry_backoff_ms: int,
    line_reader: str,
    reader_property: tuple[str, ...],
    reader_config: Path | None,
    old_property: tuple[str, ...],
    command_property: tuple[str, ...],
    command_config: Path | None,
    producer_property: tuple[str, ...],
    producer_config: Path | None,
    max_partition_memory_bytes: int | None,
    **_tuning_of_java: int | None,
) -> None:
    """Send each line of standard input as a record."""
    for old, given in (
        ("property", old_property),
        ("producer-property", producer_property),
        ("producer.config", producer_config),
    ):
        if given:
            click.echo(
                f"Warning: --{old} is deprecated and will be removed in a future version. "
                f"Use --{OLD_OPTIONS[old]} instead."
            )
    if topic is None:
        raise ToolFailed('Missing required argument "[topic]"')
    if line_reader not in READERS:
        raise ToolFailed(f"{line_reader} is no reader of this tool: {READERS[0]}")
    properties = properties_of(command_config or producer_config, (*producer_property, *command_property))
    codec = compression_codec or properties.get("compression.type", "none")
    acks = properties.get("acks", request_required_acks)
    if codec not in CODECS:
        raise ToolFailed(
            f"Invalid value {codec} for configuration compression.type: "
            f"String must be one of: {', '.join(CODECS)}"
        )
    if acks not in ACKS:
        raise ToolFailed(
            f"Invalid value {acks} for configuration acks: String must be one of: {', '.join(ACKS)}"
        )
    reader = LineReader(properties_of(reader_config, (*old_property, *reader_property)))
    delivery = Delivery(
        acks=ACKS[acks],
        codec=CODECS.index(codec),
        batch_bytes=1 if sync else max_partition_memory_bytes or batch_size,
        timeout_ms=request_timeout_ms,
        retries=message_send_max_retries,
        retry_backoff_ms=retry_backoff_ms,
    )
    try:
        with connect(bootstrap_server, properties) as client:
            send_lines(Writer(client, topic, delivery), reader, FileIO(sys.stdin.fileno(), closefd=False))
    except ClientError as error:
        raise ToolFailed(f"Error when sending message to topic {topic}: {error}") from error


def send_lines(writer: Writer, reader: LineReader, source: RawIOBase) -> None:
    """Sends until the input ends; what was read before a line that does not parse is sent, too."""
    prompt = source.isatty()
    lines: queue.Queue[bytes | None] = queue.Queue(WAITING_LINES_MAX)
    threading.Thread(target=feed, args=(source, lines), name="lines", daemon=True).start()
    try:
        while True:
            if prompt:
                click.echo(">", nl=False)
            try:
                line = lines.get_nowait()
            except queue.Empty:
                writer.flush()
                line = lines.get()
            if line is None:
                return
            writer.add(reader.record(line, time.time_ns() // 1_000_000))
    finally:
        writer.flush()


def feed(source: RawIOBase, lines: queue.Queue[bytes | None]) -> None:
    """Puts the input's lines into the queue, then None. Runs in a thread that may outlive the tool: hence no
    buffered reader, whose lock it would hold when the interpreter ends.
    """
    try:
        for line in split_lines(source):
            lines.put(line)
    finally:
        lines.put(None)


def split_lines(source: RawIOBase) -> Iterator[bytes]:
    """Lines without their endings, which are those of Java's readers: LF, CR LF or CR."""
    begun = b""
    while chunk := source.read(READ_BYTES):
        *whole, begun = ENDING.split(begun + chunk)
        yield from whole
    if begun:
        yield begun.removesuffix(b"\r")
