//! A long run in segments, as some processes of four threads write it in a thousand seconds: steps with kernels, requests that last up to 3 s and are
//! recorded only when they end, one request of 60 s, anchors every five seconds, and 32 MiB a segment.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use sa_format::{
    Anchor, BlockHeader, End, FragmentHeader, LANE_BASE, Record, RingKind, VERSION, block_sum,
    segment_name,
};

use crate::lines::{Random, Us};

/// How long a run lasts.
const RUN_NS: u64 = 1_000_000_000_000;
/// When its first event begins.
pub(crate) const START_NS: u64 = 81_234_567_891_000;
const THREADS: u32 = 4;
const SEGMENT_BYTES: u64 = 32 << 20;
const BLOCK_BYTES: usize = 48 << 10;
const ANCHOR_NS: u64 = 5_000_000_000;
/// What a step takes on the disk, with its share of all else.
const STEP_BYTES: u64 = 830;

/// Begin and end of the long request of each process.
const LONG_NS: (u64, u64) = (495_000_000_000, 555_000_000_000);
/// Maximum length of the other requests.
const REQUEST_NS: u64 = 3_000_000_000;

/// A part of the run, and how many spans reach into it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) spans: u64,
}

impl Count {
    fn note(&mut self, start_ns: u64, dur_ns: u64) {
        let (is_before, end_ns) = (start_ns <= self.to_ns, start_ns + dur_ns);
        self.spans += u64::from(is_before && end_ns >= self.from_ns);
    }
}

/// The stream of one slot and the lines that wait for its next block.
#[derive(Default)]
struct Slot {
    position: u64,
    pending: Vec<u8>,
    /// The earliest start among the lines that wait.
    earliest_ns: Option<u64>,
}

/// One process while its segments are written.
struct Writer<'a> {
    directory: &'a Path,
    out: BufWriter<File>,
    index: u32,
    pid: u32,
    segment: u32,
    written: u64,
    random: Random,
    slots: Vec<Slot>,
    counts: &'a mut [Count],
}

/// Writes the segments of process `index`, of `bytes` bytes in all; adds the spans that reach into the parts to their counts.
pub(crate) fn write(
    directory: &Path,
    index: u32,
    bytes: u64,
    counts: &mut [Count],
) -> io::Result<()> {
    let pid = 4_711 + index * 10;
    let mut writer = Writer {
        directory,
        out: create(directory, pid, 0)?,
        index,
        pid,
        segment: 0,
        written: 0,
        random: Random::new(index),
        slots: (0..=THREADS).map(|_| Slot::default()).collect(),
        counts,
    };
    writer.front(START_NS)?;
    writer.begin()?;
    let step_ns = RUN_NS / (bytes / STEP_BYTES).max(1);
    let (mut at_ns, mut next_anchor_ns) = (START_NS + step_ns, START_NS + ANCHOR_NS);
    let mut long_ns = Some(START_NS + LONG_NS.1);
    while at_ns <= START_NS + RUN_NS {
        if let Some(end_ns) = long_ns.take_if(|end_ns| *end_ns <= at_ns) {
            let start_ns = START_NS + LONG_NS.0;
            let rest = format_args!(r#""name":"http.long","cat":"request""#);
            writer.span(1, (LANE_BASE, start_ns, end_ns - start_ns), rest)?;
        }
        let thread = 1 + usize::try_from(writer.random.below(u64::from(THREADS))).unwrap_or(0);
        writer.step(thread, at_ns, step_ns)?;
        at_ns += step_ns;
        if at_ns >= next_anchor_ns {
            writer.anchor(at_ns)?;
            next_anchor_ns += ANCHOR_NS;
        }
    }
    writer.end(START_NS + RUN_NS)
}

fn create(directory: &Path, pid: u32, segment: u32) -> io::Result<BufWriter<File>> {
    let name = segment_name(&format!("trace.{pid}"), segment);
    let file = File::create(directory.join(name))?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}

impl Writer<'_> {
    /// The first lines of a segment: header, anchor, the names in force.
    fn front(&mut self, at_ns: u64) -> io::Result<()> {
        let (pid, index) = (self.pid, self.index);
        let header = FragmentHeader {
            version: VERSION,
            nonce: format!("{:016x}", 77 + index),
            segment: self.segment,
            run: "20261121-081502-5feceb66".to_owned(),
            main: index == 0,
            host: "node-3".to_owned(),
            boot_id: "0b1f7a3e-6c1d-4c55-9a37-1f7f4f9d2c11".to_owned(),
            pid_ns: 4_026_531_836,
            time_ns: 4_026_531_834,
            monotonic_offset_ns: 0,
            pid,
            start_time: 812_345 + u64::from(index),
            exe: "python3.11".to_owned(),
            script: Some("serve.py".to_owned()),
            forked_from: None,
            ring: RingKind::Heap,
            page_bytes: 4096,
            levels: None,
            open_ns: (self.segment > 0).then(|| self.open_ns(at_ns)),
            late_ns: (self.segment > 0).then_some(REQUEST_NS),
        };
        let mut text = header.line(pid);
        text.extend(anchor_line(pid, at_ns));
        writeln!(
            text,
            r#"{{"ph":"M","pid":{pid},"tid":{pid},"name":"process_name","args":{{"name":"serving-worker-{index}"}}}}"#
        )?;
        for tid in pid..pid + THREADS {
            text.extend(self.name(tid, &format!("worker-{tid}"))?);
        }
        for lane in 0..=THREADS {
            text.extend(self.name(LANE_BASE + lane, &format!("requests {lane}"))?);
        }
        // The first segment has no names yet.
        if self.segment == 0 {
            let lines = text.split_inclusive(|byte| *byte == b'\n');
            let unnamed = lines.take(2).map(<[u8]>::len).sum();
            text.truncate(unnamed);
        }
        self.written = text.len() as u64;
        self.out.write_all(&text)
    }

    /// The earliest start of what is open or not written yet.
    fn open_ns(&self, at_ns: u64) -> u64 {
        let long_ns = (START_NS + LONG_NS.0)..(START_NS + LONG_NS.1);
        let long_ns = Some(long_ns.start).filter(|_| long_ns.contains(&at_ns));
        let pending = self.slots.iter().filter_map(|slot| slot.earliest_ns);
        pending.chain(long_ns).fold(at_ns, u64::min)
    }

    /// The process is named by slot 0, and so are lanes when they are first used; threads name themselves in their own slots when they begin.
    fn begin(&mut self) -> io::Result<()> {
        let (pid, index) = (self.pid, self.index);
        let own = format!(
            r#"{{"ph":"M","pid":{pid},"tid":{pid},"name":"process_name","args":{{"name":"serving-worker-{index}"}}}}"#
        );
        self.slots[0].pending = [own.as_bytes(), b"\n"].concat();
        self.block(0, START_NS)?;
        for slot in 1..=THREADS {
            let tid = pid + slot - 1;
            let name = self.name(tid, &format!("worker-{tid}"))?;
            self.slots[usize::try_from(slot).unwrap_or(0)]
                .pending
                .extend(name);
        }
        for lane in 0..=THREADS {
            let name = self.name(LANE_BASE + lane, &format!("requests {lane}"))?;
            self.slots[0].pending.extend(name);
        }
        Ok(())
    }

    fn name(&self, tid: u32, name: &str) -> io::Result<Vec<u8>> {
        let (pid, mut line) = (self.pid, Vec::new());
        writeln!(
            line,
            r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"thread_name","args":{{"name":"{name}"}}}}"#
        )?;
        Ok(line)
    }

    /// A step of a worker with its kernels, and at times the end of a request.
    fn step(&mut self, thread: usize, at_ns: u64, step_ns: u64) -> io::Result<()> {
        let slot = u32::try_from(thread).unwrap_or(0);
        let tid = self.pid + slot - 1;
        // It has ended when it is written, and the next one of any thread begins then.
        let (kernel_ns, dur_ns) = (step_ns / 8, step_ns / 2);
        let begin_ns = at_ns - step_ns;
        for layer in 0..4 {
            let start_ns = begin_ns + layer * kernel_ns;
            self.span(
                thread,
                (tid, start_ns, kernel_ns),
                format_args!(
                    r#""name":"qwen3_decode","cat":"kernel","args":{{"stream":{thread},"layer":{layer},"host_wall_us":{}}}"#,
                    Us(kernel_ns)
                ),
            )?;
        }
        let id = self.random.next() >> 32;
        self.span(
            thread,
            (tid, begin_ns, dur_ns),
            format_args!(
                r#""name":"WorkerProcess.execute_step","cat":"worker","args":{{"decode":{thread},"request_ids":["cmpl-{id:08x}"]}}"#
            ),
        )?;
        if self.random.below(50) == 0 {
            let dur_ns = 1 + self.random.below(REQUEST_NS);
            let start_ns = at_ns.saturating_sub(dur_ns).max(START_NS);
            self.span(
                thread,
                (LANE_BASE + slot, start_ns, at_ns - start_ns),
                format_args!(
                    r#""name":"http.completions","cat":"request","args":{{"request_id":"cmpl-{id:08x}"}}"#
                ),
            )?;
        }
        if self.slots[thread].pending.len() >= BLOCK_BYTES {
            self.block(thread, at_ns)?;
        }
        Ok(())
    }

    fn span(
        &mut self,
        thread: usize,
        (tid, start_ns, dur_ns): (u32, u64, u64),
        rest: std::fmt::Arguments<'_>,
    ) -> io::Result<()> {
        for count in &mut *self.counts {
            count.note(start_ns, dur_ns);
        }
        let earliest_ns = &mut self.slots[thread].earliest_ns;
        *earliest_ns = Some(earliest_ns.map_or(start_ns, |ns| ns.min(start_ns)));
        let (pid, ts, dur) = (self.pid, Us(start_ns), Us(dur_ns));
        writeln!(
            self.slots[thread].pending,
            r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},{rest}}}"#
        )
    }

    /// An anchor, and all that is recorded by then.
    fn anchor(&mut self, at_ns: u64) -> io::Result<()> {
        let line = anchor_line(self.pid, at_ns);
        self.slots[0].pending.extend(line);
        self.flush(at_ns)
    }

    fn flush(&mut self, at_ns: u64) -> io::Result<()> {
        (0..self.slots.len()).try_for_each(|slot| self.block(slot, at_ns))
    }

    /// Writes a slot's block, in the next segment if it does not fit any more.
    fn block(&mut self, number: usize, at_ns: u64) -> io::Result<()> {
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
        let mut line = Vec::new();
        header.write(self.pid, &mut line);
        let bytes = (line.len() + body.len()) as u64;
        if self.written + bytes > SEGMENT_BYTES {
            self.out.flush()?;
            self.out.get_ref().sync_data()?; // a disk that lags behind would weigh on all else
            self.segment += 1;
            self.out = create(self.directory, self.pid, self.segment)?;
            self.front(at_ns)?;
        }
        self.slots[number].earliest_ns = None;
        self.written += bytes;
        self.out.write_all(&line)?;
        self.out.write_all(&body)
    }

    /// A last span, which ends the run, and a clean end.
    fn end(&mut self, at_ns: u64) -> io::Result<()> {
        let last = (self.pid, at_ns - 1_000, 1_000);
        self.span(1, last, format_args!(r#""name":"shutdown","cat":"worker""#))?;
        self.flush(at_ns)?;
        let end = End {
            monotonic_ns: at_ns,
            ..End::default()
        };
        end.write(self.pid, &mut self.slots[0].pending)?;
        self.flush(at_ns)?;
        self.out.flush()
    }
}

fn anchor_line(pid: u32, at_ns: u64) -> Vec<u8> {
    let anchor = Anchor {
        monotonic_ns: at_ns,
        realtime_ns: 1_795_248_902_123_456_789 + at_ns,
        uncertainty_ns: 41,
    };
    anchor.line(pid)
}
