"""A merged trace, with methods for tests."""

from collections import defaultdict


class Trace:
    def __init__(self, events):
        self.events = events

    def spans(self, name=None):
        return self._of("X", name)

    def instants(self, name=None):
        return self._of("i", name)

    def unfinished(self, name=None):
        return self._of("B", name)

    def _of(self, phase, name):
        return [event for event in self.events if event["ph"] == phase and name in (None, event["name"])]

    def span(self, name):
        (span,) = self.spans(name)
        return span

    def args(self, name):
        return self.span(name).get("args", {})

    def counts(self):
        counts = defaultdict(int)
        for event in self.spans():
            counts[event["name"]] += 1
        return dict(counts)

    def tracks(self):
        """Returns the spans of each track, ordered by their start."""
        tracks = defaultdict(list)
        for span in self.spans():
            tracks[span["pid"], span["tid"]].append(span)
        for spans in tracks.values():
            spans.sort(key=lambda span: (span["ts"], -span["dur"]))
        return tracks

    def track_name(self, event):
        names = [
            one["args"]["name"]
            for one in self.events
            if one["ph"] == "M" and one["name"] == "thread_name" and (one["pid"], one["tid"]) == (event["pid"], event["tid"])
        ]
        return names[-1] if names else None

    def overlaps(self):
        """Returns pairs of spans on one track that overlap without nesting. A viewer would drop one of them."""
        found = []
        for spans in self.tracks().values():
            open_ = []
            for span in spans:
                start, end = _ns(span["ts"]), _ns(span["ts"]) + _ns(span["dur"])
                while open_ and open_[-1][0] <= start:
                    open_.pop()
                if open_ and open_[-1][0] < end:
                    found.append((open_[-1][1], span))
                open_.append((end, span))
        return found

    def is_within(self, inner, outer):
        return (
            (inner["pid"], inner["tid"]) == (outer["pid"], outer["tid"])
            and _ns(outer["ts"]) <= _ns(inner["ts"])
            and _ns(inner["ts"]) + _ns(inner["dur"]) <= _ns(outer["ts"]) + _ns(outer["dur"])
        )


def _ns(micros):
    return round(micros * 1000)
