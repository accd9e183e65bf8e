//! Restartable sequences: whether a thread that begins now would end the process for them.
//!
//! From 2.35 on glibc registers them for each thread, if it could for the first one, and ends the process where that fails later. A filter may refuse the
//! call since. Where the kernel or the sandbox never had it, or the program was told to go without (`GLIBC_TUNABLES`), all threads begin without.

use std::io;

/// Whether a new thread would end the process: glibc registers restartable sequences for it, and a filter refuses that call by now. The kernel
/// answers a call that asks for nothing with `EINVAL` else.
pub(super) fn would_end_the_process() -> bool {
    if !are_registered() {
        return false;
    }
    // SAFETY: without an area nothing is registered, and what is stays.
    let asked = unsafe { libc::syscall(libc::SYS_rseq, std::ptr::null::<u8>(), 0, 0, 0) };
    let error = io::Error::last_os_error().raw_os_error();
    asked < 0 && !matches!(error, Some(libc::EINVAL | libc::EBUSY))
}

/// As the linker says it, also that of an older glibc which has them all the same (RHEL 9); else as the version lets expect.
#[cfg(target_env = "gnu")]
fn are_registered() -> bool {
    linker::size_of_sequences().map_or_else(is_of_2_35, |size| size != 0)
}

#[cfg(not(target_env = "gnu"))]
fn are_registered() -> bool {
    false
}

#[cfg(target_env = "gnu")]
fn is_of_2_35() -> bool {
    // SAFETY: takes nothing, and no lock.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: a constant C string.
    let version = unsafe { std::ffi::CStr::from_ptr(version) };
    version.to_str().is_ok_and(is_from_2_35_on)
}

#[cfg(target_env = "gnu")]
fn is_from_2_35_on(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let mut next = || numbers.next().flatten().unwrap_or(0);
    (next(), next()) >= (2, 35)
}

/// The dynamic linker's image, in which glibc says by `__rseq_size` whether it has registered the first thread.
///
/// It is asked by its own table of hashes (`DT_GNU_HASH`). `dlsym` takes the lock that a `dlopen` of the host's holds, which may wait for the calling
/// thread. A reference that is bound when this library is loaded would make every program need glibc 2.35.
#[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
mod linker {
    use libc::{Elf64_Ehdr, Elf64_Phdr, Elf64_Sym};
    use std::ffi::CStr;
    use std::ptr;

    const NAME: &CStr = c"__rseq_size";
    const DT_NULL: u64 = 0;
    const DT_STRTAB: u64 = 5;
    const DT_SYMTAB: u64 = 6;
    const DT_STRSZ: u64 = 10;
    const DT_GNU_HASH: u64 = 0x6fff_fef5;
    /// Bytes of a number of the table of hashes, and of a word of its filter.
    const NUMBER: usize = 4;
    const WORD: usize = 8;

    /// Where it begins.
    struct Image(usize);

    /// How large what glibc has registered is: 0 for nothing. `None` where the program was started without a linker, or that has no such name or table.
    pub(super) fn size_of_sequences() -> Option<u32> {
        // SAFETY: takes a number, and no lock.
        let base = unsafe { libc::getauxval(libc::AT_BASE) };
        let image = Image(usize::try_from(base).ok().filter(|base| *base != 0)?);
        let symbol = image.symbol()?;
        Some(image.read(usize::try_from(symbol.st_value).ok()?))
    }

    impl Image {
        /// What stands in it.
        fn read<T: Copy>(&self, offset: usize) -> T {
            let at = ptr::with_exposed_provenance::<T>(self.0.wrapping_add(offset));
            // SAFETY: headers of the image itself led here. It stays mapped and readable as long as the process lives, and these parts never change.
            unsafe { at.read_unaligned() }
        }

        fn number(&self, offset: usize) -> Option<usize> {
            usize::try_from(self.read::<u32>(offset)).ok()
        }

        /// The name's symbol. Only those with its hash are looked at.
        fn symbol(&self) -> Option<Elf64_Sym> {
            let [table, symbols] = [self.table(DT_GNU_HASH)?, self.table(DT_SYMTAB)?];
            let [buckets, first, words] =
                [0, 1, 2].map(|nth| self.number(table + nth * NUMBER).unwrap_or(0));
            let hash = hash(NAME);
            let lists = table + 4 * NUMBER + words * WORD;
            let bucket = usize::try_from(hash).ok()?.checked_rem(buckets)?;
            let begin = self.number(lists + bucket * NUMBER)?.checked_sub(first)?;
            let hashes = lists + buckets * NUMBER;
            for nth in begin.. {
                let found = self.read::<u32>(hashes + nth * NUMBER);
                let at = symbols + (first + nth) * size_of::<Elf64_Sym>();
                if found | 1 == hash | 1 {
                    let symbol: Elf64_Sym = self.read(at);
                    if symbol.st_value != 0 && self.is_called(&symbol)? {
                        return Some(symbol);
                    }
                }
                if found & 1 == 1 {
                    break; // the last one of its list
                }
            }
            None
        }

        fn is_called(&self, symbol: &Elf64_Sym) -> Option<bool> {
            let [names, room] = [self.table(DT_STRTAB)?, self.table(DT_STRSZ)?];
            let (at, name) = (
                usize::try_from(symbol.st_name).ok()?,
                NAME.to_bytes_with_nul(),
            );
            let mut bytes = name.iter().zip(names + at..);
            let has_room = at.checked_add(name.len()).is_some_and(|end| end <= room);
            Some(has_room && bytes.all(|(byte, at)| self.read::<u8>(at) == *byte))
        }

        /// Where one of its tables begins, or how large it is. The linker has made addresses of the places in its own image, or left them as they were.
        fn table(&self, kind: u64) -> Option<usize> {
            let dynamic = self.dynamic()?;
            let entry = |nth| self.read::<[u64; 2]>(dynamic + nth * size_of::<[u64; 2]>());
            let mut entries = (0..).map(entry).take_while(|[kind, _]| *kind != DT_NULL);
            let [_, at] = entries.find(|[found, _]| *found == kind)?;
            let at = usize::try_from(at).ok()?;
            Some(at.checked_sub(self.0).unwrap_or(at))
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

    /// As `DT_GNU_HASH` has them.
    fn hash(name: &CStr) -> u32 {
        let add = |hash: u32, byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(*byte));
        name.to_bytes().iter().fold(5381, add)
    }
}

#[cfg(all(target_env = "gnu", not(target_pointer_width = "64")))]
mod linker {
    pub(super) fn size_of_sequences() -> Option<u32> {
        None
    }
}

#[cfg(test)]
#[cfg(target_env = "gnu")]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_registers_sequences_from_2_35_on() {
        let old = ["2.17", "2.34", "2.4", "", "x"].map(is_from_2_35_on);
        let new = ["2.35", "2.36.1", "2.100", "3.0"].map(is_from_2_35_on);
        assert_eq!((old, new), ([false; 5], [true; 4]));
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn the_linkers_table_says_what_dlsym_finds() {
        // SAFETY: a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) };
        // SAFETY: null, or the C library's constant of this type.
        let size = unsafe { found.cast::<u32>().as_ref() };
        assert_eq!(linker::size_of_sequences(), size.copied());
    }
}
