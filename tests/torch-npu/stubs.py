"""Creates replacements for the libraries that torch and torch_npu are linked with and that this machine lacks.

usage: stubs.py SITE_PACKAGES SIMULATOR OUT [FOLDER...]

FOLDER contains libraries of another wheel. Reads which libraries the wheels need (DT_NEEDED) and which names they leave undefined. For each library that is neither in the wheels nor on the machine,
writes C code with one function per name, which returns 0, and compiles it into the folder OUT. The simulated runtime gets the names of the libraries that it replaces.
"""

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import elf

#: Name of the simulated runtime. libascendcl.so depends on it, as with the vendor's libraries.
RUNTIME = "libacl_rt.so"

#: Other libraries that it replaces, including the ones that are only opened by name.
SIMULATED = ("libruntime.so", "libascend_hal.so", "libms_tools_ext.so", "libmsprofiler.so", "libmspti.so")

#: Folder in OUT with the layout of a CANN installation. torch_npu passes marks on only if ASCEND_HOME_PATH names one.
CANN = "cann"

#: Our own C code for a library, in addition to the generated code.
WRITTEN = Path(__file__).parent / "libraries"

#: Pattern of the functions that this C code defines.
FUNCTION = re.compile(r"^\w+ \*?(\w+)\(.*\{", re.MULTILINE)

#: Pattern of an operator's first function in a library that looks it up. Two adjacent names share the NUL between them.
OPERATOR = re.compile(rb"(?<=\0)(aclnn\w+)GetWorkspaceSize(?=\0)")

Symbols = dict[str, str | None]  # name → version


def wheel_libraries(folders: list[Path]) -> list[Path]:
    return [path for folder in folders for path in sorted(folder.glob("*.so*"))]


def operators(libraries: list[Path]) -> list[str]:
    """Returns the operators that the wheels look up by name."""
    return sorted({name.decode() for path in libraries for name in OPERATOR.findall(path.read_bytes())})


def of_the_machine(name: str) -> elf.Library | None:
    """Returns a library that the loader finds by itself."""
    for folder in map(Path, ("/lib64", "/usr/lib64", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu")):
        if (folder / name).exists():
            return elf.read(folder / name)
    return None


def missing(libraries: list[elf.Library], simulator: elf.Library) -> dict[str, Symbols]:
    """Returns the symbols that each missing library must have."""
    present = {library.name for library in libraries} | {RUNTIME, *SIMULATED}
    found = {name: of_the_machine(name) for library in libraries for name in library.needed if name not in present}
    system = [library for library in found.values() if library]
    written = {code.stem: set(FUNCTION.findall(code.read_text())) for code in WRITTEN.glob("*.c")}
    absent: dict[str, Symbols] = {name: {} for name, library in found.items() if library is None} | {name: {} for name in written}
    defined = set().union(*(library.defined for library in [*libraries, *system, simulator]), *written.values())
    for library in libraries:
        for symbol, bound in library.undefined.items():
            if symbol not in defined and not symbol.startswith(("Py", "_Py")):
                _place(absent, library, symbol, bound)
    return absent


def _place(absent: dict[str, Symbols], library: elf.Library, symbol: str, bound: tuple[str, str] | None) -> None:
    """Returns the library for a symbol without a version: the first missing one that this library needs. The loader searches all libraries, so any of them would do."""
    if bound and bound[0] in absent:
        absent[bound[0]][symbol] = bound[1]
        return
    needed = [name for name in library.needed if name in absent] or sorted(absent)
    if not any(symbol in symbols for symbols in absent.values()):
        absent[needed[0]][symbol] = None


#: Pattern of the functions that create an operation of ATB. An empty replacement would leave its caller with an uninitialised pointer.
CREATES = "_ZN3atb15CreateOperation"


def source(symbols: Symbols) -> str:
    if unwritten := sorted(name for name in symbols if name.startswith(CREATES)):
        raise SystemExit(f"stubs: libraries/libatb.so.c has to define {', '.join(unwritten)}")
    return "".join(f"long {name}(void) {{ return 0; }}\n" for name in sorted(symbols))


def version_script(symbols: Symbols) -> str:
    by_version = defaultdict(list)
    for name, version in symbols.items():
        if version:
            by_version[version].append(f"{name};")
    return "".join(f"{version} {{ global: {' '.join(names)} }};\n" for version, names in sorted(by_version.items()))


def compile_library(out: Path, name: str, codes: list[Path], *options: str) -> None:
    command = ["gcc", "-shared", "-fPIC", "-O1", "-w", "-fno-builtin", f"-I{out / 'generated'}", f"-Wl,-soname,{name}", "-o", str(out / name)]
    subprocess.run([*command, *map(str, codes), *options], check=True)


def write_library(out: Path, name: str, symbols: Symbols) -> None:
    """Compiles the generated code and our own code for a library."""
    written = WRITTEN / f"{name}.c"
    code, script = out / "generated" / f"{name}.c", out / "generated" / f"{name}.map"
    code.write_text(source(symbols))
    script.write_text(version_script(symbols))
    options = [f"-Wl,--version-script={script}"] if script.stat().st_size else []
    if written.exists():
        options += ["-Wl,--no-as-needed", str(out / RUNTIME)]
    compile_library(out, name, [code, *([written] if written.exists() else [])], *options)


def write_cann(out: Path) -> None:
    """Creates hard links, because torch_npu reads the real names of the libraries."""
    for folder in ("lib64", "opp", "runtime", "compiler"):
        (out / CANN / folder).mkdir(parents=True)
    for name in ("libms_tools_ext.so", "libmspti.so"):
        (out / CANN / "lib64" / name).hardlink_to(out / RUNTIME)


def main() -> None:
    site, simulator, out, *others = (Path(argument).resolve() for argument in sys.argv[1:])
    shutil.rmtree(out, ignore_errors=True)
    (out / "generated").mkdir(parents=True)
    (out / RUNTIME).write_bytes(elf.renamed(simulator, RUNTIME))
    for name in SIMULATED:
        (out / name).symlink_to(RUNTIME)
    write_cann(out)
    libraries = wheel_libraries([*(site / folder for folder in ("torch/lib", "torch", "torch_npu/lib", "torch_npu")), *others])
    looked_up = operators(libraries)
    (out / "generated" / "operators.h").write_text("".join(f"OPERATOR({name})\n" for name in looked_up))
    absent = missing([elf.read(path) for path in libraries], elf.read(simulator))
    for name, symbols in absent.items():
        write_library(out, name, symbols)
    print(f"stubs: {len(absent)} libraries with {sum(map(len, absent.values()))} generated functions, {len(looked_up)} operators")


if __name__ == "__main__":
    main()
