"""When the kernel ticked, by its coarse clock."""

import pytest


@pytest.mark.parametrize("length", [1_000_000, 4_000_000, 10_000_000])
@pytest.mark.parametrize("stretch", [0.02, 0.3, 1.2])
def test_ticks_are_learned_from_stretches_of_work(length, stretch):
    from random import Random

    from sa_profile._http.ticks import FRESH_NS, Ticks

    random, clock, distance = Random(5), [123_456_789], 0.7 * length
    # The ticks are at whole multiples of their length.
    ticks = Ticks(length, lambda: int(clock[0] // length * length - distance), lambda: clock[0])
    assert ticks.last_ns(ticks.glance(), clock[0]) is None
    off = []
    for number in range(3000):
        since = ticks.glance()
        clock[0] += int(random.random() * stretch * length)
        ticks.worked(since)
        clock[0] += int(random.random() * length)
        last = ticks.last_ns(ticks.glance(), clock[0])
        if number > 1000 and last is not None:
            off.append(abs(last - clock[0] // length * length))
    assert len(off) > 500
    assert sorted(off)[len(off) * 99 // 100] < length / 8, "a hundredth may be a whole tick off, at its begin"
    clock[0] += 3 * FRESH_NS
    assert ticks.last_ns(ticks.glance(), clock[0]) is None


@pytest.mark.parametrize("late", [0, 0.01, 0.4, 1, 1.7])
def test_late_ticks_are_told_in_whole_ones(late):
    from random import Random

    from sa_profile._http.ticks import FRESH_NS, Ticks

    length, random, clock = 4_000_000, Random(5), [123_456_789]

    def coarse():
        # Every seventh tick comes late, and those meanwhile with it.
        tick = clock[0] // length
        behind = tick % 7 * length + clock[0] % length
        return (tick - 1 - tick % 7 if behind < late * length else tick) * length

    ticks = Ticks(length, coarse, lambda: clock[0])
    for _ in range(500):
        since = ticks.glance()
        clock[0] += int(random.random() * length)
        ticks.worked(since)
    whole = {0: 0, 0.01: 0, 0.4: 2, 1: 2, 1.7: 3}[late]
    assert ticks.late_ns() == whole * length + length // 16
    # Of seven ticks one is late by all of it, and with it what stands within that of the next ones.
    lag = sum(max(0, late - at) for at in range(7)) / 7 if whole else 0
    assert abs(ticks.lag_ns() / length - lag) < 0.1
    clock[0] += 3 * FRESH_NS
    ticks.last_ns(ticks.glance(), clock[0])
    assert ticks.late_ns() == length // 16


def test_a_glance_that_is_no_longer_the_newest_says_nothing_of_late_ticks():
    from sa_profile._http.ticks import Ticks

    ticks = Ticks(4_000_000, lambda: 8_000_000, lambda: 9_000_000)
    ticks.was_newest(0, 20_000_000)
    assert ticks.late_ns() == 4_000_000 // 16


def test_ticks_of_this_machine():
    """The tick that is named is not after now, and not two ticks ago."""
    import time

    from sa_profile._http.ticks import TICKS, Ticks

    if TICKS.length_ns == 0:
        pytest.skip("SKIPPED the ticks of this machine: it has no coarse clock")
    ticks = Ticks(TICKS.length_ns)
    until = time.monotonic_ns() + 5_000_000_000
    found = 0
    while found < 50 and time.monotonic_ns() < until:
        since, end = ticks.glance(), time.monotonic_ns() + ticks.length_ns // 3
        while time.monotonic_ns() < end:  # work
            pass
        ticks.worked(since)
        last = ticks.last_ns(ticks.glance(), now := time.monotonic_ns())
        if last is not None:
            found += 1
            assert 0 <= now - last <= 2 * ticks.length_ns
    assert found == 50


def test_no_coarse_clock_no_ticks():
    from sa_profile._http.arrival import placed
    from sa_profile._http.ticks import Ticks

    ticks = Ticks(0, lambda: 0)
    ticks.worked(ticks.glance())
    assert ticks.last_ns(0, 5) is None and placed(5, None, 0, 40_000_000, 0) == (5, 0)
