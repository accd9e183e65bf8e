"""Checks that the package's folders are layers: no layer imports a higher one, and imports form no cycle. Imports inside functions count too."""

import ast
import graphlib
import re
from pathlib import Path

import sa_profile

PACKAGE = Path(sa_profile.__file__).parent
# From the lowest to the highest. Folders in one set do not import each other. The empty name means the modules outside the folders.
LAYERS = [{"_tracking"}, {""}, {"_hooks"}, {"_http"}, {"_engine"}, {"_vllm", "_sglang", "asgi", "startup"}, {"vllm", "sglang"}]
RANKS = {folder: rank for rank, row in enumerate(LAYERS) for folder in row}
EXTENSION = ("_sa_profile",)  # it imports nothing of the package
PATHS = [path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py")]
# Path of each module by its name's parts: `()` is the package itself, `("_hooks", "chain")` a module in it.
FILES = {(path.parent if path.name == "__init__" else path).parts: PACKAGE / f"{path}.py" for path in PATHS}


def parent(module):
    """Returns the package that a module's relative imports start at."""
    return module if FILES[module].name == "__init__.py" else module[:-1]


def folder(module):
    """Returns the folder of a module, or `""` for one that is in no folder."""
    return next(iter(parent(module)), "")


def imports(module):
    """Yields the modules that a module imports. Another test refuses absolute imports."""
    for node in ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level > 0:
            above = parent(module)[: len(parent(module)) + 1 - node.level] + tuple(node.module.split(".") if node.module else ())
            for alias in node.names:
                if EXTENSION not in (above, (*above, alias.name)):
                    yield (*above, alias.name) if (*above, alias.name) in FILES else above


IMPORTS = {module: set(imports(module)) for module in FILES}


def test_every_folder_is_in_a_layer():
    assert {folder(module) for module in FILES} == RANKS.keys()


def test_a_lower_layer_imports_no_higher_one():
    # The package itself starts the hooks of a file, so it may import them. The test of cycles covers it.
    pairs = [(one, other) for one, all in IMPORTS.items() for other in all if one and folder(one) != folder(other)]
    assert [(one, other) for one, other in pairs if RANKS[folder(other)] >= RANKS[folder(one)]] == []


def test_imports_form_no_cycle():
    graphlib.TopologicalSorter(IMPORTS).prepare()


def test_common_hooks_name_no_engine():
    for module, path in FILES.items():
        if folder(module) in {"_hooks", "_http", "_engine"}:
            assert not re.search("vllm|sglang", path.read_text(encoding="utf-8"), re.IGNORECASE), path
