"""Times as `--to-datetime` and `--by-duration` take them: what Java's parsers read, in milliseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from ottla.cli.group_errors import Failed

DATETIME = re.compile(r"(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d+)(Z|[+-]\d\d:\d\d|[+-]\d\d)")
DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.IGNORECASE,
)


def parse_datetime(text: str) -> int:
    """Milliseconds of `YYYY-MM-DDThh:mm:ss.sss`, in UTC unless a zone (Z, +hh, +hh:mm) follows."""
    if "T" not in text:
        raise Failed(
            "java.text.ParseException: Error parsing timestamp. It does not contain a 'T' according to "
            "ISO8601 format"
        )
    if not re.search("[-+Z]", text.split("T", 1)[1]):
        text += "Z"
    found = DATETIME.match(text)
    if found is None:
        raise Failed(f'java.text.ParseException: Unparseable date: "{text}"')
    *fields, zone = found.groups()
    year, month, day, hour, minute, second, millisecond = map(int, fields)
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=zone_of(zone))
    except ValueError as error:
        raise Failed(f'java.text.ParseException: Unparseable date: "{text}"') from error
    return int(moment.timestamp()) * 1000 + millisecond


def zone_of(text: str) -> timezone:
    """UTC for Z, else the distance from it."""
    if text == "Z":
        return UTC
    hours, _, minutes = text[1:].partition(":")
    distance = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return timezone(-distance if text[0] == "-" else distance)


def parse_duration_ms(text: str) -> int:
    """Milliseconds of an ISO 8601 duration of days and less, as Java reads it."""
    found = DURATION.fullmatch(text)
    if found is None or text[-1:].upper() in ("P", "T"):
        raise Failed("Text cannot be parsed to a Duration")
    sign, days, _, hours, minutes, seconds, fraction = found.groups()
    nanoseconds = int((fraction or "").ljust(9, "0"))
    whole = int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    if (seconds or "").startswith("-"):
        nanoseconds = -nanoseconds
    total = whole * 1000 + nanoseconds // 1_000_000
    return -total if sign == "-" else total
