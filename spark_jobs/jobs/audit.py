"""Whether one place holds what another does, two topics or a topic and files; and pictures of how it went."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import click
from pyspark.sql import SparkSession

from spark_jobs.audit.reading import FilesPart, TopicPart, range_of
from spark_jobs.audit.report import Report
from spark_jobs.audit.run import Audit, run
from spark_jobs.audit.sides import COMPARABLE, Compared
from spark_jobs.audit.watch import Watch
from spark_jobs.failures import JobFailed
from spark_jobs.kafka import Kafka
from spark_jobs.options import kafka_options, launch_options, pairs
from spark_jobs.plot import Series, draw, read
from spark_jobs.running import Stopping
from spark_jobs.session import Launch, build_session, stop
from spark_jobs.topics import Topics

FORMATS = ("archive", "lines", "csv", "json", "parquet")


@dataclass(slots=True)
class Output:
    """Where the report and the picture go."""

    json_file: Path | None = None
    plot: Path | None = None
    progress_files: tuple[Path, ...] = ()
    watch_s: float = 0.0
    watch_idle_s: float = 30.0
    watch_file: Path | None = None


def offsets_of(topic: str, text: str | None, option: str) -> dict[int, int]:
    """Offsets by partition from the connector's JSON; other topics in it are none of ours."""
    if text is None:
        return {}
    try:
        found = json.loads(text).get(topic, {})
        return {int(number): int(offset) for number, offset in found.items()}
    except (ValueError, AttributeError) as error:
        raise click.UsageError(f'{option}: expected {{"topic": {{"0": 23}}}}: {error}') from error


def part_of(
    topic: str | None,
    files: FilesPart | None,
    kafka: Kafka,
    starting: str | None,
    ending: str | None,
    committed: bool,
) -> TopicPart | FilesPart | None:
    if topic is not None and files is None:
        return TopicPart(
            topic,
            kafka.bootstrap,
            kafka.options,
            offsets_of(topic, starting, "--starting-offsets"),
            offsets_of(topic, ending, "--ending-offsets"),
            committed,
        )
    return files if topic is None else None


def compared_of(
    match: str,
    left: TopicPart | FilesPart,
    right: TopicPart | FilesPart,
    compare: str | None,
    ignored: tuple[str, ...],
) -> Compared:
    """What is compared, with what the files allow where nothing is said."""
    files = [part for part in (left, right) if isinstance(part, FilesPart)]
    rows = [part for part in files if part.format != "archive"]
    if match == "auto":
        match = "place" if files and not rows else "content"
    if rows and match != "content":
        raise click.UsageError(f"--match {match}: {rows[0].format} files have no offsets of a topic")
    known: tuple[str, ...] = COMPARABLE
    if rows:
        known = ("key", "value") if all(part.key for part in rows) else ("value",)
    chosen = compare or ",".join(name for name in known if name != "timestamp")
    fields = tuple(name.strip() for name in chosen.split(",") if name.strip())
    if not fields or any(name not in known for name in fields):
        raise click.UsageError(f"--compare {compare}: choose from {', '.join(known)}")
    return Compared(fields, ignored, match)


def perform(spark: SparkSession, audit: Audit, output: Output, stopping: Stopping | None = None) -> Report:
    """Watches (if told to), compares, and writes report and picture."""
    series = [read(file) for file in output.progress_files]
    if output.watch_s:
        series.append(watch(spark, audit, output, stopping))
    report = run(spark, audit)
    text = json.dumps(report.as_json(), indent=2)
    to_stdout = output.json_file is not None and str(output.json_file) == "-"
    click.echo(str(report), err=to_stdout)
    if to_stdout:
        click.echo(text)
    elif output.json_file is not None:
        output.json_file.write_text(text + "\n", encoding="utf-8")
    if output.plot is not None:
        draw(series, output.plot, f"{audit.left.name} -> {audit.right.name}")
    return report


def watch(spark: SparkSession, audit: Audit, output: Output, stopping: Stopping | None) -> Series:
    left, right = audit.left, audit.right
    if not isinstance(left, TopicPart) or not isinstance(right, TopicPart):
        raise JobFailed("only topics can be watched: for files give the job's --progress-file")
    with (
        Topics(spark, left.bootstrap, left.options) as lefts,
        Topics(spark, right.bootstrap, right.options) as rights,
    ):
        looking = Watch(
            lambda: held(lefts, left),
            lambda: held(rights, right),
            output.watch_s,
            output.watch_idle_s,
            output.watch_file,
        )
        looking.run(lambda: stopping is not None and stopping.asked > 0)
        return looking.series


def held(topics: Topics, part: TopicPart) -> int:
    """Offsets from the beginning (or where the audit begins) to the end."""
    starts, ends = range_of(topics, part)
    return sum(ends.values()) - sum(starts.values())


@click.command("audit", context_settings={"show_default": True})
@kafka_options
@click.option("--left", metavar="TOPIC", help="The topic that everything came from.")
@click.option("--right", metavar="TOPIC", help="The topic that should hold it.")
@click.option("--left-files", metavar="PATH", help="Files instead of a topic on the left.")
@click.option("--right-files", metavar="PATH", help="Files instead of a topic on the right.")
@click.option(
    "--files-format",
    type=click.Choice(FORMATS),
    default="archive",
    help="archive: Parquet with the columns of a topic, as `archive` writes it; lines: a record a line; the "
    "others: a record a row, as `ingest` makes it.",
)
@click.option("--files-key", metavar="COLUMN", help="Of rows: the key, as ingest's --key.")
@click.option("--files-value", metavar="COLUMN", help="Of rows: the value, as ingest's --value; else JSON.")
@click.option("--files-schema", metavar="DDL", help="Of rows: their columns, as ingest's --schema.")
@click.option("--right-bootstrap", metavar="HOST:PORT,...", help="Another cluster for the right.")
@click.option("--right-kafka-option", multiple=True, metavar="KEY=VALUE", help="Settings for it. Repeatable.")
@click.option("--starting-offsets", metavar="JSON", help='From where: {"topic": {"0": 23}}, else earliest.')
@click.option("--ending-offsets", metavar="JSON", help="To where, exclusive; else what is there now.")
@click.option("--read-uncommitted", is_flag=True, help="Count records of open and aborted transactions too.")
@click.option(
    "--match",
    type=click.Choice(["auto", "content", "place", "origin"]),
    default="auto",
    help="How a record is recognised: by its contents; by partition and offset (archives: auto); by the "
    "headers of drain --origin.",
)
@click.option(
    "--compare", metavar="FIELDS", help="Of key,value,headers,timestamp  [default: key,value,headers]"
)
@click.option("--ignore-header", multiple=True, metavar="NAME", help="A header that may differ. Repeatable.")
@click.option(
    "--order",
    type=click.Choice(["key", "partition", "none"]),
    default="key",
    help="Which records must keep their order: those of a key, or all of a partition.",
)
@click.option("--allow-repeats", is_flag=True, help="Count records that came twice, but pass.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Also as JSON, to a file or `-`.")
@click.option(
    "--watch", "watch_s", type=click.FloatRange(min=0.1), help="First look at the lag every so many s."
)
@click.option("--watch-idle", default=30.0, help="End watching when nothing has come for so many seconds.")
@click.option("--watch-file", type=click.Path(path_type=Path), help="Write what was watched, as JSON lines.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw lag and throughput (.png, .svg, .pdf).")
@click.option(
    "--progress-file",
    "progress_files",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="What to draw: progress files of jobs. Repeatable.",
)
@launch_options
def command(
    kafka: Kafka,
    left: str | None,
    right: str | None,
    left_files: str | None,
    right_files: str | None,
    files_format: str,
    files_key: str | None,
    files_value: str | None,
    files_schema: str | None,
    right_bootstrap: str | None,
    right_kafka_option: tuple[str, ...],
    starting_offsets: str | None,
    ending_offsets: str | None,
    read_uncommitted: bool,
    match: str,
    compare: str | None,
    ignore_header: tuple[str, ...],
    order: str,
    allow_repeats: bool,
    json_file: Path | None,
    watch_s: float | None,
    watch_idle: float,
    watch_file: Path | None,
    plot: Path | None,
    progress_files: tuple[Path, ...],
    launch: Launch,
) -> int:
    """Compare two topics, or a topic and files: nothing lost, doubled, changed or out of order?

    Exit code 0 if it is so, 1 if not (or the audit failed). Offsets without a record (aborted records,
    transaction markers, compaction) are shown, and are no loss.

    \b
    Examples:
      python -m spark_jobs audit --bootstrap localhost:9092 --left orders --right orders-wide --allow-repeats
      python -m spark_jobs audit --bootstrap localhost:9092 --left orders --right-files /data/orders
      python -m spark_jobs audit --bootstrap localhost:9092 --left-files /var/log/shop --files-format lines \\
        --right shop-log
      python -m spark_jobs audit --bootstrap localhost:9092 --left orders --right orders-wide --watch 2 \\
        --plot drain.svg
    """
    if plot is not None and not progress_files and watch_s is None:
        raise click.UsageError("--plot draws a --progress-file, or what --watch sees: give one of them")
    other = Kafka(right_bootstrap or kafka.bootstrap, {**kafka.options} if right_bootstrap is None else {})
    other.options = {**other.options, **pairs(right_kafka_option, "--right-kafka-option")}
    range_ = starting_offsets, ending_offsets, not read_uncommitted
    files = [
        path and FilesPart(path, files_format, files_key, files_value, files_schema)
        for path in (left_files, right_files)
    ]
    lefts = part_of(left, files[0] or None, kafka, *range_)
    rights = part_of(right, files[1] or None, other, *range_)
    if lefts is None or rights is None:
        raise click.UsageError("give each side once: --left or --left-files, and --right or --right-files")
    audit = Audit(
        lefts, rights, compared_of(match, lefts, rights, compare, ignore_header), order, allow_repeats
    )
    output = Output(json_file, plot, progress_files, watch_s or 0.0, watch_idle, watch_file)
    stopping = Stopping() if watch_s else None
    spark = build_session("audit", launch)
    try:
        return 0 if perform(spark, audit, output, stopping).ok else 1
    finally:
        stop(spark)
