//! Memory that may not be there. The standard library's way to say so ends the host.

use std::io::{self, Error};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cancel::Uncancelled;
use sa_format::loss::Cause;

/// Counts by cause that no recorder has taken yet.
static NOTED: [AtomicU64; Cause::ALL.len()] = [const { AtomicU64::new(0) }; Cause::ALL.len()];
/// Counts in the ring, where a kill cannot erase it; returns false without a ring.
static COUNT: OnceLock<fn(Cause) -> bool> = OnceLock::new();

/// Lets `count` count what is noted from now on.
pub(crate) fn count_by(count: fn(Cause) -> bool) {
    COUNT.get_or_init(|| count);
}

/// Makes room for `more` in a text or list when memory may be short. If there is no room, counts one loss and returns false.
#[inline(always)]
pub(crate) fn reserve<T>(list: &mut Vec<T>, more: usize) -> bool {
    list.capacity() - list.len() >= more || grow(list, more)
}

#[cold]
#[inline(never)]
fn grow<T>(list: &mut Vec<T>, more: usize) -> bool {
    let grown = list.try_reserve(more).is_ok();
    if !grown {
        leave_out();
    }
    grown
}

/// Counts something that is left out for want of memory.
pub(crate) fn leave_out() {
    note(Cause::OutOfMemory);
}

/// Counts one event of a cause, for code that has no recorder at hand.
#[cold]
#[inline(never)]
pub(crate) fn note(cause: Cause) {
    if !COUNT.get().is_some_and(|count| count(cause)) {
        NOTED[cause as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts one value of args that another library of this workspace has cut.
pub fn note_cut() {
    note(Cause::Cut);
}

/// Takes the count of a cause that is in no ring yet.
pub(crate) fn take_noted(cause: Cause) -> u64 {
    NOTED[cause as usize].swap(0, Ordering::Relaxed)
}

/// A copy of bytes; without memory for it an empty one, which is counted.
pub(crate) fn copied(bytes: &[u8]) -> Vec<u8> {
    gathered(bytes.iter().copied())
}

/// Bytes gathered into a text; without memory for them an empty one, which is counted.
pub(crate) fn gathered(bytes: impl ExactSizeIterator<Item = u8>) -> Vec<u8> {
    let mut all = Vec::new();
    if reserve(&mut all, bytes.len()) {
        all.extend(bytes);
    }
    all
}

/// A text of its own.
pub(crate) fn owned(text: &str) -> io::Result<String> {
    joined([text, ""])
}

/// Two texts in one.
pub(crate) fn joined(texts: [&str; 2]) -> io::Result<String> {
    let mut all = String::new();
    let room = all.try_reserve_exact(texts[0].len() + texts[1].len());
    room.map_err(|_| out_of_memory())?;
    texts.into_iter().for_each(|text| all.push_str(text));
    Ok(all)
}

/// So many zeros.
pub(crate) fn zeros(bytes: usize) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    all.try_reserve_exact(bytes).map_err(|_| out_of_memory())?;
    all.resize(bytes, 0);
    Ok(all)
}

/// Puts a value on the heap; it is dropped where there is no room.
pub(crate) fn boxed<T>(value: T) -> io::Result<Box<T>> {
    let mut one = Vec::new();
    one.try_reserve_exact(1).map_err(|_| out_of_memory())?;
    one.push(value);
    let one = Box::into_raw(one.into_boxed_slice());
    // SAFETY: a boxed slice of one element has the place and the layout of that element in a box.
    Ok(unsafe { Box::from_raw(one.cast::<T>()) })
}

/// Says that there is no room for `bytes` more. That there is can change before they are taken: for what is rare, small, and cannot be taken in pieces
/// that may fail. Below 128 KiB the C library keeps what was tried for this thread.
pub(crate) fn look_for_room(bytes: usize) -> io::Result<()> {
    let _uncancelled = Uncancelled::keep();
    super::map::look_for_space(bytes)?;
    let mut room: Vec<u8> = Vec::new();
    let tried = room.try_reserve_exact(bytes);
    std::hint::black_box(&mut room); // or the compiler leaves the attempt out
    tried.map_err(|_| out_of_memory())
}

/// The error of who finds no room.
pub(crate) fn out_of_memory() -> Error {
    Error::from_raw_os_error(libc::ENOMEM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert_eq!(*boxed([7u8; 40]).unwrap(), [7; 40]);
        assert_eq!(*boxed(()).unwrap(), ());
        assert!(look_for_room(1 << 20).is_ok());
        let error = look_for_room(1 << 60).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
    }
}
