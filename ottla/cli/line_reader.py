"""How `ottla console-producer` makes records of lines: Kafka's LineMessageReader, on bytes.

A line is `headers <headers.delimiter> key <key.separator> value`, each part there if its parse.* property
is set. A part that equals `null.marker` is null; so are headers and keys whose text is.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.cli.options import ToolFailed, is_true
from protocol.records.batch import NO_TIMESTAMP, Record

READERS = ("org.apache.kafka.tools.LineMessageReader", "LineMessageReader")


class LineReader:
    """Parses lines by the properties of Kafka's reader; ToolFailed names the line that does not parse."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        def separator(key: str, default: str) -> bytes:
            return properties.get(key, default).encode()

        self._parse_key = is_true(properties, "parse.key")
        self._parse_headers = is_true(properties, "parse.headers")
        self._ignore_error = is_true(properties, "ignore.error")
        self._key_separator = separator("key.separator", "\t")
        self._headers_delimiter = separator("headers.delimiter", "\t")
        self._headers_separator = separator("headers.separator", ",")
        self._header_key_separator = separator("headers.key.separator", ":")
        self._null = separator("null.marker", "") or None
        self._line = 0
        if self._parse_headers and self._headers_delimiter == self._headers_separator:
            raise ToolFailed("headers.delimiter and headers.separator may not be equal")
        if self._parse_headers and self._headers_separator == self._header_key_separator:
            raise ToolFailed("headers.separator and headers.key.separator may not be equal")

    def record(self, line: bytes, now_ms: int = NO_TIMESTAMP) -> Record:
        """The record of the next line, which has no line ending any more."""
        self._line += 1
        headers: tuple[tuple[str, bytes | None], ...] = ()
        key = None
        if self._parse_headers:
            text, line = self._split(line, self._headers_delimiter, "headers delimiter")
            headers = self._headers(text)
        if self._parse_key:
            text, line = self._split(line, self._key_separator, "key separator")
            key = None if text is None else self._or_null(text)
        return Record(0, now_ms, key, self._or_null(line), headers)

    def _split(self, line: bytes, separator: bytes, what: str) -> tuple[bytes | None, bytes]:
        before, found, after = line.partition(separator)
        if found:
            return before, after
        if self._ignore_error:
            return None, line
        raise ToolFailed(f"No {what} found on line number {self._line}: '{line.decode(errors='replace')}'")

    def _headers(self, text: bytes | None) -> tuple[tuple[str, bytes | None], ...]:
        if text is None or self._or_null(text) is None:
            return ()
        return tuple(self._header(pair) for pair in text.split(self._headers_separator))

    def _header(self, pair: bytes) -> tuple[str, bytes | None]:
        name, found, content = pair.partition(self._header_key_separator)
        if not found:
            if self._ignore_error:
                return pair.decode(errors="replace"), None
            shown = pair.decode(errors="replace")
            raise ToolFailed(f"No header key separator found in pair '{shown}' on line number {self._line}")
        if name == self._null:
            raise ToolFailed("Header keys should not be equal to the null marker")
        return name.decode(errors="replace"), self._or_null(content)

    def _or_null(self, part: bytes) -> bytes | None:
        return None if part == self._null else part
