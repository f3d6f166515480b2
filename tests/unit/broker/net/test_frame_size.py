"""Which announced sizes are refused, and what is said."""

import pytest

from broker.net.frame_size import GENERAL_BYTES_MAX, refusal_of_size
from protocol.api_keys import ApiKey

LIMIT = 100 << 20


def refusal(size, api=ApiKey.METADATA, length=32):
    start = size.to_bytes(4, "big", signed=True) + api.to_bytes(2, "big") + bytes(26)
    return refusal_of_size(size, start[:length], LIMIT)


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 7, LIMIT + 1, 2**31 - 1])
def test_sizes_that_no_request_has(size):
    reason, answer = refusal(size)
    assert str(size) in reason
    assert "socket.request.max.bytes" in reason
    assert answer == b""


def test_only_produce_may_have_more_than_16_mib():
    assert refusal(GENERAL_BYTES_MAX) is None
    assert refusal(LIMIT, ApiKey.PRODUCE) is None
    assert refusal(LIMIT, length=5) is None  # which API it is has yet to come
    reason, _ = refusal(GENERAL_BYTES_MAX + 1)
    assert reason == "Metadata announced 16777217 bytes; only Produce may have more than 16777216"


def test_another_protocol_is_named():
    start = b"GET / HTTP/1.1\r\n"
    reason, answer = refusal_of_size(int.from_bytes(start[:4], "big"), start, LIMIT)
    assert "HTTP" in reason
    assert answer.startswith(b"HTTP/1.1 400 ")
