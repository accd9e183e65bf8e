"""The parts of CANN's Python package that vLLM-Ascend imports."""
