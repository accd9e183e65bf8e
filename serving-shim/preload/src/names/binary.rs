//! The name of the kernels in a binary that is registered as a whole, as ATB and AscendC do: its launches say the binary and a tiling key alone.
//!
//! A kernel's symbol is its name, its tiling key, and which cores it is for: `PagedAttention_160_mix_aic`. The binary comes from the host: nothing in it is taken for granted.

use ascend_sys::types::rtDevBinary_t;

/// Most symbols that are looked at.
const MAX_SYMBOLS: usize = 1 << 16;

const HEADER: &[u8] = b"\x7fELF\x02\x01"; // of 64 bits, little-endian
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
const SYMBOL_TABLE: u32 = 2;
const FUNCTION: u8 = 2;

/// The name that all kernels of a binary have, if it is one.
///
/// # Safety
/// The record is null or says where a binary is, which can be read.
pub(super) unsafe fn name_of(binary: *const rtDevBinary_t) -> Option<String> {
    // SAFETY: as this function demands.
    let binary = unsafe { binary.as_ref() }?;
    if binary.data.is_null() {
        return None;
    }
    let length = isize::try_from(binary.length).ok()?.cast_unsigned();
    // SAFETY: as above; no longer than memory can be.
    name_in(unsafe { std::slice::from_raw_parts(binary.data.cast::<u8>(), length) })
}

fn name_in(elf: &[u8]) -> Option<String> {
    let mut kernels = symbols(elf)?.filter_map(kernel);
    let first = kernels.next()?;
    let is_one = kernels.all(|name| name == first);
    let name = std::str::from_utf8(first).ok()?;
    is_one.then(|| name.to_owned())
}

/// The names of a binary's functions.
fn symbols(elf: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    if !elf.starts_with(HEADER) {
        return None;
    }
    let sections = sized(u64_at(elf, 0x28)?)?;
    let section = |index: usize| {
        part(
            elf,
            sections,
            index.checked_mul(SECTION_BYTES)?,
            SECTION_BYTES,
        )
    };
    let content = |section: &[u8]| {
        part(
            elf,
            sized(u64_at(section, 0x18)?)?,
            0,
            sized(u64_at(section, 0x20)?)?,
        )
    };
    let count = usize::from(u16_at(elf, 0x3c)?);
    let table = (0..count)
        .filter_map(section)
        .find(|section| u32_at(section, 4) == Some(SYMBOL_TABLE))?;
    let names = content(section(u32_at(table, 0x28)? as usize)?)?;
    let symbols = content(table)?.chunks_exact(SYMBOL_BYTES).take(MAX_SYMBOLS);
    Some(symbols.filter_map(move |symbol| {
        let is_function = symbol.get(4)? & 0xf == FUNCTION;
        let name = names.get(u32_at(symbol, 0)? as usize..)?;
        let end = name.iter().position(|byte| *byte == 0)?;
        is_function.then(|| &name[..end])
    }))
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

fn part(bytes: &[u8], start: usize, offset: usize, length: usize) -> Option<&[u8]> {
    let start = start.checked_add(offset)?;
    bytes.get(start..start.checked_add(length)?)
}

fn sized(number: u64) -> Option<usize> {
    usize::try_from(number).ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(part(bytes, at, 0, 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(part(bytes, at, 0, 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(part(bytes, at, 0, 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A binary with two sections: symbols, of type `info`, and their names.
    fn elf(info: u8, names: &[&str]) -> Vec<u8> {
        let mut texts = vec![0u8];
        let mut table = vec![0u8; SYMBOL_BYTES];
        for name in names {
            let mut symbol = [0u8; SYMBOL_BYTES];
            symbol[..4].copy_from_slice(&u32::try_from(texts.len()).unwrap().to_le_bytes());
            symbol[4] = info;
            table.extend(symbol);
            texts.extend(name.bytes().chain([0]));
        }
        let section = |kind: u32, offset: usize, size: usize, link: u32| {
            let mut section = [0u8; SECTION_BYTES];
            section[4..8].copy_from_slice(&kind.to_le_bytes());
            section[0x18..0x20].copy_from_slice(&(offset as u64).to_le_bytes());
            section[0x20..0x28].copy_from_slice(&(size as u64).to_le_bytes());
            section[0x28..0x2c].copy_from_slice(&link.to_le_bytes());
            section
        };
        let mut elf = vec![0u8; SECTION_BYTES];
        elf[..HEADER.len()].copy_from_slice(HEADER);
        elf[0x28..0x30].copy_from_slice(&(SECTION_BYTES as u64).to_le_bytes());
        elf[0x3c..0x3e].copy_from_slice(&2u16.to_le_bytes());
        let start = 3 * SECTION_BYTES;
        elf.extend(section(SYMBOL_TABLE, start, table.len(), 1));
        elf.extend(section(3, start + table.len(), texts.len(), 0));
        elf.extend(table);
        elf.extend(texts);
        elf
    }

    #[test]
    fn kernels_of_one_name_give_it() {
        for (names, expected) in [
            (
                &["Add_1", "Add_20", "Add_20_mix_aiv", "helper"][..],
                Some("Add"),
            ),
            (
                &["Mul_0123456789abcdef_7_mix_aic"],
                Some("Mul_0123456789abcdef"),
            ),
            (&["Add_1", "Mul_1"], None),
            (&["helper", "_1", "Add_", "Add_1x"], None),
            (&[], None),
        ] {
            assert_eq!(name_in(&elf(0x12, names)).as_deref(), expected, "{names:?}");
        }
        assert_eq!(name_in(&elf(0x11, &["data_1"])), None, "no function");
    }

    #[test]
    fn a_binary_that_is_cut_or_flipped_anywhere_does_no_harm() {
        let whole = elf(0x12, &["Add_1", "Add_2_mix_aic"]);
        for length in 0..whole.len() {
            assert_eq!(name_in(&whole[..length]), None, "{length}");
        }
        for at in 0..whole.len() {
            for byte in [0, 0x7f, 0xff] {
                let mut flipped = whole.clone();
                flipped[at] = byte;
                let _any = name_in(&flipped);
            }
        }
    }
}
