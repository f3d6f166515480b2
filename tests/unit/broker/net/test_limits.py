import pytest

from broker.net.limits import Admission, ConnectionLimits


def test_an_address_may_have_as_many_as_its_limit_and_an_override_decides():
    limits = ConnectionLimits(100, 2, {"10.0.0.9": 0, "::1": 3})
    assert [limits.admit("10.0.0.1") for _ in range(3)] == [
        Admission.TAKEN,
        Admission.TAKEN,
        Admission.REFUSED,
    ]
    assert limits.admit("10.0.0.9") is Admission.REFUSED
    assert [limits.admit("::1") for _ in range(4)] == [Admission.TAKEN] * 3 + [Admission.REFUSED]
    assert limits.count == 5
    limits.release("10.0.0.1")
    assert limits.admit("10.0.0.1") is Admission.TAKEN


def test_over_the_brokers_limit_the_new_one_is_taken_and_another_has_to_go():
    limits = ConnectionLimits(2, 10, {})
    assert [limits.admit(ip) for ip in "abc"] == [Admission.TAKEN, Admission.TAKEN, Admission.ONE_TOO_MANY]
    limits.release("a")
    assert limits.count == 2


def test_releasing_more_than_was_admitted_is_a_broken_invariant():
    limits = ConnectionLimits(2, 10, {})
    limits.admit("a")
    limits.release("a")
    with pytest.raises(KeyError):
        limits.release("a")
