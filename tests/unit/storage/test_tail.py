from hypothesis import given, settings
from hypothesis import strategies as st

from storage.tail import BATCH_BYTES_MAX, OVERHEAD_BYTES, PARTITION_BYTES_MAX, Tail, TailBudget


def test_found_by_offset_and_cut_at_the_limit():
    tail = Tail(TailBudget(), 10, 1000)
    for data, end in ((b"aaa", 12), (b"bb", 13), (b"cccc", 20)):
        tail.add(data, len(data), end)
    assert tail.oldest == 10
    assert tail.starts == [1000, 1003, 1005, 1009]
    assert tail.find(10, 20) == (0, 3)
    assert tail.find(11, 19) == (0, 2)
    assert tail.find(12, 13) == (1, 2)
    assert tail.find(13, 13) == (2, 2)


def test_a_large_batch_empties_it():
    budget = TailBudget()
    tail = Tail(budget, 0, 0)
    tail.add(b"x", 1, 1)
    tail.add(b"", BATCH_BYTES_MAX + 1, 5)
    assert (tail.oldest, tail.starts, tail.batches, budget.used_bytes) == (5, [BATCH_BYTES_MAX + 2], [], 0)


def test_one_partition_holds_at_most_its_bound():
    budget = TailBudget(1 << 30)
    tail = Tail(budget, 0, 0)
    for offset in range(3000):
        tail.add(bytes(1000), 1000, offset + 1)
        assert tail.held_bytes <= PARTITION_BYTES_MAX + 1000 + OVERHEAD_BYTES
    assert tail.batches
    assert tail.oldest + len(tail.batches) == 3000


def test_over_the_budget_the_longest_waiting_give_way():
    budget = TailBudget(100_000)
    tails = [Tail(budget, 0, 0) for _ in range(20)]
    for turn in range(50):
        for tail in tails:
            tail.add(bytes(200), 200, turn + 1)
            assert budget.used_bytes <= 100_000
    assert sum(tail.held_bytes for tail in tails) == budget.used_bytes
    for tail in tails:
        tail.reset(50, 0)
    assert budget.used_bytes == 0


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9000), st.integers(1, 4)), max_size=60))
def test_what_is_held_is_what_was_added_last(steps):
    budget = TailBudget(60_000)
    tails = [Tail(budget, 0, 0) for _ in range(3)]
    added = [[] for _ in range(3)]
    ends = [0] * 3
    positions = [0] * 3
    for number, size, count in steps:
        ends[number] += count
        data = bytes([len(added[number]) % 251]) * size
        added[number].append((positions[number], ends[number], data))
        positions[number] += size
        tails[number].add(data, size, ends[number])
    for tail, wanted, end, position in zip(tails, added, ends, positions, strict=True):
        kept = wanted[len(wanted) - len(tail.batches) :]
        assert tail.batches == [data for _, _, data in kept]
        assert tail.ends == [e for _, e, _ in kept]
        assert tail.starts == [at for at, _, _ in kept] + [position]
        assert tail.oldest == (wanted[-len(kept) - 1][1] if len(kept) < len(wanted) else 0) or not wanted
        assert tail.ends[-1:] in ([], [end])
