"""Has a program record itself that knows nothing of it: Python imports this module at its start, since ``sa-profile run --python`` put its folder first in ``PYTHONPATH``.

It leaves no trace in ``sys.path``, and imports nothing that the interpreter has not imported by then: a file of the program may have the name of a module of Python.
The ``sitecustomize`` that would have been imported without it is imported by it. Pythons that are too old for the rest read it too, from 2.7 on.
"""

import os
import sys

# The name of the package here. The program may have another version of it, under its own name.
PACKAGE = "sa_profile_startup"
FOLDER = os.path.dirname(os.path.abspath(__file__))
TURN_ON = ("SA_PROFILE_DIR", "SA_PROFILE_OUTPUT", "SA_PROFILE_LEVEL")
INTERVAL = "SA_PROFILE_SAMPLE_MS"
DEFAULT_MS = 10
TRACK = "SA_PROFILE_TRACK"
TASKS = "SA_PROFILE_TASKS"
SHORTEST_COLLECTION_NS = 1000000


def record():
    """Begins to record, if the environment asks for it."""
    if not any(name in os.environ for name in TURN_ON):
        return
    if sys.version_info < (3, 10):
        return warn_once("this Python process is not sampled: expected Python 3.10 or later, found %d.%d" % sys.version_info[:2])
    if "t" in getattr(sys, "abiflags", ""):
        return  # without the lock the extension, which is made for builds with it, would be misread
    import atexit
    import gc

    native = extension()
    if not native.is_main_interpreter():
        return  # what it would register would end with this one
    os.register_at_fork(
        before=native.before_fork,
        after_in_parent=native.after_fork_in_parent,
        after_in_child=native.after_fork_in_child,
    )
    os.register_at_fork(after_in_child=native.sample_in_child)
    atexit.register(native.end_sampling)
    gc.callbacks.append(native.Collections(SHORTEST_COLLECTION_NS))
    native.watch_imports()
    interval_ns = int(interval_ms() * 1e6)
    if interval_ns > 0:
        native.begin_sampling(interval_ns, program())  # which names the process too, on its own thread
    else:
        native.set_process_name(program())
    native.name_coroutines()
    if os.environ.get(TRACK):
        track(native, os.environ[TRACK])
    if os.environ.get(TASKS, "0") != "0":
        show_tasks(native)


def extension():
    """The package's extension alone: the package itself would import 70 modules of Python."""
    import _frozen_importlib
    import _frozen_importlib_external

    # Its functions take this name as their module's, and pickle finds them by it. A copy of the package has a name of its own.
    name, path = "sa_profile._sa_profile", os.path.join(os.path.dirname(FOLDER), "_sa_profile.abi3.so")
    loader = _frozen_importlib_external.ExtensionFileLoader(name, path)
    spec = _frozen_importlib.ModuleSpec(name, loader, origin=path)
    spec.has_location = True
    native = _frozen_importlib.module_from_spec(spec)
    loader.exec_module(native)
    sys.modules[PACKAGE + "._sa_profile"] = native
    return native


def track(native, text):
    """Has the functions of a comma list wrapped, or told by the interpreter."""
    names = [name for name in map(functions_of, text.split(",")) if name]
    try:
        hook(native, "tracking").watch(names)
    except Exception as error:
        warn_once("nothing is tracked: %s: %s" % (type(error).__name__, error))


def show_tasks(native):
    """Has the lives of asyncio tasks shown, by the same means."""
    try:
        hook(native, "tasks").watch()
    except Exception as error:
        warn_once("no asyncio tasks are shown: %s: %s" % (type(error).__name__, error))


def hook(native, name):
    """A module of the package's hooks, without the package itself. That imports nothing of Python."""
    if PACKAGE not in sys.modules:
        package = sys.modules[PACKAGE] = type(sys)(PACKAGE)
        package.__path__ = [os.path.dirname(FOLDER)]
        package._sa_profile = native
    return __import__(PACKAGE + "._hooks." + name, fromlist=["watch"])


def functions_of(name):
    """The patterns of modules and functions that a name has; nothing if it has none."""
    module, _, function = name.strip().partition(":")
    if module and function:
        return module, function
    if name.strip():
        warn_once("SA_PROFILE_TRACK: expected MODULE:FUNCTION, found %r: it is left out" % name.strip())


def interval_ms():
    """How often stacks are sampled; 0 for never."""
    text = os.environ.get(INTERVAL) or str(DEFAULT_MS)
    try:
        interval = float(text)
    except ValueError:
        interval = -1
    if interval == 0 or 1 <= interval <= 60000:
        return interval
    warn_once("%s: expected 0, or ms from 1 to 60000, found %r: %d is taken" % (INTERVAL, text, DEFAULT_MS))
    return DEFAULT_MS


def program():
    """What the process runs, as people call it: a script, a module, or `python`."""
    word = sys.argv[0] if sys.argv else ""
    if word not in ("", "-c", "-m"):
        return os.path.basename(word)
    given = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1] if word else []
    last = given[-1] if given else ""
    if word == "-m":
        return last.partition("m")[2] if last.startswith("-") else last
    # What multiprocessing starts for itself: its resource tracker, its fork server.
    words = last.split()
    return words[1] if words[:1] == ["from"] and len(words) > 1 else "python"


def warn_once(text):
    """One line on stderr, which may be closed. Nothing here is said twice."""
    try:
        sys.stderr.write("sa_profile: %s\n" % " ".join(text.split()))
    except Exception:
        pass


def others():
    """Imports the `sitecustomize` that comes after this one. Where there is none, it is as if this one had not been there either."""
    sys.modules.pop("sitecustomize", None)
    __import__("sitecustomize")


def leave():
    """Takes this folder off the search path."""
    sys.path[:] = [path for path in sys.path if path != FOLDER]


def begin():
    """What Python imports this module for. No failure reaches the program."""
    try:
        leave()
        record()
    except Exception as error:
        if "subinterpreters" not in str(error):  # its main interpreter is sampled
            warn_once("this Python process is not sampled: %s: %s" % (type(error).__name__, error))
    others()


if __name__ == "sitecustomize":
    begin()
