//! Copies a library without some of its functions, so that `dlsym` sees an older CANN that does not have them.

use object::LittleEndian;
use object::elf::{FileHeader64, SHT_DYNSYM, Sym64};
use object::read::elf::{FileHeader as _, SectionHeader as _};
use std::io;
use std::path::Path;

/// Copies the library `from` to `to` and makes the functions with these names undefined.
///
/// # Errors
///
/// A file system error, or `InvalidData` if `from` is not a 64-bit ELF library or does not have one of the functions.
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

/// Makes a symbol undefined. The loader ignores it, although it is still in the hash table.
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
    // Clear its section index (2 bytes) and its value (8 bytes).
    library.get_mut(symbol + 6..symbol + 16)?.fill(0);
    Some(())
}
