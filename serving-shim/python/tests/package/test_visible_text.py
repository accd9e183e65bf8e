"""Messages to the user contain no invisible characters (issue 19, 13)."""

import re
import subprocess
import sys
from pathlib import Path

from sa_profile._stderr import HIDDEN, visible


def test_invisible_characters_are_spelled_out() -> None:
    assert visible("a\u202eb\x1b[2J\u200b") == "a<U+202E>b<U+001B>[2J<U+200B>"
    assert visible("wörker-0 · 東京 👩") == "wörker-0 · 東京 👩"
    assert visible(OSError("x\u2066")) == "x<U+2066>"
    assert visible("\udc80") == "\udc80"  # a byte of a path that is not UTF-8: nothing raises


def test_the_list_is_the_same_as_the_recorders() -> None:
    source = Path(__file__).parents[4] / "recorder" / "format" / "src" / "visible.rs"
    body = source.read_text(encoding="utf-8").split("matches!(c,", 1)[1].split("}\n", 1)[0]
    body = body.replace(r"'\0'", r"'\u{0}'")
    pairs = re.findall(r"'\\u\{(\w+)\}'(?:\.\.='\\u\{(\w+)\}')?", body)
    assert tuple((int(first, 16), int(last or first, 16)) for first, last in pairs) == HIDDEN


def test_the_configuration_reverses_no_line(tmp_path: Path) -> None:
    odd = tmp_path / "od\u202ed\u200b"
    command = [sys.executable, "-m", "sa_profile"]
    variables = {"SA_PROFILE_DIR": str(odd), "PYTHONUTF8": "1"}
    # Not in the folder of the sources, which Python would import instead of the installed package.
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, check=True, text=True, encoding="utf-8")
    said = done.stdout
    assert "<U+202E>" in said or r"\u202e" in said
    assert "\u202e" not in said and "\u200b" not in said
