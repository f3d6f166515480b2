"""A JDBC connection of the Spark driver's JVM to MariaDB, and what its errors mean.

The driver program keeps its own connection (py4j) for what must be one transaction; executors write through
Spark's JDBC data source. Both need MariaDB's connector on Spark's class path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

DRIVER = "org.mariadb.jdbc.Driver"
CONNECTOR = "org.mariadb.jdbc:mariadb-java-client:3.5.6"
# what an error says of the server or the moment rather than of a row: SQLSTATE, vendor code
PASSING_STATES = ("08", "40", "HYT")
PASSING_CODES = {1053, 1205, 1213, 1927}
# ... and what it says of a row; with the general state HY000 only these: no default, bad value, too long
DATA_STATES = ("22", "23")
DATA_CODES = {1048, 1264, 1265, 1292, 1364, 1366, 1406, 1416, 4025}
ALIVE_TIMEOUT_S = 5


class TableRefused(RuntimeError):
    """The table can't take the state; the message says why."""


class Unreachable(TableRefused):
    """There is no connection to the server, or no right to one."""


@dataclass(slots=True, frozen=True)
class Target:
    """Which table. `url`: jdbc:mariadb://HOST:PORT/DATABASE."""

    url: str
    user: str
    password: str = field(repr=False)
    table: str

    @property
    def staging(self) -> str:
        return f"{self.table}_cdc_stage"

    @property
    def offsets(self) -> str:
        return f"{self.table}_cdc_offsets"


class Connection:
    """Session time zone UTC, strict mode, zero dates and zero ids as they are, no automatic commits."""

    def __init__(self, spark: SparkSession, target: Target) -> None:
        jvm: Any = spark.sparkContext._jvm
        try:
            properties = jvm.java.util.Properties()
            properties.setProperty("user", target.user)
            properties.setProperty("password", target.password)
            self.jdbc = jvm.org.mariadb.jdbc.Driver().connect(target.url, properties)
        except TypeError as error:  # py4j takes an unknown class for a package
            raise TableRefused(
                f"MariaDB's JDBC driver is not on Spark's class path: add --packages {CONNECTOR}, or its jar "
                "with --jars"
            ) from error
        except Py4JJavaError as error:
            raise Unreachable(f"{target.url}: {message_of(error)}") from error
        if self.jdbc is None:
            raise TableRefused(f"{target.url}: expected jdbc:mariadb://HOST:PORT/DATABASE")
        self.execute("SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO'")
        self.jdbc.setAutoCommit(False)

    def execute(self, sql: str, *values: object) -> int:
        """Runs a statement; the number of rows it changed."""
        statement = self.prepared(sql, values)
        try:
            return 0 if statement.execute() else int(statement.getUpdateCount())
        finally:
            statement.close()

    def rows(self, sql: str, *values: object) -> list[tuple[str | None, ...]]:
        """A query's rows, every value as text."""
        statement = self.prepared(sql, values)
        try:
            result = statement.executeQuery()
            columns = range(1, result.getMetaData().getColumnCount() + 1)
            found = []
            while result.next():
                found.append(tuple(result.getString(column) for column in columns))
            return found
        finally:
            statement.close()

    def prepared(self, sql: str, values: Sequence[object]) -> Any:
        statement = self.jdbc.prepareStatement(sql)
        for number, value in enumerate(values, 1):
            statement.setString(number, None if value is None else str(value))
        return statement

    def commit(self) -> None:
        self.jdbc.commit()

    def rollback(self) -> None:
        """Gives the transaction up; a lost connection has done so already."""
        if self.is_alive():
            self.jdbc.rollback()

    def is_alive(self) -> bool:
        return bool(self.jdbc.isValid(ALIVE_TIMEOUT_S))

    def close(self) -> None:
        self.jdbc.close()


def message_of(error: Py4JJavaError) -> str:
    """The innermost words, without the driver's connection number."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    text = str(cause.getMessage() or cause.getClass().getName())
    return text.partition(") ")[2] if text.startswith("(conn=") else text


def sql_cause(error: Py4JJavaError) -> tuple[str, int] | None:
    """SQLSTATE and vendor code of the innermost SQLException, also below what Spark's JDBC writer raises."""
    found = None
    cause = error.java_exception
    while cause is not None:
        if "SQL" in str(cause.getClass().getName()) and hasattr(cause, "getSQLState"):
            found = (str(cause.getSQLState() or ""), int(cause.getErrorCode()))
        cause = cause.getCause()
    return found


def is_passing(error: Py4JJavaError) -> bool:
    """Whether the same can succeed later."""
    found = sql_cause(error)
    return found is not None and (found[0].startswith(PASSING_STATES) or found[1] in PASSING_CODES)


def is_about_rows(error: Py4JJavaError) -> bool:
    """Whether a statement was refused for what a row holds."""
    found = sql_cause(error)
    if found is None or is_passing(error):
        return False
    return found[0].startswith(DATA_STATES) or found[1] in DATA_CODES
