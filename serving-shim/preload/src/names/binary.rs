//! The name of the kernels in a binary that is registered as a whole, as ATB, AscendC and pypto do: its launches say the binary and a tiling key alone.
//!
//! The symbol of a kernel is its name, its tiling key, and perhaps which cores it is for: `PagedAttention_160_mix_aic`. By this key the runtime finds a kernel,
//! too. The binary comes from the host: nothing in it is taken for granted.

use ascend_sys::types::rtDevBinary_t;
use object::LittleEndian;
use object::elf::{FileHeader64, SHT_SYMTAB, STT_FUNC};
use object::read::elf::{FileHeader as _, Sym as _};

/// The name that all kernels of a binary have, if it is one.
///
/// # Safety
/// The record is null or says where a binary is, which can be read as long as the result is used.
pub(super) unsafe fn name_of<'a>(binary: *const rtDevBinary_t) -> Option<&'a str> {
    // SAFETY: as this function demands.
    let binary = unsafe { binary.as_ref() }?;
    if binary.data.is_null() {
        return None;
    }
    let length = isize::try_from(binary.length).ok()?.cast_unsigned();
    // SAFETY: as above; no longer than memory can be.
    name_in(unsafe { std::slice::from_raw_parts(binary.data.cast::<u8>(), length) })
}

fn name_in(elf: &[u8]) -> Option<&str> {
    let header = FileHeader64::<LittleEndian>::parse(elf).ok()?;
    let sections = header.sections(LittleEndian, elf).ok()?;
    let symbols = sections.symbols(LittleEndian, elf, SHT_SYMTAB).ok()?;
    let mut kernels = symbols
        .iter()
        .filter(|symbol| symbol.st_type() == STT_FUNC && !symbol.is_local())
        .filter(|symbol| !symbol.is_undefined(LittleEndian))
        .filter_map(|symbol| symbols.symbol_name(LittleEndian, symbol).ok())
        .filter_map(kernel);
    let first = kernels.next()?;
    let is_one = kernels.all(|name| name == first);
    is_one.then(|| std::str::from_utf8(first).ok())?
}

/// A kernel's name without its tiling key; nothing else has one.
fn kernel(symbol: &[u8]) -> Option<&[u8]> {
    let cores = [&b"_mix_aic"[..], b"_mix_aiv"];
    let keyed = cores.iter().find_map(|cores| symbol.strip_suffix(*cores));
    let keyed = keyed.unwrap_or(symbol);
    let end = keyed.iter().rposition(|byte| *byte == b'_')?;
    let (name, key) = (&keyed[..end], &keyed[end + 1..]);
    let is_key = !key.is_empty() && key.iter().all(u8::is_ascii_digit);
    (is_key && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::write::{Object, StandardSection, Symbol, SymbolSection};
    use object::{Architecture, BinaryFormat, Endianness, SymbolFlags, SymbolKind, SymbolScope};

    /// A binary whose symbols have these names.
    fn kernels(names: &[&str]) -> Vec<u8> {
        let mut object = Object::new(BinaryFormat::Elf, Architecture::Aarch64, Endianness::Little);
        let text = object.section_id(StandardSection::Text);
        for name in names {
            object.add_symbol(Symbol {
                name: name.as_bytes().to_vec(),
                value: 0,
                size: 8,
                kind: SymbolKind::Text,
                scope: SymbolScope::Linkage,
                weak: false,
                section: SymbolSection::Section(text),
                flags: SymbolFlags::None,
            });
        }
        object.write().unwrap()
    }

    #[test]
    fn kernels_of_one_name_give_it() {
        for (names, expected) in [
            (
                &["Add_1", "Add_20", "Add_20_mix_aiv", "helper"][..],
                Some("Add"),
            ),
            (&["Mul_0123_7_mix_aic"], Some("Mul_0123")),
            (&["Add_1", "Mul_1"], None),
            (&["helper", "_1", "Add_", "Add_1x"], None),
            (&[], None),
        ] {
            assert_eq!(name_in(&kernels(names)), expected, "{names:?}");
        }
    }

    #[test]
    fn a_binary_that_is_cut_or_flipped_anywhere_does_no_harm() {
        let mut elf = kernels(&["Add_1", "Add_2_mix_aic"]);
        for at in 0..elf.len() {
            assert_eq!(name_in(&elf[..at]), None, "{at}");
            let whole = elf[at];
            for byte in [0, 0x7f, 0xff] {
                elf[at] = byte;
                let _any = name_in(&elf);
            }
            elf[at] = whole;
        }
    }
}
