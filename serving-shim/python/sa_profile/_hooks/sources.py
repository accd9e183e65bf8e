"""Finds which hook points a version of an engine has. It only reads the sources, and imports or runs nothing of the engine."""

import ast
import zipfile


class Sources:
    """The Python files of one version: a wheel, or a folder that contains the package."""

    def __init__(self, path):
        self.label = path.name.split("-")[1] if path.suffix == ".whl" else path.name
        self._wheel = zipfile.ZipFile(path) if path.is_file() else None
        self._folder = path
        self._trees = {}

    def _text(self, file):
        if self._wheel is not None:
            return self._wheel.read(file).decode() if file in self._wheel.namelist() else None
        found = self._folder / file
        return found.read_text() if found.exists() else None

    def tree(self, module):
        """Returns the module's syntax tree, or `None` if there is no such module."""
        if module not in self._trees:
            base = module.replace(".", "/")
            texts = (self._text(name) for name in (f"{base}.py", f"{base}/__init__.py"))
            text = next((text for text in texts if text is not None), None)
            self._trees[module] = None if text is None else ast.parse(text)
        return self._trees[module]

    def has(self, module, owner, attribute):
        """Returns true if a module, or a class in it, defines this name or imports it from elsewhere."""
        body = getattr(self.tree(module), "body", ())
        if owner is not None:
            classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name == owner]
            body = [node for one in classes for node in one.body]
        return any(attribute in _names(node) for node in body)


def _names(node):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    if isinstance(node, ast.AnnAssign):
        return {getattr(node.target, "id", None)}
    if isinstance(node, ast.Assign):
        return {getattr(target, "id", None) for target in node.targets}
    return set()


def table(points, versions):
    """Returns the rows of the table, and the total number of missing points."""
    rows, missing = [["hook point", *(one.label for one in versions)]], 0
    for module, owner, attribute in points:
        found = [one.has(module, owner, attribute) for one in versions]
        missing += found.count(False)
        name = f"`{owner}.{attribute}`" if owner else f"`{module}.{attribute}`"
        rows.append([name, *("yes" if one else "**no**" for one in found)])
    return rows, missing
