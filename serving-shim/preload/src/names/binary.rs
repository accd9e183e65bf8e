//! The name of the kernels in a binary that is registered as a whole, as ATB, AscendC and pypto do. Launches then name only the binary and a tiling key.
//!
//! A kernel's symbol consists of its name, its tiling key, and sometimes the kind of cores: `PagedAttention_160_mix_aic`. The runtime also finds kernels by
//! this key. The binary comes from the host and may be damaged.

use ascend_sys::types::rtDevBinary_t;
use object::LittleEndian;
use object::elf::{FileHeader64, SHT_SYMTAB, STT_FUNC};
use object::read::elf::{FileHeader as _, Sym as _};

/// Returns the name of the kernels in a registered binary, if all of them have the same name.
///
/// # Safety
/// `binary` is null, or points to a record whose binary is readable as long as the result is used.
pub(super) unsafe fn kernel_name<'a>(binary: *const rtDevBinary_t) -> Option<&'a str> {
    // SAFETY: guaranteed by the caller.
    let binary = unsafe { binary.as_ref() }?;
    if binary.data.is_null() {
        return None;
    }
    let length = isize::try_from(binary.length).ok()?.cast_unsigned();
    // SAFETY: as above, and the length fits into `isize`.
    common_name(unsafe { std::slice::from_raw_parts(binary.data.cast::<u8>(), length) })
}

fn common_name(elf: &[u8]) -> Option<&str> {
    let header = FileHeader64::<LittleEndian>::parse(elf).ok()?;
    let sections = header.sections(LittleEndian, elf).ok()?;
    let symbols = sections.symbols(LittleEndian, elf, SHT_SYMTAB).ok()?;
    let mut kernels = symbols
        .iter()
        .filter(|symbol| symbol.st_type() == STT_FUNC && !symbol.is_local())
        .filter(|symbol| !symbol.is_undefined(LittleEndian))
        .filter_map(|symbol| symbols.symbol_name(LittleEndian, symbol).ok())
        .filter_map(name_without_key);
    let first = kernels.next()?;
    let are_same = kernels.all(|name| name == first);
    are_same.then(|| std::str::from_utf8(first).ok())?
}

/// Returns a kernel's name without its tiling key, for example `PagedAttention` for `PagedAttention_160_mix_aic`. Returns `None` if the symbol has no key and
/// so is not a kernel.
fn name_without_key(symbol: &[u8]) -> Option<&[u8]> {
    let cores = [&b"_mix_aic"[..], b"_mix_aiv"];
    let name_and_key = cores
        .iter()
        .find_map(|cores| symbol.strip_suffix(*cores))
        .unwrap_or(symbol);
    let end = name_and_key.iter().rposition(|byte| *byte == b'_')?;
    let (name, key) = (&name_and_key[..end], &name_and_key[end + 1..]);
    let is_key = !key.is_empty() && key.iter().all(u8::is_ascii_digit);
    (is_key && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::write::{Object, StandardSection, Symbol, SymbolSection};
    use object::{Architecture, BinaryFormat, Endianness, SymbolFlags, SymbolKind, SymbolScope};

    fn binary_with_symbols(names: &[&str]) -> Vec<u8> {
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
    fn the_common_name_of_kernels_is_returned() {
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
            assert_eq!(
                common_name(&binary_with_symbols(names)),
                expected,
                "{names:?}"
            );
        }
    }

    #[test]
    fn a_truncated_or_damaged_binary_does_no_harm() {
        let mut elf = binary_with_symbols(&["Add_1", "Add_2_mix_aic"]);
        for at in 0..elf.len() {
            assert_eq!(common_name(&elf[..at]), None, "{at}");
            let original = elf[at];
            for byte in [0, 0x7f, 0xff] {
                elf[at] = byte;
                let _any = common_name(&elf);
            }
            elf[at] = original;
        }
    }
}
