"""Current state in a MariaDB table, by JDBC.

For each batch Spark's executors write the keys' last events into a staging table; then one transaction on
the driver's connection deletes and upserts (`INSERT ... SELECT ... ON DUPLICATE KEY UPDATE`) and advances the
offsets that the table contains, kept beside it in `<table>_cdc_offsets`. Events below those offsets are left
out, so that a batch that comes again, or an older one that comes late, changes nothing: neither a row's
version nor the memory of a deleted row is needed, since a key's events are all in one partition.

The target has the columns of the source, by name and without case; columns that the events don't have keep
their defaults. Its primary key must be the events' key and the only unique index: with another one an upsert
could hit a row of another key. Deletes come first and compare keys byte by byte, so that a key that changed
in case only is not lost where the table doesn't tell the two apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_jobs.changes import Refuse, Refused, Summary
from spark_jobs.sinks.jdbc import (
    DRIVER,
    Connection,
    TableRefused,
    Target,
    Unreachable,
    is_about_rows,
    is_passing,
    message_of,
)

NAME_MAX = 64
BINARY_TYPES = {
    *("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"),
    *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
    "geometrycollection",
}
TRIES, PAUSE_S = 8, 0.2


@dataclass(slots=True, frozen=True)
class TargetColumn:
    """One column of the target, and the expression that makes its value of a staged text."""

    name: str
    kind: str
    is_key: bool

    def converted(self, text: str) -> str:
        if self.kind in BINARY_TYPES:
            return f"FROM_BASE64({text})"
        return f"CAST({text} AS UNSIGNED)" if self.kind == "bit" else text


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class MariadbSink:
    """Applies batches to a target. One for each query; used by one thread."""

    def __init__(self, spark: SparkSession, target: Target, topic_epoch: int = 0) -> None:
        self.spark, self.target, self.epoch = spark, target, topic_epoch
        self.connection = Connection(spark, target)
        self.columns = self.described()
        self.keys = [column for column in self.columns if column.is_key]
        self.make_tables()
        self.make_gone()

    def described(self) -> list[TargetColumn]:
        """The target's columns that can be written; TableRefused where it isn't fit."""
        table = self.target.table
        found = self.connection.rows(
            "SELECT column_name, data_type, column_key, is_generated FROM information_schema.columns "
            "WHERE table_schema = DATABASE() AND table_name = ? ORDER BY ordinal_position",
            table,
        )
        if not found:
            raise TableRefused(
                f"no table {table} in {self.target.url}: create it with the columns of the source "
                "(SHOW CREATE TABLE shows them)"
            )
        unique = self.connection.rows(
            "SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_schema = DATABASE() "
            "AND table_name = ? AND non_unique = 0 AND index_name <> 'PRIMARY'",
            table,
        )
        if unique:
            names = ", ".join(str(row[0]) for row in unique)
            raise TableRefused(
                f"table {table} has unique indexes beside its primary key ({names}): an upsert could change "
                "the row of another key. Make them plain indexes; the source keeps them unique."
            )
        columns = [
            TargetColumn(str(name), str(kind).lower(), key == "PRI")
            for name, kind, key, generated in found
            if generated != "ALWAYS"
        ]
        if not any(column.is_key for column in columns):
            raise TableRefused(f"table {table} has no primary key")
        if len(self.target.offsets) > NAME_MAX:
            raise TableRefused(f"the name {self.target.offsets} would be longer than {NAME_MAX} characters")
        return columns

    def make_tables(self) -> None:
        """The table of offsets, and a new staging table (left over ones may have other columns)."""
        staging, offsets = quoted(self.target.staging), quoted(self.target.offsets)
        texts = ", ".join(f"c{number} LONGTEXT" for number in range(len(self.columns)))
        self.connection.execute(
            f"CREATE TABLE IF NOT EXISTS {offsets} (topic VARCHAR(249) NOT NULL, epoch INT NOT NULL, "
            "`partition` INT NOT NULL, next_offset BIGINT NOT NULL, PRIMARY KEY (topic, epoch, `partition`)) "
            "CHARACTER SET ascii COLLATE ascii_bin"
        )
        self.connection.execute(f"DROP TABLE IF EXISTS {staging}")
        self.connection.execute(
            f"CREATE TABLE {staging} (id BIGINT AUTO_INCREMENT PRIMARY KEY, kafka_partition INT NOT NULL, "
            f"kafka_offset BIGINT NOT NULL, op CHAR(1) NOT NULL, shape INT NOT NULL, {texts}) "
            "CHARACTER SET utf8mb4"
        )
        self.connection.commit()

    def make_gone(self) -> None:
        """The keys that a batch deletes, with the types of the target: a table of the connection's own."""
        keys = ", ".join(quoted(column.name) for column in self.keys)
        table = quoted(self.target.table)
        self.connection.execute(f"CREATE TEMPORARY TABLE cdc_gone SELECT {keys} FROM {table} WHERE FALSE")
        self.connection.commit()

    def connect_again(self) -> None:
        """After a lost connection. A commit whose answer was lost is found in the table of offsets."""
        self.connection.close()
        self.connection = Connection(self.spark, self.target)
        self.make_gone()

    def close(self) -> None:
        self.connection.close()

    def trying(self, action: Callable[[], None]) -> None:
        """Does something again, on a new connection where need be, while what fails it can pass."""
        for attempt in range(TRIES):
            try:
                if not self.connection.is_alive():
                    self.connect_again()
                action()
                return
            except Py4JJavaError as error:
                if attempt + 1 == TRIES or not is_passing(error):
                    raise
                self.connection.rollback()
            except Unreachable:
                if attempt + 1 == TRIES:
                    raise
            time.sleep(PAUSE_S * 2**attempt)

    def problem(self) -> Column:
        """Events with columns that the target lacks, or with a key of other columns."""
        names = f.array(*(f.lit(column.name.lower()) for column in self.columns))
        keys = f.array_sort(f.array(*(f.lit(column.name.lower()) for column in self.keys)))
        extra = f.array_except(f.map_keys("after"), names)
        extra_problem = f.concat(
            f.lit(f"table {self.target.table} has no column "),
            f.array_join(extra, ", "),
            f.lit(": ALTER TABLE ... ADD COLUMN, as the source has it"),
        )
        binary = [column.name.lower() for column in self.columns if column.kind in BINARY_TYPES]
        key_problem = f.lit(f"the key's columns are not the primary key of table {self.target.table}")
        problem = f.when(f.array_sort(f.map_keys("keys")) != keys, key_problem)
        problem = problem.when((f.col("op") != "d") & (f.size(extra) > 0), extra_problem)
        for name in binary:
            text = f.col("after")[name]
            unreadable = text.isNotNull() & f.try_to_binary(text, f.lit("base64")).isNull()
            problem = problem.when(unreadable, f.lit(f"column {name} is not base64"))
        return problem

    def write(self, topic: str, last: DataFrame, summary: Summary, refuse: Refuse) -> None:
        """Applies a batch: one fit row for each key (see changes.latest)."""
        shapes = summary.shapes
        try:
            self.trying(lambda: self.stage(last, shapes))
        except Py4JJavaError as error:
            raise TableRefused(f"table {self.target.staging}: {message_of(error)}") from error
        while True:
            try:
                self.trying(lambda: self.apply(topic, shapes, None))
                return
            except Py4JJavaError as error:
                if not is_about_rows(error):
                    raise TableRefused(f"table {self.target.table}: {message_of(error)}") from error
                self.connection.rollback()
                refuse([self.put_aside(topic, shapes)])

    def stage(self, last: DataFrame, shapes: Sequence[tuple[str, ...]]) -> None:
        self.connection.execute(f"TRUNCATE TABLE {quoted(self.target.staging)}")
        self.connection.commit()
        names = f.array_sort(f.map_keys("after"))
        shape = f.lit(-1)
        for number, shape_names in enumerate(shapes):
            same = names == f.array(*(f.lit(name) for name in shape_names))
            shape = f.when((f.col("op") != "d") & same, number).otherwise(shape)
        row = f.when(f.col("op") == "d", f.col("keys")).otherwise(f.col("after"))
        staged = last.select(
            f.col("partition").alias("kafka_partition"),
            f.col("offset").alias("kafka_offset"),
            "op",
            shape.alias("shape"),
            *(row[column.name.lower()].alias(f"c{number}") for number, column in enumerate(self.columns)),
        )
        writer = staged.write.format("jdbc").mode("append")
        writer = writer.option("url", self.target.url).option("dbtable", self.target.staging)
        writer = writer.option("user", self.target.user).option("password", self.target.password)
        # Spark quotes names as the standard does
        writer = writer.option("sessionVariables", "sql_mode='ANSI_QUOTES,STRICT_ALL_TABLES'")
        writer = writer.option("driver", DRIVER).option("useBulkStmts", "true").option("batchsize", "5000")
        writer.save()

    def apply(self, topic: str, shapes: Sequence[tuple[str, ...]], until: int | None) -> None:
        """The transaction, over staged rows up to `until`; committed only where there is no such bound."""
        for sql, values in self.statements(topic, shapes, until):
            self.connection.execute(sql, *values)
        if until is None:
            self.connection.commit()
        else:
            self.connection.rollback()

    def statements(
        self, topic: str, shapes: Sequence[tuple[str, ...]], until: int | None
    ) -> Iterator[tuple[str, tuple[object, ...]]]:
        staging, offsets, table = (
            quoted(n) for n in (self.target.staging, self.target.offsets, self.target.table)
        )
        place = (topic, self.epoch)
        # a second job on the same table waits here, and then finds its rows below the offsets
        yield f"SELECT next_offset FROM {offsets} WHERE topic = ? AND epoch = ? FOR UPDATE", place
        fresh = (
            f"FROM {staging} s LEFT JOIN {offsets} o ON o.topic = ? AND o.epoch = ? "
            "AND o.`partition` = s.kafka_partition WHERE s.kafka_offset >= COALESCE(o.next_offset, 0)"
        )
        if until is not None:
            fresh += f" AND s.id <= {until}"
        numbers = {column.name.lower(): number for number, column in enumerate(self.columns)}
        by_name = {column.name.lower(): column for column in self.columns}

        def value(name: str) -> str:
            return by_name[name].converted(f"s.c{numbers[name]}")

        keys = [column.name.lower() for column in self.keys]
        yield "DELETE FROM cdc_gone", ()
        yield f"INSERT INTO cdc_gone SELECT {', '.join(map(value, keys))} {fresh} AND s.op = 'd'", place
        same = " AND ".join(
            f"t.{quoted(k)} = g.{quoted(k)} AND BINARY t.{quoted(k)} = BINARY g.{quoted(k)}" for k in keys
        )
        yield f"DELETE t FROM {table} t JOIN cdc_gone g ON {same}", ()
        for number, names in enumerate(shapes):
            columns = [quoted(by_name[name].name) for name in names]
            updates = ", ".join(f"{column} = VALUES({column})" for column in columns)
            yield (
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(map(value, names))} {fresh} "
                f"AND s.shape = {number} ON DUPLICATE KEY UPDATE {updates}",
                place,
            )
        yield (
            f"INSERT INTO {offsets} SELECT ?, ?, s.kafka_partition, MAX(s.kafka_offset) + 1 FROM {staging} s "
            "GROUP BY s.kafka_partition "
            "ON DUPLICATE KEY UPDATE next_offset = GREATEST(next_offset, VALUES(next_offset))",
            place,
        )

    def put_aside(self, topic: str, shapes: Sequence[tuple[str, ...]]) -> Refused:
        """Finds the first staged row that the table refuses, by halves, and takes it out of the batch."""
        staging = quoted(self.target.staging)
        ids = [int(row[0] or 0) for row in self.connection.rows(f"SELECT id FROM {staging} ORDER BY id")]
        low, high = 0, len(ids) - 1
        reason = ""
        while low <= high:
            middle = (low + high) // 2
            try:
                self.apply(topic, shapes, ids[middle])
                low = middle + 1
            except Py4JJavaError as error:
                self.connection.rollback()
                reason, high = message_of(error), middle - 1
        if low >= len(ids):
            raise TableRefused(f"table {self.target.table} refused a batch, but none of its rows: {reason}")
        found = self.connection.rows(
            f"SELECT kafka_partition, kafka_offset FROM {staging} WHERE id = ?", ids[low]
        )[0]
        self.connection.execute(f"DELETE FROM {staging} WHERE id = ?", ids[low])
        self.connection.commit()
        return Refused(topic, int(found[0] or 0), int(found[1] or 0), f"table {self.target.table}: {reason}")
