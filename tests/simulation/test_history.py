"""Each breach of a promise must be seen, or runs that end well prove nothing."""

from __future__ import annotations

import pytest

from tests.simulation.history import History

P = ("t", 0)


class Story:
    """A history with ten values of an ordered lane and ten that may be there twice."""

    def __init__(self):
        self.failures = []
        self.history = History(self.failures.append)
        self.values = [b"a:%d " % number for number in range(10)]
        self.others = [b"b:%d " % number for number in range(10)]
        self.history.sending(P, "a", list(enumerate(self.values)), ordered=True, repeatable=False)
        self.history.sending(P, "b", list(enumerate(self.others)), ordered=False, repeatable=True)

    def rows(self, *values, base=0):
        return list(enumerate(values, base))


@pytest.fixture
def story():
    return Story()


def test_a_history_as_it_should_be(story):
    a, b, history = story.values, story.others, story.history
    history.acknowledged(P, 0, a[:2])
    history.acknowledged(P, 2, [b[0]])
    history.read("c", P, 0, 4, story.rows(a[0], a[1], b[0], b[0]))
    history.check_log(P, 0, story.rows(a[0], a[1], b[0], b[0]))
    assert story.failures == []


@pytest.mark.parametrize(
    ("breach", "words"),
    [
        (lambda s: s.history.acknowledged(P, 1, s.values[2:3]), "acknowledged, and before"),
        (lambda s: s.history.acknowledged(P, -1, s.values[2:3]), "with offset -1"),
        (lambda s: s.history.read("c", P, 0, 9, s.rows(*s.values[1:2])), "before it was"),
        (lambda s: s.history.read("c", P, 2, 9, s.rows(b"unknown ", base=2)), "never sent there"),
        (lambda s: s.history.read("c", P, 2, 9, s.rows(s.values[3], base=3)), "where 2 should follow"),
        (lambda s: s.history.read("c", P, 2, 2, s.rows(s.values[3], base=2)), "with high watermark 2"),
        (lambda s: s.history.read("c", P, 2, 9, s.rows(s.values[0], base=2)), "stands at 0"),
        (lambda s: s.history.check_log(P, 0, s.rows(s.values[0])), "there is nothing"),
        (lambda s: s.history.check_log(P, 0, s.rows(s.values[0], s.values[5])), "was acknowledged"),
        (
            lambda s: s.history.check_log(P, 0, s.rows(*s.values[:2], s.values[4], s.values[3])),
            "behind number",
        ),
    ],
)
def test_a_breach_is_seen(story, breach, words):
    story.history.acknowledged(P, 0, story.values[:2])
    breach(story)
    assert any(words in failure for failure in story.failures), story.failures


def test_what_may_be_lost_is_no_promise_any_more_and_what_comes_after_it_is_one(story):
    a, history = story.values, story.history
    history.acknowledged(P, 0, a[:4])
    history.forgive(P, 2)
    history.acknowledged(P, 2, a[5:7])
    history.check_log(P, 0, story.rows(a[0], a[1], a[5], a[6]))
    assert story.failures == []
    history.check_log(P, 0, story.rows(a[0], a[1], a[5]))
    assert len(story.failures) == 1


@pytest.mark.parametrize(
    ("appended_in", "believed", "stands"),
    [(4, 2, True), (3, 5, False), (None, 4, True), (None, 3, False), (-1, 5, False)],
)
def test_what_an_old_leader_acknowledged_after_an_unclean_election_is_no_promise(
    story, appended_in, believed, stands
):
    history = story.history
    history.appended_in = lambda partition, broker_id, offset: appended_in
    assert history.stands_after_losses(P, 1, believed, 7)
    history.of(P).clean_epoch = 4
    assert history.stands_after_losses(P, 1, believed, 7) is stands
