"""Switching the run."""

from sa_profile._hooks import control


def test_switching_without_a_run_is_reported(monkeypatch):
    said = []
    monkeypatch.setattr(control, "warn_once", said.append)
    monkeypatch.setattr(control, "directory", lambda: None)
    assert not control.switch("start") and len(said) == 1
