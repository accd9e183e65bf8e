"""Stand-ins for the libraries that torch and torch_npu are linked with and that this machine does not have.

usage: stubs.py SITE_PACKAGES SIMULATOR OUT [FOLDER...]

FOLDER has libraries of another wheel. Reads which libraries the wheels need (DT_NEEDED) and which names they leave undefined. For each library that is neither in the wheels nor on the machine it writes
C of one function a name, which returns 0, and compiles it into OUT, a folder of its own. The simulated runtime takes the names of those that it stands in for.
"""

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import elf

#: What the simulated runtime is called: libascendcl.so is one that needs it, as with the vendor's.
RUNTIME = "libacl_rt.so"

#: The other libraries whose place it takes: also those that are only opened by name.
SIMULATED = ("libruntime.so", "libascend_hal.so", "libms_tools_ext.so", "libmsprofiler.so", "libmspti.so")

#: A folder in OUT that is laid out as CANN is installed: torch_npu passes marks on only where ASCEND_HOME_PATH names one.
CANN = "cann"

#: C of our own for a library, beside what is generated for it.
WRITTEN = Path(__file__).parent / "libraries"

#: The functions that such C defines.
FUNCTION = re.compile(r"^\w+ \*?(\w+)\(.*\{", re.MULTILINE)

#: The first of the two functions of an operator, in a library that looks it up. Names lie side by side: the NUL between two belongs to both.
OPERATOR = re.compile(rb"(?<=\0)(aclnn\w+)GetWorkspaceSize(?=\0)")

Symbols = dict[str, str | None]  # a name and its version


def wheel_libraries(folders: list[Path]) -> list[Path]:
    return [path for folder in folders for path in sorted(folder.glob("*.so*"))]


def operators(libraries: list[Path]) -> list[str]:
    """The operators that the wheels look up by name."""
    return sorted({name.decode() for path in libraries for name in OPERATOR.findall(path.read_bytes())})


def of_the_machine(name: str) -> elf.Library | None:
    """A library that the loader finds by itself."""
    for folder in map(Path, ("/lib64", "/usr/lib64", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu")):
        if (folder / name).exists():
            return elf.read(folder / name)
    return None


def missing(libraries: list[elf.Library], simulator: elf.Library) -> dict[str, Symbols]:
    """The symbols that each missing library must have."""
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
    """Where a symbol has no version the loader asks all libraries, so that any of them will do: the first that this one needs."""
    if bound and bound[0] in absent:
        absent[bound[0]][symbol] = bound[1]
        return
    needed = [name for name in library.needed if name in absent] or sorted(absent)
    if not any(symbol in symbols for symbols in absent.values()):
        absent[needed[0]][symbol] = None


#: What makes an operation of ATB: one that returned without making it would leave its caller a wild address.
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
    """Compiles what is generated and what is written for a library."""
    written = WRITTEN / f"{name}.c"
    code, script = out / "generated" / f"{name}.c", out / "generated" / f"{name}.map"
    code.write_text(source(symbols))
    script.write_text(version_script(symbols))
    options = [f"-Wl,--version-script={script}"] if script.stat().st_size else []
    if written.exists():
        options += ["-Wl,--no-as-needed", str(out / RUNTIME)]
    compile_library(out, name, [code, *([written] if written.exists() else [])], *options)


def write_cann(out: Path) -> None:
    """Hard links, since torch_npu looks at the real names of the libraries."""
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
