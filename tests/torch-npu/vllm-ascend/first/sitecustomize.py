"""Without Triton, vLLM's Triton kernels cannot be launched, and vLLM-Ascend 0.23 launches one in each step. Here each launch becomes a launch of the runtime with the kernel's name.

It computes nothing. vLLM is not edited: its own placeholder for Triton gets another `jit` when it is imported.
"""

import ctypes
import sys
from importlib.machinery import PathFinder

PLACEHOLDER = "vllm.triton_utils.importing"


class Kernel:
    """Replaces the result of `triton.jit`: `kernel[grid](…)` launches it."""

    def __init__(self, function) -> None:
        self.function, self.launcher = function, None
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __getitem__(self, grid):
        return self.launch

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def launch(self, *args, **kwargs) -> None:
        import torch

        if self.launcher is None:
            self.launcher = launcher(self.__name__.encode())
        self.launcher(torch.npu.current_stream().npu_stream)


def launcher(name: bytes):
    runtime = ctypes.CDLL("libascendcl.so")
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    runtime.aclrtBinaryLoadFromData.argtypes = [ctypes.c_char_p, size, pointer, pointer]
    runtime.aclrtBinaryGetFunction.argtypes = [pointer, ctypes.c_char_p, pointer]
    runtime.aclrtLaunchKernelWithHostArgs.argtypes = [pointer, ctypes.c_uint32, pointer, pointer, pointer, size, pointer, size]
    binary, function, argument = pointer(), pointer(), ctypes.c_uint64()
    taken(runtime.aclrtBinaryLoadFromData(b"kernels", 7, None, ctypes.byref(binary)))
    taken(runtime.aclrtBinaryGetFunction(binary, name, ctypes.byref(function)))
    return lambda stream: taken(runtime.aclrtLaunchKernelWithHostArgs(function, 1, stream, None, ctypes.byref(argument), 8, None, 0))


def taken(code: int) -> None:
    if code:
        raise RuntimeError(f"the simulated runtime refuses a launch: {code}")


def jit(*functions, **options):
    return Kernel(functions[0]) if functions else Kernel


class Finder:
    """Replaces `jit` in vLLM's placeholder for Triton after it was loaded."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        spec = PathFinder.find_spec(name, path, target) if name == PLACEHOLDER else None
        if spec is not None:
            load = spec.loader.exec_module

            def exec_module(module) -> None:
                load(module)
                module.TritonPlaceholder._dummy_decorator = lambda self, kind: jit if kind == "jit" else lambda *args, **kwargs: lambda function: function

            spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder)
