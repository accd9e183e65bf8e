"""Since when a thread may have been awake."""

import threading

import pytest


class Thread:
    """The counts that a kernel keeps of a thread."""

    def __init__(self):
        self.used = self.delayed = self.sleeps = self.asked = 0

    def awake(self):
        from sa_profile._http.awake import Awake

        return Awake(self.counts, lambda: (threading.get_native_id(), self.sleeps))

    def counts(self):
        self.asked += 1
        if self.delayed is None:
            raise OSError("too many open files")
        return threading.get_native_id(), self.used + self.delayed, self.sleeps

    def went_on(self, used, delayed=0, sleeps=0):
        self.used += used
        self.delayed += delayed
        self.sleeps += sleeps


def test_a_stretch_goes_on_until_the_thread_sleeps():
    from sa_profile._http.awake import ALWAYS_NS

    thread = Thread()
    awake = thread.awake()
    assert awake.most_ns() == ALWAYS_NS, "nothing is known of the time before"
    thread.went_on(used=5, sleeps=1)
    assert awake.most_ns() == 5
    thread.went_on(used=2, delayed=7)
    assert awake.most_ns() == 14, "it waited for a core, and has not slept since"
    assert awake.most_ns() == 14, "a look is no sleep: what lies unread lies there as long as before"
    thread.went_on(used=3, sleeps=2)
    assert awake.most_ns() == 3


def test_a_look_at_a_thread_that_has_not_slept_asks_for_no_more():
    thread = Thread()
    awake = thread.awake()
    awake.look()
    thread.went_on(used=5, sleeps=1)
    awake.look()
    for _ in range(3):
        thread.went_on(used=2, delayed=1)
        awake.look()
    assert thread.asked == 2
    assert awake.most_ns() == 5 + 3 * 3


def test_an_answer_that_goes_out_begins_a_stretch_anew(monkeypatch):
    """Its connection may have a new request at once, whatever the thread has done for this one without a sleep."""
    import asyncio

    from sa_profile._http import asgi

    thread = Thread()
    awake = thread.awake()
    monkeypatch.setattr(asgi, "AWAKE", awake)

    async def answer():
        exchange = asgi.Exchange(1, {})
        awake.most_ns()  # it arrives
        thread.went_on(used=30)
        exchange.sent(dict(type="http.response.body", body=b""))

    asyncio.run(answer())
    thread.went_on(used=1, sleeps=1)
    assert awake.most_ns() == 1


def test_a_stretch_that_nobody_counts_is_not_known():
    from sa_profile._http.awake import ALWAYS_NS

    thread = Thread()
    awake = thread.awake()
    awake.look()
    thread.went_on(used=5, sleeps=1)
    thread.delayed = None
    assert awake.most_ns() == ALWAYS_NS
    thread.delayed = 900
    assert awake.most_ns() == ALWAYS_NS, "from when on, nobody knows"
    thread.went_on(used=4, sleeps=1)
    assert awake.most_ns() == 4


def test_a_stretch_is_of_one_thread():
    from sa_profile._http.awake import ALWAYS_NS

    thread = Thread()
    awake = thread.awake()
    awake.look()
    thread.went_on(used=5, sleeps=1)
    found = []
    other = threading.Thread(target=lambda: found.append(awake.most_ns()))
    other.start()
    other.join()
    assert found == [ALWAYS_NS] and awake.most_ns() == ALWAYS_NS


def test_looks_keep_no_file_open():
    import os
    from sa_profile._http.awake import Awake

    awake, before = Awake(), len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        thread = threading.Thread(target=awake.look)
        thread.start()
        thread.join()
        awake.look()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_stretches_of_this_machine():
    import time

    from sa_profile._http.awake import ALWAYS_NS, Awake

    awake = Awake()
    awake.look()
    time.sleep(0.2)
    asleep = awake.most_ns()
    if asleep == ALWAYS_NS:
        pytest.skip("SKIPPED the stretches of this machine: it does not count how long a thread waits for a core")
    assert asleep < 100_000_000
    began, used = time.monotonic_ns(), time.thread_time_ns()
    while time.thread_time_ns() < used + 200_000_000:
        pass
    most = awake.most_ns()
    assert 200_000_000 <= most <= time.monotonic_ns() - began + asleep + 10_000_000
