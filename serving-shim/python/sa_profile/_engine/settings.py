"""Records the settings of the engine once in each of its processes. It reads only the names that the engine's package lists, because a command line or a path may contain secrets."""

import enum
import os
import platform
import sys

from .._sa_profile import engine_settings

MAX_SIZES = 256  # of a list
MAX_TEXT_LENGTH = 64


def record(config, paths, **more):
    """Records the settings at these paths of the engine's configuration, further ones by name, and versions. `None` values are left out."""
    found = {name: attribute(config, path) for name, path in paths.items()}
    values = {name: _value(value) for name, value in {**_versions(), **found, **more}.items()}
    engine_settings({name: value for name, value in values.items() if value is not None})


def attribute(config, path):
    """Returns the attribute at a dotted path, or `None` if a part of it is missing or cannot be read."""
    for name in path.split("."):
        try:
            config = getattr(config, name, None)
        except Exception:
            return None
    return config


def _value(found):
    """Returns a setting as the trace stores it, or `None` for anything other than a number, a short text or a list of integers."""
    if isinstance(found, enum.Enum):
        found = found.name
    if isinstance(found, (list, tuple)):
        return [size for size in found if type(size) is int][:MAX_SIZES]
    if isinstance(found, str):
        return str(found) if len(found) <= MAX_TEXT_LENGTH else None
    return found if isinstance(found, int) else None


def module_version(module):
    """Returns the version of a module that this process has imported, or `None`."""
    return attribute(sys.modules.get(module), "__version__")


def installed_version(name):
    """Returns the version of an installed distribution, or `None`."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except Exception:
        return None


def _versions():
    return {"torch_version": module_version("torch"), "torch_npu_version": module_version("torch_npu"), "cann_version": _cann_version()}


def _cann_version():
    """Returns the version from the file that CANN's installer writes, or `None` without CANN."""
    home = os.environ.get("ASCEND_TOOLKIT_HOME") or os.environ.get("ASCEND_HOME_PATH")
    if not home:
        return None
    try:
        with open(f"{home}/{platform.machine()}-linux/ascend_toolkit_install.info", encoding="utf-8", errors="replace") as file:
            lines = file.read(4096).splitlines()
    except OSError:
        return None
    return next((line.partition("=")[2].strip() for line in lines if line.startswith("version=")), None)
