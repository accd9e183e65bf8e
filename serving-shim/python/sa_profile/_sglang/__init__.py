"""Hooks for SGLang. Maps its objects onto `_engine`."""
