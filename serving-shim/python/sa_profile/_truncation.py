"""Values as args of an event, truncated: what a program passes around may be as large as it likes."""

_MAX_ITEMS = 16
_MAX_DEPTH = 4
_MAX_KEY_CHARS = 64


def truncate(value, max_chars, depth=0):
    """The value with texts cut to ``max_chars`` characters, and lists and dicts to 16 items; other objects as they are, which records their type's name."""
    if isinstance(value, str):
        return value if len(value) <= max_chars else f"{value[:max_chars]}…[+{len(value) - max_chars}]"
    if depth >= _MAX_DEPTH:
        return value if isinstance(value, (int, float, type(None))) else "…"
    if isinstance(value, (list, tuple)):
        items = [truncate(item, max_chars, depth + 1) for item in value[:_MAX_ITEMS]]
        return items if len(value) <= _MAX_ITEMS else [*items, f"…[+{len(value) - _MAX_ITEMS}]"]
    if isinstance(value, dict):
        return _truncate_dict(value, max_chars, depth)
    return value


def _truncate_dict(value, max_chars, depth):
    items = {}
    for key, item in list(value.items()):  # another thread may change it meanwhile
        if len(items) == _MAX_ITEMS:
            items["…"] = f"+{len(value) - _MAX_ITEMS}"
            break
        items[_key(key)] = truncate(item, max_chars, depth + 1)
    return items


def _key(key):
    """A key as text: what is none may not be hashable once it is cut."""
    if isinstance(key, str):
        return key[:_MAX_KEY_CHARS]
    return str(key) if isinstance(key, (int, float, type(None))) else type(key).__name__
