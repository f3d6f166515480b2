"""Who viewed what after what: sessions of browsing events, and how often B was viewed after A, by window."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

from spark_jobs.kafka import Kafka, Source
from spark_jobs.options import Command, Stream, kafka_options, launch_options, source_options, stream_options
from spark_jobs.running import Stopping
from spark_jobs.session import Launch, build_session, stop
from spark_jobs.views.events import Fields, Times
from spark_jobs.views.queries import Behaviour, run

DURATION = re.compile(r"\d+ (second|minute|hour|day|week)s?")


def duration(_: click.Context, parameter: click.Parameter, value: str) -> str:
    if not DURATION.fullmatch(value):
        raise click.BadParameter(f"{value!r} is no duration such as '30 minutes'", param=parameter)
    return value


def time_option(name: str, default: str, text: str) -> Callable[[Command], Command]:
    return click.option(name, default=default, metavar="DURATION", callback=duration, help=text)


@click.command("behaviour", context_settings={"show_default": True})
@kafka_options
@source_options
@click.option("--out", required=True, metavar="FOLDER", help="Where the Parquet files go.")
@click.option("--result-topic", help="Also write the pairs to this topic, each change of a window.")
@click.option("--user-field", default="user", help="Name of the user in the events.")
@click.option(
    "--item-field",
    multiple=True,
    default=("item", "page"),
    help="Name of what was viewed. Repeatable: the first that an event has.",
)
@click.option(
    "--time-field", default="event_time", help="Name of the time: ISO 8601 (UTC), or ms since 1970."
)
@time_option("--session-gap", "30 minutes", "A user's views that are further apart are two sessions.")
@time_option("--watermark", "10 minutes", "How late a view may come, after later ones of anybody.")
@time_option("--within", "30 minutes", "How long after A a view of B counts.")
@click.option(
    "--ahead", type=click.IntRange(min=1), default=10, help="With how many following views each is paired."
)
@time_option("--window", "1 hour", "Over which pairs are counted, by the time of B.")
@time_option(
    "--longest-session", "1 day", "How long counts are kept open; pairs of longer sessions get lost."
)
@click.option("--skip-bad", is_flag=True, help="Count events that can't be used and go on, rather than end.")
@stream_options
@launch_options
def command(
    kafka: Kafka,
    source: Source,
    out: str,
    result_topic: str | None,
    user_field: str,
    item_field: tuple[str, ...],
    time_field: str,
    session_gap: str,
    watermark: str,
    within: str,
    ahead: int,
    window: str,
    longest_session: str,
    skip_bad: bool,
    stream: Stream,
    launch: Launch,
) -> None:
    """Count who viewed A and then B, from events {user, item or page, event_time} in JSON.

    \b
    OUT/sessions  one row for each complete session: user, start, end, views, items; by date
    OUT/pairs     how often B came after A in each window, when the window is over (append mode)
    the topic     the same as it changes (update mode), under the key {from, to, window_start}: the last
                  record of a key holds, so the topic may be compacted

    A session is complete when the watermark, the latest event time less --watermark, has passed its last
    view by the gap. Views that come later than that are dropped, and the progress line counts them.

    Every session and window is in the Parquet files once, also after a kill: read them with Spark, which
    obeys the _spark_metadata log beside them. In the topic a restart can repeat records; they are totals, so
    a repeat says the same again.

    \b
    Example:
      python -m spark_jobs behaviour --bootstrap localhost:9092 --topic views --out /data/behaviour \\
        --result-topic also-viewed --checkpoint /data/behaviour-checkpoint --trigger '10 seconds'
    """
    job = Behaviour(
        kafka,
        source,
        out,
        stream,
        result_topic,
        Fields(user_field, item_field, time_field),
        Times(session_gap, watermark, within, window, longest_session),
        ahead,
        skip_bad,
    )
    stopping = Stopping()
    spark = build_session("behaviour", launch)
    try:
        run(spark, job, stopping)
    finally:
        stop(spark)
