"""Times of --reset-offsets: what Java's SimpleDateFormat and Duration read."""

from __future__ import annotations

import pytest

from ottla.cli.group_errors import Failed
from ottla.cli.reset_times import parse_datetime, parse_duration_ms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00.000", 0),
        ("1970-01-01T00:00:00.5", 5),  # the field holds milliseconds, not a fraction
        ("1970-01-01T00:00:01.234Z", 1234),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T01:00:00.000+01", 0),
        ("1970-01-01T00:00:00.000-02:30", 9_000_000),
        ("2024-02-29T12:34:56.789", 1709210096789),
        ("1969-12-31T23:59:59.999", -1),
    ],
)
def test_a_datetime_is_read(text, expected) -> None:
    assert parse_datetime(text) == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("2020-01-01", "It does not contain a 'T'"),
        ("2020-01-01T00:00:00", 'Unparseable date: "2020-01-01T00:00:00Z"'),
        ("2020-02-30T00:00:00.000", 'Unparseable date: "2020-02-30T00:00:00.000Z"'),
        ("xT", 'Unparseable date: "xTZ"'),
    ],
)
def test_what_is_no_datetime_is_refused(text, complaint) -> None:
    with pytest.raises(Failed, match=r"java\.text\.ParseException") as refusal:
        parse_datetime(text)
    assert complaint in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT0S", 0),
        ("P1D", 86_400_000),
        ("p1dt2h3m4.5s", 93_784_500),
        ("PT-6H3M", -21_420_000),
        ("-PT6H3M", -21_780_000),
        ("PT0,25S", 250),
        ("-PT0.001S", -1),
        ("PT-1.5S", -1500),
    ],
)
def test_a_duration_is_read(text, expected) -> None:
    assert parse_duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1D", "P1M", "PT1D", "P1.5D", "one day"])
def test_what_is_no_duration_is_refused(text) -> None:
    with pytest.raises(Failed, match="Text cannot be parsed to a Duration"):
        parse_duration_ms(text)
