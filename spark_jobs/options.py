"""Options that jobs share, as decorators; each puts one dataclass into the command's arguments.

    @click.command("name")
    @kafka_options            # kafka: Kafka
    @source_options           # source: Source
    @stream_options           # stream: Stream
    @launch_options           # launch: Launch
    def command(kafka, source, stream, launch, ...): ...

A command changes a default by its `default_map`, for instance {"trigger": "available-now"}.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from spark_jobs.kafka import Kafka, Source, offsets
from spark_jobs.session import Launch

Command = Callable[..., Any]


@dataclass(slots=True)
class Stream:
    """How a query runs."""

    checkpoint: str
    trigger: str | None = None  # an interval, available-now, continuous:INTERVAL; None as fast as it can
    progress_file: Path | None = None

    def trigger_arguments(self) -> dict[str, Any]:
        """Keywords of DataStreamWriter.trigger."""
        return parse_trigger(self.trigger)


def gathers(
    names: tuple[str, ...], target: str, make: Callable[..., Any], *added: Any
) -> Callable[[Command], Command]:
    """A decorator that adds options and hands on one object made of their values."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            made = make(**{name: kwargs.pop(name) for name in names})
            return command(*args, **{target: made}, **kwargs)

        result: Command = wrapped
        for option in reversed(added):
            result = option(result)
        return result

    return decorate


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """KEY=VALUE each; raises click's BadParameter."""
    found = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint=option)
        found[key.strip()] = value
    return found


def properties(path: Path) -> dict[str, str]:
    """A file of key=value lines, # and ! begin comments, a backslash continues a line."""
    text = re.sub(r"\\\r?\n\s*", "", path.read_text(encoding="utf-8"))
    lines = (line.strip() for line in text.splitlines())
    found = {}
    for line in lines:
        if line and line[0] not in "#!":
            key, _, value = line.partition("=")
            found[key.strip()] = value.strip()
    return found


def make_launch(
    master: str | None, jars: str | None, packages: tuple[str, ...], conf: tuple[str, ...], spark_log: str
) -> Launch:
    return Launch(master, jars, packages, tuple(pairs(conf, "--conf").items()), spark_log.upper())


launch_options = gathers(
    ("master", "jars", "packages", "conf", "spark_log"),
    "launch",
    make_launch,
    click.option("--master", help="Spark's master; else local[2], under spark-submit the submit's."),
    click.option(
        "--jars", metavar="PATHS", help="Archives or folders of them, instead of fetching Spark's connector."
    ),
    click.option("--packages", multiple=True, metavar="GROUP:NAME:VERSION", help="Fetch these as well."),
    click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark's. Repeatable."),
    click.option(
        "--spark-log", metavar="LEVEL", default="FATAL", show_default=True, help="How much Spark logs."
    ),
)


def make_kafka(bootstrap: str, kafka_config: Path | None, kafka_option: tuple[str, ...]) -> Kafka:
    told = properties(kafka_config) if kafka_config else {}
    told.pop("bootstrap.servers", None)
    return Kafka(bootstrap, {**told, **pairs(kafka_option, "--kafka-option")})


kafka_options = gathers(
    ("bootstrap", "kafka_config", "kafka_option"),
    "kafka",
    make_kafka,
    click.option("--bootstrap", required=True, metavar="HOST:PORT,...", help="The cluster's brokers."),
    click.option(
        "--kafka-config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A file of client settings (key=value), for instance of security.",
    ),
    click.option(
        "--kafka-option",
        multiple=True,
        metavar="KEY=VALUE",
        help="A client setting, for instance security.protocol=SASL_SSL; wins over the file.",
    ),
)


def place(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        try:
            offsets("starting", value)
        except ValueError as error:
            raise click.BadParameter(str(error), param=parameter) from error
    return value


PLACES = "earliest, latest, JSON {topic: {partition: offset}}, timestamps:JSON, or a time (ms or ISO 8601)"

chosen_options = [
    click.option("--topic", help="The topic, or several with commas."),
    click.option("--subscribe-pattern", help="A Java regular expression of topics."),
    click.option("--assign", metavar="JSON", help='Partitions, as {"topic": [0, 1]}.'),
]
starting_option = click.option(
    "--starting-offsets",
    default="earliest",
    show_default=True,
    callback=place,
    metavar="PLACE",
    help=f"Where to begin without a checkpoint: {PLACES}.",
)
ending_option = click.option(
    "--ending-offsets", callback=place, metavar="PLACE", help="Where a batch ends (exclusive); else latest."
)
reading_options = [
    click.option(
        "--max-offsets-per-trigger",
        type=click.IntRange(1),
        help="Offsets of one batch at most; it bounds what a restart can repeat.",
    ),
    click.option("--min-partitions", type=click.IntRange(1), help="Split partitions among so many tasks."),
    click.option(
        "--fail-on-data-loss/--no-fail-on-data-loss",
        default=True,
        show_default=True,
        help="End when offsets that were not read are gone (retention, deletion), or go on without.",
    ),
    click.option(
        "--no-record-at-time",
        type=click.Choice(["error", "latest"]),
        default="error",
        show_default=True,
        help="What a time behind a partition's last record means.",
    ),
    click.option("--source-option", multiple=True, metavar="KEY=VALUE", help="Another option of the source."),
]


def make_source(
    topic: str | None,
    subscribe_pattern: str | None,
    assign: str | None,
    starting_offsets: str | None,
    max_offsets_per_trigger: int | None,
    min_partitions: int | None,
    fail_on_data_loss: bool,
    no_record_at_time: str,
    source_option: tuple[str, ...],
    ending_offsets: str | None = None,
) -> Source:
    if sum(each is not None for each in (topic, subscribe_pattern, assign)) != 1:
        raise click.UsageError("Give one of --topic, --subscribe-pattern and --assign.")
    return Source(
        tuple(filter(None, (topic or "").split(","))),
        subscribe_pattern,
        assign,
        starting_offsets,
        ending_offsets,
        max_offsets_per_trigger,
        min_partitions,
        fail_on_data_loss,
        no_record_at_time,
        options=pairs(source_option, "--source-option"),
    )


SOURCE_NAMES = (
    "topic",
    "subscribe_pattern",
    "assign",
    "starting_offsets",
    "max_offsets_per_trigger",
    "min_partitions",
    "fail_on_data_loss",
    "no_record_at_time",
    "source_option",
)
source_options = gathers(
    SOURCE_NAMES, "source", make_source, *chosen_options, starting_option, *reading_options
)
# with an end, for jobs that read a range
range_options = gathers(
    (*SOURCE_NAMES, "ending_offsets"),
    "source",
    make_source,
    *chosen_options,
    starting_option,
    ending_option,
    *reading_options,
)


def parse_trigger(told: str | None) -> dict[str, Any]:
    """`available-now`, `once`, an interval (`5 seconds`), `continuous:INTERVAL`; None or `fast`: no pause."""
    if told is None or told.lower() == "fast":
        return {"processingTime": "0 seconds"}
    if told.lower().replace("_", "-") in ("available-now", "once"):
        return {"availableNow": True}
    kind, _, interval = told.rpartition(":")
    if not re.fullmatch(r"\d+(\.\d+)?\s*[a-z]+", interval.strip().lower()) or kind not in ("", "continuous"):
        raise ValueError(f"{told!r} is none of: 5 seconds, available-now, continuous:1 second, fast")
    return {"continuous" if kind else "processingTime": interval.strip()}


def trigger_value(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    try:
        parse_trigger(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from error
    return value


def make_stream(checkpoint: str | None, trigger: str | None, progress_file: Path | None) -> Stream:
    return Stream(checkpoint or "", trigger, progress_file)


TRIGGER_OPTION = click.option(
    "--trigger",
    default="fast",
    show_default=True,
    callback=trigger_value,
    help="When batches begin: an interval (5 seconds), fast (at once when there is something), available-now "
    "(what is there, then end), continuous:1 second.",
)
PROGRESS_OPTION = click.option(
    "--progress-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write each batch's figures as a line of JSON (audit plots them).",
)


def streams(checkpoint_required: bool) -> Callable[[Command], Command]:
    return gathers(
        ("checkpoint", "trigger", "progress_file"),
        "stream",
        make_stream,
        click.option(
            "--checkpoint",
            required=checkpoint_required,
            metavar="FOLDER",
            help="Where the job keeps how far it is, one folder for each job. A restart goes on from there.",
        ),
        TRIGGER_OPTION,
        PROGRESS_OPTION,
    )


stream_options = streams(checkpoint_required=True)
# for jobs that also run as one batch
optional_stream_options = streams(checkpoint_required=False)
