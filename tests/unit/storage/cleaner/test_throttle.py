import pytest

from storage.cleaner.throttle import Throttle


def test_it_waits_until_the_rate_is_kept() -> None:
    throttle = Throttle(1000.0, 10.0)
    assert throttle.took(500, 10.1) == 0.0
    assert throttle.took(500, 10.4) == pytest.approx(0.6)
    assert throttle.took(100, 11.05) == 0.0


def test_slow_work_never_waits() -> None:
    throttle = Throttle(1000.0, 0.0)
    assert throttle.took(100, 1.0) == 0.0
    assert throttle.took(300, 1.3) == 0.0


def test_an_infinite_rate_never_waits() -> None:
    throttle = Throttle(float("inf"), 0.0)
    assert throttle.took(1 << 40, 0.5) == 0.0
