"""Two views of a table, against a model that keeps a copy of everything after each record."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.journal import Journal, JournaledTable

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 2), st.integers(0, 2), st.integers(1, 9)),
        st.tuples(st.just("remove"), st.integers(0, 2), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("commit"), st.integers(0, 4), st.just(0), st.just(0)),
        st.tuples(st.just("roll back"), st.integers(0, 4), st.just(0), st.just(0)),
    ),
    max_size=40,
)
Cells = dict[tuple[int, int], int]


def cells_of(table: JournaledTable[int, int, int]) -> Cells:
    return {(outer, inner): value for outer, inner, value in table.items()}


def committed_cells(table: JournaledTable[int, int, int]) -> Cells:
    found = {
        (outer, inner): value
        for outer in table.committed_outer_keys()
        for inner, value in table.committed_row(outer).items()
    }
    for outer in range(3):
        for inner in range(3):
            assert table.committed(outer, inner) == found.get((outer, inner))
    return found


@settings(max_examples=150, deadline=None, derandomize=True)
@given(STEPS)
def test_live_and_committed_views_match_a_model_of_copies(steps: list[tuple[str, int, int, int]]) -> None:
    journal = Journal()
    journal.recording = True
    table: JournaledTable[int, int, int] = JournaledTable(journal)
    states: list[Cells] = [{}]  # states[n]: after n records
    committed = 0
    for what, first, second, value in steps:
        written = len(states) - 1
        if what in ("put", "remove"):
            journal.offset = written
            after = dict(states[-1])
            if what == "put":
                table.put(first, second, value)
                after[first, second] = value
            else:
                table.remove(first, second)
                after.pop((first, second), None)
            states.append(after)
        elif what == "commit":
            committed = min(written, committed + first)
            journal.commit(committed)
        else:
            back = max(committed, written - first)
            journal.roll_back(back)
            del states[back + 1 :]
        assert cells_of(table) == states[-1]
        assert committed_cells(table) == states[committed]
        assert len(table) == len({outer for outer, _ in states[-1]})


def test_a_load_leaves_nothing_in_the_journal() -> None:
    journal = Journal()
    table: JournaledTable[str, str, int] = JournaledTable(journal)
    table.put("a", "b", 1)
    table.remove("a", "b")
    table.put("a", "c", 2)
    assert len(journal) == 0
    assert table.committed("a", "c") == 2
    assert table.outer_keys() == ["a"]


def test_what_is_committed_leaves_the_journal() -> None:
    journal = Journal()
    journal.recording = True
    table: JournaledTable[str, str, int] = JournaledTable(journal)
    table.put("a", "b", 1)
    assert table.committed("a", "b") is None
    assert table.committed_outer_keys() == []
    journal.commit(1)
    assert len(journal) == 0
    assert table.committed_row("a") == {"b": 1}


def test_what_is_taken_is_in_neither_view() -> None:
    table: JournaledTable[str, str, int] = JournaledTable(Journal())
    table.put("a", "b", 1)
    assert table.take() == {"a": {"b": 1}}
    assert table.get("a", "b") is None
    assert table.committed("a", "b") is None
    assert table.row("a") == {}
