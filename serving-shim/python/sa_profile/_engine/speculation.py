"""Drafted and accepted tokens of speculative decoding."""

from typing import NamedTuple

from .. import counter


class Speculation(NamedTuple):
    """Drafted and accepted tokens of a step. `by_position` counts the accepted tokens at each position of a draft."""

    drafted: int
    accepted: int
    by_position: list

    def args(self):
        """Returns them as args of a span or series of a counter."""
        return dict(drafted=self.drafted, accepted=self.accepted)

    def record(self):
        """Records the counters."""
        counter("speculation", **self.args())
        positions = enumerate(self.by_position, 1)
        counter("accepted_by_position", **{str(position): accepted for position, accepted in positions})


def speculation(pairs):
    """Returns what a step speculated, from the numbers of drafted and accepted tokens of each request. Returns `None` if nothing was drafted."""
    drafted = sum([tokens for tokens, _ in pairs])
    if not drafted:
        return None
    longest = max([tokens for tokens, _ in pairs])
    by_position = [sum([accepted > position for _, accepted in pairs]) for position in range(longest)]
    return Speculation(drafted, sum(by_position), by_position)
