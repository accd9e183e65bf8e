"""Waiting for modules."""

import importlib.util
import threading
import time

from sa_profile._hooks.imports import when_imported


def imports_later():
    seen = []
    when_imported("wsgiref.util", lambda module: seen.append(("after", hasattr(module, "FileWrapper"))))
    when_imported("wsgiref.absent", lambda module: seen.append("absent"))
    when_imported("json", lambda module: seen.append(module.__name__))
    import wsgiref.util

    try:
        import wsgiref.absent
    except ImportError:
        seen.append("no such module")
    print(seen, type(wsgiref.util.__loader__).__name__, importlib.util.find_spec("wsgiref.util").name)


def test_hooks_run_after_complete_imports(record):
    expected = "['json', ('after', True), 'no such module'] SourceFileLoader wsgiref.util\n"
    assert record(imports_later).stdout == expected


def imports_failing():
    when_imported("wsgiref.util", lambda module: 1 / 0)
    import wsgiref.util

    print(wsgiref.util.__name__)


def test_a_failing_hook_does_not_break_the_import(record):
    trace = record(imports_failing)
    assert trace.stdout == "wsgiref.util\n" and "ZeroDivisionError" in trace.stderr


def imports_in_threads():
    def hook(module):
        time.sleep(0.2)
        module.hooks += 1

    seen = []

    def go():
        import slow_module

        seen.append(slow_module.hooks)

    when_imported("slow_module", hook)
    threads = [threading.Thread(target=go) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    import slow_module

    print(seen, slow_module.__spec__._initializing)


def test_no_thread_gets_a_module_before_its_hook_has_run(record, tmp_path):
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(0.1)\nhooks = 0\n")
    assert record(imports_in_threads).stdout == "[1, 1, 1, 1, 1, 1] False\n"
