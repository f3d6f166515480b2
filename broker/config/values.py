"""Typed values of configuration keys: text to value, value to text, and the bounds of each key.

Owns Kafka's nine value types and the small notation for valid values that the key tables use:

    LOW..          at least LOW            LOW..HIGH       between both
    LOW..HIGH|X    between both, or X      {A,B}           one of (a list: each of)
    ~{A,B}         one of, ignoring case   nonempty        text or list with content
    throttled      `*` or partition:broker pairs           -   anything

Errors carry Kafka's own short texts, because tools print them as they are.
"""

import math
import re
from collections.abc import Callable
from typing import Final

Value = bool | int | float | str | tuple[str, ...] | None

_INTEGER_BITS: Final = {"short": 16, "int": 32, "long": 64}
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_THROTTLED: Final = re.compile(r"[0-9]+:[0-9]+")


class ConfigError(Exception):
    """A key or value that Kafka refuses; the text is fit for a user. Not retriable."""

    retriable = False


def words(text: str) -> frozenset[str]:
    """The blank-separated words of a text: how lists of keys are written in this package."""
    return frozenset(text.split())


def invalid(name: str, value: object, reason: str) -> ConfigError:
    """Kafka's wording for a value that a key does not take."""
    return ConfigError(f"Invalid value {value} for configuration {name}: {reason}")


def parse_value(name: str, kind: str, text: str) -> Value:
    """Turn the text of a key into its type; surrounding blanks never count.

    Raises ConfigError when the text is not of the type. Bounds are checked apart, by `check_value`.
    """
    stripped = text.strip()
    if kind == "bool":
        lowered = stripped.lower()
        if lowered not in ("true", "false"):
            raise invalid(name, text, "Expected value to be either true or false")
        return lowered == "true"
    if kind in _INTEGER_BITS:
        return _integer(name, kind, text)
    if kind == "double":
        try:
            number = float(stripped) if "_" not in stripped else math.nan
        except ValueError:
            number = math.nan
        if math.isnan(number):
            raise invalid(name, text, "Not a number of type DOUBLE")
        return number
    if kind == "list":
        if not stripped:
            return ()
        items = tuple(dict.fromkeys(item.strip() for item in stripped.split(",")))
        if "" in items:
            raise ConfigError(f"Configuration '{name}' values must not be empty.")
        return items
    return stripped


def _integer(name: str, kind: str, text: str) -> int:
    limit = 1 << (_INTEGER_BITS[kind] - 1)
    digits = text.strip()
    if not _INTEGER.fullmatch(digits) or len(digits) > 20 or not -limit <= (number := int(digits)) < limit:
        raise invalid(name, text, f"Not a number of type {kind.upper()}")
    return number


def format_value(value: Value) -> str | None:
    """The text that DescribeConfigs shows for a value; None for an unset key."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _java_double(value)
    return str(value)


def _java_double(value: float) -> str:
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def check_value(name: str, valid: str, value: Value) -> None:
    """Check a parsed value against the notation in `valid`; raises ConfigError."""
    if not valid or value is None:
        return
    if ".." in valid and valid[0] not in "{~":
        if isinstance(value, int | float):
            _check_range(name, valid, value)
        return
    if valid[0] in "{~":
        _check_choice(name, valid, value)
        return
    _NAMED_CHECKS[valid](name, value)


def _check_range(name: str, valid: str, value: int | float) -> None:
    bounds, _, extra = valid.partition("|")
    low_text, _, high_text = bounds.partition("..")
    low, high = float(low_text), float(high_text or "inf")
    if extra:
        if not low <= value <= high and value != int(extra):
            reason = f"Value must be between {low_text} and {high_text} or equal to {extra}"
            raise invalid(name, value, reason)
    elif value < low:
        raise invalid(name, value, f"Value must be at least {low_text}")
    elif value > high:
        raise invalid(name, value, f"Value must be no more than {high_text}")


def _check_choice(name: str, valid: str, value: Value) -> None:
    folded = valid[0] == "~"
    choices = valid.strip("~{}").split(",")
    for item in value if isinstance(value, tuple) else (str(value),):
        if (item.upper() if folded else item) not in choices:
            how = " (case insensitive)" if folded else ""
            raise invalid(name, item, f"String must be one of{how}: {', '.join(choices)}")


def _check_nonempty(name: str, value: Value) -> None:
    if value == "":
        raise invalid(name, value, "String must be non-empty")
    if value == ():
        raise ConfigError(
            f"Configuration '{name}' must not be empty. Valid values include: any non-empty value"
        )


def _check_throttled(name: str, value: Value) -> None:
    assert isinstance(value, tuple)
    if value == ("*",) or all(_THROTTLED.fullmatch(item) for item in value):
        return
    shape = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    reason = f"{name} must be the literal '*' or a list of replicas in the following format: {shape}"
    raise invalid(name, f"[{', '.join(value)}]", reason)


def _check_release(name: str, value: Value) -> None:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)+(-IV[0-9]+)?", str(value)):
        raise invalid(name, value, "Version is not a Kafka release")


_NAMED_CHECKS: Final[dict[str, Callable[[str, Value], None]]] = {
    "nonempty": _check_nonempty,
    "throttled": _check_throttled,
    "release": _check_release,
}
