"""Results and checks as lines."""


class Report:
    """Prints what was measured, and keeps what was not as it should be."""

    def __init__(self):
        self._failed = []

    def result(self, what, value, *more):
        """A measured value, and words about it."""
        value = f"{value:.4g}" if isinstance(value, float) else value
        print("RESULT", what, value, *more, flush=True)

    def check(self, what, holds, *more):
        """A condition that must hold."""
        print("CHECK", what, "ok" if holds else "FAILED", *more, flush=True)
        if not holds:
            self._failed.append(what)

    def skip(self, what, why):
        """A condition that cannot be judged here."""
        print(f"SKIPPED {what}: {why}", flush=True)

    def exit_code(self):
        """1 if a check failed; they are named again."""
        for what in self._failed:
            print("FAILED", what, flush=True)
        return 1 if self._failed else 0
