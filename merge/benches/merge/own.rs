//! Fragments as our recorder writes them: header, anchors, checksummed blocks of several slots, a clean end.
//!
//! Four pids, each in two pid namespaces, so that half of the processes get another pid in the trace; flows with ids of their process.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use sa_format::{
    Anchor, BlockHeader, End, FragmentHeader, LANE_BASE, Record, RingKind, VERSION, block_sum,
};

use crate::lines::{Counts, Random, Us};
use xxhash_rust::xxh3::xxh3_64;

const KERNELS: [&str; 5] = [
    "qwen3_prefill",
    "qwen3_decode",
    "npu_graph_replay",
    "hccl_all_reduce",
    "sample_tokens",
];
const STEPS: [&str; 4] = [
    "WorkerProcess.execute_step",
    "WorkerProcess.batch_prefill",
    "PyptoExecutor.run_decode",
    "scheduler.schedule",
];
const THREADS: u32 = 4;
/// Requests that a process serves at a time: with two of them in each step and a new one every sixth, each is in twelve steps.
const SERVED: usize = 8;
const START_NS: u64 = 81_234_567_891_000;

/// The stream of one slot and the lines that wait for its next block.
struct Slot {
    number: u32,
    tid: u32,
    position: u64,
    block_bytes: usize,
    pending: Vec<u8>,
}

/// One process while its fragment is written.
struct Writer {
    out: BufWriter<File>,
    pid: u32,
    random: Random,
    now_ns: u64,
    next_flow: u64,
    /// The requests that are served now. Their flows are recorded, as our plugin of vLLM does.
    served: [u64; SERVED],
    written: u64,
    counts: Counts,
}

/// Writes fragment `index` of at least `bytes` bytes into `directory`.
pub(crate) fn write(directory: &Path, index: u32, bytes: u64) -> io::Result<Counts> {
    let pid = 4_711 + (index % 4) * 10;
    let nonce = format!("{:016x}", Random::new(index).next());
    let file = File::create(directory.join(format!("trace.{pid}.{nonce}.jsonl")))?;
    let mut writer = Writer {
        out: BufWriter::with_capacity(1 << 20, file),
        pid,
        random: Random::new(index),
        now_ns: START_NS + u64::from(index) * 1_234,
        next_flow: 1,
        served: std::array::from_fn(|nth| u64::from(index) << 24 | nth as u64),
        written: 0,
        counts: Counts::default(),
    };
    let mut slots: Vec<Slot> = (0..=THREADS).map(|number| Slot::new(number, pid)).collect();
    writer.start(index, nonce, &mut slots)?;
    writer.block(&mut slots[0])?;
    for id in writer.served {
        writer.arrival(&mut slots[1], writer.now_ns, id)?;
    }
    while writer.written < bytes {
        let thread = 1 + usize::try_from(writer.random.below(u64::from(THREADS))).unwrap_or(0);
        writer.step(&mut slots[thread])?;
        if writer.random.below(100_000) == 0 {
            writer.anchor(&mut slots[0])?;
            writer.block(&mut slots[0])?;
        }
    }
    for slot in &mut slots {
        writer.block(slot)?;
    }
    writer.end()?;
    writer.out.flush()?;
    Ok(writer.counts)
}

impl Slot {
    fn new(number: u32, pid: u32) -> Self {
        Slot {
            number,
            tid: pid + number.saturating_sub(1),
            position: 0,
            block_bytes: 32 << 10,
            pending: Vec::new(),
        }
    }
}

impl Writer {
    fn start(&mut self, index: u32, nonce: String, slots: &mut [Slot]) -> io::Result<()> {
        let header = FragmentHeader {
            version: VERSION,
            nonce,
            segment: 0,
            run: "20261121-081502-5feceb66".to_owned(),
            main: index == 0,
            host: "node-3".to_owned(),
            boot_id: "0b1f7a3e-6c1d-4c55-9a37-1f7f4f9d2c11".to_owned(),
            pid_ns: 4_026_531_836 + u64::from(index / 4),
            time_ns: 4_026_531_834,
            monotonic_offset_ns: 0,
            pid: self.pid,
            start_time: 812_345 + u64::from(index),
            exe: "python3.11".to_owned(),
            script: Some("serve.py".to_owned()),
            forked_from: None,
            ring: RingKind::File,
            page_bytes: 4096,
            levels: None,
            open_ns: None,
            late_ns: None,
        };
        header.write(self.pid, &mut self.out)?;
        self.anchor(&mut slots[0])?;
        let pid = self.pid;
        writeln!(
            slots[0].pending,
            r#"{{"ph":"M","pid":{pid},"tid":{pid},"name":"process_name","args":{{"name":"serving-worker-{index}"}}}}"#
        )?;
        for slot in &mut slots[1..] {
            let (tid, number) = (slot.tid, slot.number);
            writeln!(
                slot.pending,
                r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"thread_name","args":{{"name":"worker-{number}"}}}}"#
            )?;
        }
        Ok(())
    }

    fn anchor(&mut self, slot: &mut Slot) -> io::Result<()> {
        let anchor = Anchor {
            monotonic_ns: self.now_ns,
            realtime_ns: 1_795_248_902_123_456_789 + self.now_ns,
            uncertainty_ns: 41,
        };
        anchor.write(self.pid, &mut slot.pending)
    }

    fn end(&mut self) -> io::Result<()> {
        let end = End {
            monotonic_ns: self.now_ns,
            ..End::default()
        };
        end.write(self.pid, &mut self.out)
    }

    /// One step of a worker: kernels, the step around them (spans are written when they end), and something beside it.
    fn step(&mut self, slot: &mut Slot) -> io::Result<()> {
        let (pid, tid) = (self.pid, slot.tid);
        self.now_ns += 20_000 + self.random.below(30_000);
        let start = self.now_ns;
        for layer in 0..self.random.below(4) {
            let (ts, dur) = (
                Us(start + 500 + layer * 4_000),
                Us(1_500 + self.random.below(2_000)),
            );
            let (name, stream) = (self.random.word(&KERNELS), self.random.below(8));
            writeln!(
                slot.pending,
                r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"name":"{name}","cat":"kernel","args":{{"stream":{stream},"layer":{layer},"host_wall_us":{dur}}}}}"#
            )?;
            self.counts.add('X');
        }
        let (ts, dur) = (Us(start), Us(17_000 + self.random.below(2_000)));
        let (name, prefill, decode) = (
            self.random.word(&STEPS),
            self.random.below(4),
            self.random.below(64),
        );
        let (first, second) = (self.request(), self.request());
        writeln!(
            slot.pending,
            r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"name":"{name}","cat":"worker","args":{{"prefill":{prefill},"decode":{decode},"request_ids":["cmpl-{first:08x}","cmpl-{second:08x}"]}}}}"#
        )?;
        self.counts.add('X');
        self.beside(slot, start)?;
        if slot.pending.len() >= slot.block_bytes {
            self.block(slot)?;
            slot.block_bytes = 4_096 + usize::try_from(self.random.below(60_000)).unwrap_or(0);
        }
        Ok(())
    }

    fn beside(&mut self, slot: &mut Slot, start: u64) -> io::Result<()> {
        match self.random.below(6) {
            0 => self.flow(slot, start, "local"),
            1 => self.flow(slot, start, "global"),
            2 => self.counter(slot, start),
            3 => self.instant(slot, start),
            4 => self.lane(slot, start),
            _ => Ok(()),
        }
    }

    fn flow(&mut self, slot: &mut Slot, start: u64, scope: &str) -> io::Result<()> {
        let (pid, tid, id) = (self.pid, slot.tid, self.next_flow);
        self.next_flow += 1;
        let (ts, end) = (Us(start + 100), Us(start + 16_500));
        writeln!(
            slot.pending,
            r#"{{"ph":"s","pid":{pid},"tid":{tid},"ts":{ts},"id2":{{"{scope}":"0x{id:x}"}},"name":"request","cat":"flow"}}"#
        )?;
        writeln!(
            slot.pending,
            r#"{{"ph":"f","pid":{pid},"tid":{tid},"ts":{end},"id2":{{"{scope}":"0x{id:x}"}},"bp":"e","name":"request","cat":"flow"}}"#
        )?;
        self.counts.add('s');
        self.counts.add('f');
        Ok(())
    }

    fn counter(&mut self, slot: &mut Slot, start: u64) -> io::Result<()> {
        let (pid, tid, ts) = (self.pid, slot.tid, Us(start + 200));
        let (used, free) = (self.random.below(4_096), self.random.below(4_096));
        self.counts.add('C');
        writeln!(
            slot.pending,
            r#"{{"ph":"C","pid":{pid},"tid":{tid},"ts":{ts},"name":"kv_cache","args":{{"used_blocks":{used},"free_blocks":{free}}}}}"#
        )
    }

    fn instant(&mut self, slot: &mut Slot, start: u64) -> io::Result<()> {
        let (pid, tid, ts) = (self.pid, slot.tid, Us(start + 300));
        let (id, tokens) = (self.request(), self.random.below(512));
        self.counts.add('i');
        writeln!(
            slot.pending,
            r#"{{"ph":"i","pid":{pid},"tid":{tid},"ts":{ts},"s":"t","name":"token \"é\" out","cat":"serving","args":{{"request_id":"cmpl-{id:08x}","tokens":{tokens}}}}}"#
        )
    }

    /// A request on a virtual lane.
    fn lane(&mut self, slot: &mut Slot, start: u64) -> io::Result<()> {
        let (pid, lane) = (self.pid, LANE_BASE + slot.number);
        let (ts, dur, id) = (
            Us(start),
            Us(self.random.below(19_000)),
            self.random.next() >> 32,
        );
        let place = usize::try_from(self.random.below(SERVED as u64)).unwrap_or(0);
        self.served[place] = id;
        self.arrival(slot, start, id)?;
        self.counts.add('X');
        writeln!(
            slot.pending,
            r#"{{"ph":"X","pid":{pid},"tid":{lane},"ts":{ts},"dur":{dur},"name":"http.completions","cat":"request","args":{{"request_id":"cmpl-{id:08x}","max_tokens":24,"stream":true}}}}"#
        )
    }

    /// The begin of the flow that stands for a request.
    fn arrival(&mut self, slot: &mut Slot, start: u64, id: u64) -> io::Result<()> {
        let (pid, lane, ts) = (self.pid, LANE_BASE + slot.number, Us(start));
        let flow = xxh3_64(format!("cmpl-{id:08x}").as_bytes());
        self.counts.add('s');
        writeln!(
            slot.pending,
            r#"{{"ph":"s","pid":{pid},"tid":{lane},"ts":{ts},"id2":{{"global":"{flow:#x}"}},"name":"request","cat":"flow"}}"#
        )
    }

    /// One of those that are served.
    fn request(&mut self) -> u64 {
        let place = usize::try_from(self.random.below(SERVED as u64)).unwrap_or(0);
        self.served[place]
    }

    fn block(&mut self, slot: &mut Slot) -> io::Result<()> {
        if slot.pending.is_empty() {
            return Ok(());
        }
        let header = BlockHeader {
            slot: slot.number,
            generation: 0,
            from: slot.position,
            len: slot.pending.len() as u64,
            sum: block_sum(slot.number, 0, slot.position, &slot.pending),
        };
        // The recorder begins a block where source and target lie alike in a cache line.
        let lead = usize::try_from(self.random.below(64)).unwrap_or(0);
        let mut line = vec![b'\n'; lead];
        header.write(self.pid, &mut line);
        self.out.write_all(&line)?;
        self.out.write_all(&slot.pending)?;
        self.written += line.len() as u64 + header.len;
        slot.position += header.len;
        slot.pending.clear();
        Ok(())
    }
}
