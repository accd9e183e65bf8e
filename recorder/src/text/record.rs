//! Records of our own as lines of JSON: names, anchors, what was removed.

use crate::format::try_visible;
use crate::sys::memory::leave_out;

/// A metadata record, as [`Metadata`](crate::format::Metadata) without text of its own.
#[derive(serde::Serialize)]
struct Record<'a, A> {
    ph: &'a str,
    pid: u32,
    tid: u32,
    name: &'a str,
    args: A,
}

/// The args of a record that gives a name.
#[derive(serde::Serialize)]
struct NameArgs<'a> {
    name: &'a str,
}

/// Makes a metadata line; an empty one where there is no memory for it.
pub(crate) fn metadata_line<A: serde::Serialize>(pid: u32, name: &str, args: A) -> Vec<u8> {
    metadata_line_of(pid, pid, name, args)
}

/// Makes a metadata line about a thread or a row.
pub(crate) fn metadata_line_of<A: serde::Serialize>(
    pid: u32,
    tid: u32,
    name: &str,
    args: A,
) -> Vec<u8> {
    let record = Record {
        ph: "M",
        pid,
        tid,
        name,
        args,
    };
    json_line(&record)
}

/// A value as a line of JSON; an empty one where there is no memory for it.
pub(crate) fn json_line<T: serde::Serialize>(value: &T) -> Vec<u8> {
    let mut line = Growing::default();
    let written = serde_json::to_writer(&mut line, value);
    line.add(b"\n");
    match written {
        Ok(()) => line.into_text().unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

/// Text that remembers when there was no memory for more. It never answers with an error: that would be one more thing on the heap.
#[derive(Default)]
pub(crate) struct Growing {
    text: Vec<u8>,
    is_cut: bool,
}

impl Growing {
    pub(crate) fn add(&mut self, more: &[u8]) {
        self.is_cut = self.is_cut || self.text.try_reserve(more.len()).is_err();
        if !self.is_cut {
            self.text.extend_from_slice(more);
        }
    }

    /// The text; `None` if some of it is missing.
    pub(crate) fn into_text(self) -> Option<Vec<u8>> {
        (!self.is_cut).then_some(self.text)
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

/// The metadata line that names the process; none for an empty name, which viewers drop.
pub(crate) fn process_name_line(pid: u32, name: &str) -> Vec<u8> {
    if name.is_empty() {
        return Vec::new();
    }
    let Some(name) = try_visible(name) else {
        leave_out();
        return Vec::new();
    };
    metadata_line(pid, "process_name", NameArgs { name: &name })
}

/// The metadata line that names a thread or lane; none for an empty name, which viewers drop, and none, and counted, where there is no memory for it.
pub(crate) fn thread_name_line(pid: u32, tid: u32, name: &str) -> Vec<u8> {
    if name.is_empty() {
        return Vec::new();
    }
    let Some(name) = try_visible(name) else {
        leave_out();
        return Vec::new();
    };
    metadata_line_of(pid, tid, "thread_name", NameArgs { name: &name })
}
