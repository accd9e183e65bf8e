"""The vLLM plugin: records a vLLM server that nobody edited.

vLLM calls `register` in each of its processes (entry point group `vllm.general_plugins`). With a `SA_PROFILE_*` variable
set it wraps what the server calls anyway; without one it does nothing. docs/vllm.md says what the trace shows.
"""

from .._vllm.plugin import register

__all__ = ["register"]
