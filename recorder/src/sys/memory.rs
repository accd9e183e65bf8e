//! Fallible allocation. The standard library's usual allocations abort the host if there is no
//! memory.

use std::io::{self, Error};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cancel::Uncancelled;
use sa_format::loss::Cause;

/// Losses by cause that were counted while there was no ring.
static UNCLAIMED: [AtomicU64; Cause::ALL.len()] = [const { AtomicU64::new(0) }; Cause::ALL.len()];
/// Counter that writes to the ring, where a kill cannot erase the count. It returns false if there
/// is no ring.
static COUNTER: OnceLock<fn(Cause) -> bool> = OnceLock::new();

/// Sets the function with which [`count_loss`] counts from now on. Only the first call has an
/// effect.
pub(crate) fn set_counter(count: fn(Cause) -> bool) {
    COUNTER.get_or_init(|| count);
}

/// Reserves room for `more` further elements in a list. If there is not enough memory, counts one
/// loss and returns false.
#[inline(always)]
pub(crate) fn reserve<T>(list: &mut Vec<T>, more: usize) -> bool {
    list.capacity() - list.len() >= more || grow(list, more)
}

#[cold]
#[inline(never)]
fn grow<T>(list: &mut Vec<T>, more: usize) -> bool {
    let grown = list.try_reserve(more).is_ok();
    if !grown {
        count_out_of_memory();
    }
    grown
}

/// Counts one event, name or arg as lost because there is not enough memory for it.
pub(crate) fn count_out_of_memory() {
    count_loss(Cause::OutOfMemory);
}

/// Counts one loss with this cause, for code that has no recorder at hand. Without a ring, the
/// count is kept until there is one.
#[cold]
#[inline(never)]
pub(crate) fn count_loss(cause: Cause) {
    if !COUNTER.get().is_some_and(|count| count(cause)) {
        UNCLAIMED[cause as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts that another library of this workspace has shortened one value of an event's args.
pub fn count_cut() {
    count_loss(Cause::Cut);
}

/// Returns the number of losses with this cause that are not in a ring yet, and resets it.
pub(crate) fn drain_count(cause: Cause) -> u64 {
    UNCLAIMED[cause as usize].swap(0, Ordering::Relaxed)
}

/// Returns a copy of some bytes. If there is not enough memory, counts a loss and returns an empty
/// `Vec`.
pub(crate) fn copy_or_empty(bytes: &[u8]) -> Vec<u8> {
    collect_or_empty(bytes.iter().copied())
}

/// Collects the bytes of an iterator. If there is not enough memory, counts a loss and returns an
/// empty `Vec`.
pub(crate) fn collect_or_empty(bytes: impl ExactSizeIterator<Item = u8>) -> Vec<u8> {
    let mut all = Vec::new();
    if reserve(&mut all, bytes.len()) {
        all.extend(bytes);
    }
    all
}

/// Copies a text, or returns an error if there is not enough memory.
pub(crate) fn try_to_owned(text: &str) -> io::Result<String> {
    try_concat([text, ""])
}

/// Concatenates two texts, or returns an error if there is not enough memory.
pub(crate) fn try_concat(texts: [&str; 2]) -> io::Result<String> {
    let mut all = String::new();
    let room = all.try_reserve_exact(texts[0].len() + texts[1].len());
    room.map_err(|_| out_of_memory())?;
    texts.into_iter().for_each(|text| all.push_str(text));
    Ok(all)
}

/// Returns a `Vec` of `bytes` zeros, or an error if there is not enough memory.
pub(crate) fn try_zeros(bytes: usize) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    all.try_reserve_exact(bytes).map_err(|_| out_of_memory())?;
    all.resize(bytes, 0);
    Ok(all)
}

/// Puts a value on the heap. If there is not enough memory, drops the value and returns an error.
pub(crate) fn try_box<T>(value: T) -> io::Result<Box<T>> {
    let mut one = Vec::new();
    one.try_reserve_exact(1).map_err(|_| out_of_memory())?;
    one.push(value);
    let one = Box::into_raw(one.into_boxed_slice());
    // SAFETY: a boxed slice with one element has the address and layout of a box of that element.
    Ok(unsafe { Box::from_raw(one.cast::<T>()) })
}

/// Returns an error if `bytes` bytes of memory cannot be allocated now. That may change before they
/// are used, so this is only for rare, small allocations that cannot be split into fallible ones.
/// Below 128 KiB the C library keeps the memory of the attempt for this thread.
pub(crate) fn check_room(bytes: usize) -> io::Result<()> {
    let _uncancelled = Uncancelled::begin();
    super::map::check_address_space(bytes)?;
    let mut room: Vec<u8> = Vec::new();
    let tried = room.try_reserve_exact(bytes);
    std::hint::black_box(&mut room); // otherwise the compiler removes the attempt
    tried.map_err(|_| out_of_memory())
}

/// Returns the I/O error (`ENOMEM`) that reports a lack of memory.
pub(crate) fn out_of_memory() -> Error {
    Error::from_raw_os_error(libc::ENOMEM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_allocation_is_an_error() {
        assert_eq!(*try_box([7u8; 40]).unwrap(), [7; 40]);
        assert_eq!(*try_box(()).unwrap(), ());
        assert!(check_room(1 << 20).is_ok());
        let error = check_room(1 << 60).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
    }
}
