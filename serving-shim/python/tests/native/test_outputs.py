"""Outputs of an engine's steps, counted for their requests."""

import gc
import weakref
from types import SimpleNamespace

import pytest

from sa_profile._sa_profile import FrontRequests
from sa_profile._sa_profile import Outputs, Tally


def output(request_id, tokens=1, reason=None):
    return SimpleNamespace(request_id=request_id, new_token_ids=[5] * tokens, finish_reason=reason)


class Counted:
    """Requests that have a token each, and what could not be counted for them."""

    def __init__(self, *ids):
        self.known = {one: Tally(1) for one in ids}
        self.outputs = Outputs()
        self.looked = []

    def count(self, *outputs, looks_at_all=False):
        return self.outputs.count(outputs, self.known, lambda one, tokens: self.looked.append((one.request_id, tokens)), looks_at_all)

    def tokens(self):
        return {one: tally.output_tokens for one, tally in self.known.items()}


def text(id):
    """The same text, in an object of its own, as a message brings it."""
    return "".join(list(id))


@pytest.mark.parametrize("of", [str, text])
def test_requests_keep_their_counts_in_any_order(of):
    counted = Counted("id a", "id b", "id c")
    for order in (["id a", "id b", "id c"], ["id b", "id c"], ["id c", "id b", "id a"]):
        assert counted.count(*(output(of(one), 2) for one in order)) == 2 * len(order)
    assert counted.tokens() == {"id a": 5, "id b": 7, "id c": 7}
    assert counted.known["id a"].output_steps == 2 and not counted.looked


@pytest.mark.parametrize("of", [str, text])
def test_a_request_that_was_taken_away_is_no_more_counted(of):
    counted = Counted("id a", "id b")
    counted.count(output(of("id a")), output(of("id b")))
    gone = counted.known.pop("id a")
    counted.outputs.forget()
    counted.count(output(of("id a")), output(of("id b")))
    assert counted.looked == [("id a", 1)] and gone.output_tokens == 2 and counted.tokens() == {"id b": 3}


def test_the_last_output_of_a_request_and_one_that_nobody_knows_are_looked_at():
    counted = Counted("id a", "id b")
    counted.count(output("id a"), output("id b"))
    assert counted.count(output("id a", reason=1), output("id x", 3), output("id b")) == 5
    assert counted.looked == [("id a", 1), ("id x", 3)] and counted.tokens() == {"id a": 2, "id b": 3}
    counted.count(output("id b"), looks_at_all=True)
    assert counted.looked[2:] == [("id b", 1)] and counted.tokens()["id b"] == 3



def test_a_request_that_is_taken_away_while_outputs_are_counted_is_no_more_counted():
    counted = Counted("id a", "id b")
    counted.count(output("id a"), output("id b"))

    def outputs():
        yield output("id a")
        counted.known.pop("id a")
        counted.outputs.forget()
        yield output("id b")

    counted.outputs.count(outputs(), counted.known, None)
    counted.count(output("id a"))
    assert counted.looked == [("id a", 1)] and counted.tokens() == {"id b": 3}


def a_cycle():
    class Reason:
        pass

    reason = Reason()
    reason.requests = FrontRequests(reason)
    found = weakref.ref(reason)
    del reason
    gc.collect()
    print(found())


def test_what_a_front_end_waits_for_is_freed_though_a_cycle_leads_to_it(record):
    assert record(a_cycle).stdout == "None\n"
