//! A cache of the facts about the streams that a thread launched into last: they stay true until a stream is made or goes, wherever. A thread may change its context or device meanwhile: a stream keeps
//! its own, and an event is refused where the thread's is another.

use super::{Context, Stream};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Streams in the cache of a thread.
const PLACES: usize = 8;

/// Where a stream is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamFacts {
    pub(crate) context: Context,
    pub(crate) stream_id: i32,
    /// As the program counts its devices.
    pub(crate) device: i32,
}

/// A stream in the cache, with its facts at that age.
#[derive(Clone, Copy)]
struct Place {
    stream: Stream,
    age: u64,
    facts: StreamFacts,
}

thread_local! {
    static PLACES_OF_THREAD: [Cell<Option<Place>>; PLACES] =
        const { [const { Cell::new(None) }; PLACES] };
}

/// How often a stream was made or went. A handle, and an id, may come again with a new one.
static AGE: AtomicU64 = AtomicU64::new(0);
/// Whether the runtime reports each of these changes.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// The runtime reports each stream that is made or goes.
pub(crate) fn rely_on_runtime() {
    IS_WATCHED.store(true, Ordering::Relaxed);
}

/// A stream was made or goes.
pub(crate) fn change() {
    AGE.fetch_add(1, Ordering::AcqRel);
}

/// When it is now; to be asked before anything is asked of a stream.
pub(crate) fn age() -> u64 {
    AGE.load(Ordering::Acquire)
}

/// The facts about a stream, if the calling thread has them. The default stream is another one in each context, so it is never cached.
pub(crate) fn get(stream: Stream, age: u64) -> Option<StreamFacts> {
    let place = PLACES_OF_THREAD.with(|places| place_of(places, stream).get())?;
    (place.stream == stream && place.age == age).then_some(place.facts)
}

/// Remembers the facts about a stream at that age.
pub(crate) fn set(stream: Stream, age: u64, facts: StreamFacts) {
    if stream.0 != 0 && IS_WATCHED.load(Ordering::Relaxed) {
        let place = Place { stream, age, facts };
        PLACES_OF_THREAD.with(|places| place_of(places, stream).set(Some(place)));
    }
}

fn place_of(places: &[Cell<Option<Place>>; PLACES], stream: Stream) -> &Cell<Option<Place>> {
    let hash = (stream.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
    &places[usize::try_from(hash).unwrap_or(0) % PLACES]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_about_a_stream_end_when_any_is_made_or_goes() {
        let facts = StreamFacts {
            context: Context(1),
            stream_id: 4,
            device: 0,
        };
        let id = |stream| get(stream, age()).map(|facts| facts.stream_id);
        set(Stream(0x70), age(), facts);
        assert_eq!(id(Stream(0x70)), None, "nobody would tell");
        rely_on_runtime();
        set(Stream(0x70), age(), facts);
        set(Stream(0), age(), facts);
        assert_eq!(
            (id(Stream(0x70)), id(Stream(0)), id(Stream(0x71))),
            (Some(4), None, None)
        );
        let of_another_thread = std::thread::spawn(|| get(Stream(0x70), age()).is_some());
        assert!(!of_another_thread.join().unwrap());
        let before = age();
        change();
        assert_eq!(id(Stream(0x70)), None);
        set(Stream(0x70), before, facts);
        assert_eq!(id(Stream(0x70)), None, "it was asked before the change");
    }
}
