from hypothesis import given, settings
from hypothesis import strategies as st

from storage.producers.transactions import NONE_OPEN, OpenTransactions


def test_an_open_transaction_is_unstable_from_its_first_offset():
    known = OpenTransactions()
    assert known.first_unstable == NONE_OPEN
    known.begin(5)
    known.begin(9)
    assert known.first_unstable == 5
    assert known.open_count == 2
    assert known.end(5, 12) == 9
    assert known.first_unstable == 5  # its marker is not replicated
    known.replicated(12)
    assert known.first_unstable == 5
    known.replicated(13)
    assert known.first_unstable == 9
    assert known.end(9, 20) == 21
    known.clear()
    assert known.first_unstable == NONE_OPEN


def test_many_short_transactions_inside_a_long_one_are_kept_as_one():
    known = OpenTransactions()
    known.begin(0)
    for offset in range(1, 1000, 2):
        known.begin(offset)
        assert known.end(offset, offset + 1) == 0
    assert known.end(0, 1001) == 1002
    assert list(known.unreplicated) == [(1001, 0)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=60))
@settings(max_examples=150, derandomize=True)
def test_it_agrees_with_a_plain_list(steps):
    """Six producers begin and end in any order; the high watermark follows at some distance."""
    known = OpenTransactions()
    opened: dict[int, int] = {}
    closed: list[tuple[int, int]] = []
    high_watermark = 0
    for offset, (producer, behind) in enumerate(steps):
        if producer in opened:
            first = opened.pop(producer)
            assert known.end(first, offset) == min(opened.values(), default=offset + 1)
            closed.append((first, offset))
        else:
            opened[producer] = offset
            known.begin(offset)
        high_watermark = max(high_watermark, offset + 1 - behind)
        known.replicated(high_watermark)
        waiting = [first for first, marker in closed if marker >= high_watermark]
        assert known.first_unstable == min([*opened.values(), *waiting], default=NONE_OPEN)
        assert known.open_count == len(opened)
