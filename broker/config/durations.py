"""Lengths of time as ISO 8601 writes them: PnDTnHnMn.nS, as in share.auto.offset.reset=by_duration:PT1H."""

from __future__ import annotations

import re

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?"
    r"(?:(?P<seconds>\d+)(?:\.(?P<part>\d{1,9}))?S)?)?",
    re.ASCII,
)


def iso_duration_ms(text: str) -> int:
    """Milliseconds, rounded down. ValueError for what is no length of time, or a negative one."""
    found = _DURATION.fullmatch(text.upper())
    if found is None or not any(char.isdigit() for char in text):
        raise ValueError(f"{text!r} is no duration like P1DT2H30M or PT15S")
    days, hours, minutes, seconds = (
        int(found[name] or 0) for name in ("days", "hours", "minutes", "seconds")
    )
    part_ms = int((found["part"] or "").ljust(3, "0")[:3])
    return ((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000 + part_ms
