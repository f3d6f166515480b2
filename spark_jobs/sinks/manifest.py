"""Current state as Parquet: generations of files behind a manifest that is replaced atomically.

    manifest.json                               which files are the state now, and up to which offsets it goes
    data/00000012-4f1c.../_bucket=3/part-*.parquet

A reader takes the files that the manifest names; together they are the whole state, one row for each key. A
batch writes the buckets (by the key's hash) that it touches anew and keeps the other files. The files that a
generation no longer names stay for a grace, for readers that have its manifest; then they are removed, as is
what a killed writer left behind.

Beside the table's columns a row has `_key`, `_partition` and `_offset`, the event it comes from. The manifest
holds the offsets up to which each partition is contained; events below are left out, so that a repeated or
late batch changes nothing and a deleted row needs no memory.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import asdict, dataclass, field, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, StructType

from spark_jobs.changes import Refuse, Summary
from spark_jobs.sinks.storage import Storage, storage_of

FORMAT = 1
NAME = "manifest.json"
DATA = "data"
MANY_KEYS = 20  # for each bucket: then hardly one is left alone
PLACE = "_key STRING, _partition INT, _offset BIGINT"
OWN = ("_key", "_partition", "_offset")


class ManifestRefused(RuntimeError):
    """The folder can't take the state; the message says why."""


@dataclass(slots=True, frozen=True)
class Manifest:
    """One generation. `columns`: name and Spark type in order; `files` by bucket; `offsets` by topic."""

    generation: int = 0
    columns: tuple[tuple[str, str], ...] = ()
    buckets: int = 0
    files: dict[str, list[str]] = field(default_factory=dict)
    offsets: dict[str, dict[str, int]] = field(default_factory=dict)
    retired: dict[str, int] = field(default_factory=dict)  # file: when it went out of use, ms
    written_ms: int = 0

    def text(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"

    @property
    def schema(self) -> str:
        """As Spark's reader takes it."""
        return ", ".join([PLACE, *(f"`{name.replace('`', '``')}` {kind}" for name, kind in self.columns)])

    def all_files(self) -> list[str]:
        return [name for names in self.files.values() for name in names]


def parse_manifest(text: str | None, where: str) -> Manifest:
    """The manifest in a file; an empty one where there is no file."""
    if text is None:
        return Manifest()
    try:
        found = json.loads(text)
        if found.pop("format") != FORMAT:
            raise ValueError("another format")
        manifest = Manifest(**found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ManifestRefused(
            f"{where} is not a manifest ({error}): restore it, or begin in an empty folder"
        ) from error
    return replace(manifest, columns=tuple((name, kind) for name, kind in manifest.columns))


def read_state(spark: SparkSession, path: str) -> DataFrame:
    """The state that a folder holds now."""
    storage = storage_of(spark, path)
    return frame_of(spark, storage, parse_manifest(storage.read(NAME), storage.uri(NAME)))


def frame_of(
    spark: SparkSession, storage: Storage, manifest: Manifest, buckets: list[int] | None = None
) -> DataFrame:
    """The rows of a generation, or of some of its buckets."""
    names = (
        manifest.all_files()
        if buckets is None
        else [name for bucket in buckets for name in manifest.files.get(str(bucket), [])]
    )
    schema = manifest.schema
    if not names:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*map(storage.uri, names))


class ManifestSink:
    """Applies batches to a folder. `schema` (Spark DDL) gives the types; without it all are STRING."""

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        schema: str | None = None,
        buckets: int = 4,
        grace_s: float = 600.0,
        topic_epoch: int = 0,
    ) -> None:
        self.buckets, self.grace_s = buckets, grace_s
        self.storage = storage_of(spark, path)
        self.epoch = topic_epoch
        self.declared = declared_columns(schema)
        self.manifest = parse_manifest(self.storage.read(NAME), self.storage.uri(NAME))
        if self.declared is not None and self.manifest.columns not in ((), self.declared):
            self.check_declared(self.declared)

    def check_declared(self, declared: tuple[tuple[str, str], ...]) -> None:
        """Columns may be added; those that are there keep their types."""
        wanted = dict(declared)
        for name, kind in self.manifest.columns:
            if wanted.get(name) != kind:
                raise ManifestRefused(
                    f"{self.storage.uri('')} has column {name} as {kind}, the schema says "
                    f"{wanted.get(name)}: columns can be added, not changed. Begin in an empty folder."
                )

    def place(self, topic: str) -> str:
        return f"{topic}@{self.epoch}" if self.epoch else topic

    def problem(self) -> Column | None:
        """Events whose values don't fit the declared columns."""
        return None if self.declared is None else unfit(self.declared)

    def write(self, topic: str, last: DataFrame, summary: Summary, refuse: Refuse) -> None:
        """Makes a generation of the one before and a batch: one fit row for each key (see changes.latest)."""
        known = self.manifest.offsets.get(self.place(topic), {})
        ends = {str(partition): end for partition, end in summary.ends.items()}
        if all(end <= known.get(partition, 0) for partition, end in ends.items()):
            return
        fresh = last.where(f.col("offset") >= next_offset(known))
        offsets = {
            **known,
            **{partition: max(end, known.get(partition, 0)) for partition, end in ends.items()},
        }
        self.generation(self.place(topic), fresh, summary, offsets)

    def columns_with(self, summary: Summary) -> tuple[tuple[str, str], ...]:
        """The columns of the next generation: those declared, or those there are and the batch's new ones."""
        if self.declared is not None:
            return self.declared
        there = {name for name, _ in self.manifest.columns}
        new = (name for name in summary.columns if name not in there)
        return (*self.manifest.columns, *((name, "string") for name in new))

    def touched(self, fresh: DataFrame, keys: int, buckets: int) -> list[int]:
        """The buckets that a batch's keys are in: all of them, where there are many keys."""
        if keys >= buckets * MANY_KEYS:
            return list(range(buckets))
        return sorted(row[0] for row in fresh.select(bucket_of(buckets)).distinct().collect())

    def generation(self, place: str, fresh: DataFrame, summary: Summary, offsets: dict[str, int]) -> None:
        """Writes the touched buckets, then the manifest; only that makes them count."""
        old = self.manifest
        buckets, columns = old.buckets or self.buckets, self.columns_with(summary)
        touched = self.touched(fresh, summary.keys, buckets)
        number = old.generation + 1
        folder = f"{DATA}/{number:08d}-{uuid.uuid4().hex[:12]}"
        files = dict(old.files)
        if touched:
            before = frame_of(fresh.sparkSession, self.storage, replace(old, columns=columns), touched)
            survivors = before.join(fresh.select(f.col("key").alias("_key")), "_key", "left_anti")
            rows = fresh.where("op <> 'd'").select(
                f.col("key").alias("_key"),
                f.col("partition").alias("_partition"),
                f.col("offset").alias("_offset"),
                *(converted(f.col("after")[name], kind).alias(name) for name, kind in columns),
            )
            whole = survivors.unionByName(rows).withColumn("_bucket", bucket_of(buckets, "_key"))
            placed = whole.repartition("_bucket").sortWithinPartitions("_bucket", "_key")
            placed.write.partitionBy("_bucket").parquet(self.storage.uri(folder))
            for bucket in touched:
                found = self.storage.files(f"{folder}/_bucket={bucket}")
                files[str(bucket)] = [name for name in found if name.endswith(".parquet")]
            self.storage.sync([name for bucket in touched for name in files[str(bucket)]])
        now_ms = int(time.time() * 1000)
        retired = {
            **old.retired,
            **dict.fromkeys(set(old.all_files()) - {n for ns in files.values() for n in ns}, now_ms),
        }
        expired = [name for name, since_ms in retired.items() if now_ms - since_ms >= self.grace_s * 1000]
        self.commit(
            Manifest(
                number,
                columns,
                buckets,
                files,
                {**old.offsets, place: offsets},
                {name: since_ms for name, since_ms in sorted(retired.items()) if name not in set(expired)},
                now_ms,
            )
        )
        self.clean(expired, folder)

    def commit(self, manifest: Manifest) -> None:
        """Replaces the manifest, unless another writer did so meanwhile."""
        current = parse_manifest(self.storage.read(NAME), self.storage.uri(NAME))
        if current.generation != self.manifest.generation:
            raise ManifestRefused(
                f"{self.storage.uri(NAME)} is at generation {current.generation}, this job made "
                f"{self.manifest.generation}: another job writes the same folder. Each needs its own."
            )
        self.storage.replace(NAME, manifest.text())
        self.manifest = manifest

    def clean(self, expired: list[str], current: str) -> None:
        """Removes files out of use for longer than the grace, and folders that no manifest ever named."""
        for name in expired:
            self.storage.remove(name)
        named = {name.split("/")[1] for name in [*self.manifest.all_files(), *self.manifest.retired]}
        for folder in self.storage.folders(DATA):
            if folder not in named and f"{DATA}/{folder}" != current:
                self.storage.remove(f"{DATA}/{folder}")


def declared_columns(schema: str | None) -> tuple[tuple[str, str], ...] | None:
    if schema is None:
        return None
    found = StructType.fromDDL(schema)
    if not isinstance(found, StructType):
        raise ManifestRefused(f"schema {schema!r}: expected columns and types, as in 'id INT, name STRING'")
    return tuple((each.name.lower(), each.dataType.simpleString()) for each in found)


def next_offset(known: dict[str, int]) -> Column:
    """The first offset of a row's partition that is not contained yet."""
    if not known:
        return f.lit(0)
    pairs = [part for partition, offset in known.items() for part in (f.lit(int(partition)), f.lit(offset))]
    return f.coalesce(f.create_map(*pairs)[f.col("partition")], f.lit(0))


def bucket_of(buckets: int, key: str = "key") -> Column:
    return f.pmod(f.xxhash64(f.col(key)), f.lit(buckets)).cast("int")


def unfit(columns: tuple[tuple[str, str], ...]) -> Column:
    """Why an event doesn't fit columns: a value of another kind, or a column they lack."""
    after, row = f.col("after"), f.col("op") != "d"
    extra = f.array_except(f.map_keys(after), f.array(*(f.lit(name) for name, _ in columns)))
    words = f.concat(f.lit("the Parquet schema has no column "), f.array_join(extra, ", "))
    problem = f.when(row & (f.size(extra) > 0), words)
    for name, kind in columns:
        words = f.concat(f.lit(f"column {name}: "), f.left(after[name], f.lit(50)), f.lit(f" is no {kind}"))
        problem = problem.when(row & after[name].isNotNull() & converted(after[name], kind).isNull(), words)
    return problem


def converted(text: Column, kind: str) -> Column:
    """A column's value of its text; null where it is none."""
    if kind == BinaryType().simpleString():
        return f.try_to_binary(text, f.lit("base64"))
    return text if kind == "string" else text.try_cast(kind)
