"""A regular expression as clients send it: RE2's syntax.

Apart from what resolves those of members, because transactional ids are listed by one as well: a broker that
is asked for these need not import the group coordinator, which takes 20 ms and more.
"""

from __future__ import annotations

from typing import Any

import re2

from coordinator.group.consumer.errors import Refused
from protocol.errors import ErrorCode

MAX_PROGRAM_BYTES = 1 << 20  # of one compiled expression: {1000}{1000} would take all memory


def compile_regex(regex: str) -> Any:
    """A pattern whose `fullmatch` decides. Raises Refused (INVALID_REGULAR_EXPRESSION)."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PROGRAM_BYTES
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "it does not parse"
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise Refused(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {text}.",
        ) from None
