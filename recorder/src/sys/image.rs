//! An ELF image of this process, read where it is mapped. This avoids the dynamic linker's
//! functions, which take its lock.

use libc::{Elf64_Ehdr, Elf64_Phdr, Elf64_Sym};
use std::ffi::CStr;
use std::ptr;

const DT_NULL: u64 = 0;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_STRSZ: u64 = 10;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DF_1_NODELETE: u64 = 8;
/// Size in bytes of a number in the hash table, and of a word of its filter.
const NUMBER: usize = 4;
const WORD: usize = 8;

/// Address of an image's ELF header.
#[derive(Clone, Copy)]
pub(crate) struct Image(usize);

impl Image {
    /// Returns the ELF image (a loaded program or library) that is mapped at this address.
    ///
    /// # Safety
    ///
    /// A whole ELF image is mapped at the address, and stays mapped and readable while the result
    /// is used.
    pub(crate) unsafe fn at(address: usize) -> Image {
        Image(address)
    }

    /// Reads a value from the image, at an offset in bytes from its start.
    pub(crate) fn read<T: Copy>(&self, offset: usize) -> T {
        let at = ptr::with_exposed_provenance::<T>(self.0.wrapping_add(offset));
        // SAFETY: headers of the image itself led here. The image stays mapped as `at` demands, and
        // these parts never change.
        unsafe { at.read_unaligned() }
    }

    fn number(&self, offset: usize) -> Option<usize> {
        usize::try_from(self.read::<u32>(offset)).ok()
    }

    /// Returns the address of the image's ELF program headers, which say how it is loaded.
    pub(crate) fn program_headers(&self) -> usize {
        let header: Elf64_Ehdr = self.read(0);
        let offset = usize::try_from(header.e_phoff).unwrap_or(0);
        self.0.wrapping_add(offset)
    }

    /// Returns true if `dlclose` never unloads the image, as `-z nodelete` requests.
    pub(crate) fn is_nodelete(&self) -> bool {
        let flags = self.entry(DT_FLAGS_1).unwrap_or(0);
        flags & DF_1_NODELETE != 0
    }

    /// Finds a symbol that the image defines by its name, with the image's hash table. Returns
    /// `None` if it does not define that symbol.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<Elf64_Sym> {
        let [table, symbols] = [self.table(DT_GNU_HASH)?, self.table(DT_SYMTAB)?];
        let [buckets, first, words] =
            [0, 1, 2].map(|nth| self.number(table + nth * NUMBER).unwrap_or(0));
        let hash = hash(name);
        let lists = table + 4 * NUMBER + words * WORD;
        let bucket = usize::try_from(hash).ok()?.checked_rem(buckets)?;
        let begin = self.number(lists + bucket * NUMBER)?.checked_sub(first)?;
        let hashes = lists + buckets * NUMBER;
        for nth in begin.. {
            let found = self.read::<u32>(hashes + nth * NUMBER);
            let at = symbols + (first + nth) * size_of::<Elf64_Sym>();
            if found | 1 == hash | 1 {
                let symbol: Elf64_Sym = self.read(at);
                if symbol.st_value != 0 && self.is_called(&symbol, name)? {
                    return Some(symbol);
                }
            }
            if found & 1 == 1 {
                break; // the last entry of its list
            }
        }
        None
    }

    fn is_called(&self, symbol: &Elf64_Sym, name: &CStr) -> Option<bool> {
        let [names, room] = [self.table(DT_STRTAB)?, self.table(DT_STRSZ)?];
        let at = usize::try_from(symbol.st_name).ok()?;
        let name = name.to_bytes_with_nul();
        let mut bytes = name.iter().zip(names + at..);
        let has_room = at.checked_add(name.len()).is_some_and(|end| end <= room);
        Some(has_room && bytes.all(|(byte, at)| self.read::<u8>(at) == *byte))
    }

    /// Returns the offset or the size of one of the image's tables; `kind` is its tag in the
    /// dynamic section. Depending on the C library, the linker has turned the offsets in this image
    /// into addresses or left them unchanged.
    fn table(&self, kind: u64) -> Option<usize> {
        let at = usize::try_from(self.entry(kind)?).ok()?;
        Some(at.checked_sub(self.0).unwrap_or(at))
    }

    /// Returns the value of the entry with the tag `kind` in the image's dynamic section.
    fn entry(&self, kind: u64) -> Option<u64> {
        let dynamic = self.dynamic()?;
        let entry = |nth| self.read::<[u64; 2]>(dynamic + nth * size_of::<[u64; 2]>());
        let mut entries = (0..).map(entry).take_while(|[kind, _]| *kind != DT_NULL);
        Some(entries.find(|[found, _]| *found == kind)?[1])
    }

    fn dynamic(&self) -> Option<usize> {
        let header: Elf64_Ehdr = self.read(0);
        let first = usize::try_from(header.e_phoff).ok()?;
        let segment =
            |nth| self.read::<Elf64_Phdr>(first + usize::from(nth) * size_of::<Elf64_Phdr>());
        let mut segments = (0..header.e_phnum).map(segment);
        let dynamic = segments.find(|segment| segment.p_type == libc::PT_DYNAMIC)?;
        usize::try_from(dynamic.p_vaddr).ok()
    }
}

/// Computes the `DT_GNU_HASH` hash of a name.
fn hash(name: &CStr) -> u32 {
    let add = |hash: u32, byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(*byte));
    name.to_bytes().iter().fold(5381, add)
}
