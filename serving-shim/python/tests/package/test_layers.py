"""The folders of the package are layers: a lower one imports no higher one, and imports run in no circle. Imports within functions count too."""

import ast
import graphlib
import re
from pathlib import Path

import pytest

import sa_profile

PACKAGE = Path(sa_profile.__file__).parent
# From the lowest to the highest; those in one row import nothing of each other. The lowest are the modules beside the folders.
LAYERS = [{""}, {"_hooks"}, {"_http"}, {"_vllm", "asgi", "startup"}, {"vllm"}]
RANKS = {folder: rank for rank, row in enumerate(LAYERS) for folder in row}
EXTENSION = ("_sa_profile",)


class Package:
    """The modules of a package, as paths of names: `()` is the package itself, `("_hooks", "chain")` a module in it."""

    def __init__(self, folder):
        files = [path.relative_to(folder).with_suffix("") for path in folder.rglob("*.py")]
        self.files = {(file.parent if file.name == "__init__" else file).parts: folder / f"{file}.py" for file in files}
        self.imports = {module: set(self._imported(module)) for module in self.files}

    def _imported(self, module):
        path = self.files[module]
        parent = self._parent(module)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level > 0:  # another test refuses absolute ones
                above = parent[: len(parent) + 1 - node.level] + tuple(node.module.split(".") if node.module else ())
                for alias in node.names:
                    yield from self._found(above, alias.name)

    def _found(self, above, name):
        """The module of this name, or the one that has it. The extension imports nothing of the package."""
        if above == EXTENSION or (*above, name) == EXTENSION:
            return
        found = (*above, name) if (*above, name) in self.files else above
        assert found in self.files, f"no module {found}"
        yield found

    def _parent(self, module):
        """The package that a module's relative imports start at."""
        return module if self.files[module].name == "__init__.py" else module[:-1]

    def folder(self, module):
        """The folder in which a module lies, `""` beside the folders."""
        return next(iter(self._parent(module)), "")

    def folders(self):
        return {self.folder(module) for module in self.files}

    def upward(self):
        """The imports of a higher layer, or of another folder of the same one."""
        pairs = [(module, found) for module, all in self.imports.items() for found in all]
        return sorted((".".join(one), ".".join(other)) for one, other in pairs if not self._is_allowed(self.folder(one), self.folder(other)))

    def _is_allowed(self, one, other):
        return one == other or RANKS[other] < RANKS[one]

    def circle(self):
        """Modules of which each imports the next one, and the last is the first; none if there is no circle."""
        try:
            graphlib.TopologicalSorter(self.imports).prepare()
        except graphlib.CycleError as error:
            return [".".join(module) for module in error.args[1]]
        return []


@pytest.fixture(scope="module")
def package():
    return Package(PACKAGE)


def test_every_folder_is_in_a_layer(package):
    assert package.folders() == RANKS.keys()


def test_a_lower_layer_imports_no_higher_one(package):
    assert package.upward() == []


def test_imports_run_in_no_circle(package):
    assert package.circle() == []


def test_what_every_engine_uses_names_no_engine(package):
    for module, path in package.files.items():
        if package.folder(module) in {"_hooks", "_http"}:
            assert not re.search("vllm|sglang", path.read_text(encoding="utf-8"), re.IGNORECASE), path
