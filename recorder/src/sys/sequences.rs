//! Restartable sequences: whether a thread that begins now would end the process for them.
//!
//! From 2.35 on glibc registers them for each thread, if it could for the first one, and ends the process where that fails later. A filter may refuse the
//! call since. Where the kernel or the sandbox never had it, or the program was told to go without (`GLIBC_TUNABLES`), all threads begin without.

use std::io;

/// Whether a new thread would end the process: glibc registers restartable sequences for it, and a filter refuses that call by now. The kernel
/// answers a call that asks for nothing with `EINVAL` else.
pub(super) fn end_the_process() -> bool {
    if !are_registered() {
        return false;
    }
    // SAFETY: without an area nothing is registered, and what is stays.
    let asked = unsafe { libc::syscall(libc::SYS_rseq, std::ptr::null::<u8>(), 0, 0, 0) };
    let error = io::Error::last_os_error().raw_os_error();
    asked < 0 && !matches!(error, Some(libc::EINVAL | libc::EBUSY))
}

#[cfg(target_env = "gnu")]
fn are_registered() -> bool {
    // SAFETY: takes nothing, and no lock.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: a constant C string.
    let version = unsafe { std::ffi::CStr::from_ptr(version) };
    version.to_str().is_ok_and(is_from_2_35_on) && linker::size_of_sequences() != Some(0)
}

#[cfg(not(target_env = "gnu"))]
fn are_registered() -> bool {
    false
}

#[cfg(target_env = "gnu")]
fn is_from_2_35_on(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let mut next = || numbers.next().flatten().unwrap_or(0);
    (next(), next()) >= (2, 35)
}

/// The dynamic linker's image, in which glibc says by `__rseq_size` whether it has registered the first thread.
///
/// It is read by hand. `dlsym` takes the lock that a `dlopen` of the host's holds, which may wait for the calling thread. A reference that is bound when
/// this library is loaded would make every program need glibc 2.35.
#[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
mod linker {
    use libc::{Elf64_Ehdr, Elf64_Phdr, Elf64_Sym};
    use std::ffi::CStr;
    use std::ptr;

    const NAME: &CStr = c"__rseq_size";
    const DT_NULL: u64 = 0;
    const DT_STRTAB: u64 = 5;
    const DT_SYMTAB: u64 = 6;

    /// Where it begins.
    struct Image(usize);

    /// How large what glibc has registered is: 0 for nothing. `None` where the program was started without a linker, or that has no such name.
    pub(super) fn size_of_sequences() -> Option<u32> {
        // SAFETY: takes a number, and no lock.
        let base = unsafe { libc::getauxval(libc::AT_BASE) };
        let image = Image(usize::try_from(base).ok().filter(|base| *base != 0)?);
        let symbol = image.symbols()?.find(|symbol| image.is_called(symbol))?;
        Some(image.read(usize::try_from(symbol.0.st_value).ok()?))
    }

    /// A symbol, and where its name stands.
    struct Symbol(Elf64_Sym, usize);

    impl Image {
        /// What stands in it.
        fn read<T: Copy>(&self, offset: usize) -> T {
            let at = ptr::with_exposed_provenance::<T>(self.0.wrapping_add(offset));
            // SAFETY: headers of the image itself led here. It stays mapped and readable as long as the process lives, and these parts never change.
            unsafe { at.read_unaligned() }
        }

        /// Its symbols: they reach from their table to that of their names, as all linkers lay them out.
        fn symbols(&self) -> Option<impl Iterator<Item = Symbol>> {
            let table = self.table(DT_SYMTAB)?;
            let names = self.table(DT_STRTAB)?;
            let count = names.checked_sub(table)? / size_of::<Elf64_Sym>();
            Some((0..count).filter_map(move |nth| {
                let symbol: Elf64_Sym = self.read(table + nth * size_of::<Elf64_Sym>());
                let name = names.checked_add(usize::try_from(symbol.st_name).ok()?)?;
                (symbol.st_value != 0).then_some(Symbol(symbol, name))
            }))
        }

        fn is_called(&self, symbol: &Symbol) -> bool {
            let name = NAME.to_bytes_with_nul();
            let mut bytes = name.iter().enumerate();
            bytes.all(|(at, byte)| self.read::<u8>(symbol.1 + at) == *byte)
        }

        /// Where one of its tables begins. The linker has made addresses of these numbers in its own image, or left them as they were.
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
    fn the_linkers_table_says_what_dlsym_finds() {
        // SAFETY: a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) };
        // SAFETY: null, or the C library's constant of this type.
        let size = unsafe { found.cast::<u32>().as_ref() };
        assert_eq!(linker::size_of_sequences(), size.copied());
    }
}
