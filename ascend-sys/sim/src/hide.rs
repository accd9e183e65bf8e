//! A copy of a library without some of its functions: how a CANN that lacks them looks to `dlsym`.

use object::LittleEndian;
use object::elf::{FileHeader64, SHT_DYNSYM, Sym64};
use object::read::elf::{FileHeader as _, SectionHeader as _};
use std::io;
use std::path::Path;

/// Copies the library `from` to `to`, with the functions of these names made undefined.
///
/// # Errors
///
/// The error of the file system; `InvalidData` if `from` is no 64-bit ELF library, or has no function of one of the names.
pub fn hide(from: &Path, to: &Path, names: &[&str]) -> io::Result<()> {
    let mut library = std::fs::read(from)?;
    for name in names {
        hide_one(&mut library, name).ok_or_else(|| {
            let text = format!("{}: expected an ELF library with {name}", from.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?;
    }
    std::fs::write(to, library)
}

/// Makes a symbol undefined: the loader passes over it, whatever the hash table says.
fn hide_one(library: &mut [u8], name: &str) -> Option<()> {
    let data = &*library;
    let header = FileHeader64::<LittleEndian>::parse(data).ok()?;
    let sections = header.sections(LittleEndian, data).ok()?;
    let symbols = sections.symbols(LittleEndian, data, SHT_DYNSYM).ok()?;
    let has_name = |symbol: &Sym64<LittleEndian>| {
        symbols.symbol_name(LittleEndian, symbol) == Ok(name.as_bytes())
    };
    let index = symbols.iter().position(has_name)?;
    let table = sections.section(symbols.section()).ok()?;
    let start = usize::try_from(table.sh_offset(LittleEndian)).ok()?;
    let symbol = start + index * size_of::<Sym64<LittleEndian>>();
    // Its section (2 bytes) and its value (8 bytes).
    library.get_mut(symbol + 6..symbol + 16)?.fill(0);
    Some(())
}
