"""The gate in front of the decoding of big requests."""

from broker.net.big_bodies import AT_ONCE, BigBodies


class Peer:
    def __init__(self, gate):
        self.gate, self.waiting, self.entered = gate, None, False

    def resume(self):
        self.waiting = None
        self.entered = self.gate.enter(self)


def test_so_many_enter_and_the_others_follow_in_their_order():
    gate = BigBodies()
    peers = [Peer(gate) for _ in range(AT_ONCE + 2)]
    for peer in peers:
        peer.resume()
    assert [peer.entered for peer in peers] == [True] * AT_ONCE + [False] * 2
    assert [peer.waiting for peer in peers] == [None] * AT_ONCE + [gate] * 2
    gate.leave()
    assert [peer.entered for peer in peers[AT_ONCE:]] == [True, False]
    gate.leave()
    assert [peer.entered for peer in peers[AT_ONCE:]] == [True, True]


def test_who_is_gone_is_not_called():
    gate = BigBodies()
    peers = [Peer(gate) for _ in range(AT_ONCE + 2)]
    for peer in peers:
        peer.resume()
    gate.cancel(peers[AT_ONCE])
    gate.leave()
    assert [peer.entered for peer in peers[AT_ONCE:]] == [False, True]
