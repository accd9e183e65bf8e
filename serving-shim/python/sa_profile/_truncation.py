"""Truncates values for args of an event, because a program's values may be of any size."""

_MAX_ITEMS = 16
_MAX_DEPTH = 4
_MAX_KEY_CHARS = 64


def truncate(value, max_chars, depth=0):
    """Returns the value with texts cut to ``max_chars`` characters, and lists and dicts to 16 items. Other objects are returned unchanged, and recorded as the name of their type."""
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
    for key, item in list(value.items()):  # a copy, because another thread may change the dict meanwhile
        if len(items) == _MAX_ITEMS:
            items["…"] = f"+{len(value) - _MAX_ITEMS}"
            break
        items[_key(key)] = truncate(item, max_chars, depth + 1)
    return items


def _key(key):
    """Returns a key as text. A key of another type might be unhashable after truncation."""
    if isinstance(key, str):
        return key[:_MAX_KEY_CHARS]
    return str(key) if isinstance(key, (int, float, type(None))) else type(key).__name__
