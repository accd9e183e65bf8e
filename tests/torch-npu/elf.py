"""The dependencies and symbols of a shared library, read from its dynamic section."""

from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.elffile import ELFFile


@dataclass
class Library:
    """The dynamic symbols of one file."""

    name: str
    needed: list[str] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)
    #: Undefined names, each with the library and version to which it is bound, or None.
    undefined: dict[str, tuple[str, str] | None] = field(default_factory=dict)


def read(path: Path) -> Library:
    library = Library(path.name)
    with path.open("rb") as file:
        elf = ELFFile(file)
        dynamic = elf.get_section_by_name(".dynamic")
        library.needed = [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")] if dynamic else []
        symbols = elf.get_section_by_name(".dynsym")
        if symbols is None:
            return library
        versions = _versions(elf)
        for index, symbol in enumerate(symbols.iter_symbols()):
            bind = symbol["st_info"]["bind"]
            if not symbol.name or bind == "STB_LOCAL":
                continue
            if symbol["st_shndx"] != "SHN_UNDEF":
                library.defined.add(symbol.name)
            elif bind != "STB_WEAK":
                library.undefined[symbol.name] = versions.get(index)
    return library


def _versions(elf: ELFFile) -> dict[int, tuple[str, str]]:
    """Returns library and version of each symbol that is bound to one, by the symbol's index."""
    numbers, needs = elf.get_section_by_name(".gnu.version"), elf.get_section_by_name(".gnu.version_r")
    if numbers is None or needs is None:
        return {}
    names = {entry["vna_other"]: (need.name, entry.name) for need, entries in needs.iter_versions() for entry in entries}
    bound = ((index, number["ndx"]) for index, number in enumerate(numbers.iter_symbols()))
    return {index: names[number] for index, number in bound if number in names}


def renamed(path: Path, name: str) -> bytes:
    """Returns the content of the library with another SONAME, which must not be longer."""
    content = bytearray(path.read_bytes())
    with path.open("rb") as file:
        elf = ELFFile(file)
        (tag,) = elf.get_section_by_name(".dynamic").iter_tags("DT_SONAME")
        start = elf.get_section_by_name(".dynstr")["sh_offset"] + tag.entry.d_val
    room = len(tag.soname)
    content[start : start + room] = name.encode().ljust(room, b"\0")
    return bytes(content)
