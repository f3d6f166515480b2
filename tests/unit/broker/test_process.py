"""Lines of the log."""

from __future__ import annotations

import logging

from broker.process import LineFormatter


def test_a_line_of_the_log_is_one_line_whatever_clients_call_themselves():
    form = LineFormatter("%(levelname)s %(message)s")
    named = "g\n[2026-01-01] ERROR é\r\x1b[2J\u2028"
    record = logging.LogRecord("n", logging.INFO, "p", 1, "Group %s: gone", (named,), None)
    assert form.format(record) == "INFO Group g\\n[2026-01-01] ERROR é\\r\\x1b[2J\\u2028: gone"
    record.exc_info = (ValueError, ValueError("why"), None)
    assert form.format(record).endswith(": gone\nValueError: why")


def test_each_line_of_one_of_several_brokers_begins_with_its_name():
    form = LineFormatter("%(message)s", "broker 2")
    record = logging.LogRecord("n", logging.INFO, "p", 1, "gone", (), (ValueError, ValueError("why"), None))
    assert form.format(record) == "[broker 2] gone\n[broker 2] ValueError: why"
