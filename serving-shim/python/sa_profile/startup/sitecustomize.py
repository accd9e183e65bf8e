"""Records a program that does not use the package. Python imports this module when it starts, because ``sa-profile run --python`` puts its folder first in ``PYTHONPATH``.

It removes its folder from ``sys.path`` and imports nothing that the interpreter has not already imported: a file of the program may have the same name as a standard module.
It then imports the ``sitecustomize`` that it hides. The whole file must parse on old Pythons, from 2.7 on, although they are not recorded.
"""

import os
import sys

# Name of the package here. The program may import another version of it under its own name.
PACKAGE = "sa_profile_startup"
FOLDER = os.path.dirname(os.path.abspath(__file__))
TURN_ON = ("SA_PROFILE_DIR", "SA_PROFILE_OUTPUT", "SA_PROFILE_LEVEL")
INTERVAL = "SA_PROFILE_SAMPLE_MS"
DEFAULT_MS = 10
TRACK = "SA_PROFILE_TRACK"
TASKS = "SA_PROFILE_TASKS"
SGLANG = "sglang"
HOOKS = "SA_PROFILE_HOOKS"
SHORTEST_COLLECTION_NS = 1000000


def record():
    """Starts recording if the environment asks for it."""
    if not any(name in os.environ for name in TURN_ON):
        return
    if sys.version_info < (3, 10):
        return warn_once("this Python process is not sampled: expected Python 3.10 or later, found %d.%d" % sys.version_info[:2])
    if "t" in getattr(sys, "abiflags", ""):
        return  # a free-threaded build has another memory layout than the extension expects
    import atexit
    import gc

    native = load_extension()
    if not native.is_main_interpreter():
        return  # callbacks registered here would end with this subinterpreter
    os.register_at_fork(
        before=native.before_fork,
        after_in_parent=native.after_fork_in_parent,
        after_in_child=native.after_fork_in_child,
    )
    os.register_at_fork(after_in_child=native.restart_sampling_in_child)
    atexit.register(native.end_sampling)
    gc.callbacks.append(native.CollectionSpans(SHORTEST_COLLECTION_NS))
    native.watch_imports()
    interval_ns = int(interval_ms() * 1e6)
    if interval_ns > 0:
        native.begin_sampling(interval_ns, program_name())  # this also names the process, on the sampling thread
    else:
        native.set_process_name(program_name())
    native.name_coroutines()
    if os.environ.get(HOOKS):
        hook(native, os.environ[HOOKS])
    if os.environ.get(TRACK):
        track(native, os.environ[TRACK])
    if os.environ.get(TASKS, "0") != "0":
        show_tasks(native)
    if any(os.path.isdir(os.path.join(folder, SGLANG)) for folder in sys.path):
        native.add_import_listener(on_import)


def load_extension():
    """Loads only the package's extension. Importing the package would import 70 modules of the standard library."""
    import _frozen_importlib
    import _frozen_importlib_external

    # Its functions get this name as their module's, and pickle looks them up by it. Other copies of the package have other names.
    name, path = "sa_profile._sa_profile", os.path.join(os.path.dirname(FOLDER), "_sa_profile.abi3.so")
    loader = _frozen_importlib_external.ExtensionFileLoader(name, path)
    spec = _frozen_importlib.ModuleSpec(name, loader, origin=path)
    spec.has_location = True
    native = _frozen_importlib.module_from_spec(spec)
    loader.exec_module(native)
    sys.modules[PACKAGE + "._sa_profile"] = native
    return native


def hook(native, path):
    """Records calls of the functions that a file names."""
    try:
        import_hooks(native, "hook_file").watch(path)
    except Exception as error:
        warn_once("no function is hooked: %s: %s" % (type(error).__name__, error))


def track(native, text):
    """Records calls of the functions in a comma-separated list, with wrappers or sys.monitoring."""
    patterns = [pattern for pattern in map(parse_pattern, text.split(",")) if pattern]
    try:
        import_hooks(native, "named_functions").watch(patterns)
    except Exception as error:
        warn_once("nothing is tracked: %s: %s" % (type(error).__name__, error))


def show_tasks(native):
    """Records the lifetimes of asyncio tasks."""
    try:
        import_hooks(native, "tasks").watch()
    except Exception as error:
        warn_once("no asyncio tasks are shown: %s: %s" % (type(error).__name__, error))


def on_import(name, module):
    """Registers the plugin for an SGLang that loads no plugins itself: before 0.5.12."""
    if name != SGLANG:
        return
    try:
        if not os.path.exists(os.path.join(module.__path__[0], "srt", "plugins")):
            __import__("sa_profile.sglang", fromlist=["register"]).register()
    except Exception as error:
        warn_once("no SGLang plugin, because the package is not installed next to SGLang: %s: %s" % (type(error).__name__, error))


def import_hooks(native, name):
    """Imports a module of the package's hooks without the package itself. The hooks import nothing from the standard library."""
    if PACKAGE not in sys.modules:
        package = sys.modules[PACKAGE] = type(sys)(PACKAGE)
        package.__path__ = [os.path.dirname(FOLDER)]
        package._sa_profile = native
    return __import__(PACKAGE + "._hooks." + name, fromlist=["watch"])


def parse_pattern(name):
    """Returns the module pattern and the function pattern of a name, or None if it has no such parts."""
    module, _, function = name.strip().partition(":")
    if module and function:
        return module, function
    if name.strip():
        warn_once("SA_PROFILE_TRACK: expected MODULE:FUNCTION, found %r: it is left out" % name.strip())


def interval_ms():
    """Returns the sampling interval in ms, or 0 if stacks are not sampled."""
    text = os.environ.get(INTERVAL) or str(DEFAULT_MS)
    try:
        interval = float(text)
    except ValueError:
        interval = -1
    if interval == 0 or 1 <= interval <= 60000:
        return interval
    warn_once("%s: expected 0, or ms from 1 to 60000, found %r: using %d" % (INTERVAL, text, DEFAULT_MS))
    return DEFAULT_MS


def program_name():
    """Returns the usual name of the running program: its script, its module, or `python`."""
    argument = sys.argv[0] if sys.argv else ""
    if argument not in ("", "-c", "-m"):
        return os.path.basename(argument)
    given = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1] if argument else []
    last = given[-1] if given else ""
    if argument == "-m":
        return last.partition("m")[2] if last.startswith("-") else last
    # A helper process of multiprocessing: its resource tracker or fork server.
    parts = last.split()
    return parts[1] if parts[:1] == ["from"] and len(parts) > 1 else "python"


def warn_once(text):
    """Writes one line to stderr, which may be closed. Each message here occurs at most once."""
    try:
        sys.stderr.write("sa_profile: %s\n" % " ".join(text.split()))
    except Exception:
        pass


def import_next():
    """Imports the next `sitecustomize` on the path. Without one, Python behaves as if this one did not exist either."""
    sys.modules.pop("sitecustomize", None)
    __import__("sitecustomize")


def remove_folder():
    """Removes this folder from the search path."""
    sys.path[:] = [path for path in sys.path if path != FOLDER]


def begin():
    """Runs when Python imports this module. No failure here reaches the program."""
    try:
        remove_folder()
        record()
    except Exception as error:
        if "subinterpreters" not in str(error):  # a subinterpreter: the main interpreter is sampled
            warn_once("this Python process is not sampled: %s: %s" % (type(error).__name__, error))
    import_next()


if __name__ == "sitecustomize":
    begin()
