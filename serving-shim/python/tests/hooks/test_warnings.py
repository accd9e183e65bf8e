"""Messages of hooks on stderr."""

import pytest

from sa_profile import _stderr
from sa_profile._hooks import warnings


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(_stderr, "_said", set())


def test_each_message_is_written_once(capfd):
    warnings.warn_once("a")
    warnings.warn_once("a")
    warnings.warn_once("b\u202e")
    assert capfd.readouterr().err == "sa_profile: a\nsa_profile: b<U+202E>\n"


def test_a_closed_stderr_is_no_error(monkeypatch, capfd):
    monkeypatch.setattr("sys.stderr", None)
    warnings.warn_once("a")
    assert capfd.readouterr().out == "", "what a program prints is its own"
