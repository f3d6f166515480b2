from broker.net.templates import MARKS, mark_bytes, split_at


def test_pieces_around_marks_in_their_order():
    one, two = mark_bytes(MARKS[0]), mark_bytes(MARKS[1])
    assert split_at(b"ab" + one + b"c" + two, (one, two)) == [b"ab", b"c", b""]


def test_a_mark_that_is_missing_repeated_or_out_of_order_gives_no_template():
    one, two = mark_bytes(MARKS[0]), mark_bytes(MARKS[1])
    assert split_at(b"ab" + one, (one, two)) is None
    assert split_at(one + one + two, (one, two)) is None
    assert split_at(two + one, (one, two)) is None


def test_marks_differ_and_fit_an_int64():
    assert len({mark_bytes(mark) for mark in MARKS}) == len(MARKS)
    assert all(0 < mark < 2**63 for mark in MARKS)
