//! The recorder's own records as lines of JSON: names, anchors, removed segments.

use crate::sys::memory::count_out_of_memory;
use sa_format::{Name, PROCESS_NAME, Record, THREAD_NAME, try_visible, write_metadata};

/// Returns the line of a metadata record about process `pid`, or an empty line if there is not
/// enough memory.
pub(crate) fn metadata_line(pid: u32, record: &impl Record) -> Vec<u8> {
    track_line(pid, pid, record)
}

/// Returns the line of a metadata record about the thread or track `tid`, or an empty line if there
/// is not enough memory.
pub(crate) fn track_line<R: Record>(pid: u32, tid: u32, record: &R) -> Vec<u8> {
    named_line((pid, tid), R::NAME, record)
}

/// Returns the line of a metadata record with this name, about `thread`: a pid and a tid. Returns
/// an empty line if there is not enough memory.
fn named_line(thread: (u32, u32), name: &str, args: &impl serde::Serialize) -> Vec<u8> {
    let mut line = Growing::default();
    let _ = write_metadata(&mut line, thread, name, args); // writing to it cannot fail
    line.into_line()
}

/// Text that remembers if there was not enough memory for a part of it. Writing never returns an
/// error, because an error would need another allocation.
#[derive(Default)]
pub(crate) struct Growing {
    text: Vec<u8>,
    is_cut: bool,
}

impl Growing {
    /// Appends bytes to the text. Does nothing if there is not enough memory for them, or if there
    /// was not enough for earlier ones.
    pub(crate) fn add(&mut self, more: &[u8]) {
        self.is_cut = self.is_cut || self.text.try_reserve(more.len()).is_err();
        if !self.is_cut {
            self.text.extend_from_slice(more);
        }
    }

    /// Returns the text that was written. If memory was missing for a part of it, counts that and
    /// returns an empty text.
    pub(crate) fn into_line(self) -> Vec<u8> {
        if self.is_cut {
            count_out_of_memory();
            return Vec::new();
        }
        self.text
    }
}

impl std::io::Write for Growing {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        self.add(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the metadata line that gives the process its name in the trace. Returns an empty line
/// for an empty name, which viewers would drop.
pub(crate) fn process_name_line(pid: u32, name: &str) -> Vec<u8> {
    name_line((pid, pid), PROCESS_NAME, name)
}

/// Returns the metadata line that gives a thread or lane its name in the trace. Returns an empty
/// line for an empty name, which viewers would drop. If there is not enough memory, counts that and
/// returns an empty line.
pub(crate) fn thread_name_line(pid: u32, tid: u32, name: &str) -> Vec<u8> {
    name_line((pid, tid), THREAD_NAME, name)
}

/// Returns the metadata line that gives a process or thread its name. `record` is the name of the
/// record itself.
fn name_line(thread: (u32, u32), record: &str, name: &str) -> Vec<u8> {
    if name.is_empty() {
        return Vec::new();
    }
    let Some(name) = try_visible(name) else {
        count_out_of_memory();
        return Vec::new();
    };
    named_line(thread, record, &Name { name })
}
