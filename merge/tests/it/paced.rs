//! Runs as recorders write them over time: lines at the end of spans, anchors, flushes of all
//! slots, segments, threads that come and go. They end or are killed.

use crate::invocation::RunDir;
use crate::random::Rng;
use crate::segments::segment_name;
use crate::trace::ns;
use format_oracle::writer::line::{On, stream};
use format_oracle::writer::{Fragment, Open, Process, Ring, Slot};
use serde_json::Value;

/// Begin of every run.
pub(crate) const START_NS: u64 = 5_000_000_000;
/// Length of every run.
pub(crate) const RUN_MS: u64 = 120_000;
/// Interval of anchors. They are read in the quarter of a second after a multiple of it.
pub(crate) const ANCHOR_MS: u64 = 5_000;
const MS: u64 = 1_000_000;

/// End of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Clean,
    /// It was killed with lines in its ring and spans open there.
    Ring,
    /// It was killed without a ring.
    Lost,
}

/// Length of the pause of a process, if it has one.
pub(crate) const PAUSE_MS: u64 = 30_000;

/// Options for the life of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    pub(crate) end: End,
    /// Maximum length of its spans.
    pub(crate) longest_ms: u64,
    /// Time at which it pauses. It records and writes nothing during the pause.
    pub(crate) pause_ms: Option<u64>,
}

/// The slot of a thread while its process records.
#[derive(Default)]
struct Recorded {
    tid: u32,
    flushed: u64,
    pending: Vec<u8>,
}

/// A process while it records.
struct Recorder<'a> {
    rng: &'a mut Rng,
    dir: &'a RunDir,
    process: Process,
    segment: u32,
    segment_bytes: usize,
    fragment: Fragment,
    slots: Vec<Recorded>,
    /// Name of the process.
    name: String,
    /// Records that name its live threads.
    named: Vec<String>,
    serial: u64,
    /// True if headers contain the earliest begin of later lines. Older recorders do not write it.
    has_horizon: bool,
    /// Start of the span that is open at the end.
    open_ns: u64,
    /// Maximum length so far of spans that are only known once they end, in ns.
    late_ns: u64,
    /// Begin and end of the spans that are known to be open.
    open: Vec<(u64, u64)>,
}

/// Returns a record of a name.
fn name_record(on: On, record: &str, name: &str) -> String {
    on.metadata(record, &format!(r#""name":"{name}""#))
}

/// Writes a process that records for two minutes.
pub(crate) fn write(rng: &mut Rng, dir: &RunDir, pid: u32, course: Course) {
    let segment_bytes = [3_000, 30_000, 1 << 30][rng.below(3)];
    let process = Process {
        offset_ns: if rng.one_in(3) { 7_000 } else { 0 },
        ring: if course.end == End::Ring {
            "file"
        } else {
            "heap"
        },
        ..Process::new(pid)
    };
    let mut recorder = Recorder {
        rng,
        dir,
        segment: 0,
        segment_bytes,
        fragment: Fragment::foreign(pid),
        slots: vec![Recorded::default()],
        name: "first".to_owned(),
        named: Vec::new(),
        serial: u64::from(pid) << 20,
        has_horizon: false,
        open_ns: 0,
        late_ns: 0,
        open: Vec::new(),
        process,
    };
    recorder.open_ns = START_NS + 1_000 * MS * (1 + recorder.rng.next() % 100);
    recorder.begin_segment(START_NS, &[]);
    recorder.has_horizon = !recorder.rng.one_in(4);
    recorder.thread(1, pid);
    recorder.record(course);
    recorder.end(course.end);
}

impl Recorder<'_> {
    fn on(&self, tid: u32) -> On {
        self.process.thread(tid)
    }

    /// Writes the first lines of a segment.
    fn begin_segment(&mut self, at_ns: u64, lines: &[u8]) {
        let own = self.process.main_thread();
        self.fragment = Fragment::foreign(self.process.pid);
        let horizon = self.has_horizon.then(|| self.horizon(at_ns, lines));
        let horizon = horizon.unwrap_or_default();
        let header = self.process.header_with(self.segment, &horizon);
        self.fragment.line(&header);
        self.fragment.line(&self.process.anchor(at_ns));
        self.fragment
            .line(&name_record(own, "process_name", &self.name));
        self.fragment.raw(&stream(&self.named));
    }

    /// Returns the header members that state how far back the following lines begin. `lines` come
    /// first.
    fn horizon(&self, at_ns: u64, lines: &[u8]) -> String {
        let pending = self.slots.iter().map(|slot| &slot.pending[..]);
        let lines = pending
            .chain([lines])
            .flat_map(|lines| lines.split(|byte| *byte == b'\n'));
        let starts = lines.filter_map(|line| {
            let event: Value = serde_json::from_slice(line).ok()?;
            event["ts"].as_f64()?;
            u64::try_from(ns(&event["ts"])).ok()
        });
        let open = Some(self.open_ns).filter(|open_ns| *open_ns < at_ns);
        let held = self.open.iter().map(|(start_ns, _)| *start_ns);
        let open_ns = starts.chain(open).chain(held).chain([at_ns]).min().unwrap();
        format!(r#","open_ns":{open_ns},"late_ns":{}"#, self.late_ns)
    }

    /// Adds a line to a slot.
    fn add(&mut self, slot: usize, line: String) {
        self.slots[slot].pending.extend(stream(&[line]));
    }

    /// Assigns a slot to a thread, which records its name.
    fn thread(&mut self, slot: usize, tid: u32) {
        if slot == self.slots.len() {
            self.slots.push(Recorded::default());
        }
        self.slots[slot].tid = tid;
        let line = name_record(self.on(tid), "thread_name", &format!("thread-{tid}"));
        self.named.push(line.clone());
        self.add(slot, line);
    }

    fn record(&mut self, course: Course) {
        self.add(1, self.on(self.process.pid).instant(START_NS, "first", ""));
        let (mut flush_ms, mut anchor_ms) = (250, ANCHOR_MS);
        let renamed_ms = 1_000 + u64::from(self.process.pid) * 271 % 90_000;
        for ms in 1..RUN_MS {
            let at_ns = START_NS + ms * MS;
            if ms == renamed_ms {
                self.name = format!("renamed-{}", self.process.pid);
                self.add(
                    0,
                    name_record(self.process.main_thread(), "process_name", &self.name),
                );
            }
            let paused_ms = course
                .pause_ms
                .and_then(|pause_ms| ms.checked_sub(pause_ms));
            if let Some(paused_ms @ 0..=PAUSE_MS) = paused_ms {
                self.pause(at_ns, paused_ms);
                continue;
            }
            if self.rng.one_in(60) {
                self.event(at_ns, course.longest_ms);
            }
            if self.rng.one_in(3_000) {
                let dur_ns = self.rng.next() % (10 * course.longest_ms * MS);
                self.open.push((at_ns, at_ns + dur_ns));
            }
            self.end_open(at_ns);
            if self.rng.one_in(30_000) && self.slots.len() < 8 {
                let tid = self.process.pid + u32::try_from(self.slots.len()).unwrap();
                self.thread(self.slots.len(), tid);
            }
            if self.rng.one_in(60_000) && self.slots.len() > 2 {
                let last = self.slots.len() - 1;
                self.flush(last, at_ns);
                // Another thread gets the slot.
                let tid = self.slots[last].tid;
                let tid_member = format!(r#""tid":{tid},"#);
                self.named.retain(|line| !line.contains(&tid_member));
                self.thread(last, tid + 100);
            }
            if ms >= flush_ms {
                (0..self.slots.len()).for_each(|slot| self.flush(slot, at_ns));
                flush_ms = ms + 50 + self.rng.next() % 200;
                if ms >= anchor_ms {
                    self.add(0, self.process.anchor(at_ns));
                    anchor_ms = (ms / ANCHOR_MS + 1) * ANCHOR_MS;
                }
            }
            if self.rng.one_in(30) {
                // A thread whose ring is full flushes it itself.
                let slot = 1 + self.rng.below(self.slots.len() - 1);
                self.flush(slot, at_ns);
            }
        }
    }

    /// Pauses with lines that are not written. After that, its first thread records an event before
    /// they are flushed, slot after slot.
    fn pause(&mut self, at_ns: u64, after_ms: u64) {
        match after_ms {
            0 => (0..10).for_each(|_| self.event(at_ns, 100)),
            PAUSE_MS => {
                self.add(1, self.on(self.process.pid).instant(at_ns, "goes on", ""));
                (0..self.slots.len()).for_each(|slot| self.flush(slot, at_ns));
            }
            _ => {}
        }
    }

    /// Writes the spans that were known to be open and have ended by now.
    fn end_open(&mut self, at_ns: u64) {
        let on = self.on(self.process.pid);
        let (ended, open) = self.open.iter().partition(|(_, end_ns)| *end_ns <= at_ns);
        self.open = open;
        for (start_ns, _) in ended {
            self.serial += 1;
            let args = format!(r#""serial":{}"#, self.serial);
            self.add(1, on.span(start_ns, at_ns - start_ns, "held", &args));
        }
    }

    /// Records a random event that has ended by now.
    fn event(&mut self, at_ns: u64, longest_ms: u64) {
        let slot = 1 + self.rng.below(self.slots.len() - 1);
        let on = self.on(self.slots[slot].tid);
        self.serial += 1;
        let (serial, request) = (self.serial, self.serial % 7);
        let args = format!(r#""serial":{serial},"request_id":"cmpl-{request}""#);
        let longest_ms = [20, 400, longest_ms][self.rng.below(3)];
        let dur_ns = self.rng.next() % (longest_ms * MS);
        let start_ns = at_ns.saturating_sub(dur_ns).max(START_NS);
        self.late_ns = self.late_ns.max(at_ns - start_ns);
        let line = match self.rng.below(8) {
            0 => on.instant(at_ns, "token", &args),
            1 => on.counter(at_ns, "requests", r#""running":3"#),
            2 => on.begin(start_ns, &format!("begun {}", self.serial)),
            _ => on.span(start_ns, at_ns - start_ns, "step", &args),
        };
        self.add(slot, line);
    }

    /// Writes the lines of a slot, in the next segment if they do not fit any more.
    fn flush(&mut self, number: usize, at_ns: u64) {
        let lines = std::mem::take(&mut self.slots[number].pending);
        if lines.is_empty() {
            return;
        }
        if self.fragment.bytes.len() + lines.len() > self.segment_bytes {
            self.write_segment();
            self.segment += 1;
            self.begin_segment(at_ns, &lines);
        }
        let slot = &mut self.slots[number];
        let number = u32::try_from(number).unwrap();
        slot.flushed = self.fragment.block(number, slot.flushed, &lines);
    }

    fn write_segment(&self) {
        let name = segment_name(self.process.pid, self.segment);
        self.fragment.write(&self.dir.fragments(), &name);
    }

    fn end(mut self, end: End) {
        let at_ns = START_NS + RUN_MS * MS;
        let open_ns = self.open_ns;
        if end == End::Clean {
            (0..self.slots.len()).for_each(|slot| self.flush(slot, at_ns));
            self.add(1, self.on(self.process.pid).begin(open_ns, "open"));
            self.add(0, self.process.end(at_ns));
            [1, 0].into_iter().for_each(|slot| self.flush(slot, at_ns));
        }
        if end == End::Ring {
            self.event(at_ns, 100);
            let mut ring = Ring::new(&self.process);
            for slot in &mut self.slots {
                ring.slots.push(Slot {
                    tid: slot.tid,
                    from: slot.flushed,
                    flushed: slot.flushed,
                    stream: std::mem::take(&mut slot.pending),
                    ..Slot::default()
                });
            }
            ring.slots[1].open = vec![Open::named(open_ns, "open")];
            ring.write_here(&self.dir.fragments());
        }
        self.write_segment();
    }
}
