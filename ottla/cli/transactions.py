"""`ottla transactions`: look at transactions and their producers, and end those that hang, as Kafka's
TransactionsCommand does.

A failure is told on standard error with exit code 1. Rows that Kafka prints in the order of a hash table come
in the order of their names.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ottla.cli.options import ToolFailed, bootstrap_option, command_config_option, connect, read_properties
from ottla.cli.tables import print_tabbed
from ottla.client import NO_NODE, ClientError, KafkaClient
from ottla.transactions import OpenTransaction, TransactionAdmin

NONE = "None"
MINUTE_MS = 60_000
HANGING_AFTER_MINUTES = 15
NEITHER = (
    "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or "
    "with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
)

NO_LIMIT = (
    "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
)

Open = Callable[[], KafkaClient]


@click.group(name="transactions", short_help="Look at transactions, end those that hang.")
@bootstrap_option
@command_config_option
@click.pass_context
def command(ctx: click.Context, bootstrap_server: str, command_config: Path | None) -> None:
    """Look at transactions and their producers, and end those that hang."""
    ctx.obj = lambda: connect(bootstrap_server, read_properties(command_config))


def with_admin(open_client: Open, what: str, work: Callable[[TransactionAdmin], None]) -> None:
    """Does the work; a failure of the cluster ends the tool with `what` before its words."""
    try:
        with open_client() as client:
            work(TransactionAdmin(client))
    except ClientError as error:
        raise ToolFailed(f"{what}: {error}") from error


def partition_options(function: Any) -> Any:
    """--topic and --partition, both demanded."""
    partition = click.option("--partition", type=int, required=True, metavar="N", help="Its partition.")
    topic = click.option("--topic", required=True, metavar="TOPIC", help="The topic.")
    return topic(partition(function))


@command.command(name="list")
@click.option(
    "--duration-filter", "duration_ms", type=int, default=-1, metavar="MS", help="Only what lasts longer."
)
@click.option(
    "--transactional-id-pattern", "pattern", metavar="REGEX", help="Only ids that match it as a whole."
)
@click.pass_obj
def list_transactions(open_client: Open, duration_ms: int, pattern: str | None) -> None:
    """List the transactional ids of the cluster."""

    def work(admin: TransactionAdmin) -> None:
        rows = [
            (each.transactional_id, coordinator, each.producer_id, each.transaction_state)
            for coordinator, each in admin.listed(duration_ms=duration_ms, pattern=pattern)
        ]
        print_tabbed(("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), rows)

    with_admin(open_client, "Failed to list transactions", work)


@command.command()
@click.option("--transactional-id", required=True, metavar="ID", help="The transactional id.")
@click.pass_obj
def describe(open_client: Open, transactional_id: str) -> None:
    """Describe the transaction of one id."""

    def work(admin: TransactionAdmin) -> None:
        coordinator, found = admin.described(transactional_id)
        start_ms = found.transaction_start_time_ms
        row = (
            coordinator,
            transactional_id,
            found.producer_id,
            found.producer_epoch,
            found.transaction_state,
            found.transaction_timeout_ms,
            start_ms if start_ms >= 0 else NONE,
            now_ms() - start_ms if start_ms >= 0 else NONE,
            ",".join(f"{each.topic}-{index}" for each in found.topics for index in each.partitions),
        )
        titles = (
            "CoordinatorId",
            "TransactionalId",
            "ProducerId",
            "ProducerEpoch",
            "TransactionState",
            "TransactionTimeoutMs",
            "CurrentTransactionStartTimeMs",
            "TransactionDurationMs",
            "TopicPartitions",
        )
        print_tabbed(titles, [row])

    what = f"Failed to describe transaction state of transactional-id `{transactional_id}`"
    with_admin(open_client, what, work)


@command.command(name="describe-producers")
@click.option("--broker-id", type=int, default=NO_NODE, metavar="N", help="A replica that does not lead.")
@partition_options
@click.pass_obj
def describe_producers(open_client: Open, topic: str, partition: int, broker_id: int) -> None:
    """Describe the producers that a partition knows."""

    def work(admin: TransactionAdmin) -> None:
        rows = [
            (
                each.producer_id,
                each.producer_epoch,
                each.coordinator_epoch,
                each.last_sequence,
                each.last_timestamp,
                each.current_txn_start_offset if each.current_txn_start_offset >= 0 else NONE,
            )
            for each in admin.producers(topic, partition, broker_id)
        ]
        titles = (
            "ProducerId",
            "ProducerEpoch",
            "LatestCoordinatorEpoch",
            "LastSequence",
            "LastTimestamp",
            "CurrentTransactionStartOffset",
        )
        print_tabbed(titles, rows)

    where = "leader" if broker_id == NO_NODE else f"broker {broker_id}"
    with_admin(
        open_client, f"Failed to describe producers for partition {topic}-{partition} on {where}", work
    )


@command.command()
@partition_options
@click.option("--start-offset", type=int, metavar="OFFSET", help="Where the transaction begins.")
@click.option("--producer-id", type=int, metavar="ID", help="Of a broker older than 3.0.")
@click.option("--producer-epoch", type=int, metavar="EPOCH", help="Of a broker older than 3.0.")
@click.option("--coordinator-epoch", type=int, metavar="EPOCH", help="Of a broker older than 3.0.")
@click.pass_obj
def abort(
    open_client: Open,
    topic: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
) -> None:
    """Abort a transaction that hangs on a partition."""
    if start_offset is None and producer_id is None:
        raise ToolFailed(NEITHER)
    if start_offset is None:
        for name, value in (("producer", producer_epoch), ("coordinator", coordinator_epoch)):
            if value is None:
                raise ToolFailed(f"Missing required argument --{name}-epoch")

    def work(admin: TransactionAdmin) -> None:
        if start_offset is None:
            admin.abort(topic, partition, producer_id or 0, producer_epoch or 0, coordinator_epoch or 0)
            return
        for each in admin.producers(topic, partition):
            if each.current_txn_start_offset == start_offset:
                admin.abort(
                    topic, partition, each.producer_id, each.producer_epoch, max(each.coordinator_epoch, 0)
                )
                return
        raise ToolFailed(
            f"Could not find any open transactions starting at offset {start_offset} on partition "
            f"{topic}-{partition}"
        )

    with_admin(open_client, f"Failed to abort transaction on {topic}-{partition}", work)


@command.command(name="forceTerminateTransaction")
@click.option("--transactionalId", "transactional_id", required=True, metavar="ID", help="The id.")
@click.pass_obj
def force_terminate(open_client: Open, transactional_id: str) -> None:
    """Abort the open transaction of an id, and fence its producer."""
    what = f"Failed to force terminate transactionalId `{transactional_id}`"
    with_admin(open_client, what, lambda admin: admin.fence(transactional_id))


@command.command(name="find-hanging")
@click.option("--broker-id", type=int, metavar="N", help="Partitions that this broker leads.")
@click.option("--topic", metavar="TOPIC", help="Partitions of this topic.")
@click.option("--partition", type=int, metavar="N", help="One partition of --topic.")
@click.option(
    "--max-transaction-timeout",
    "minutes",
    type=int,
    default=HANGING_AFTER_MINUTES,
    show_default=True,
    metavar="MINUTES",
    help="How long a transaction may last.",
)
@click.pass_obj
def find_hanging(
    open_client: Open, broker_id: int | None, topic: str | None, partition: int | None, minutes: int
) -> None:
    """Find transactions that are open on a partition and that no coordinator will end."""
    if broker_id is None and topic is None:
        raise ToolFailed(NO_LIMIT)
    if partition is not None and topic is None:
        raise ToolFailed("The --partition argument requires --topic to be provided")

    def work(admin: TransactionAdmin) -> None:
        until_ms = now_ms() - minutes * MINUTE_MS
        print_hanging(admin.hanging(admin.cells(topic, partition, broker_id), until_ms))

    with_admin(open_client, "Failed to find hanging transactions", work)


def print_hanging(found: list[OpenTransaction]) -> None:
    """A row for each."""
    at_ms = now_ms()
    rows = [
        (
            each.topic,
            each.partition,
            each.producer.producer_id,
            each.producer.producer_epoch,
            each.producer.coordinator_epoch,
            each.producer.current_txn_start_offset,
            each.producer.last_timestamp,
            (at_ms - each.producer.last_timestamp) // MINUTE_MS,
        )
        for each in found
    ]
    titles = (
        "Topic",
        "Partition",
        "ProducerId",
        "ProducerEpoch",
        "CoordinatorEpoch",
        "StartOffset",
        "LastTimestamp",
        "Duration(min)",
    )
    print_tabbed(titles, rows)


def now_ms() -> int:
    """The wall clock, which the timestamps of batches and brokers are compared with."""
    return int(time.time() * 1000)
