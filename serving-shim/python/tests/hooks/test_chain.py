"""The wrapping itself."""

import asyncio
import types

import pytest

from sa_profile._hooks import chain, warnings


class Thing:
    def work(self, one, two=2):
        return one, two

    @staticmethod
    def fixed(one):
        return one

    async def later(self):
        return "done"

    async def items(self):
        yield 1
        yield 2


class Slotted:
    __slots__ = ()

    def work(self):
        return 1


@pytest.fixture
def told(monkeypatch):
    said = []
    for module in (chain, warnings):
        monkeypatch.setattr(module, "warn_once", said.append)
    return said


def test_results_arguments_and_names_stay(told):
    cls = type("Copy", (Thing,), {})
    seen = []
    assert chain.chain(cls, "work", lambda *args, **kwargs: lambda result, error: seen.append((args[1:], kwargs, result)))
    assert cls().work(1, two=3) == (1, 3)
    assert seen == [((1,), {"two": 3}, (1, 3))]
    assert cls.work.__name__ == "work" and not told


def test_a_static_method_stays_static(told):
    cls = type("Copy", (Thing,), {})
    chain.chain(cls, "fixed", lambda one: None)
    assert cls.fixed(5) == 5 and cls().fixed(6) == 6


def test_wrapping_twice_is_wrapping_once(told):
    cls = type("Copy", (Thing,), {})
    assert chain.chain(cls, "work", lambda *_: None)
    assert not chain.chain(cls, "work", lambda *_: None)
    one = cls()
    assert not chain.chain(one, "work", lambda *_: None), "its class is wrapped"


def test_observers_that_fail_are_told_and_change_nothing(told):
    def before(*_args):
        raise RuntimeError("before")

    def after(*_args):
        def leave(_result, _error):
            raise RuntimeError("after")

        return leave

    for observe in (before, after):
        cls = type("Copy", (Thing,), {})
        chain.chain(cls, "work", observe)
        assert cls().work(1) == (1, 2)
    assert len(told) == 2 and "before" in told[0] and "after" in told[1]


def test_exceptions_of_the_host_pass_and_are_seen(told):
    class Failing:
        def work(self):
            raise SystemExit(3)

    seen = []
    chain.chain(Failing, "work", lambda _self: lambda result, error: seen.append(type(error)))
    with pytest.raises(SystemExit):
        Failing().work()
    assert seen == [SystemExit]


def test_signals_that_arrive_in_an_observer_pass(told):
    def interrupted(*_args):
        raise KeyboardInterrupt

    cls = type("Copy", (Thing,), {})
    chain.chain(cls, "work", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cls().work(1)


def test_missing_and_unwritable_attributes_are_told(told):
    assert not chain.chain(Thing, "absent", lambda *_: None)
    assert not chain.chain(Slotted(), "work", lambda: None)
    assert told == [
        "this engine has no Thing.absent: its spans are missing",
        told[1],
    ]
    assert "Slotted.work cannot be wrapped" in told[1]


def test_coroutines_end_where_they_end(told):
    seen = []

    cls = type("Copy", (Thing,), {})
    chain.chain(cls, "later", lambda *_args: lambda result, error: seen.append((result, type(error).__name__)))

    async def main():
        assert await cls().later() == "done"

    asyncio.run(main())
    assert seen == [("done", "NoneType")]


def test_what_may_be_missing_is_not_told(told):
    cls = type("Copy", (Thing,), {})
    assert chain.chain_if_there(cls, "work", lambda *_: None)
    assert not chain.chain_if_there(cls, "absent", lambda *_: None) and not chain.chain_if_there(None, "work", lambda *_: None)
    assert not told


def test_functions_of_modules_are_wrapped(told):
    module = types.ModuleType("some.module")
    module.function = lambda: 5
    seen = []
    assert chain.chain(module, "function", lambda: lambda result, error: seen.append(result))
    assert module.function() == 5 and seen == [5]
    assert not chain.chain(module, "absent", lambda: None) and told == ["this engine has no some.module.absent: its spans are missing"]
