//! Summarizes a chunk of lines, line by line.

use crate::event::damage::Kind;
use crate::event::line::{Event, own_record, parse_canonical};
use crate::event::member;
use crate::event::mend::{Repair, from_slice, mended_event};
use crate::event::prefix_cache::{PrefixCache, Timed};
use crate::event::scan::{Found, Part, general, lines};
use crate::summary::chunk_summary::{Activity, ChunkSummary, thread_kind};
use crate::summary::nesting::Nesting;
use crate::summary::summarize::{CachedLine, ChunkVisitor};
use sa_format::control::Switch;
use sa_format::loss::LossRecord;
use sa_format::{
    Anchor, BlockHeader, End, Name, Phase, Record, RemovedStreams, TrackRecord, Visibility,
};
use serde::Deserialize;
use std::collections::HashMap;

/// Summarizes lines one by one.
pub struct SummaryBuilder<V> {
    pub(crate) summary: ChunkSummary,
    /// Visitor of the events, if there is one.
    visitor: Option<V>,
    /// True if the nesting of each thread's spans is examined.
    checks_nesting: bool,
    phases: [u64; 256],
    runs: Vec<ThreadRun>,
    /// Index in `runs` of each thread.
    places: HashMap<(i64, i64), usize>,
    /// Index of the run of the last event.
    current: usize,
    /// Index of the last run for each thread hash. A look-up in `places` takes as long as reading the event.
    recent: [usize; 64],
}

/// Events of one thread in a chunk of lines.
struct ThreadRun {
    thread: (i64, i64),
    activity: Activity,
    nesting: Nesting,
}

impl<'a, V: ChunkVisitor<'a>> SummaryBuilder<V> {
    /// Creates a builder that only counts spans and does not check that they nest. It passes events to `visitor` if there is one.
    pub fn new(visitor: Option<V>) -> Self {
        SummaryBuilder {
            summary: ChunkSummary::default(),
            visitor,
            checks_nesting: false,
            phases: [0; 256],
            runs: Vec::new(),
            places: HashMap::new(),
            current: 0,
            recent: [0; 64],
        }
    }

    /// Creates a builder that also checks that the spans of each thread nest, and fills `ChunkSummary::nestings`. It passes events to `visitor`
    /// if there is one.
    pub(crate) fn with_nesting(visitor: Option<V>) -> Self {
        SummaryBuilder {
            checks_nesting: true,
            ..SummaryBuilder::new(visitor)
        }
    }

    /// Adds the lines of a part (byte range) of `bytes` that a checksum verifies. This is faster than a scan, because nearly all lines begin like
    /// an earlier one and need no full parse.
    pub(crate) fn trusted(&mut self, bytes: &'a [u8], part: Part) {
        let mut fronts = PrefixCache::default();
        if let Some(visitor) = &mut self.visitor {
            visitor.enter(part);
        }
        for (line, at) in lines(bytes, part) {
            if let Some((front, timed)) = fronts.find(line)
                && self.count_similar(&front.known, &timed).is_some()
            {
                if let Some(visitor) = &mut self.visitor {
                    visitor.cached(CachedLine {
                        phase: front.known.0,
                        timed,
                        text: line,
                        start: at,
                        thread: self.runs[front.known.1].thread,
                    });
                }
                continue;
            }
            let Some(event) = parse_canonical(line) else {
                general(line, at, None, &mut |at, found| {
                    self.summary.canonical = false;
                    self.found(at, found);
                });
                continue;
            };
            self.event(&event);
            fronts.keep(&event, || (event.phase, self.current));
        }
    }

    /// Counts an event whose line begins like an earlier one. The first argument is the phase and the index in `runs` of that earlier event.
    /// Returns `None` and counts nothing if the line must be parsed completely.
    #[inline(always)]
    fn count_similar(&mut self, (phase, run): &(Phase, usize), timed: &Timed<'_>) -> Option<()> {
        if timed.rest.last() != Some(&b'}') {
            return None;
        }
        let dur_ns = match phase {
            Phase::Complete => timed.dur_ns()?,
            Phase::Instant if !timed.has_common_name() => return None,
            Phase::Counter if !member::ends_drawn(timed.rest) => return None,
            Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd => timed.flow_id().map(|_| 0)?,
            _ => 0,
        };
        let run = self.runs.get_mut(*run)?;
        run.activity.events += 1;
        run.activity.see(timed.ts_ns, dur_ns);
        if *phase == Phase::Complete && self.checks_nesting {
            run.nesting.add((timed.ts_ns, timed.ts_ns + dur_ns));
        }
        self.phases[usize::from(phase.byte())] += 1;
        Some(())
    }

    /// Adds to the summary what a scanner found at offset `at` of the file: an event or damage.
    #[inline]
    pub(crate) fn found(&mut self, at: usize, found: Found<'a>) {
        match found {
            Found::Event(event) => self.event(&event),
            Found::Damage(kind) => self.damage(at, kind),
        }
    }

    /// Adds a damaged place to the summary: its offset `at` in the file and the kind of damage.
    pub(crate) fn damage(&mut self, at: usize, kind: Kind) {
        self.summary.odd = true;
        self.summary.places.add(at as u64, kind);
    }

    /// Counts the repairs that an event needs before viewers accept it.
    #[cold]
    fn count_repairs(&mut self, event: &Event<'_>) {
        self.summary.odd = true;
        let repairs = mended_event(event.line, event.phase).map(|(_, repairs)| repairs);
        self.summary.repairs.add_all(repairs.unwrap_or_default());
        if event.fields.hidden {
            self.summary.repairs.add(Repair::Name);
        }
    }

    /// Adds an event to the summary: counts it, reads it if it is a record of the recorder, and passes it to the visitor.
    #[inline]
    pub fn event(&mut self, event: &Event<'a>) {
        self.summary.odd |= event.fields.repeated | event.fields.bind_id.is_some();
        if event.fields.is_mended() {
            self.count_repairs(event);
        }
        if event.is_metadata() && !self.metadata(event) {
            return;
        }
        self.phases[usize::from(event.phase.byte())] += 1;
        self.count(event);
        match event.phase {
            Phase::Instant | Phase::LegacyInstant
                if event.name() == LossRecord::NAME.as_bytes() =>
            {
                self.loss(event);
            }
            Phase::Instant if event.name() == Visibility::NAME.as_bytes() => {
                let visibility =
                    Visibility::parse(event.line).map(|visibility| (event.pid, visibility));
                self.summary.visibility.extend(visibility);
            }
            Phase::Instant if event.name() == Switch::NAME.as_bytes() => {
                let switch = Switch::parse(event.line).map(Box::new);
                self.summary.switch = switch.or(self.summary.switch.take());
            }
            Phase::Begin if event.is_unfinished() => self.summary.unfinished += 1,
            _ => {}
        }
        if let Some(visitor) = &mut self.visitor {
            visitor.event(event);
        }
    }

    /// Counts an event for its thread, extends the thread's time range, and adds a span to the thread's nesting.
    #[inline]
    fn count(&mut self, event: &Event<'_>) {
        let checks_nesting = self.checks_nesting;
        let run = self.thread_run((event.pid, event.tid));
        run.activity.events += 1;
        if event.is_metadata() {
            return;
        }
        run.activity.see(event.ts_ns, event.dur_ns);
        if !checks_nesting {
            return;
        }
        match event.phase {
            Phase::Complete => run.nesting.add((event.ts_ns, event.ts_ns + event.dur_ns)),
            Phase::Begin if event.is_unfinished() => run.nesting.add_unfinished(event.ts_ns),
            // Begins and ends can only be paired when the events are sorted by time.
            Phase::Begin | Phase::End => run.nesting.mark_unclear(),
            _ => {}
        }
    }

    /// Returns the counts and nesting of a thread, by its pid and tid. Creates them for the first event of the thread.
    #[inline(always)]
    fn thread_run(&mut self, thread: (i64, i64)) -> &mut ThreadRun {
        let recent = &mut self.recent[thread_kind(thread)];
        let is_same = |run: &ThreadRun| run.thread == thread;
        if !self.runs.get(*recent).is_some_and(is_same) {
            *recent = *self.places.entry(thread).or_insert_with(|| {
                self.runs.push(ThreadRun {
                    thread,
                    activity: Activity::default(),
                    nesting: Nesting::default(),
                });
                self.runs.len() - 1
            });
        }
        self.current = *recent;
        &mut self.runs[self.current]
    }

    /// Adds the content of a metadata record to the summary. Returns false for records of the recorder, which are not shown in the trace.
    fn metadata(&mut self, event: &Event<'_>) -> bool {
        match own_record(event) {
            Some(End::NAME) => {
                self.summary.ended = true;
                if let Some(end) = End::parse(event.line) {
                    self.summary.open = end.open.or(self.summary.open);
                    self.summary.exit = end.exit.or(self.summary.exit.take());
                    self.summary.was_running |= end.running;
                }
            }
            Some(BlockHeader::NAME) => self.summary.odd = true,
            Some(RemovedStreams::NAME) => {
                // Positions that were in removed segments.
                let streams = RemovedStreams::parse(event.line)
                    .into_iter()
                    .flat_map(|removed| removed.streams);
                let explained = streams.map(|(slot, generation, to)| ((slot, generation), 0..to));
                self.summary.explained.extend(explained);
            }
            Some(TrackRecord::NAME) => {
                let track =
                    TrackRecord::parse(event.line).map(|track| ((event.pid, event.tid), track));
                self.summary.tracks.extend(track);
            }
            Some(Anchor::NAME) => self.summary.anchors.extend(Anchor::parse(event.line)),
            Some(_) => {}
            None => {
                self.name(event);
                return true;
            }
        }
        false
    }

    /// Adds the name of a process or thread, or a display hint, from a metadata record.
    fn name(&mut self, event: &Event<'_>) {
        #[derive(Deserialize)]
        struct NameLine {
            args: Name<'static>,
        }
        let name = || from_slice::<NameLine>(event.line).map(|line| line.args.name.into_owned());
        let (pid, tid, summary) = (event.pid, event.tid, &mut self.summary);
        match event.name() {
            b"process_name" => summary.process_names.extend(name().map(|name| (pid, name))),
            b"thread_name" => summary
                .thread_names
                .extend(name().map(|name| ((pid, tid), name))),
            _ => summary.hints.add(event),
        }
    }

    /// Adds to the summary what a loss record reports: the number, cause and positions of lost events.
    fn loss(&mut self, event: &Event<'_>) {
        let Some(record) = LossRecord::parse(event.line) else {
            return;
        };
        self.summary.stopped |= record.stopped;
        self.summary.lost_events = (self.summary.lost_events).saturating_add(record.lost_events());
        self.summary.explained.extend(record.positions());
        self.summary.losses.add(event, &record);
    }

    /// Finishes the visitor, and returns the summary of all lines that were added.
    pub fn finish(mut self) -> ChunkSummary {
        if let Some(visitor) = self.visitor {
            visitor.merge();
        }
        for run in self.runs {
            self.summary.threads.insert(run.thread, run.activity);
            if run.nesting.has_spans() {
                self.summary.nestings.push((run.thread, run.nesting));
            }
        }
        let counts = Phase::ALL
            .map(|phase| (phase, self.phases[usize::from(phase.byte())]))
            .into_iter()
            .filter(|(_, count)| *count > 0);
        self.summary.phases = counts.collect();
        self.summary
    }
}
