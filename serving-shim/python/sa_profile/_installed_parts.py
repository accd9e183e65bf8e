"""Describes which parts of the project are installed, and which would be active in a process started with this environment."""

import os
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from . import _native_files, _sa_profile
from ._configuration import Row
from .env import environment

_PRELOAD = "libsa_profile_preload.so"
_RUNTIMES = ("libacl_rt.so", "libascendcl.so")
_TOOLKIT_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
_TOOLKITS = ("/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/cann", "/usr/local/Ascend/latest")
# Where users of the pypto-serving profiler install the package.
_DROP_INS = ("python/profile", "pypto_serving/tools/profile")


class _Engine(NamedTuple):
    """An engine that loads plugins."""

    name: str
    package: str
    group: str  # of the entry points that it loads
    chosen: str | None  # value of the variable that restricts which plugins it loads, or None if it loads all

    def plugin(self) -> str:
        """Describes whether the engine would load the plugin."""
        points = metadata.entry_points(group=self.group)
        ours = next((point for point in points if point.value.partition(":")[0] == f"sa_profile.{self.package}"), None)
        if ours is None:
            return f"not installed: no entry point of the group {self.group} names it"
        version = _version(self.package)
        if version is None:
            return f"installed, but {self.name} is not"
        if self.chosen is not None and ours.name not in map(str.strip, self.chosen.split(",")):
            return f"installed, not active: {self.name.upper()}_PLUGINS={self.chosen} leaves it out"
        if _sa_profile.configuration() is None:
            return f"installed, not active: recording is off; {self.name} {version}"
        return f"active in the processes of {self.name} {version}"


def parts() -> Iterator[Row]:
    """Yields each part and its state."""
    yield "package", f"{_version('sa-profile') or 'not installed: a source folder or a copy'}, {Path(__file__).parent}"
    yield "extension", f"loaded, {_sa_profile.__file__}"
    yield "preload library", _preload()
    yield "device runtime", _device_runtime()
    for engine in _engines():
        yield f"{engine.name} plugin", engine.plugin()
    yield "drop-in", _drop_in()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _preload() -> str:
    loaded = _mapped(_PRELOAD)
    if loaded:
        return f"in this process, {loaded}"
    if _PRELOAD in os.environ.get("LD_PRELOAD", ""):
        return f"not in this process, though LD_PRELOAD names it: {os.environ['LD_PRELOAD']}"
    try:
        return f"not in this process: LD_PRELOAD={_native_files.preload_path()} puts it there"
    except FileNotFoundError as error:
        return f"not in this process; {error}"


def _mapped(name: str) -> str | None:
    """Returns the path of a library that this process has mapped."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    paths = (line.split(maxsplit=5)[5] for line in lines if name in line)
    return next((path for path in paths if Path(path).name == name), None)


def _device_runtime() -> str:
    """Describes the runtime that would time launches. Opens no library, because opening CANN's makes it write files."""
    choices = [choice.strip() for choice in environment().get("SA_PROFILE_DEVICE", "").lower().split(",")]
    choice = next((choice for choice in reversed(choices) if choice in ("auto", "ascend", "off", "sim")), "")
    if choice == "off":
        return "none: SA_PROFILE_DEVICE=off"
    if choice == "sim":
        return "sim: SA_PROFILE_DEVICE=sim, the simulator, which is not part of this package"
    found = next((path for path in _runtime_paths() if path.is_file()), None)
    if found is None:
        return "none: launches are recorded on the host only, because neither libacl_rt.so nor libascendcl.so is where CANN installs it"
    return f"ascend: {found}"


def _runtime_paths() -> Iterator[Path]:
    folders = [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    homes = [environment()[name] for name in _TOOLKIT_VARIABLES if environment().get(name)]
    folders += [Path(home, "lib64") for home in (*homes, *_TOOLKITS)]
    return (folder / name for folder in folders for name in _RUNTIMES)


def _engines() -> Iterator[_Engine]:
    yield _Engine("vLLM", "vllm", "vllm.general_plugins", os.environ.get("VLLM_PLUGINS"))
    # SGLang treats an empty variable like none.
    yield _Engine("SGLang", "sglang", "sglang.srt.plugins", os.environ.get("SGLANG_PLUGINS") or None)


def _drop_in() -> str:
    """Describes whether the search path has this package, or one that forwards to it, in place of the pypto-serving profiler."""
    for folder in map(Path, sys.path):
        for place in _DROP_INS:
            if _is_ours(folder / place):
                return f"in place, {folder / place}"
    return f"not in place: no {' or '.join(_DROP_INS)} of the search path is this package"


def _is_ours(package: Path) -> bool:
    if package.resolve() == Path(__file__).resolve().parent or (package / "_sa_profile.abi3.so").exists():
        return True
    try:
        return "sa_profile" in (package / "__init__.py").read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return False
