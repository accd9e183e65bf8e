"""Compares the declarations of ascend-sys with the vendor's headers in a wheel of torch_npu. Nothing of these headers is copied into this repository.

usage: abi.py SITE_PACKAGES FUNCTIONS STRUCTS CONSTANTS

The numbers say how many of our declarations the headers contain. If they differ, the headers were not understood or the tables have changed.

Writes a static_assert in C++ for each function, struct, field and constant that the headers also declare, and compiles them. Counts the others.
Exit status: 0 if all are equal, 1 if some differ; stderr names them.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import declarations

HEADERS = ("acl/acl.h", "acl/acl_rt.h", "acl/acl_mdl.h", "acl/acl_op.h", "acl/acl_op_compiler.h", "acl/acl_prof.h", "hccl/hccl.h", "hccl/hccl_types.h")
#: Functions of the rt level that torch_npu itself calls.
RT = "torch_npu/csrc/inductor/mlir/hacl_rt.h"

#: Our field names that the vendor spells differently.
FIELDS = {
    "aclrtBinaryLoadOption.kind": "type",
    "aclrtStreamAttrValue.words": "reserve",
}

KINDS = ("functions", "structs", "constants")

HERE = Path(__file__).parent


def checks(ours: declarations.Declarations, text: str) -> dict[str, list[str]]:
    """Returns the assertions about everything that the headers declare."""
    named = set(re.findall(r"\w+", text))
    functions = [f'static_assert(Same<ours::{name}_, decltype(::{name})>::value, "function {name}");' for name in ours.functions if name in named]
    structs = [_struct(name, fields) for name, fields in ours.structs.items() if name in named]
    constants = [f'static_assert((long long)({name}) == {value}, "constant {name} is not {value}");' for name, value in ours.constants.items() if name in named]
    return {"functions": functions, "structs": structs, "constants": constants}


def _struct(name: str, fields: list[str]) -> str:
    sizes = f'static_assert(sizeof(ours::{name}) == sizeof(::{name}) && alignof(ours::{name}) == alignof(::{name}), "size of {name}");'
    offsets = [f'static_assert(offsetof(ours::{name}, {field}) == offsetof(::{name}, {_theirs(name, field)}), "field {name}.{field}");' for field in fields]
    return "\n".join([sizes, *offsets])


def _theirs(struct: str, field: str) -> str:
    head, *rest = field.split("_")
    return FIELDS.get(f"{struct}.{field}", head + "".join(word.capitalize() for word in rest))


def program(ours: declarations.Declarations, headers: list[str], asserted: dict[str, list[str]]) -> str:
    include = [f'#include "{header}"' for header in headers]
    functions = [f"using {name}_ = {signature};" for name, signature in ours.functions.items()]
    own = ["namespace ours {", *ours.types.values(), *functions, "}"]
    return "\n".join([*include, '#include "same.hpp"', *own, *(line for lines in asserted.values() for line in lines)]) + "\n"


def compile_errors(source: str, folders: list[Path]) -> list[str]:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "abi.cpp"
        path.write_text(source)
        # The headers include each other in quotes without a folder, or by their path in the wheel.
        command = ["g++", "-std=c++17", "-fsyntax-only", "-w", f"-I{HERE}", *(f"-I{folder}" for folder in folders), str(path)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    found = re.findall(r"error: (.*)", done.stderr)
    return found or ([done.stderr] if done.returncode else [])


def main() -> int:
    include = Path(sys.argv[1]) / "torch_npu" / "include"
    folders = [include, include / "third_party" / "acl" / "inc", include / "third_party" / "hccl" / "inc"]
    headers = [header for header in (*HEADERS, RT) if any((folder / header).exists() for folder in folders)]
    read = [*(path for folder in folders[1:] for path in sorted(folder.glob("*/**/*.h"))), *include.glob(RT)]
    text = "".join(path.read_text(errors="replace") for path in read)
    ours = declarations.read()
    asserted = checks(ours, text)
    errors = compile_errors(program(ours, headers, asserted), folders)
    expected = dict(zip(KINDS, map(int, sys.argv[2:])))
    errors += [f"{len(asserted[kind])} {kind} could be compared, {count} were expected (file versions)" for kind, count in expected.items() if len(asserted[kind]) != count]
    for error in errors[:40]:
        print(f"torch-npu: abi: {error}", file=sys.stderr)
    counts = ", ".join(f"{len(asserted[kind])} of {len(getattr(ours, kind))} {kind}" for kind in asserted)
    print(f"torch-npu: abi: compared {counts}; {len(errors)} differ")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
