"""Differences between pairs of measurements, with a confidence interval."""

import math
import statistics

Z95 = 1.96  # standard deviations of a normal distribution
LEAST_TURNS = 30  # minimum for an interval


class Differences:
    """Differences of all turns. Their median is used, because a turn in which the machine was disturbed is an outlier."""

    def __init__(self):
        self.values = []

    def interval(self):
        """Returns the 95 % confidence interval of the median, for any distribution: two of the sorted values.

        The measurement stops as soon as the interval is narrow enough, so the interval holds slightly less often.
        """
        if len(self.values) < LEAST_TURNS:
            return -math.inf, math.inf
        ordered, apart = sorted(self.values), Z95 * math.sqrt(len(self.values)) / 2
        middle = (len(ordered) - 1) / 2
        return ordered[max(math.floor(middle - apart), 0)], ordered[min(math.ceil(middle + apart), len(ordered) - 1)]

    def half_width(self):
        low, high = self.interval()
        return (high - low) / 2

    def print_result(self, report, what, unit="%"):
        scale = 100 if unit == "%" else 1
        low, high = (end * scale for end in self.interval())
        mean = statistics.fmean(self.values) * scale
        report.result(what, statistics.median(self.values) * scale, f"({low:.3g} to {high:.3g} {unit}), {len(self.values)} turns, mean {mean:.3g}")
