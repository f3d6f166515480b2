"""Java's .properties syntax, as Kafka's server.properties and meta.properties use it.

Owns the reading only: comments (# and !), `=`, `:` or blank between key and value, lines continued
by a trailing backslash, escapes \\t \\n \\r \\f \\uXXXX, and the last of repeated keys wins.
"""

from typing import Final

_BLANK: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(data: bytes | str) -> dict[str, str]:
    """Keys and values of a properties file.

    Bytes are read as UTF-8, or as Latin-1 (Java's rule) where they are not UTF-8.
    Raises ValueError on a malformed \\u escape.
    """
    if isinstance(data, bytes):
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = data.decode("latin-1")
    else:
        text = data
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        found[_unescape(key)] = _unescape(value)
    return found


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending: str | None = None
    for raw in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = raw.lstrip(_BLANK)
        if pending is None and (not line or line[0] in "#!"):
            continue
        line = line if pending is None else pending + line
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            pending = line[:-1]
        else:
            lines.append(line)
            pending = None
    if pending is not None:
        lines.append(pending)
    return lines


def _split(line: str) -> tuple[str, str]:
    at = 0
    while at < len(line):
        char = line[at]
        if char == "\\":
            at += 2
            continue
        if char in "=:" or char in _BLANK:
            break
        at += 1
    key, rest = line[:at], line[at:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return key, rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char != "\\" or at + 1 == len(text):
            out.append("" if char == "\\" else char)
            at += 1
            continue
        escape = text[at + 1]
        if escape == "u":
            digits = text[at + 2 : at + 6]
            if len(digits) != 4:
                raise ValueError(f"malformed \\u escape in {text!r}")
            out.append(chr(int(digits, 16)))
            at += 6
        else:
            out.append(_ESCAPES.get(escape, escape))
            at += 2
    return "".join(out)
