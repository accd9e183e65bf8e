"""The names of the package: its API, documented, and the drop-in's names in addition."""

import inspect
import pkgutil
import re
import textwrap
from importlib import metadata
from pathlib import Path

import pytest

import sa_profile
from sa_profile import compat

DROP_IN = sorted(set(compat.__all__) - {"is_enabled"})
# `env`, `merge` and `recorder` belong to the drop-in: pypto-serving imports them by these names.
PUBLIC_MODULES = {"asgi", "compat", "env", "merge", "recorder", "sglang", "sglang.hook_points", "vllm", "vllm.hook_points"}


def test_dir_shows_only_the_api():
    assert dir(sa_profile) == sorted(sa_profile.__all__)
    assert all(hasattr(sa_profile, name) for name in sa_profile.__all__)
    assert not {name for name in sa_profile.__all__ if name.startswith("_")} - {"__version__"}
    assert not set(DROP_IN) & set(sa_profile.__all__)
    with pytest.raises(AttributeError, match="module 'sa_profile' has no attribute 'nothing'"):
        _ = sa_profile.nothing
    assert sa_profile.__version__ == metadata.version("sa-profile")


def test_the_page_contains_each_name():
    page = (Path(__file__).resolve().parents[4] / "docs" / "python.md").read_text(encoding="utf-8")
    code = re.findall(r"```.*?```|`[^`\n]+`", page, re.DOTALL)
    assert not set(sa_profile.__all__) - set(re.findall(r"\w+", " ".join(code)))


def test_internal_modules_are_private():
    walked = [module.name.removeprefix("sa_profile.") for module in pkgutil.walk_packages(sa_profile.__path__, "sa_profile.")]
    private = {name for name in walked if any(part.startswith("_") for part in name.split("."))}
    assert {"_session", "_hooks.chain", "_vllm.plugin", "_http.asgi"} <= private
    assert set(walked) - private == PUBLIC_MODULES


@pytest.mark.parametrize("name", compat.__all__)
def test_the_names_of_the_drop_in_are_in_both_modules(name):
    assert getattr(sa_profile, name) is getattr(compat, name)
    found = {}
    exec(f"from sa_profile import {name}", found)
    assert found[name] is getattr(compat, name)


@pytest.mark.parametrize("name", [name for name in sa_profile.__all__ if name != "__version__"])
def test_each_name_is_documented(name):
    found = getattr(sa_profile, name)
    doc = inspect.getdoc(found) or ""
    assert doc.splitlines()[0].endswith((".", "::", ":")), doc
    if inspect.isclass(found):
        methods = [member for method, member in vars(found).items() if not method.startswith("_") and callable(member)]
        assert all(map(inspect.getdoc, methods)), name
        return
    for parameter in inspect.signature(found).parameters.values():
        assert re.search(rf"\b{parameter.name}\b", doc), f"{name}: {parameter.name} is not in its docstring"


# Examples for the left-out classes are in the functions that return them.
EXAMPLES = sorted({name for name in sa_profile.__all__ if callable(getattr(sa_profile, name))} - {"Launch", "MergeReport", "Tables"})


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_name_has_an_example(name):
    found = getattr(sa_profile, name)
    doc = inspect.getdoc(found) or ""
    block = doc.partition("::\n\n")[2]
    assert re.search(rf"\b{found.__name__}\b" if name not in ("AsyncSpan", "Request", "Span") else r"sa_profile\.", block), doc
    compile(textwrap.dedent(block), name, "exec")
