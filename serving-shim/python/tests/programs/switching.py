"""Commands that switch recording on and off in the calling process."""

import os
import subprocess
import sys
import time
from pathlib import Path

import sa_profile


def command(*words):
    """Runs a command that the wheel installs next to the interpreter, and returns what it printed."""
    program = Path(sys.executable).with_name("sa-profile")
    return subprocess.run([program, *words], capture_output=True, text=True, check=False).stdout


def switch(word):
    """Runs `sa-profile start` or `stop`, and waits until this process has followed the command, which it does by its next event at the latest."""
    command(word, os.environ["SA_PROFILE_DIR"])
    until = time.monotonic() + 20
    while bool(sa_profile.levels()) != (word == "start"):
        assert time.monotonic() < until, word
        sa_profile.instant("asked")
        time.sleep(0.01)
