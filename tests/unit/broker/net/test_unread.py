"""Answers that are not read: all connections together may hold so many, then the longest stuck one goes."""

from broker.net import unread
from broker.net.unread import UnreadAnswers


class Peer:
    dropped = False

    def drop(self, reason):
        assert reason
        self.dropped = True


def test_who_has_been_stuck_for_longest_is_dropped_first(monkeypatch):
    monkeypatch.setattr(unread, "UNREAD_BYTES", 100)
    answers, peers = UnreadAnswers(), [Peer() for _ in range(4)]
    for peer in peers[:3]:
        answers.add(peer, 30)
    answers.add(peers[0], 40)  # it went on and got stuck again: now it is the newest
    assert not any(peer.dropped for peer in peers)
    answers.add(peers[3], 40)
    assert [peer.dropped for peer in peers] == [False, True, True, False]
    assert answers.held_bytes == 80


def test_who_goes_on_or_is_gone_counts_no_more(monkeypatch):
    monkeypatch.setattr(unread, "UNREAD_BYTES", 100)
    answers, one, other = UnreadAnswers(), Peer(), Peer()
    answers.add(one, 90)
    answers.remove(one)
    answers.remove(one)
    answers.add(other, 90)
    assert not other.dropped
    assert answers.held_bytes == 90


def test_one_alone_is_not_dropped_for_one_large_answer(monkeypatch):
    monkeypatch.setattr(unread, "UNREAD_BYTES", 100)
    answers, peer = UnreadAnswers(), Peer()
    answers.add(peer, 1000)
    assert not peer.dropped
