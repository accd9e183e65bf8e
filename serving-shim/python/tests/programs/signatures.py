"""Keeps the signatures of SGLang's functions and the fields of its classes that the plugin hooks or the fakes define, as read in SGLang's wheels.

    python tests/programs/signatures.py WHEEL…            compares signatures.json with these wheels
    python tests/programs/signatures.py --write WHEEL…    writes signatures.json from these wheels, given from the oldest to the newest

Only reads the wheels' sources, and imports or runs nothing of SGLang. For each name, signatures.json contains the versions in which the signature changed: it holds from
that version on. `null` means that the name does not exist there. Annotations are left out.
"""

import ast
import json
import sys
from pathlib import Path

from sa_profile._hooks.sources import FUNCTION, Sources
from sa_profile.sglang import hook_points

TESTS = Path(__file__).parents[1] / "sglang"
FAKE, FILE = TESTS / "fake", TESTS / "signatures.json"
# Modules that SGLang does not have.
OWN_MODULES = {"sglang.fake_sockets"}


def signature(node):
    """Returns the parameters of a function as source text, without annotations."""
    arguments = node.args
    for one in (*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg):
        if one is not None:
            one.annotation = None
    return f"({ast.unparse(arguments)})"


def members(sources, module, owner):
    """Returns the functions and fields of a class, or the functions of a module, by name: a signature, the default of a field, or `""` for a field without one."""
    found = {}
    for node in sources.body(module, owner):
        if isinstance(node, FUNCTION):
            found[node.name] = signature(node)
        elif owner is not None and isinstance(node, ast.AnnAssign):
            found[node.target.id] = "" if node.value is None else ast.unparse(node.value)
    return found


def fake_owners():
    """Yields (module, class or None) of the fakes."""
    fake = Sources(FAKE)
    for path in sorted((FAKE / "sglang").rglob("*.py")):
        module = ".".join(path.relative_to(FAKE).with_suffix("").parts).removesuffix(".__init__")
        if module not in OWN_MODULES:
            yield module, None
            yield from ((module, node.name) for node in fake.body(module, None) if isinstance(node, ast.ClassDef))


def names():
    """Returns the names to store, as pairs of an owner and a name: the hook points, and what the fakes define."""
    fake = Sources(FAKE)
    found = {(owner, name) for owner in fake_owners() for name in members(fake, *owner)}
    return found | {(tuple(owner), name) for *owner, name in hook_points.POINTS + hook_points.OPTIONAL}


def changes(versions, owner, name):
    """Returns the signatures of a name by the versions in which they changed."""
    found, before = {}, None
    for version in versions:
        now = members(version, *owner).get(name)
        if now != before:
            found[version.label], before = now, now
    return found


def read(wheels):
    """Returns the contents of signatures.json."""
    versions = [Sources(wheel) for wheel in wheels]
    found = {key(owner, name): changes(versions, owner, name) for owner, name in names()}
    return {"versions": [one.label for one in versions], "names": {name: found[name] for name in sorted(found) if found[name]}}


def key(owner, name):
    """Returns the key of a name in signatures.json, `module:Class.name` or `module:name`."""
    module, cls = owner
    return f"{module}:{name if cls is None else f'{cls}.{name}'}"


def current(stored, owner, name, label):
    """Returns the stored signature of a name in one version, or `None` if that version does not have the name."""
    versions = stored["versions"]
    found = stored["names"].get(key(owner, name), {})
    return next((found[version] for version in reversed(versions[: versions.index(label) + 1]) if version in found), None)


def differences(stored, wheels):
    """Yields a line for each difference between signatures.json and wheels of some of its versions."""
    for version in map(Sources, wheels):
        for owner, name in names():
            expected, found = current(stored, owner, name, version.label), members(version, *owner).get(name)
            if expected != found:
                yield f"{version.label}: {key(owner, name)}: {found}, not {expected}"


def main(arguments):
    """Compares or writes signatures.json and returns the exit code."""
    wheels = [Path(one) for one in arguments if one != "--write"]
    if not wheels:
        print(__doc__, file=sys.stderr)
        return 2
    if "--write" in arguments:
        table = read(wheels)
        lines = [f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in table["names"].items()]
        FILE.write_text('{\n "versions": %s,\n "names": {\n%s\n }\n}\n' % (json.dumps(table["versions"]), ",\n".join(lines)))
        return 0
    found = list(differences(json.loads(FILE.read_text()), wheels))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
