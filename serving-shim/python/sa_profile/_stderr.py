"""Messages to the user. Quoted texts, such as paths or names, cannot control the terminal or reverse a line. Writing to stderr never raises."""

import sys

# Invisible characters, the same list as in recorder/format/src/visible.rs. A test compares the two.
HIDDEN = (
    (0x00, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x61C, 0x61C),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0xE0000, 0xE007F),
)

_SPELLED = {code: f"<U+{code:04X}>" for first, last in HIDDEN for code in range(first, last + 1)}
_said: set[str] = set()


def visible(text: object) -> str:
    """Returns the text with invisible characters spelled out, such as ``<U+202E>``."""
    return str(text).translate(_SPELLED)


def say(text: object, source: str = "sa_profile") -> None:
    """Writes a message to stderr. If stderr is closed, it is None, and `print` would write to stdout."""
    if sys.stderr is None:
        return
    try:
        print(f"{source}: {visible(text)}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass


def warn_once(text: str, source: str = "sa_profile") -> None:
    """Writes a message to stderr, once per process."""
    if text not in _said:
        _said.add(text)
        say(text, source)
