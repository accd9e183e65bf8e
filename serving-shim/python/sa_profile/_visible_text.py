"""What is said to people: what it quotes, such as a path or a name, commands no terminal and turns no line around."""

# Characters that nobody sees, as recorder/format/src/visible.rs lists them; the tests hold both equal.
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


def visible(text: object) -> str:
    """The text with each of these characters spelled out, as ``<U+202E>``."""
    return str(text).translate(_SPELLED)
