"""Observers around functions. The tests of the vLLM plugin cover how a failing observer is reported."""

import pytest

from sa_profile._hooks import chain


class Thing:
    __slots__ = ()

    def work(self, one, two=2):
        return one, two

    @staticmethod
    def fixed(one):
        return one


@pytest.fixture
def thing():
    """Returns a new class for each test."""
    return type("Copy", (Thing,), {})


@pytest.fixture
def messages(monkeypatch):
    found = []
    monkeypatch.setattr(chain, "warn_once", found.append)
    return found


def test_results_arguments_and_names_stay(thing, messages):
    seen = []
    assert chain.chain(thing, "work", lambda *args, **kwargs: lambda result, error: seen.append((args[1:], kwargs, result)))
    assert thing().work(1, two=3) == (1, 3)
    assert seen == [((1,), {"two": 3}, (1, 3))]
    assert thing.work.__name__ == "work" and not messages


def test_a_static_method_stays_static(thing):
    chain.chain(thing, "fixed", lambda one: None)
    assert thing.fixed(5) == 5 and thing().fixed(6) == 6


def test_wrapping_twice_is_wrapping_once(thing):
    assert chain.chain(thing, "work", lambda *_: None)
    assert not chain.chain(thing, "work", lambda *_: None)
    assert not chain.chain(thing(), "work", lambda *_: None), "its class is wrapped"


@pytest.mark.parametrize("is_the_hosts", [True, False])
def test_a_keyboard_interrupt_is_passed_on(thing, is_the_hosts):
    def interrupted(*_args):
        raise KeyboardInterrupt

    seen = []
    thing.work = interrupted if is_the_hosts else thing.work
    chain.chain(thing, "work", (lambda *_: lambda result, error: seen.append(type(error))) if is_the_hosts else interrupted)
    with pytest.raises(KeyboardInterrupt):
        thing().work(1)
    assert seen == [KeyboardInterrupt] * is_the_hosts


def test_missing_and_unwritable_attributes_are_reported(messages):
    assert not chain.chain(Thing, "absent", lambda *_: None)
    assert not chain.chain(Thing(), "work", lambda: None)
    missing, unwritable = messages
    assert missing == "this engine has no Thing.absent: its spans are missing"
    assert "Thing.work cannot be wrapped" in unwritable


def test_optional_attributes_are_not_reported(thing, messages):
    assert chain.chain_if_there(thing, "work", lambda *_: None)
    assert not chain.chain_if_there(thing, "absent", lambda *_: None) and not chain.chain_if_there(None, "work", lambda *_: None)
    assert not messages
