"""Layers: no source imports from a layer that docs/ARCHITECTURE.md lists after its own. Circles of imports and folders stay small.

The sources are read as text. Code in `#[cfg(test)]` and test files are left out, and macros are not expanded. A path counts if it is in a `use` or
begins with `crate`, `self`, `super` or a crate of this workspace. A name that the root re-exports by a glob counts for every glob."""

import re
from collections import Counter

import pages

PAGE = pages.ROOT / "docs" / "ARCHITECTURE.md"
MOST_IN_CIRCLE = 6
MOST_IN_FOLDER = 24
CRATE = re.compile(r"^crate (\S+)\n((?:  .*\n)*)", re.MULTILINE)
# Comments, strings and characters. A lifetime has no closing quote.
NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\b[bc]?r(#*)\".*?\"\1|\"(?:[^\"\\]|\\.)*\"|'(?:\\'|\\[^'\n]+|[^'\\\n])'", re.DOTALL)
TEST = re.compile(r"#\[cfg\((?:test\)|all\(test,)")
USE = re.compile(r"\buse\s([^;]+;)")
PATH = re.compile(r"\b(?:crate|self|super|sa_\w+|trace_\w+)(?:::\w+)+")
_files = 0


def SUMMARY():
    return f"{_files} files import nothing from above"


def without_tests(code):
    """Returns the code without items that are compiled only for tests. An item ends at its `;` or closing brace."""
    while found := TEST.search(code):
        depth, end = 0, len(code)
        for sign in re.finditer(r"[{};]", code[found.end() :]):
            depth += {"{": 1, "}": -1, ";": 0}[sign.group()]
            if depth <= 0:
                end = found.end() + sign.end()
                break
        code = code[: found.start()] + code[end:]
    return code


def in_use(words, prefix=""):
    """Yields the paths in the tree of a `use` declaration."""
    path = prefix
    for word in words:
        if word == "{":
            yield from in_use(words, path)
            path = ""
        elif word in ",};":
            whole = re.sub(r"::(?:self|\*)$", "", path)
            if whole not in ("", prefix):
                yield whole
            path = prefix
            if word != ",":
                return
        elif word == "as":
            next(words)
        else:
            path += word


def imported(text):
    """Returns the paths that a source imports."""
    code = without_tests(NOT_CODE.sub(" ", text))
    uses = (in_use(iter(re.findall(r"\w+|::|[^\s\w]", use))) for use in USE.findall(code))
    return {path for use in uses for path in use} | set(PATH.findall(USE.sub("", code)))


def sources(folder):
    """Returns module → path of each source of a crate, without tests. `a::b` is `a/b.rs`, and the root has no name."""
    paths = (path.relative_to(folder) for path in folder.glob("**/*.rs"))
    modules = {path.with_suffix("").parts: folder / path for path in paths if not {"tests", "bin"} & set(path.with_suffix("").parts)}
    if ("lib",) in modules:
        modules.pop(("main",), None)  # the command of a library is a crate of its own
    return {"" if parts in (("lib",), ("main",)) else "::".join(parts): path for parts, path in modules.items()}


def resolve(modules, root, module, path):
    """Returns the modules to which a path in `module` may lead and the name that it imports from them. Paths into other crates lead to no module."""
    base, words = module.split("::"), path.split("::")
    if words[0] == "crate":
        base, words = [], words[1:]
    elif words[0] == "self":
        words = words[1:]
    elif words[0] == "super":
        while words and words[0] == "super":
            base, words = base[:-1], words[1:]
    elif f"{module}::{words[0]}" not in modules:
        return [], ""
    words = base + words
    for length in range(len(words), 0, -1):
        if "::".join(words[:length]) in modules:
            return ["::".join(words[:length])], [*words, "all"][length]
    if not words:
        return list(modules), "all"
    # The root re-exports names that it lists, or everything in a module.
    handed_on = [path.removeprefix("crate::") for path in sorted(root)]
    named = [path.rpartition("::")[0] for path in handed_on if path.split("::")[-1] == words[0]]
    return [other for other in named[:1] or handed_on if other in modules], words[0]


def arrows(modules, root):
    """Returns module → imported module → imported names."""
    found = {}
    for module, paths in modules.items():
        to = found[module] = {}
        for path in sorted(paths):
            others, item = resolve(modules, root, module, path)
            for other in others:
                if other != module:
                    to.setdefault(other, []).append(item)
    return found


def reached(to, start):
    """Returns all modules that a module imports, directly or indirectly."""
    found, left = set(), [start]
    while left:
        new = to[left.pop()].keys() - found
        found |= new
        left += new
    return found


def largest_circle(to):
    """Returns the largest set of modules that all import one another."""
    leads = {module: reached(to, module) for module in to}
    return max(({other for other in leads[module] if module in leads[other]} for module in to), key=len, default=set())


def problems_of(modules, root, layers, only):
    """Yields the problems with the imports of a crate."""
    to = arrows(modules, root)
    rank = {module: number for number, layer in enumerate(layers) for module in layer}
    tops = {module.split("::")[0] for module in modules}
    if layers:
        yield from (f"`{module}` is in no layer" for module in sorted(tops - rank.keys()))
        yield from (f"there is no `{module}`" for module in sorted(rank.keys() - tops))
    for module in modules:
        for other, items in to[module].items():
            if rank.get(module.split("::")[0], 0) < rank.get(other.split("::")[0], 0):
                yield f"`{module}` imports {', '.join(items)} of `{other}`, which is above it"
        for path in sorted(modules[module]):
            allowed = [one for one in only if one.split("::")[0] == path.split("::")[0]]
            if allowed and not any(f"{path}::".startswith(f"{one}::") for one in allowed):
                yield f"`{module}` imports {path}"
    circle = largest_circle(to)
    if len(circle) > MOST_IN_CIRCLE:
        yield f"expected at most {MOST_IN_CIRCLE} files in a circle, found {len(circle)}: {', '.join(sorted(circle))}"


# Imports in a module `low`, with the problem that the check must report.
EXAMPLES = {
    "use crate::high::A;": "`low` imports A of `high`, which is above it",
    "use super::{low::B, high::{self as h, A}};": "`low` imports all, A of `high`, which is above it",
    "pub(crate) use crate::high::*;": "`low` imports all of `high`, which is above it",
    "use crate::A; use crate::Z;": "`low` imports A, Z of `high`, which is above it",
    "use crate::*;": "`low` imports all of `high`, which is above it",
    "fn f<'a>(of: &'a str) { high::g('\"'); crate::high::g(of) }": "`low` imports g of `high`, which is above it",
    "fn f() { elsewhere::g(); trace_store::a::g() }": "`low` imports trace_store::a::g",
    "use trace_store::{a, b::B};": "`low` imports trace_store::a",
    "// use crate::high::A;\n#[cfg(test)] mod tests { use crate::high::A; }": None,
    "use trace_store::b::B; use std::io; const S: &str = \"crate::high::A\";": None,
}


def misjudged():
    """Yields the examples that this check misjudges."""
    for text, expected in EXAMPLES.items():
        modules, root = {"low": imported(text), "high": set()}, imported("pub use high::*; pub use sa_format::Y;")
        found = list(problems_of(modules, root, [["low"], ["high"]], ["trace_store::b"]))
        if found != [expected] * bool(expected):
            yield f"{text}: expected {expected}, found {found}"


def problems(_show=False):
    global _files
    yield from misjudged()
    crates = CRATE.findall(PAGE.read_text())
    if not crates:
        yield f"{pages.name(PAGE)}: expected the layers of the crates"
    for folder, lines in crates:
        lines = [line.split("#")[0].split() for line in lines.splitlines()]
        layers = [words[1:] for words in lines if words[:1] == ["layer"]]
        only = [words[1] for words in lines if words[:1] == ["only"]]
        found = sources(pages.ROOT / folder)
        _files += len(found)
        modules = {module: imported(path.read_text()) for module, path in sorted(found.items())}
        root = modules.pop("", set())
        yield from (f"{folder}: {problem}" for problem in problems_of(modules, root, layers, only))
        for parent, count in Counter(path.parent for path in found.values()).items():
            if count > MOST_IN_FOLDER:
                yield f"{pages.name(parent)}: expected at most {MOST_IN_FOLDER} files in a folder, found {count}"
