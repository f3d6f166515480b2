"""The coordinators' clock."""

from broker.adapters.steady_clock import SteadyClock


class FakeClock:
    wall_ms = 1_700_000_000_000
    seconds = 12.5

    def now_ms(self):
        return self.wall_ms

    def monotonic(self):
        return self.seconds


def test_it_starts_with_the_wall_clock_and_then_follows_the_monotonic_one():
    clock = FakeClock()
    steady = SteadyClock(clock)
    assert steady.now_ms() == 1_700_000_000_000
    clock.seconds += 3.25
    clock.wall_ms -= 86_400_000  # the machine's clock is set back by a day
    assert steady.now_ms() == 1_700_000_003_250
