"""CANN's Python package, as far as vLLM-Ascend imports it."""
