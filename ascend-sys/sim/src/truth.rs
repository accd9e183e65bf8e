//! The truth for tests: one JSON line for each executed task, in the file that `ASCEND_SIM_TRUTH` names.
//!
//! Each stream collects its lines and writes them at once: when there are many, when the stream is idle, when the host waits for it, and at exit.

use crate::config::config;
use crate::refuse;
use crate::wait::lock;
use serde::Serialize;
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Number of collected bytes from which a stream writes its lines.
const FULL_BYTES: usize = 1 << 16;

thread_local! {
    static TID: Cell<i32> = const { Cell::new(0) };
}

/// Returns the calling thread's id. The system call is made once per thread.
pub(crate) fn tid() -> i32 {
    if TID.get() == 0 {
        // SAFETY: the call has no arguments and cannot fail.
        TID.set(unsafe { libc::gettid() });
    }
    TID.get()
}

/// The file, and the buffers of the streams that write to it.
pub(crate) struct Truth {
    file: File,
    through: bool,
    /// The process that records the truth. A child of `fork` has copies of lines that the parent writes, and of locks that no thread there will release.
    pid: u32,
    buffers: Mutex<Vec<Weak<Buffer>>>,
}

/// The lines of one stream that are not yet written.
#[derive(Default)]
pub(crate) struct Buffer(Mutex<Vec<u8>>);

/// The content of a line. Times are of `CLOCK_MONOTONIC` in ns, and ticks are of the device's clock.
#[derive(Serialize)]
pub(crate) struct Entry<'a> {
    pub(crate) kind: &'static str,
    pub(crate) name: &'a str,
    pub(crate) device: i32,
    /// The stream's id, or -1 for no stream.
    pub(crate) stream: i32,
    pub(crate) tid: i32,
    pub(crate) seq: u64,
    pub(crate) launch_ns: u64,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) start_ticks: u64,
    pub(crate) end_ticks: u64,
    /// MSPTI's correlation id, or 0 if MSPTI has no record of the task.
    #[serde(skip_serializing_if = "is_none")]
    pub(crate) correlation: u64,
    /// The graph to which the task belongs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) graph: Option<u32>,
    /// The graph's own stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) graph_stream: Option<i32>,
}

/// Returns true for the correlation id of work without a record.
fn is_none(correlation: &u64) -> bool {
    *correlation == 0
}

/// Returns the truth if `ASCEND_SIM_TRUTH` names a file. The first call opens the file.
pub(crate) fn truth() -> Option<&'static Truth> {
    static TRUTH: OnceLock<Option<Truth>> = OnceLock::new();
    let open = || {
        let path = config().truth.as_deref()?;
        let opened = Truth::open(path, config().truth_through);
        Some(opened.unwrap_or_else(|error| refuse(&format!("{}: {error}", path.display()))))
    };
    TRUTH.get_or_init(open).as_ref()
}

impl Truth {
    /// Opens the file for appending. Each write consists of whole lines.
    fn open(path: &Path, through: bool) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        // SAFETY: the handler is a function of this library, which is never unloaded.
        unsafe { libc::atexit(flush_at_exit) };
        Ok(Self {
            file,
            through,
            pid: std::process::id(),
            buffers: Mutex::default(),
        })
    }

    fn is_inherited(&self) -> bool {
        self.pid != std::process::id()
    }

    /// Writes the collected lines of all streams.
    pub(crate) fn flush(&self) {
        if self.is_inherited() {
            return;
        }
        let buffers: Vec<_> = lock(&self.buffers)
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        buffers.iter().for_each(|buffer| buffer.flush());
    }
}

extern "C" fn flush_at_exit() {
    if let Some(truth) = truth() {
        truth.flush();
    }
}

/// Creates the buffer of a new stream.
pub(crate) fn buffer() -> Arc<Buffer> {
    let buffer = Arc::new(Buffer::default());
    if let Some(truth) = truth() {
        let mut buffers = lock(&truth.buffers);
        buffers.retain(|buffer| buffer.strong_count() > 0);
        buffers.push(Arc::downgrade(&buffer));
    }
    buffer
}

impl Buffer {
    pub(crate) fn push(&self, entry: &Entry) {
        let Some(truth) = truth() else {
            return;
        };
        let mut lines = lock(&self.0);
        entry.write(&mut lines);
        if truth.through || lines.len() >= FULL_BYTES {
            write_out(truth, &mut lines);
        }
    }

    pub(crate) fn flush(&self) {
        if let Some(truth) = truth()
            && !truth.is_inherited()
        {
            write_out(truth, &mut lock(&self.0));
        }
    }
}

/// Writes lines to the file. If the disk is full, the test lacks its truth, but the program continues.
fn write_out(truth: &Truth, lines: &mut Vec<u8>) {
    if !lines.is_empty() && !truth.is_inherited() {
        let _ = (&truth.file).write_all(lines);
    }
    lines.clear();
}

impl Entry<'_> {
    fn write(&self, lines: &mut Vec<u8>) {
        let _ = serde_json::to_writer(&mut *lines, self); // writing to memory does not fail
        lines.push(b'\n');
    }
}
