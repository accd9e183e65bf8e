"""Whether a run directory can be written; nothing is made for the question."""

import os
from pathlib import Path


def problem(directory: Path) -> str | None:
    """Why nothing could be written there."""
    if directory.exists() and not directory.is_dir():
        return f"{directory} is no directory"
    nearest = next(path for path in (directory, *directory.parents) if path.exists())
    if not nearest.is_dir():
        return f"{nearest} is no directory"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return f"{nearest} cannot be written"
    return None
