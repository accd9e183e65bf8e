//! Turns samples into slices: each thread has a track, on which equal frames in successive samples become one slice.
//!
//! A slice is written when its frame has left the stack. Frames that stay are written in pieces of one second. So after a kill, in a window of the trace or with a limit on its
//! size, only a second of the outer frames is missing.

use std::collections::HashMap;
use std::rc::Rc;

use sa_recorder::{Args, Level, Recorder};

use super::codes::Function;
use super::look::{Sample, ThreadSample};

/// Category of the slices.
const CATEGORY: &str = "samples";
/// Number of the first track. It is above the lanes of async spans, which are numbered from below, and below the recorder's other tracks. Readers show it among the lanes.
const FIRST_ROW: u32 = (1 << 28) - (1 << 20);
/// Number of tracks per process that threads with different names do not share. Beyond it, tracks are reused.
const OWN_ROWS: u32 = 256;
/// Maximum number of tracks per process.
const MOST_ROWS: u32 = 4096;
/// Maximum length of a piece.
const PIECE_NS: u64 = 1_000_000_000;
/// Interval at which a track's name is written again, because an old segment of the fragment, with the name in it, may be deleted.
const NAME_NS: u64 = 10_000_000_000;

/// The tracks of live threads, and unused tracks.
#[derive(Default)]
pub(super) struct Rows {
    of_threads: HashMap<u64, Row>,
    free: Vec<Row>,
    made: u32,
}

struct Row {
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

impl Rows {
    /// Returns true if the thread with this ident and kernel id has a track.
    pub(super) fn knows(&self, ident: u64, native_id: u64) -> bool {
        let row = self.of_threads.get(&ident);
        row.is_some_and(|row| row.native_id == native_id)
    }

    /// Adds a sample. Threads that are missing from it have ended.
    pub(super) fn take(&mut self, sample: Sample) {
        let at_ns = sample.at_ns;
        let mut before = std::mem::take(&mut self.of_threads);
        for thread in sample.threads {
            let row = before.remove(&thread.ident);
            let row = match row {
                Some(row) if row.native_id == thread.native_id => Some(row),
                row => {
                    self.free.extend(row.map(|row| row.ended(at_ns)));
                    self.row_for(&thread)
                }
            };
            if let Some(mut row) = row {
                row.name(at_ns);
                row.update(&thread.stack, at_ns);
                self.of_threads.insert(thread.ident, row);
            }
        }
        self.free
            .extend(before.into_values().map(|row| row.ended(at_ns)));
    }

    /// Writes what is on the stacks, and drops the threads.
    pub(super) fn end(&mut self, at_ns: u64) {
        let rows = self.of_threads.drain();
        self.free.extend(rows.map(|(_, row)| row.ended(at_ns)));
    }

    /// Returns an unused track of the same name, a new one, or any unused one. Returns `None` if there are too many threads.
    fn row_for(&mut self, thread: &ThreadSample) -> Option<Row> {
        let thread_name = match &thread.name {
            Some(name) => name.clone(),
            None if self.made == 0 => "MainThread".to_owned(), // the module `threading` is not imported
            None => format!("thread {}", thread.ident),
        };
        let alike = self
            .free
            .iter()
            .position(|row| row.thread_name == thread_name);
        let is_new = alike.is_none() && (self.made < OWN_ROWS || self.free.is_empty());
        if is_new && self.made >= MOST_ROWS {
            return None;
        }
        let row = if is_new {
            self.made += 1;
            Row::new(FIRST_ROW + self.made)
        } else {
            self.free.swap_remove(alike.unwrap_or(0))
        };
        let named_ns = row.named_ns.filter(|_| alike.is_some());
        Some(Row {
            native_id: thread.native_id,
            thread_name,
            named_ns,
            ..row
        })
    }
}

impl Row {
    fn new(number: u32) -> Row {
        Row {
            number,
            native_id: 0,
            thread_name: String::new(),
            named_ns: None,
            piece_ns: 0,
            open: Vec::new(),
        }
    }

    fn name(&mut self, at_ns: u64) {
        let is_told = |named_ns: u64| at_ns.saturating_sub(named_ns) < NAME_NS;
        if !self.named_ns.is_some_and(is_told) {
            self.named_ns = Some(at_ns);
            let name = format!("samples {}", self.thread_name);
            let args = Args::new().with("name", name.as_str());
            Recorder::get().metadata("thread_name", Some(self.number.into()), &args);
        }
    }

    /// Ends the slices of frames that have left the stack, and starts slices for new frames.
    fn update(&mut self, stack: &[Rc<Function>], at_ns: u64) {
        let pairs = self.open.iter().zip(stack);
        let same = pairs.take_while(|(open, function)| Rc::ptr_eq(&open.function, function));
        let mut kept = same.count();
        if self.open.is_empty() || at_ns.saturating_sub(self.piece_ns) >= PIECE_NS {
            (kept, self.piece_ns) = (0, at_ns);
        }
        self.close_from(kept, at_ns);
        for function in stack.iter().skip(kept) {
            // One ns later than the outer frame: of two slices that begin at the same time, viewers treat the first as the outer one.
            let since_ns = at_ns + self.open.len() as u64;
            self.open.push(Open {
                function: Rc::clone(function),
                since_ns,
            });
        }
    }

    fn close_from(&mut self, depth: usize, at_ns: u64) {
        let Some(row) = Recorder::get().thread_track(self.number) else {
            return self.open.truncate(depth);
        };
        for Open { function, since_ns } in self.open.drain(depth..) {
            let dur_ns = at_ns.saturating_sub(since_ns);
            let row = row.since(since_ns);
            row.duration(
                Level::E2e,
                CATEGORY,
                &function.name,
                since_ns,
                dur_ns,
                &function.args,
            );
        }
    }

    fn ended(mut self, at_ns: u64) -> Row {
        self.close_from(0, at_ns);
        self
    }
}
