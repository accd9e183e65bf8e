"""The SGLang plugin, which records an unmodified SGLang server.

SGLang 0.5.12 and later calls `register` in its processes (entry point group `sglang.srt.plugins`). If a `SA_PROFILE_*` variable is set, `register` wraps functions
that the server calls. Otherwise it does nothing. docs/sglang.md describes what the trace shows.
"""

from .._sglang.plugin import register

__all__ = ["register"]
