"""Prints results and checks as lines."""


class Report:
    """Prints results and remembers failed checks."""

    def __init__(self):
        self._failed = []

    def result(self, what, value, *more):
        """Prints a measured value with a comment."""
        value = f"{value:.4g}" if isinstance(value, float) else value
        print("RESULT", what, value, *more, flush=True)

    def check(self, what, holds, *more):
        """Prints whether a condition holds, and remembers it if not."""
        print("CHECK", what, "ok" if holds else "FAILED", *more, flush=True)
        if not holds:
            self._failed.append(what)

    def skip(self, what, why):
        """Prints that a condition cannot be tested here."""
        print(f"SKIPPED {what}: {why}", flush=True)

    def exit_code(self):
        """Returns 1 if a check failed, after printing the failed checks again."""
        for what in self._failed:
            print("FAILED", what, flush=True)
        return 1 if self._failed else 0
