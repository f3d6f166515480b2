"""What errors of a database mean, with errors made by hand; a real server's are in tests/spark/jobs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from spark_jobs.sinks.jdbc import Target, is_about_rows, is_passing, message_of


class Java:
    """A Java exception, as py4j shows one."""

    def __init__(self, name: str, message: str, cause: Java | None = None) -> None:
        self.name, self.message, self.cause = name, message, cause

    def getClass(self) -> SimpleNamespace:
        return SimpleNamespace(getName=lambda: self.name)

    def getMessage(self) -> str:
        return self.message

    def getCause(self) -> Java | None:
        return self.cause


class Sql(Java):
    def __init__(self, state: str | None, code: int, message: str = "(conn=3) said") -> None:
        super().__init__("java.sql.SQLException", message)
        self.state, self.code = state, code

    def getSQLState(self) -> str | None:
        return self.state

    def getErrorCode(self) -> int:
        return self.code


def raised(java: Java) -> SimpleNamespace:
    return SimpleNamespace(java_exception=java)


@pytest.mark.parametrize(
    ("state", "code", "passing", "about_rows"),
    [
        ("08000", -1, True, False),  # connection lost
        ("40001", 1213, True, False),  # deadlock
        ("HY000", 1205, True, False),  # lock wait timeout
        ("22007", 1366, False, True),  # incorrect value
        ("22001", 1406, False, True),  # too long
        ("23000", 1048, False, True),  # null where there may be none
        ("HY000", 1364, False, True),  # no default
        ("HY000", 1021, False, False),  # disk full
        ("HY000", 1290, False, False),  # read only
        ("42000", 1142, False, False),  # no right
        (None, 0, False, False),
    ],
)
def test_what_can_pass_and_what_a_row_is_guilty_of(
    state: str | None, code: int, passing: bool, about_rows: bool
) -> None:
    error = raised(Java("org.apache.spark.SparkException", "Job aborted", Sql(state, code)))
    assert (is_passing(error), is_about_rows(error)) == (passing, about_rows)


def test_other_errors_are_neither() -> None:
    error = raised(Java("java.lang.OutOfMemoryError", "heap"))
    assert (is_passing(error), is_about_rows(error)) == (False, False)


def test_the_innermost_words_are_told_without_the_connections_number() -> None:
    assert message_of(raised(Java("SparkException", "Job aborted", Sql("22007", 1366)))) == "said"


def test_a_target_names_its_tables_and_hides_its_password() -> None:
    target = Target("jdbc:mariadb://h/d", "u", "secret", "items")
    assert (target.staging, target.offsets) == ("items_cdc_stage", "items_cdc_offsets")
    assert "secret" not in repr(target)
