"""What is known of objects that somebody else made, and observers of their methods."""

import types

import pytest

from sa_profile._hooks.instances import Known
from sa_profile._hooks.instances import chain_class


class Thing:
    def work(self):
        return "theirs"


def observed(thing):
    """Whom an observer sees that is put around the thing's method."""

    seen = []
    assert chain_class(thing, "work", lambda one: seen.append(one))
    return seen


def test_a_method_is_observed_in_its_class():
    class Own(Thing):
        pass

    thing, other = Own(), Own()
    seen = observed(thing)
    assert (thing.work(), other.work()) == ("theirs", "theirs")
    assert seen == [thing, other] and "work" in vars(Own) and not vars(thing)


@pytest.mark.parametrize("bound", [True, False])
def test_what_an_object_has_in_place_of_its_method_is_observed(bound):
    class Own(Thing):
        pass

    thing = Own()
    thing.work = types.MethodType(lambda self: "patched", thing) if bound else lambda: "patched"
    seen = observed(thing)
    assert (thing.work(), Own().work()) == ("patched", "theirs")
    assert seen == [thing]


def test_a_method_of_an_object_alone_is_observed():
    class Bare:
        pass

    thing = Bare()
    thing.work = lambda: "own"
    seen = observed(thing)
    assert thing.work() == "own" and seen == [thing]


def test_what_has_no_weak_references_is_not_kept():
    class Slotted:
        __slots__ = ()

    known = Known()
    with pytest.raises(TypeError):
        known.keep(Slotted(), "found")
    assert known == {}


def test_what_is_known_goes_with_its_object():
    known, thing = Known(), Thing()
    known.keep(thing, "found")
    assert list(known.values()) == ["found"]
    del thing
    assert known == {}
