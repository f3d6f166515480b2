from broker.net.answers import frame_answer
from protocol import messages as m
from protocol.api_keys import ApiKey


def test_size_header_and_body_of_both_header_versions():
    response = m.ListOffsetsResponse(throttle_time_ms=5)
    old = frame_answer(ApiKey.LIST_OFFSETS, 2, 77, response)
    assert old == b"\0\0\0\x0c" + b"\0\0\0\x4d" + b"\0\0\0\5" + b"\0\0\0\0"
    flexible = frame_answer(ApiKey.LIST_OFFSETS, 6, 77, response)
    assert flexible == b"\0\0\0\x0b" + b"\0\0\0\x4d" + b"\0" + b"\0\0\0\5" + b"\1" + b"\0"
