//! The bytes of a fragment: header, blocks with checksums, plain lines.

use super::line::On;
use crate::reader::{block_sum, header_line};
use std::path::{Path, PathBuf};

/// A recording process with one recorder.
#[derive(Clone, Debug)]
pub struct Process {
    /// Pid.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start_time: u64,
    /// Nonce of the recorder.
    pub nonce: u64,
    /// Run id.
    pub run: String,
    /// True for the run's main process.
    pub main: bool,
    /// Offset of the process's time namespace.
    pub offset_ns: i64,
    /// Place of the ring: `file` or `heap`.
    pub ring: &'static str,
}

impl Process {
    /// Creates a worker of the run `run-a` that leaves no ring file.
    pub fn new(pid: u32) -> Self {
        let nonce = 0x9f86_d081_0000_0000 + u64::from(pid);
        Process {
            pid,
            start_time: u64::from(pid) * 10,
            nonce,
            run: "run-a".into(),
            main: false,
            offset_ns: 0,
            ring: "heap",
        }
    }

    /// Creates a worker with a ring file.
    pub fn with_ring(pid: u32) -> Self {
        Process {
            ring: "file",
            ..Process::new(pid)
        }
    }

    /// Returns the main thread.
    pub fn main_thread(&self) -> On {
        self.thread(self.pid)
    }

    /// Returns the thread or lane `tid`.
    pub fn thread(&self, tid: u32) -> On {
        On { pid: self.pid, tid }
    }

    /// Returns the `sa_fragment` line of segment `segment`.
    pub fn header(&self, segment: u32) -> String {
        self.header_with(segment, "")
    }

    /// Returns an `sa_fragment` line with further keys. Each key starts with a comma.
    pub fn header_with(&self, segment: u32, more: &str) -> String {
        let Process {
            pid,
            start_time,
            nonce,
            run,
            main,
            offset_ns,
            ring,
        } = self;
        let args = format!(
            r#""version":1,"nonce":"{nonce:016x}","segment":{segment},"run":"{run}","main":{main},"host":"node-3","boot_id":"0b1f7a3e-6c1d-4c55-9a37-1f7f4f9d2c11","pid_ns":402653,"time_ns":402654,"monotonic_offset_ns":{offset_ns},"pid":{pid},"start_time":{start_time},"exe":"python3.11","script":"serve.py","ring":"{ring}","page_bytes":4096{more}"#
        );
        self.main_thread().metadata("sa_fragment", &args)
    }

    /// Returns an `sa_anchor` line.
    pub fn anchor(&self, monotonic_ns: u64) -> String {
        let realtime_ns = 1_795_248_902_000_000_000 + monotonic_ns;
        let args = format!(
            r#""monotonic_ns":{monotonic_ns},"realtime_ns":{realtime_ns},"uncertainty_ns":41"#
        );
        self.main_thread().metadata("sa_anchor", &args)
    }

    /// Returns an `sa_end` line.
    pub fn end(&self, monotonic_ns: u64) -> String {
        self.main_thread()
            .metadata("sa_end", &format!(r#""monotonic_ns":{monotonic_ns}"#))
    }

    /// Creates a fragment that only contains the header.
    pub fn fragment(&self) -> Fragment {
        let mut fragment = Fragment {
            pid: self.pid,
            bytes: Vec::new(),
        };
        fragment.line(&self.header(0));
        fragment
    }
}

/// Returns a block header line with its newline.
pub fn block_header(pid: u32, slot: u32, generation: u32, from: u64, content: &[u8]) -> String {
    let sum = block_sum(slot, generation, from, content);
    let block = [slot.into(), generation.into(), from, content.len() as u64];
    header_line(pid.into(), block, sum) + "\n"
}

/// A fragment under construction.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// Pid of the records.
    pub pid: u32,
    /// Contents of the file so far.
    pub bytes: Vec<u8>,
}

impl Fragment {
    /// Creates a fragment without our header.
    pub fn foreign(pid: u32) -> Self {
        Fragment {
            pid,
            bytes: Vec::new(),
        }
    }

    /// Appends raw bytes and returns their offset.
    pub fn raw(&mut self, bytes: &[u8]) -> u64 {
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        offset as u64
    }

    /// Appends a plain line and returns its offset.
    pub fn line(&mut self, line: &str) -> u64 {
        self.raw(format!("{line}\n").as_bytes())
    }

    /// Appends a complete block and returns the position after it.
    pub fn block(&mut self, slot: u32, from: u64, content: &[u8]) -> u64 {
        self.block_of(slot, 0, from, content)
    }

    /// Appends a complete block of generation `generation` and returns the position after it.
    pub fn block_of(&mut self, slot: u32, generation: u32, from: u64, content: &[u8]) -> u64 {
        let header = block_header(self.pid, slot, generation, from, content);
        self.raw(header.as_bytes());
        self.raw(content);
        from + content.len() as u64
    }

    /// Writes the fragment as `trace.<name>.jsonl` below `folder` and returns the path.
    pub fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(format!("trace.{name}.jsonl"));
        std::fs::write(&path, &self.bytes).unwrap();
        path
    }

    /// Writes the fragment under its pid.
    pub fn write_here(&self, folder: &Path) -> PathBuf {
        self.write(folder, &self.pid.to_string())
    }
}
