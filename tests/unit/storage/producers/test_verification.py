from storage.producers import verification
from storage.producers.verification import Verifications


def test_only_the_guard_that_was_given_is_accepted():
    known = Verifications()
    assert not known.accepts(1, None)
    guard = known.begin(1, 0, 0, False, 100)
    other = known.begin(2, 0, 0, False, 100)
    assert known.begin(1, 0, 0, False, 200) is guard
    assert known.accepts(1, guard)
    assert not known.accepts(1, other)
    assert not known.accepts(1, None)
    known.end(1)
    assert not known.accepts(1, guard)
    assert known.begin(1, 0, 0, False, 300) is not guard


def test_the_lowest_sequence_that_was_tried_is_kept():
    known = Verifications()
    assert known.lowest_sequence(1) is None
    known.begin(1, 7, 0, False, 100)
    known.begin(1, 3, 0, False, 100)
    known.begin(1, 9, 1, False, 100)
    assert known.lowest_sequence(1) == 3
    known.end(1)
    known.begin(1, 7, 0, True, 100)
    known.begin(1, 9, 1, True, 100)  # the sequences of a new epoch begin anew
    assert known.lowest_sequence(1) == 9


def test_those_that_wait_for_long_expire():
    known = Verifications()
    known.begin(1, 0, 0, False, 100)
    known.begin(2, 0, 0, False, 200)
    known.expire(1100, 1000)
    assert len(known) == 1
    assert known.lowest_sequence(1) is None
    known.clear()
    assert not len(known)


def test_their_number_is_bounded(monkeypatch):
    monkeypatch.setattr(verification, "VERIFICATIONS_MAX", 3)
    known = Verifications()
    guards = [known.begin(producer, 0, 0, False, 100) for producer in range(5)]
    assert len(known) == 3
    assert [known.accepts(producer, guard) for producer, guard in enumerate(guards)] == [
        False, False, True, True, True,
    ]  # fmt: skip
