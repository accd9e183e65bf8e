"""The vLLM plugin, which records an unmodified vLLM server.

vLLM calls `register` in each of its processes (entry point group `vllm.general_plugins`). If a `SA_PROFILE_*` variable is set, `register` wraps functions
that the server calls. Otherwise it does nothing. docs/vllm.md describes what the trace shows.
"""

from .._vllm.plugin import register

__all__ = ["register"]
