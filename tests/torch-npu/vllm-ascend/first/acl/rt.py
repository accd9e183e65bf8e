"""The runtime's functions that vLLM-Ascend imports."""

import ctypes

_RUNTIME = ctypes.CDLL("libascendcl.so")
_RUNTIME.aclrtMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def memcpy(to: int, room: int, source: int, count: int, kind: int) -> int:
    return _RUNTIME.aclrtMemcpy(to, room, source, count, kind)
