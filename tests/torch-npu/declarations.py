"""The declarations of ascend-sys: functions, types, structs and constants, read from its tables and written in C++."""

import re
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "ascend-sys" / "src"

PRIMITIVE = {
    "()": "void", "c_void": "void", "c_char": "char", "c_int": "int", "usize": "size_t", "f32": "float",
    "u8": "uint8_t", "i32": "int32_t", "u32": "uint32_t", "i64": "int64_t", "u64": "uint64_t",
}

FUNCTION = re.compile(r"^ +fn (\w+)\((.*)\) -> (.+);$", re.MULTILINE)
ALIAS = re.compile(r"^    (\w+) = (.+);$", re.MULTILINE)
CONSTANT = re.compile(r"^ +(\w+) = (\w+)(?:;|, \")", re.MULTILINE)
STRUCT = re.compile(r"#\[repr\(C(?:, align\((\d+)\))?\)\]\n(?:#[^\n]*\n)*pub struct (\w+) \{(.*?)\n\}", re.DOTALL)
FIELD = re.compile(r"^    pub (\w+): (.+),$", re.MULTILINE)
CALLBACK = re.compile(r"Option<unsafe extern \"C\" fn\((.*)\)(?: -> (.+))?>")


@dataclass(frozen=True)
class Declarations:
    #: Definitions by type name, in an order in which each type is defined before it is used.
    types: dict[str, str]
    structs: dict[str, list[str]]
    functions: dict[str, str]
    constants: dict[str, int]


def read(source: Path = SOURCE) -> Declarations:
    tables = "".join(path.read_text() for path in sorted((source / "table").glob("*.rs")))
    types, layout = (source / "types.rs").read_text(), (source / "types" / "layout.rs").read_text()
    values = (source / "types" / "constants.rs").read_text() + (source / "codes.rs").read_text()
    structs = {name: (align, FIELD.findall(body)) for align, name, body in STRUCT.findall(layout)}
    return Declarations(
        types={name: f"using {name} = {_alias(rust)};" for name, rust in ALIAS.findall(types)}
        | {name: f"struct {f'alignas({align}) ' if align else ''}{name} {{ {' '.join(_field(*field) for field in fields)} }};" for name, (align, fields) in structs.items()},
        structs={name: [field for field, _ in fields] for name, (_, fields) in structs.items()},
        functions={name: f"{_type(result)} ({', '.join(_arguments(arguments))})" for name, arguments, result in FUNCTION.findall(tables)},
        constants={name: int(value, 0) for name, value in CONSTANT.findall(values)},
    )


def _type(rust: str) -> str:
    for pointer, suffix in (("*mut ", " *"), ("*const ", " const *")):
        if rust.startswith(pointer):
            return _type(rust.removeprefix(pointer)) + suffix
    return PRIMITIVE.get(rust, rust)


def _arguments(rust: str) -> list[str]:
    return [_type(argument.split(": ", 1)[1]) for argument in rust.split(", ") if argument]


def _alias(rust: str) -> str:
    callback = CALLBACK.fullmatch(rust)
    return f"{_type(callback[2] or '()')} (*)({', '.join(_arguments(callback[1]))})" if callback else _type(rust)


def _field(name: str, rust: str) -> str:
    array = re.fullmatch(r"\[(\w+); (\d+)\]", rust)
    return f"{_type(array[1])} {name}[{array[2]}];" if array else f"{_type(rust)} {name};"
