"""Patterns of names."""

import fnmatch
import itertools

from sa_profile._hooks.named_functions import _matches


def test_a_star_matches_any_text():
    texts = ["".join(letters) for length in range(5) for letters in itertools.product("ab", repeat=length)]
    patterns = ["".join(letters) for length in range(5) for letters in itertools.product("ab*", repeat=length)]
    wrong = [(pattern, text) for pattern in patterns for text in texts if _matches(pattern, text) != fnmatch.fnmatchcase(text, pattern)]
    assert wrong == []
    assert not _matches("a?[a]", "aba") and _matches("a?[a]", "a?[a]")
