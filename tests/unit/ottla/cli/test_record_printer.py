"""How the console consumer writes, counts and ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.cli.options import ToolFailed
from ottla.cli.record_printer import Printer
from ottla.reader import Received
from protocol.records.batch import Record


def received(value: bytes) -> Received:
    return Received("t", 0, Record(0, 0, None, value, ()), "CreateTime")


def value_line(each: Received) -> bytes:
    if each.record.value == b"bad":
        raise ToolFailed("can't be written")
    return (each.record.value or b"") + b"\n"


def rounds(*values: tuple[bytes, ...]) -> tuple[list[tuple[int, float | None]], object]:
    left = list(values)
    asked: list[tuple[int, float | None]] = []

    def source(max_wait_ms: int, left_s: float | None) -> Iterator[Received]:
        asked.append((max_wait_ms, left_s))
        if not left:
            raise TimeoutError
        yield from map(received, left.pop(0))

    return asked, source


def test_ends_when_enough_is_written(capsysbinary) -> None:
    asked, source = rounds((b"1", b"2"), (), (b"3", b"4"))
    printer = Printer(value_line, 3, None, skip_errors=False)
    printer.print_all(source)
    assert capsysbinary.readouterr().out == b"1\n2\n3\n"
    assert printer.count == 3
    assert asked == [(500, None)] * 3


def test_ends_when_patience_does(capsysbinary) -> None:
    asked, source = rounds((b"1",))
    printer = Printer(value_line, -1, 300, skip_errors=False)
    printer.print_all(source)
    printer.say_count()
    printed = capsysbinary.readouterr()
    assert (printed.out, printed.err) == (b"1\n", b"Processed a total of 1 messages\n")
    assert all(wait_ms <= 300 and left_s is not None and left_s <= 0.3 for wait_ms, left_s in asked)


def test_a_record_that_can_not_be_written_counts_and_ends_it_or_is_skipped(capsysbinary) -> None:
    _, source = rounds((b"1", b"bad", b"2"))
    printer = Printer(value_line, -1, None, skip_errors=False)
    with pytest.raises(ToolFailed):
        printer.print_all(source)
    assert (capsysbinary.readouterr().out, printer.count) == (b"1\n", 2)
    _, source = rounds((b"1", b"bad", b"2"))
    printer = Printer(value_line, 3, None, skip_errors=True)
    printer.print_all(source)
    assert capsysbinary.readouterr().out == b"1\n2\n"
