"""The layout written by hand is the codec's."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.handlers.leader_hints import Endpoint
from broker.handlers.share_answers import encode_share_fetch
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.headers import decode_response_header
from replication.share.acquire import AcquiredRange
from replication.share.share_fetch import ShareRow
from runtime.files import FileRegion
from runtime.os_files import OsFileSystem

T1, T2 = b"\x01" * 16, b"\x02" * 16
_Response = m.ShareFetchResponse


def decoded(answer: object, version: int) -> m.ShareFetchResponse:
    raw = b"".join(
        part.read() if isinstance(part, FileRegion) else bytes(part)
        for part in answer.parts  # type: ignore[attr-defined]
    )
    assert int.from_bytes(raw[:4], "big") == len(raw) - 4
    assert int.from_bytes(raw[4:8], "big") == 77
    _, at = decode_response_header(ApiKey.SHARE_FETCH, version, raw[4:], 0)
    response, end = _Response.decode(version, raw[4:], at)
    assert end == len(raw) - 4
    return response


def row(place: tuple[bytes, int], data: object = b"", length: int = 0, *ranges: AcquiredRange) -> ShareRow:
    found = ShareRow(place)
    found.data, found.length, found.ranges = data, length, ranges  # type: ignore[assignment]
    return found


@pytest.mark.parametrize("version", [1, 2])
def test_everything_an_answer_can_hold(tmp_path: Path, version: int) -> None:
    handle = OsFileSystem().open(str(tmp_path / "segment"), create=True)
    handle.append([b"0123456789"])
    failed = ShareRow((T2, 5), ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answer = encode_share_fetch(
        77,
        [
            row((T1, 0), b"abc", 3, AcquiredRange(0, 4, 1), AcquiredRange(7, 7, 300)),
            row((T2, 1), FileRegion(handle, 2, 5), 5, AcquiredRange(1 << 40, 1 << 41, 2)),
            failed,
            row((T1, 3), [b"x" * 200, memoryview(b"yz")], 202),
        ],
        {(T1, 0): (ErrorCode.NONE, None), (T1, 9): (ErrorCode.INVALID_RECORD_STATE, "grüße")},
        error=ErrorCode.NONE,
        lock_ms=30_000,
        leaders={(T2, 5): (4, 9)},
        endpoints=[Endpoint(4, "host", 9092, None), Endpoint(5, "other", 1, "r1")],
    )
    acquired = _Response.AcquiredRecords
    data = _Response.PartitionData
    expected = _Response(
        acquisition_lock_timeout_ms=30_000,
        responses=[
            _Response.ShareFetchableTopicResponse(
                topic_id=T1,
                partitions=[
                    data(
                        partition_index=0,
                        records=b"abc",
                        acquired_records=[
                            acquired(first_offset=0, last_offset=4, delivery_count=1),
                            acquired(first_offset=7, last_offset=7, delivery_count=300),
                        ],
                    ),
                    data(partition_index=3, records=b"x" * 200 + b"yz"),
                    data(
                        partition_index=9,
                        acknowledge_error_code=ErrorCode.INVALID_RECORD_STATE,
                        acknowledge_error_message="grüße",
                        records=b"",
                    ),
                ],
            ),
            _Response.ShareFetchableTopicResponse(
                topic_id=T2,
                partitions=[
                    data(
                        partition_index=1,
                        records=b"23456",
                        acquired_records=[
                            acquired(first_offset=1 << 40, last_offset=1 << 41, delivery_count=2)
                        ],
                    ),
                    data(
                        partition_index=5,
                        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                        current_leader=_Response.LeaderIdAndEpoch(leader_id=4, leader_epoch=9),
                        records=b"",
                    ),
                ],
            ),
        ],
        node_endpoints=[
            _Response.NodeEndpoint(node_id=4, host="host", port=9092, rack=None),
            _Response.NodeEndpoint(node_id=5, host="other", port=1, rack="r1"),
        ],
    )
    again, _ = _Response.decode(version, expected.encode(version))
    assert decoded(answer, version) == again


def test_an_error_for_the_whole() -> None:
    found = decoded(encode_share_fetch(77, (), {}, error=ErrorCode.SHARE_SESSION_NOT_FOUND), 2)
    assert (found.error_code, found.acquisition_lock_timeout_ms, found.responses) == (122, 0, [])
