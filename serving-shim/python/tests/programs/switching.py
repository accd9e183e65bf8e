"""Switches the run of the calling process on and off, as its user does."""

import os
import subprocess
import sys
import time
from pathlib import Path

import sa_profile


def command(*words):
    """Runs a command of the wheel, which lies beside the interpreter; returns what it printed."""
    program = Path(sys.executable).with_name("sa-profile")
    return subprocess.run([program, *words], capture_output=True, text=True, check=False).stdout


def switch(word):
    """`start` or `stop`: returns when this process has obeyed, which it does with its next event at the latest."""
    command(word, os.environ["SA_PROFILE_DIR"])
    until = time.monotonic() + 20
    while bool(sa_profile.levels()) != (word == "start"):
        assert time.monotonic() < until, word
        sa_profile.instant("asked")
        time.sleep(0.01)
