"""Browsing events from JSON, their sessions, and what was viewed after what.

A view is {user, item, event_time}. A session is a user's views with less than a gap between each and the
next; it is complete when the watermark has passed its last view by the gap. A pair is a view of A and a
later one of B in the same session, at most `within` apart and with few views between them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

SESSIONS = (
    "user string, start timestamp, end timestamp, views long, "
    "items array<struct<time: timestamp, item: string>>, date date"
)


@dataclass(frozen=True, slots=True)
class Fields:
    """Names in the events' JSON. The first of `item` that an event has counts."""

    user: str = "user"
    item: tuple[str, ...] = ("item", "page")
    time: str = "event_time"


@dataclass(frozen=True, slots=True)
class Times:
    """Durations as Spark writes them, `30 minutes`."""

    gap: str = "30 minutes"
    watermark: str = "10 minutes"
    within: str = "30 minutes"
    window: str = "1 hour"
    longest_session: str = "1 day"


def views_of(rows: DataFrame, fields: Fields) -> DataFrame:
    """Columns user, item, time, partition, offset; null where an event has no such field or no JSON."""
    names = dict.fromkeys((fields.user, *fields.item, fields.time))
    schema = ", ".join(f"`{name}` string" for name in names)
    parsed = rows.select(f.from_json(f.col("value").cast("string"), schema).alias("e"), "*")
    time = f.col("e")[fields.time]
    return parsed.select(
        text(f.col("e")[fields.user]).alias("user"),
        f.coalesce(*[text(f.col("e")[name]) for name in fields.item]).alias("item"),
        f.coalesce(f.timestamp_millis(time.try_cast("long")), time.try_cast("timestamp")).alias("time"),
        "topic",
        "partition",
        "offset",
    )


def text(value: Column) -> Column:
    """Empty names are none."""
    return f.when(f.length(value) > 0, value)


def is_whole(views: DataFrame) -> Column:
    return views["user"].isNotNull() & views["item"].isNotNull() & views["time"].isNotNull()


def refused(views: DataFrame) -> DataFrame:
    """The same views; one that is not whole ends the job with its place."""
    whole = is_whole(views)
    place = f.format_string(
        "topic %s, partition %d, offset %d: no event with user, item and time",
        "topic",
        "partition",
        "offset",
    )
    # the error has to hang on a column that is used, or the optimizer leaves it out
    user = f.when(whole, f.col("user")).otherwise(f.raise_error(place).cast("string"))
    return views.withColumn("user", user)


def sessions_of(views: DataFrame, times: Times) -> DataFrame:
    """Complete sessions, once each. Views at the same time are in the order of their offsets."""
    view = f.struct("time", "partition", "offset", "item")
    found = (
        views.withWatermark("time", times.watermark)
        .groupBy("user", f.session_window("time", times.gap).alias("session"))
        .agg(f.sort_array(f.collect_list(view)).alias("seen"))
    )
    return found.select(
        "user",
        f.col("session.start").alias("start"),
        f.element_at("seen", -1)["time"].alias("end"),
        f.size("seen").cast("long").alias("views"),
        f.transform("seen", lambda each: f.struct(each["time"], each["item"])).alias("items"),
        f.to_date("session.start").alias("date"),
    )


def pairs_of(sessions: DataFrame, times: Times, ahead: int) -> DataFrame:
    """Each view with up to `ahead` views after it: columns user, from, to, time (of the second), seconds."""
    numbered = f.transform(
        "items",
        lambda first, at: f.struct(
            first.alias("first"), f.slice("items", at + 2, f.lit(ahead)).alias("following")
        ),
    )
    firsts = sessions.select("user", "items", f.explode(numbered).alias("view"))
    both = firsts.select("user", f.col("view.first").alias("a"), f.explode("view.following").alias("b"))
    limit = f.expr(f"INTERVAL {times.within}")
    near = (f.col("b.time") <= f.col("a.time") + limit) & (f.col("a.item") != f.col("b.item"))
    return both.filter(near).select(
        "user",
        f.col("a.item").alias("from"),
        f.col("b.item").alias("to"),
        f.col("b.time").alias("time"),
        ((f.unix_millis("b.time") - f.unix_millis("a.time")) / 1000).alias("seconds"),
    )


def counted(pairs: DataFrame, times: Times) -> DataFrame:
    """How often B came after A in each window, and how long after, on average.

    Sessions come when they end, so their first pairs are as old as they are long: the watermark stays the
    longest session behind, and only pairs of longer ones come too late.
    """
    found = (
        pairs.withWatermark("time", times.longest_session)
        .groupBy(f.window("time", times.window), "from", "to")
        .agg(f.count("*").alias("count"), f.avg("seconds").alias("seconds"))
    )
    return found.select(
        f.col("window.start").alias("window_start"),
        f.col("window.end").alias("window_end"),
        "from",
        "to",
        "count",
        f.round("seconds", 3).alias("seconds"),
    )


def records_of(counts: DataFrame) -> DataFrame:
    """Rows for a topic: the key says which pair and window, so the last record of a key is what holds."""
    key = f.to_json(f.struct("from", "to", iso("window_start")))
    value = f.to_json(f.struct("from", "to", iso("window_start"), iso("window_end"), "count", "seconds"))
    return counts.select(
        f.encode(key, "UTF-8").alias("key"),
        f.encode(value, "UTF-8").alias("value"),
    )


def iso(name: str) -> Column:
    return f.date_format(name, "yyyy-MM-dd'T'HH:mm:ss'Z'").alias(name)
