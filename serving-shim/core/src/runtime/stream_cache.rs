//! A thread's cache of the contexts, ids and devices of the streams into which it launched last. An entry is valid until any stream is created or destroyed. The
//! thread may change its context or device in the meantime: a stream keeps its own, and the runtime refuses an event if the thread has another.

use super::{Context, Stream};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of entries in the cache of a thread.
const ENTRIES: usize = 8;

/// The context, id and device of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamPlace {
    pub(crate) context: Context,
    pub(crate) stream_id: i32,
    /// The program's number of the device.
    pub(crate) device: i32,
}

/// An entry: a stream, and its place at an age of the cache.
#[derive(Clone, Copy)]
struct Entry {
    stream: Stream,
    age: u64,
    place: StreamPlace,
}

thread_local! {
    static ENTRIES_OF_THREAD: [Cell<Option<Entry>>; ENTRIES] =
        const { [const { Cell::new(None) }; ENTRIES] };
}

/// Number of streams that were created or destroyed. A new stream may have the handle and the id of an old one.
static AGE: AtomicU64 = AtomicU64::new(0);
/// True if the runtime reports each of these changes.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Allows the caching of streams' contexts and devices, because the runtime reports each stream that is created or destroyed.
pub(crate) fn rely_on_runtime() {
    IS_WATCHED.store(true, Ordering::Relaxed);
}

/// Invalidates all cached entries of all threads, because a stream was created or is being destroyed.
pub(crate) fn invalidate() {
    AGE.fetch_add(1, Ordering::AcqRel);
}

/// Returns the age of the stream cache, for a new entry: the number of streams that were created or destroyed so far. Call this before asking the runtime
/// about the stream.
pub(crate) fn age() -> u64 {
    AGE.load(Ordering::Acquire)
}

/// Returns the context, id and device of a stream, if they are in the calling thread's cache and no older than `age`. The default stream differs between
/// contexts, so it is never cached.
pub(crate) fn get(stream: Stream, age: u64) -> Option<StreamPlace> {
    let entry = ENTRIES_OF_THREAD.with(|entries| entry_of(entries, stream).get())?;
    (entry.stream == stream && entry.age == age).then_some(entry.place)
}

/// Stores the context, id and device of a stream in the calling thread's cache. `age` is the age of the cache before they were queried.
pub(crate) fn set(stream: Stream, age: u64, place: StreamPlace) {
    if stream.0 != 0 && IS_WATCHED.load(Ordering::Relaxed) {
        let entry = Entry { stream, age, place };
        ENTRIES_OF_THREAD.with(|entries| entry_of(entries, stream).set(Some(entry)));
    }
}

fn entry_of(entries: &[Cell<Option<Entry>>; ENTRIES], stream: Stream) -> &Cell<Option<Entry>> {
    let hash = (stream.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
    &entries[usize::try_from(hash).unwrap_or(0) % ENTRIES]
}
