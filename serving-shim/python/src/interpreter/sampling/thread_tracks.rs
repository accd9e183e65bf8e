//! Turns samples into slices: each thread has a track, on which equal frames in successive samples become one slice.
//!
//! A slice is written when its frame has left the stack. Frames that stay are written in pieces of one second. So after a kill, in a window of the trace or with a limit on its
//! size, only a second of the outer frames is missing.

use std::collections::HashMap;
use std::rc::Rc;

use sa_recorder::{Args, Level, Recorder};

use super::codes::Function;
use super::snapshot::{Sample, ThreadSample};

/// Category of the slices.
const CATEGORY: &str = "samples";
/// Number of the first track. It is above the lanes of async spans, which are numbered from below, and below the recorder's other tracks. Readers show it among the lanes.
const FIRST_TRACK: u32 = (1 << 28) - (1 << 20);
/// Number of tracks per process that threads with different names do not share. Beyond it, tracks are reused.
const UNSHARED_TRACKS: u32 = 256;
/// Maximum number of tracks per process.
const MAX_TRACKS: u32 = 4096;
/// Maximum length of a piece.
const PIECE_NS: u64 = 1_000_000_000;
/// Interval at which a track's name is written again, because an old segment of the fragment, with the name in it, may be deleted.
const NAME_NS: u64 = 10_000_000_000;

/// The tracks of live threads, and unused tracks.
#[derive(Default)]
pub(super) struct ThreadTracks {
    by_ident: HashMap<u64, ThreadTrack>,
    unused: Vec<ThreadTrack>,
    count: u32,
}

struct ThreadTrack {
    number: u32,
    native_id: u64,
    thread_name: String,
    named_ns: Option<u64>,
    piece_ns: u64,
    open: Vec<Open>,
}

/// A frame on the stack.
struct Open {
    function: Rc<Function>,
    since_ns: u64,
}

impl ThreadTracks {
    /// Returns true if there is a track for the thread with this ident (Python's id) and this id in the Linux kernel.
    pub(super) fn has_thread(&self, ident: u64, native_id: u64) -> bool {
        let track = self.by_ident.get(&ident);
        track.is_some_and(|track| track.native_id == native_id)
    }

    /// Updates each thread's track from a new sample of the stacks. Threads that are missing from the sample have ended.
    pub(super) fn add(&mut self, sample: Sample) {
        let at_ns = sample.at_ns;
        let mut previous = std::mem::take(&mut self.by_ident);
        for thread in sample.threads {
            let track = previous.remove(&thread.ident);
            let track = match track {
                Some(track) if track.native_id == thread.native_id => Some(track),
                track => {
                    self.unused.extend(track.map(|track| track.ended(at_ns)));
                    self.track_for(&thread)
                }
            };
            if let Some(mut track) = track {
                track.name(at_ns);
                track.update(&thread.stack, at_ns);
                self.by_ident.insert(thread.ident, track);
            }
        }
        self.unused
            .extend(previous.into_values().map(|track| track.ended(at_ns)));
    }

    /// Writes slices (finished spans) for the frames that are still on the stacks, and drops all threads.
    pub(super) fn end(&mut self, at_ns: u64) {
        let tracks = self.by_ident.drain();
        self.unused
            .extend(tracks.map(|(_, track)| track.ended(at_ns)));
    }

    /// Chooses a track for a new thread: an unused one of the same name, a new one, or any unused one. Returns `None` if there are too many threads.
    fn track_for(&mut self, thread: &ThreadSample) -> Option<ThreadTrack> {
        let thread_name = match &thread.name {
            Some(name) => name.clone(),
            None if self.count == 0 => "MainThread".to_owned(), // the module `threading` is not imported
            None => format!("thread {}", thread.ident),
        };
        let same_name = self
            .unused
            .iter()
            .position(|track| track.thread_name == thread_name);
        let is_new =
            same_name.is_none() && (self.count < UNSHARED_TRACKS || self.unused.is_empty());
        if is_new && self.count >= MAX_TRACKS {
            return None;
        }
        let track = if is_new {
            self.count += 1;
            ThreadTrack::new(FIRST_TRACK + self.count)
        } else {
            self.unused.swap_remove(same_name.unwrap_or(0))
        };
        let named_ns = track.named_ns.filter(|_| same_name.is_some());
        Some(ThreadTrack {
            native_id: thread.native_id,
            thread_name,
            named_ns,
            ..track
        })
    }
}

impl ThreadTrack {
    fn new(number: u32) -> ThreadTrack {
        ThreadTrack {
            number,
            native_id: 0,
            thread_name: String::new(),
            named_ns: None,
            piece_ns: 0,
            open: Vec::new(),
        }
    }

    fn name(&mut self, at_ns: u64) {
        let is_recent = |named_ns: u64| at_ns.saturating_sub(named_ns) < NAME_NS;
        if !self.named_ns.is_some_and(is_recent) {
            self.named_ns = Some(at_ns);
            let name = format!("samples {}", self.thread_name);
            let args = Args::new().with("name", name.as_str());
            Recorder::get().metadata("thread_name", Some(self.number.into()), &args);
        }
    }

    /// Compares the thread's new stack with the previous one. Writes slices (finished spans) for frames that have left the stack, and starts slices for new
    /// frames.
    fn update(&mut self, stack: &[Rc<Function>], at_ns: u64) {
        let pairs = self.open.iter().zip(stack);
        let same = pairs.take_while(|(open, function)| Rc::ptr_eq(&open.function, function));
        let mut unchanged = same.count();
        if self.open.is_empty() || at_ns.saturating_sub(self.piece_ns) >= PIECE_NS {
            (unchanged, self.piece_ns) = (0, at_ns);
        }
        self.close_from(unchanged, at_ns);
        for function in stack.iter().skip(unchanged) {
            // One ns later than the outer frame: of two slices that begin at the same time, viewers treat the first as the outer one.
            let since_ns = at_ns + self.open.len() as u64;
            self.open.push(Open {
                function: Rc::clone(function),
                since_ns,
            });
        }
    }

    fn close_from(&mut self, depth: usize, at_ns: u64) {
        let Some(track) = Recorder::get().thread_track(self.number) else {
            return self.open.truncate(depth);
        };
        for Open { function, since_ns } in self.open.drain(depth..) {
            let dur_ns = at_ns.saturating_sub(since_ns);
            let track = track.since(since_ns);
            track.duration(
                Level::E2e,
                CATEGORY,
                &function.name,
                since_ns,
                dur_ns,
                &function.args,
            );
        }
    }

    fn ended(mut self, at_ns: u64) -> ThreadTrack {
        self.close_from(0, at_ns);
        self
    }
}
