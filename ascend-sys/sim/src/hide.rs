//! A copy of a library without some of its functions: how a CANN that lacks them looks to `dlsym`.

use std::io;
use std::ops::Range;
use std::path::Path;

const DYNAMIC_SYMBOLS: usize = 11;
const SYMBOL_BYTES: usize = 24;

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
    let (symbols, names) = dynamic_symbols(library)?;
    let has_name = |symbol: &usize| {
        let start = names.start + number(library, *symbol, 4)?;
        let found = library.get(start..start + name.len() + 1)?;
        Some(found.strip_suffix(b"\0")? == name.as_bytes())
    };
    let mut candidates = symbols.step_by(SYMBOL_BYTES);
    let symbol = candidates.find(|symbol| has_name(symbol) == Some(true))?;
    // Its section (2 bytes) and its value (8 bytes).
    library.get_mut(symbol + 6..symbol + 16)?.fill(0);
    Some(())
}

/// Returns the ranges of the dynamic symbols in the file, and of their names.
fn dynamic_symbols(library: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    library.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let (table, size, count) = (
        number(library, 0x28, 8)?,
        number(library, 0x3a, 2)?,
        number(library, 0x3c, 2)?,
    );
    let section = |index: usize| table + index * size;
    let content = |header: usize| {
        let start = number(library, header + 0x18, 8)?;
        Some(start..start + number(library, header + 0x20, 8)?)
    };
    let mut sections = (0..count).map(section);
    let symbols =
        sections.find(|header| number(library, header + 4, 4) == Some(DYNAMIC_SYMBOLS))?;
    let names = section(number(library, symbols + 0x28, 4)?);
    Some((content(symbols)?, content(names)?))
}

/// Reads a little-endian number of this many bytes.
fn number(library: &[u8], at: usize, bytes: usize) -> Option<usize> {
    let bytes = library.get(at..at.checked_add(bytes)?)?;
    let number = bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    usize::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_library_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for content in [&b""[..], b"\x7fELF\x02\x01", &[0xff; 4096]] {
            std::fs::write(&from, content).unwrap();
            let error = hide(&from, &to, &["aclInit"]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
