"""Finds which hook points a version of an engine has. It only reads the sources, and imports or runs nothing of the engine."""

import ast
import sys
import zipfile
from pathlib import Path

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


class Sources:
    """The Python files of one version: a wheel, or a folder that contains the package."""

    def __init__(self, path):
        self.label = path.name.split("-")[1] if path.suffix == ".whl" else path.name
        self._wheel = zipfile.ZipFile(path) if path.is_file() else None
        self._folder = path
        self._trees = {}
        self._names = {}

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

    def body(self, module, owner):
        """Returns the statements of a module, or those of a class in it if `owner` is not `None`."""
        body = getattr(self.tree(module), "body", ())
        if owner is None:
            return body
        return [node for one in body if isinstance(one, ast.ClassDef) and one.name == owner for node in one.body]

    def has(self, module, owner, attribute):
        """Returns true if a module defines this name or imports it, or if a class in it defines it or its methods set it on `self`."""
        names = self._names.get((module, owner))
        if names is None:
            body = self.body(module, owner)
            on_self = [] if owner is None else map(_set_on_self, body)
            names = self._names[module, owner] = set().union(*map(_names, body), *on_self)
        return attribute in names


def _set_on_self(node):
    """Returns the names of the attributes that a method sets on its object."""
    if not isinstance(node, FUNCTION):
        return set()
    found = (one for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store))
    return {one.attr for one in found if isinstance(one.value, ast.Name) and one.value.id == "self"}


def _names(node):
    if isinstance(node, (*FUNCTION, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
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


def print_table(usage, required, optional, arguments):
    """Prints the table of an engine's hook points as Markdown. Returns the exit code: 1 if a version lacks a required one."""
    paths = [Path(one) for one in arguments]
    if not paths or not all(path.exists() for path in paths):
        print(usage, file=sys.stderr)
        return 2
    versions = [Sources(path) for path in paths]
    rows, missing = table(required, versions)
    rows.insert(1, ["---"] * len(rows[0]))
    rows.extend(table(optional, versions)[0][1:])
    for row in rows:
        print("| " + " | ".join(row) + " |")
    return 1 if missing else 0
