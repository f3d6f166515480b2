from protocol.errors import ErrorCode
from storage.errors import AppendRefused, CorruptLog, OffsetOutOfRange, StorageError, StorageFailed


def test_each_failure_carries_the_code_that_a_client_is_answered():
    failures = {
        OffsetOutOfRange("x"): ErrorCode.OFFSET_OUT_OF_RANGE,
        StorageFailed("x", offline=False): ErrorCode.KAFKA_STORAGE_ERROR,
        CorruptLog("x", 5): ErrorCode.CORRUPT_MESSAGE,
        AppendRefused(ErrorCode.INVALID_PRODUCER_EPOCH, "x"): ErrorCode.INVALID_PRODUCER_EPOCH,
    }
    for failure, code in failures.items():
        assert isinstance(failure, StorageError)
        assert failure.error is code
        assert str(failure) == "x"
    assert StorageFailed("x", offline=True).retriable
    assert not OffsetOutOfRange("x").retriable
