//! A fragment's bytes: header, blocks with their checksums, plain lines.

use super::line::On;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A recording process and one recorder in it.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) start_time: u64,
    pub(crate) nonce: u64,
    pub(crate) run: String,
    pub(crate) main: bool,
    pub(crate) offset_ns: i64,
    pub(crate) ring: &'static str,
}

impl Process {
    /// A worker of the run `run-a` that leaves no ring.
    pub(crate) fn new(pid: u32) -> Self {
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

    /// The same process with a ring file.
    pub(crate) fn with_ring(pid: u32) -> Self {
        Process {
            ring: "file",
            ..Process::new(pid)
        }
    }

    /// Its main thread.
    pub(crate) fn main_thread(&self) -> On {
        self.thread(self.pid)
    }

    /// The thread or lane `tid`.
    pub(crate) fn thread(&self, tid: u32) -> On {
        On { pid: self.pid, tid }
    }

    /// The `sa_fragment` line of segment `segment`.
    pub(crate) fn header(&self, segment: u32) -> String {
        self.header_with(segment, "")
    }

    /// An `sa_fragment` line with further keys, each after a comma.
    pub(crate) fn header_with(&self, segment: u32, more: &str) -> String {
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

    /// An `sa_anchor` line.
    pub(crate) fn anchor(&self, monotonic_ns: u64) -> String {
        let realtime_ns = 1_795_248_902_000_000_000 + monotonic_ns;
        let args = format!(
            r#""monotonic_ns":{monotonic_ns},"realtime_ns":{realtime_ns},"uncertainty_ns":41"#
        );
        self.main_thread().metadata("sa_anchor", &args)
    }

    /// An `sa_end` line.
    pub(crate) fn end(&self, monotonic_ns: u64) -> String {
        self.main_thread()
            .metadata("sa_end", &format!(r#""monotonic_ns":{monotonic_ns}"#))
    }

    /// A fragment that holds nothing but the header.
    pub(crate) fn fragment(&self) -> Fragment {
        let mut fragment = Fragment {
            pid: self.pid,
            bytes: Vec::new(),
        };
        fragment.line(&self.header(0));
        fragment
    }
}

/// The checksum of a block, from FORMAT.md §2.2.
pub(crate) fn block_sum(slot: u32, generation: u32, from: u64, content: &[u8]) -> u64 {
    xxh3_64_with_seed(
        content,
        from ^ (u64::from(slot) << 48) ^ (u64::from(generation) << 32),
    )
}

/// A block header line, newline included.
pub(crate) fn block_header(
    pid: u32,
    slot: u32,
    generation: u32,
    from: u64,
    content: &[u8],
) -> String {
    let sum = block_sum(slot, generation, from, content);
    let len = content.len();
    format!(
        "{{\"ph\":\"M\",\"name\":\"sa_block\",\"pid\":{pid},\"tid\":{pid},\"args\":{{\"slot\":{slot},\"gen\":{generation},\"from\":{from},\"len\":{len},\"sum\":\"{sum:016x}\"}}}}\n"
    )
}

/// A fragment under construction.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    pub(crate) pid: u32,
    pub(crate) bytes: Vec<u8>,
}

impl Fragment {
    /// A fragment without our header.
    pub(crate) fn foreign(pid: u32) -> Self {
        Fragment {
            pid,
            bytes: Vec::new(),
        }
    }

    /// Appends raw bytes and returns the offset they start at.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> u64 {
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        offset as u64
    }

    /// Appends a plain line and returns its offset.
    pub(crate) fn line(&mut self, line: &str) -> u64 {
        self.raw(format!("{line}\n").as_bytes())
    }

    /// Appends a whole block and returns the position after it.
    pub(crate) fn block(&mut self, slot: u32, from: u64, content: &[u8]) -> u64 {
        self.block_of(slot, 0, from, content)
    }

    /// Appends a whole block of generation `generation` and returns the position after it.
    pub(crate) fn block_of(
        &mut self,
        slot: u32,
        generation: u32,
        from: u64,
        content: &[u8],
    ) -> u64 {
        let header = block_header(self.pid, slot, generation, from, content);
        self.raw(header.as_bytes());
        self.raw(content);
        from + content.len() as u64
    }

    /// Writes it as `trace.<name>.jsonl` below `folder` and returns the path.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(format!("trace.{name}.jsonl"));
        std::fs::write(&path, &self.bytes).unwrap();
        path
    }

    /// Writes it under its pid.
    pub(crate) fn write_here(&self, folder: &Path) -> PathBuf {
        self.write(folder, &self.pid.to_string())
    }
}
