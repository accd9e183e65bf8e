//! Generates fragments as our recorder writes them: header, anchors, blocks of several slots with checksums, flows with ids that are local to a process, and a
//! regular end.
//!
//! Four processes at a time share a pid namespace, so the other processes get other pids in the trace. In a long run, requests last up to 3 s and are recorded
//! only when they end, and one request takes 60 s.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use sa_format::{
    Anchor, BlockHeader, End, FragmentHeader, LANE_BASE, Record, RingKind, VERSION, block_sum,
    segment_name,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::lines::{Counts, Random, Us};

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
/// Number of requests that a process serves at a time. Two of them are in each step, and every sixth step replaces one, so each is in about 12 steps.
const SERVED: usize = 8;
/// Begin of the first event of a run.
const START_NS: u64 = 81_234_567_891_000;
/// Length of a step in a short run.
const STEP_NS: u64 = 35_000;
/// Average size of a step with all of its events.
const STEP_BYTES: u64 = 605;
const SECOND_NS: u64 = 1_000_000_000;
const RUN_NS: u64 = 1_000 * SECOND_NS;
const SEGMENT_BYTES: u64 = 32 << 20;
const ANCHOR_NS: u64 = 5 * SECOND_NS;
/// Begin and end of the long request.
const LONG_NS: (u64, u64) = (START_NS + 495 * SECOND_NS, START_NS + 555 * SECOND_NS);
/// Maximum length of the other requests.
const REQUEST_NS: u64 = 3 * SECOND_NS;

/// A window of a long run, and the number of spans in it.
pub(crate) struct Window {
    from_ns: u64,
    to_ns: u64,
    pub(crate) spans: u64,
}

impl Window {
    /// Creates the window between two seconds of the run.
    pub(crate) fn new(from_s: u64, to_s: u64) -> Window {
        Window {
            from_ns: START_NS + from_s * SECOND_NS,
            to_ns: START_NS + to_s * SECOND_NS,
            spans: 0,
        }
    }
}

/// The stream of one slot.
struct Slot {
    position: u64,
    block_bytes: usize,
    /// Lines for the next block.
    pending: Vec<u8>,
    /// Earliest start among these lines.
    earliest_ns: u64,
}

/// A process whose segments are being written.
struct Writer<'a> {
    directory: &'a Path,
    out: BufWriter<File>,
    index: u32,
    pid: u32,
    segment: u32,
    segment_bytes: u64,
    random: Random,
    now_ns: u64,
    next_flow: u64,
    /// Ids of the requests that are being served. Their flows are recorded, as in our plugin for vLLM.
    served: [u64; SERVED],
    slots: Vec<Slot>,
    counts: Counts,
    windows: &'a mut [Window],
}

/// Writes the segments of process `index` with about `bytes` bytes, and counts the spans in the windows. Without windows, the run is as short as the one of a
/// busy process. With windows, it lasts 1,000 s.
pub(crate) fn write(
    directory: &Path,
    index: u32,
    bytes: u64,
    windows: &mut [Window],
) -> io::Result<Counts> {
    let steps = (bytes / STEP_BYTES).max(1);
    let (step_ns, request_ns) = match windows.is_empty() {
        true => (STEP_NS, STEP_NS / 2),
        false => (RUN_NS / steps, REQUEST_NS),
    };
    let mut writer = Writer::new(directory, index, windows)?;
    let mut next_anchor_ns = START_NS + ANCHOR_NS;
    let mut long = Some(LONG_NS);
    for _ in 0..steps {
        writer.step(step_ns, request_ns)?;
        if let Some((from_ns, to_ns)) = long.take_if(|(_, to_ns)| *to_ns <= writer.now_ns) {
            let lane_and_times = (LANE_BASE + 1, from_ns, to_ns - from_ns);
            let rest = format_args!(r#""name":"http.long","cat":"request""#);
            writer.event(1, 'X', lane_and_times, rest)?;
        }
        if writer.now_ns >= next_anchor_ns {
            writer.slots[0].pending = writer.anchor_line();
            writer.flush()?;
            next_anchor_ns += ANCHOR_NS;
        }
    }
    // The run ends with this span.
    let thread_and_times = (writer.pid, writer.now_ns - 1_000, 1_000);
    let rest = format_args!(r#""name":"shutdown","cat":"worker""#);
    writer.event(1, 'X', thread_and_times, rest)?;
    writer.end()
}

fn create(directory: &Path, index: u32, segment: u32) -> io::Result<BufWriter<File>> {
    let name = segment_name(&format!("trace.{}.{}", pid(index), nonce(index)), segment);
    let file = File::create(directory.join(name))?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}

fn pid(index: u32) -> u32 {
    4_711 + (index % 4) * 10
}

fn nonce(index: u32) -> String {
    format!("{:016x}", Random::new(index).next())
}

impl<'a> Writer<'a> {
    fn new(directory: &'a Path, index: u32, windows: &'a mut [Window]) -> io::Result<Self> {
        let slot = |_| Slot {
            position: 0,
            block_bytes: 32 << 10,
            pending: Vec::new(),
            earliest_ns: u64::MAX,
        };
        let mut writer = Writer {
            directory,
            out: create(directory, index, 0)?,
            index,
            pid: pid(index),
            segment: 0,
            segment_bytes: 0,
            random: Random::new(index),
            now_ns: START_NS,
            next_flow: 1,
            served: std::array::from_fn(|nth| u64::from(index) << 24 | nth as u64),
            slots: (0..=THREADS).map(slot).collect(),
            counts: Counts::new(),
            windows,
        };
        let header = writer.header().line(writer.pid);
        writer.put(&header)?;
        writer.slots[0].pending = writer.anchor_line();
        for (slot, line) in writer.names() {
            writer.slots[slot].pending.extend(line.into_bytes());
        }
        writer.block(0)?;
        for id in writer.served {
            writer.arrival(1, START_NS, id)?;
        }
        Ok(writer)
    }

    fn put(&mut self, text: &[u8]) -> io::Result<()> {
        self.segment_bytes += text.len() as u64;
        self.out.write_all(text)
    }

    fn header(&self) -> FragmentHeader {
        let (index, is_later) = (self.index, self.segment > 0);
        FragmentHeader {
            version: VERSION,
            nonce: nonce(index),
            segment: self.segment,
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
            ring: RingKind::Heap,
            page_bytes: 4096,
            levels: None,
            open_ns: is_later.then(|| self.open_ns()),
            late_ns: is_later.then_some(REQUEST_NS),
        }
    }

    /// Returns the earliest start of all events that are open or not written yet.
    fn open_ns(&self) -> u64 {
        let is_open = (LONG_NS.0..LONG_NS.1).contains(&self.now_ns);
        let long_ns = if is_open { LONG_NS.0 } else { u64::MAX };
        let pending = self.slots.iter().map(|slot| slot.earliest_ns);
        pending.fold(self.now_ns.min(long_ns), u64::min)
    }

    /// Returns the lines with the current names, and the slot of each.
    fn names(&self) -> Vec<(usize, String)> {
        let (pid, index) = (self.pid, self.index);
        let line = |tid: u32, kind: &str, name: String| {
            format!(
                "{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"{kind}_name\",\"args\":{{\"name\":\"{name}\"}}}}\n"
            )
        };
        let own = line(pid, "process", format!("serving-worker-{index}"));
        let slots = (1..).zip(1..=THREADS);
        let threads = slots.map(|(slot, number)| {
            let name = format!("worker-{number}");
            (slot, line(pid + number - 1, "thread", name))
        });
        [(0, own)].into_iter().chain(threads).collect()
    }

    fn anchor_line(&self) -> Vec<u8> {
        let anchor = Anchor {
            monotonic_ns: self.now_ns,
            realtime_ns: 1_795_248_902_123_456_789 + self.now_ns,
            uncertainty_ns: 41,
        };
        anchor.line(self.pid)
    }

    fn flush(&mut self) -> io::Result<()> {
        (0..self.slots.len()).try_for_each(|slot| self.block(slot))
    }

    /// Records an event in a slot, with its phase, its thread or lane, its start and duration, and the rest of its line.
    fn event(
        &mut self,
        slot: usize,
        phase: char,
        (tid, start_ns, dur_ns): (u32, u64, u64),
        rest: fmt::Arguments<'_>,
    ) -> io::Result<()> {
        *self.counts.entry(phase).or_default() += 1;
        let (pid, ts) = (self.pid, Us(start_ns));
        let slot = &mut self.slots[slot];
        slot.earliest_ns = slot.earliest_ns.min(start_ns);
        write!(
            slot.pending,
            r#"{{"ph":"{phase}","pid":{pid},"tid":{tid},"ts":{ts},"#
        )?;
        if phase == 'X' {
            write!(slot.pending, r#""dur":{},"#, Us(dur_ns))?;
            for window in &mut *self.windows {
                let is_in = start_ns <= window.to_ns && start_ns + dur_ns >= window.from_ns;
                window.spans += u64::from(is_in);
            }
        }
        writeln!(slot.pending, "{rest}}}")
    }

    /// Records a step of a worker: kernels, the span around them, which follows because spans are written when they end, and perhaps another event.
    fn step(&mut self, step_ns: u64, request_ns: u64) -> io::Result<()> {
        let slot = 1 + self.random.index(THREADS as usize);
        let tid = self.tid(slot);
        let begin_ns = self.now_ns;
        self.now_ns += step_ns;
        for layer in 0..self.random.below(4) {
            let dur_ns = step_ns / 16 + self.random.below(step_ns / 32);
            let (name, stream) = (KERNELS[self.random.index(5)], self.random.below(8));
            let start_ns = begin_ns + step_ns / 32 + layer * step_ns / 9;
            let dur = Us(dur_ns);
            let rest = format_args!(
                r#""name":"{name}","cat":"kernel","args":{{"stream":{stream},"layer":{layer},"host_wall_us":{dur}}}"#
            );
            self.event(slot, 'X', (tid, start_ns, dur_ns), rest)?;
        }
        let dur_ns = step_ns / 2 + self.random.below(step_ns / 16);
        let (name, prefill) = (STEPS[self.random.index(4)], self.random.below(4));
        let (decode, first, second) = (self.random.below(64), self.request(), self.request());
        let rest = format_args!(
            r#""name":"{name}","cat":"worker","args":{{"prefill":{prefill},"decode":{decode},"request_ids":["cmpl-{first:08x}","cmpl-{second:08x}"]}}"#
        );
        self.event(slot, 'X', (tid, begin_ns, dur_ns), rest)?;
        self.other_event(slot, begin_ns, step_ns, request_ns)?;
        if self.slots[slot].pending.len() >= self.slots[slot].block_bytes {
            self.block(slot)?;
            self.slots[slot].block_bytes = 4_096 + self.random.index(60_000);
        }
        Ok(())
    }

    fn tid(&self, slot: usize) -> u32 {
        self.pid + u32::try_from(slot).unwrap_or(1) - 1
    }

    /// Records a flow, a counter, an instant, a request or nothing.
    fn other_event(
        &mut self,
        slot: usize,
        at_ns: u64,
        step_ns: u64,
        request_ns: u64,
    ) -> io::Result<()> {
        let tid = self.tid(slot);
        let start = (tid, at_ns + step_ns / 100, 0);
        match self.random.below(6) {
            scope @ (0 | 1) => {
                let scope = if scope == 0 { "local" } else { "global" };
                let id = self.next_flow;
                self.next_flow += 1;
                let flow =
                    format!(r#""id2":{{"{scope}":"0x{id:x}"}},"name":"request","cat":"flow""#);
                let end = (tid, at_ns + step_ns * 4 / 9, 0);
                self.event(slot, 's', start, format_args!("{flow}"))?;
                self.event(slot, 'f', end, format_args!(r#""bp":"e",{flow}"#))
            }
            2 => {
                let (used, free) = (self.random.below(4_096), self.random.below(4_096));
                let rest = format_args!(
                    r#""name":"kv_cache","args":{{"used_blocks":{used},"free_blocks":{free}}}"#
                );
                self.event(slot, 'C', start, rest)
            }
            3 => {
                let (id, tokens) = (self.request(), self.random.below(512));
                let rest = format_args!(
                    r#""s":"t","name":"token \"é\" out","cat":"serving","args":{{"request_id":"cmpl-{id:08x}","tokens":{tokens}}}"#
                );
                self.event(slot, 'i', start, rest)
            }
            4 => self.new_request(slot, request_ns),
            _ => Ok(()),
        }
    }

    /// Records a request, which has just ended, on a lane.
    fn new_request(&mut self, slot: usize, request_ns: u64) -> io::Result<()> {
        let dur_ns = self.random.below(request_ns.min(self.now_ns - START_NS));
        let (start_ns, id) = (self.now_ns - dur_ns, self.random.next() >> 32);
        let replaced = self.random.index(SERVED);
        self.served[replaced] = id;
        self.arrival(slot, start_ns, id)?;
        let lane = LANE_BASE + self.tid(slot) - self.pid + 1;
        let rest = format_args!(
            r#""name":"http.completions","cat":"request","args":{{"request_id":"cmpl-{id:08x}","max_tokens":24,"stream":true}}"#
        );
        self.event(slot, 'X', (lane, start_ns, dur_ns), rest)
    }

    /// Records the start of the flow of a request.
    fn arrival(&mut self, slot: usize, start_ns: u64, id: u64) -> io::Result<()> {
        let flow = xxh3_64(format!("cmpl-{id:08x}").as_bytes());
        let lane = LANE_BASE + self.tid(slot) - self.pid + 1;
        let rest = format_args!(r#""id2":{{"global":"{flow:#x}"}},"name":"request","cat":"flow""#);
        self.event(slot, 's', (lane, start_ns, 0), rest)
    }

    /// Returns the id of one of the requests that are being served.
    fn request(&mut self) -> u64 {
        self.served[self.random.index(SERVED)]
    }

    /// Writes a slot's block. Begins the next segment if the block does not fit into this one.
    fn block(&mut self, number: usize) -> io::Result<()> {
        let slot = &mut self.slots[number];
        if slot.pending.is_empty() {
            return Ok(());
        }
        let (body, from) = (std::mem::take(&mut slot.pending), slot.position);
        slot.position += body.len() as u64;
        let index = u32::try_from(number).unwrap_or(0);
        let header = BlockHeader {
            slot: index,
            generation: 0,
            from,
            len: body.len() as u64,
            sum: block_sum(index, 0, from, &body),
        };
        // The recorder aligns a block so that source and target have the same offset in a cache line.
        let mut line = vec![b'\n'; self.random.index(64)];
        header.write(self.pid, &mut line);
        let bytes = (line.len() + body.len()) as u64;
        if self.segment_bytes + bytes > SEGMENT_BYTES {
            self.next_segment()?;
        }
        self.slots[number].earliest_ns = u64::MAX;
        self.put(&line)?;
        self.put(&body)
    }

    fn next_segment(&mut self) -> io::Result<()> {
        self.out.flush()?;
        self.out.get_ref().sync_data()?; // A disk that is still writing would affect the measurement.
        self.segment += 1;
        self.segment_bytes = 0;
        self.out = create(self.directory, self.index, self.segment)?;
        let mut front = self.header().line(self.pid);
        front.extend(self.anchor_line());
        front.extend(
            self.names()
                .into_iter()
                .flat_map(|(_, line)| line.into_bytes()),
        );
        self.put(&front)
    }

    /// Writes the remaining blocks and a regular end.
    fn end(mut self) -> io::Result<Counts> {
        self.flush()?;
        let end = End {
            monotonic_ns: self.now_ns,
            ..End::default()
        };
        end.write(self.pid, &mut self.slots[0].pending)?;
        self.flush()?;
        self.out.flush()?;
        Ok(self.counts)
    }
}
