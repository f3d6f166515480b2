import errno

import pytest

from protocol.errors import ErrorCode
from storage.errors import AppendRefused, CorruptLog, OffsetOutOfRange, StorageError, StorageFailed, is_full


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


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE])
def test_what_passes_leaves_the_directory_in_service(number):
    assert is_full(OSError(number, "x"))


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.ENOENT])
def test_what_does_not_pass_is_a_failure_of_the_disk(number):
    assert not is_full(OSError(number, "x"))
