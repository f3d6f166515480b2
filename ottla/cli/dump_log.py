"""`ottla dump-log`: what log, index and snapshot files hold, line for line as Kafka's DumpLogSegments.

Reading and judging is `storage.segment_dump`'s; this is the print. It reads files that no broker need serve.
"""

from __future__ import annotations

import struct
import sys
import zlib
from dataclasses import dataclass, field

import click

from ottla.cli.options import ToolFailed
from ottla.cli.record_decoders import (
    GROUP_RECORDS,
    SHARE_GROUP_STATE,
    TRANSACTION_RECORDS,
    Decoder,
    coordinator_decoder,
)
from ottla.version import __version__
from protocol.errors import InvalidRecords
from protocol.records.batch import Record
from protocol.records.compression import CODEC_NAMES
from protocol.records.legacy import Message, inner_messages, read_message
from runtime.os_files import OsFileSystem
from storage import names, segment_dump
from storage.errors import StorageError
from storage.producers.entry import NONE, advance
from storage.segment_dump import DumpedBatch, IndexDump, LogDump

LOG_APPEND_TIME, DELETE_HORIZON = 0x08, 0x40
MAX_BYTES = 0x7FFFFFFF


@click.command(name="dump-log", short_help="Print the content of log and index files.")
@click.option("--files", metavar="FILE,FILE", help="The files to print.")
@click.option("--print-data-log", is_flag=True, help="Print keys and values of records, too.")
@click.option("--deep-iteration", is_flag=True, help="Print records, not batches only.")
@click.option(
    "--skip-record-metadata", is_flag=True, help="Print keys and values without what surrounds them."
)
@click.option("--max-bytes", type=int, default=MAX_BYTES, metavar="N", help="Print so much of each log only.")
@click.option("--index-sanity-check", is_flag=True, help="Check index files as a broker does at start.")
@click.option(
    "--verify-index-only", is_flag=True, help="Compare index files with their logs, print findings only."
)
@click.option("--offsets-decoder", is_flag=True, help="Print records as those of __consumer_offsets.")
@click.option(
    "--share-group-state-decoder", is_flag=True, help="Print records as those of __share_group_state."
)
@click.option(
    "--transaction-log-decoder", is_flag=True, help="Print records as those of __transaction_state."
)
@click.option("--max-message-size", type=int, hidden=True)
@click.version_option(__version__, message="%(version)s")
def command(
    files: str | None,
    print_data_log: bool,
    deep_iteration: bool,
    skip_record_metadata: bool,
    max_bytes: int,
    index_sanity_check: bool,
    verify_index_only: bool,
    offsets_decoder: bool,
    share_group_state_decoder: bool,
    transaction_log_decoder: bool,
    max_message_size: int | None,
) -> None:
    """Print the content of segment files: .log, .index, .timeindex, .txnindex and .snapshot."""
    if not files:
        raise ToolFailed('Missing required argument "[files]"')
    decoder: Decoder = plain_text
    if offsets_decoder:
        decoder = coordinator_decoder(GROUP_RECORDS)
    elif share_group_state_decoder:
        decoder = coordinator_decoder(SHARE_GROUP_STATE)
    elif transaction_log_decoder:
        decoder = coordinator_decoder(TRANSACTION_RECORDS)
    content = print_data_log or decoder is not plain_text
    printer = Printer(deep_iteration or content, content, skip_record_metadata, max_bytes, decoder)
    findings = Findings()
    for path in files.split(","):
        click.echo(f"Dumping {path}")
        suffix = "." + path.rpartition(".")[2]
        try:
            if suffix == names.LOG:
                printer.log(path)
            elif suffix in (names.OFFSET_INDEX, names.TIME_INDEX):
                printer.index(path, suffix, index_sanity_check, verify_index_only, findings)
            elif suffix == names.TXN_INDEX:
                printer.txn_index(path)
            elif suffix == names.SNAPSHOT:
                printer.snapshot(path)
            else:
                click.echo(f"Ignoring unknown file {path}", err=True)
        except (OSError, StorageError, InvalidRecords, ValueError) as error:
            sys.stdout.flush()
            raise ToolFailed(f"{path}: {error}") from error
    findings.show()


class Printer:
    """Prints one file after another."""

    def __init__(self, deep: bool, content: bool, bare: bool, max_bytes: int, decoder: Decoder) -> None:
        self._files = OsFileSystem()
        self._deep = deep
        self._content = content
        self._bare = bare
        self._max_bytes = max_bytes
        self._decoder = decoder

    def log(self, path: str) -> None:
        """A .log file: its batches, and their records where asked for."""
        click.echo(f"Log starting offset: {names.offset_of(path.rpartition('/')[2])}")
        dump = LogDump(self._files, path, self._max_bytes)
        try:
            for batch in dump.batches():
                click.echo(batch_line(batch))
                if self._deep:
                    self._records(batch)
            left = dump.size - dump.valid_bytes
            if left > 0 and self._max_bytes == MAX_BYTES:
                click.echo(f"Found {left} invalid bytes at the end of {path.rpartition('/')[2]}")
        finally:
            dump.close()

    def index(self, path: str, suffix: str, sanity_only: bool, verify_only: bool, findings: Findings) -> None:
        """An .index or .timeindex file: its entries, and what is wrong with them."""
        is_time = suffix == names.TIME_INDEX
        dump = (segment_dump.dump_time_index if is_time else segment_dump.dump_offset_index)(
            self._files, path
        )
        if dump.empty_file and not is_time:
            click.echo(f"{path} is empty.")
        elif sanity_only:
            if dump.problem is not None:
                raise ValueError(dump.problem)
            click.echo(f"{path} passed sanity check.")
        else:
            first, second = ("timestamp", "offset") if is_time else ("offset", "position")
            for entry in () if verify_only else dump.entries:
                click.echo(f"{first}: {entry[0]} {second}: {entry[1]}")
            findings.add(path, dump)

    def txn_index(self, path: str) -> None:
        """A .txnindex file: aborted transactions."""
        for each in segment_dump.dump_txn_index(self._files, path):
            click.echo(
                f"version: {each.version} producerId: {each.producer_id} firstOffset: {each.first_offset} "
                f"lastOffset: {each.last_offset} lastStableOffset: {each.last_stable_offset}"
            )

    def snapshot(self, path: str) -> None:
        """A .snapshot file: producers with the last batch of each."""
        for entry in segment_dump.dump_snapshot(self._files, path):
            line = (
                f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} "
                f"coordinatorEpoch: {entry.coordinator_epoch} "
                f"currentTxnFirstOffset: {optional(entry.current_txn_first_offset)} "
                f"lastTimestamp: {entry.last_timestamp} "
            )
            if entry.batches:
                first, last, offset, delta, timestamp = entry.batches[-1]
                line += (
                    f"firstSequence: {first} lastSequence: {last} lastOffset: {offset} "
                    f"offsetDelta: {delta} timestamp: {timestamp}"
                )
            click.echo(line)

    def _records(self, batch: DumpedBatch) -> None:
        checks = [] if batch.facts.magic >= 2 else legacy_checks(batch)
        for number, record in enumerate(batch.records()):
            parts = [] if self._bare else [metadata_of(batch, record)]
            if checks and not self._bare:
                parts.append(checks[number])
            if self._content and not batch.facts.control:
                key, payload = self._decoder(record)
                if key is not None:
                    parts.append(f"key: {key}")
                if payload is not None:
                    parts.append(f"payload: {payload}")
            click.echo("| " + " ".join(parts) if parts else "")


@dataclass(slots=True)
class Findings:
    """What is wrong with index files; told after everything is printed."""

    dumps: dict[str, IndexDump] = field(default_factory=dict)

    def add(self, path: str, dump: IndexDump) -> None:
        """Keeps a file's findings."""
        self.dumps[path] = dump

    def show(self) -> None:
        """Prints them to standard error, kind by kind."""
        for title, line, kind in (
            ("Mismatches in :", "  Index offset: {}, log offset: {}", "mismatches"),
            ("Found timestamp mismatch in :", "  Index timestamp: {}, log timestamp: {}", "wrong_timestamps"),
            (
                "Found out of order timestamp in :",
                "  Index timestamp: {}, Previously indexed timestamp: {}",
                "out_of_order",
            ),
            (
                "The following indexed offsets are not found in :",
                "Indexed offset: {}, found log offset: {}",
                "not_found",
            ),
        ):
            for path, dump in self.dumps.items():
                pairs: list[tuple[int, int]] = getattr(dump, kind)
                if pairs:
                    click.echo(f"{title}{path}", err=True)
                for pair in pairs:
                    click.echo(line.format(*pair), err=True)


def plain_text(record: Record) -> tuple[str | None, str | None]:
    """The decoder for keys and values that are text."""
    key, value = record.key, record.value
    return (
        None if key is None else key.decode(errors="replace"),
        None if value is None else value.decode(errors="replace"),
    )


def batch_line(batch: DumpedBatch) -> str:
    """One batch, or one message of the old formats."""
    facts = batch.facts
    if facts.magic >= 2:
        horizon = facts.base_timestamp if facts.attributes & DELETE_HORIZON else NONE
        last_sequence = facts.base_sequence
        if last_sequence >= 0:
            last_sequence = advance(last_sequence, facts.last_offset - facts.base_offset)
        line = (
            f"baseOffset: {facts.base_offset} lastOffset: {facts.last_offset} count: {facts.record_count} "
            f"baseSequence: {facts.base_sequence} lastSequence: {last_sequence} "
            f"producerId: {facts.producer_id} producerEpoch: {facts.producer_epoch} "
            f"partitionLeaderEpoch: {facts.leader_epoch} isTransactional: {lower(facts.transactional)} "
            f"isControl: {lower(facts.control)} deleteHorizonMs: {optional(horizon)}"
        )
    else:
        line = f"offset: {facts.last_offset}"
    return (
        f"{line} position: {facts.position} {time_type(batch)}: {facts.max_timestamp} size: {facts.size} "
        f"magic: {facts.magic} compresscodec: {CODEC_NAMES[facts.attributes & 7]} crc: {facts.crc} "
        f"isvalid: {lower(batch.valid)}"
    )


def metadata_of(batch: DumpedBatch, record: Record) -> str:
    """What surrounds a record's key and value."""
    facts = batch.facts
    sizes = [NONE if part is None else len(part) for part in (record.key, record.value)]
    line = (
        f"offset: {record.offset} {time_type(batch)}: {record.timestamp} "
        f"keySize: {sizes[0]} valueSize: {sizes[1]}"
    )
    if facts.magic >= 2:
        sequence = facts.base_sequence
        if sequence >= 0:
            sequence = advance(sequence, record.offset - facts.base_offset)
        line += f" sequence: {sequence} headerKeys: [{','.join(name for name, _ in record.headers)}]"
    if facts.control and record.key is not None:
        line += marker(record.key, record.value or b"")
    return line


def legacy_checks(batch: DumpedBatch) -> list[str]:
    """The checksum of each message of the old formats, those inside a compressed one included."""
    wrapper = read_message(batch.data, 0, len(batch.data))
    messages = inner_messages(wrapper) if wrapper.codec else [wrapper]
    return [f"isValid: {lower(each.crc_is_right)} crc: {legacy_crc(each)}" for each in messages]


def legacy_crc(message: Message) -> int:
    """CRC-32 over everything behind the checksum itself."""
    content = struct.pack(">bb", message.magic, message.attributes)
    if message.magic > 0:
        content += struct.pack(">q", message.timestamp)
    for part in (message.key, message.value):
        content += struct.pack(">i", NONE if part is None else len(part)) + (part or b"")
    return zlib.crc32(content)


def marker(key: bytes, value: bytes) -> str:
    """What a control record says."""
    kind = struct.unpack_from(">h", key, 2)[0] if len(key) >= 4 else NONE
    if kind in (0, 1) and len(value) >= 6:
        epoch = struct.unpack_from(">i", value, 2)[0]
        return f" endTxnMarker: {('ABORT', 'COMMIT')[kind]} coordinatorEpoch: {epoch}"
    return f" controlType: UNKNOWN({kind})"


def time_type(batch: DumpedBatch) -> str:
    """Which clock a batch's timestamps come from."""
    if batch.facts.magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if batch.facts.attributes & LOG_APPEND_TIME else "CreateTime"


def optional(number: int) -> str:
    """A number that may be missing, as Java prints it."""
    return "OptionalLong.empty" if number == NONE else f"OptionalLong[{number}]"


def lower(flag: bool) -> str:
    """A truth value as Java prints it."""
    return "true" if flag else "false"
