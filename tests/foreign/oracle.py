"""Computes the figures of a model in the most naive way. Shares neither code nor methods with the product."""


def union_ns(intervals):
    """Returns the time that at least one interval covers, and the longest time between intervals."""
    edges = sorted({edge for interval in intervals for edge in interval})
    covered = longest = gap = 0
    for begin, end in zip(edges, edges[1:], strict=False):
        if any(one <= begin and end <= other for one, other in intervals):
            covered, gap = covered + end - begin, 0
        else:
            gap += end - begin
            longest = max(longest, gap)
    return covered, longest


def self_times(spans, apart=()):
    """Returns name → number, total and own time. A span's own time excludes spans directly inside it. The total excludes spans inside another one with the same name."""
    found = {}
    for at, (name, begin, end) in enumerate(spans):
        inner = [one for other, one in enumerate(spans) if is_within(one, other, (name, begin, end), at)]
        direct = [one for one in inner if not any(is_within(one, spans.index(one), outer, spans.index(outer)) for outer in inner if outer is not one)]
        recurs = any(one[0] == name and is_within((name, begin, end), at, one, other) for other, one in enumerate(spans))
        add(found, name, 0 if recurs else end - begin, end - begin - sum(one[2] - one[1] for one in direct))
    for name, begin, end in apart:
        add(found, name, end - begin, end - begin)
    return found


def is_within(inner, inner_at, outer, outer_at):
    """Returns true if a span is inside another one. Of two spans with equal times, the first one contains the second."""
    if inner_at == outer_at or not (outer[1] <= inner[1] and inner[2] <= outer[2]):
        return False
    return inner[1:] != outer[1:] or outer_at < inner_at


def add(found, name, total, own):
    count, total_before, own_before = found.get(name, (0, 0, 0))
    found[name] = (count + 1, total_before + total, own_before + own)


def merged_names(tables):
    """Returns the sum of several tables by name."""
    found = {}
    for table in tables:
        for name, (count, total, own) in table.items():
            before = found.get(name, (0, 0, 0))
            found[name] = (before[0] + count, before[1] + total, before[2] + own)
    return found


def launch_delays_ns(launches):
    """Returns the time from the start of each launch to the start of its kernel."""
    return [begin - launch for launch, _, begin in launches]
