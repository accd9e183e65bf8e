//! What a stretch of lines holds, gathered line by line.

use crate::event::counter;
use crate::event::damage::Kind;
use crate::event::line::{Event, parse_canonical};
use crate::event::loss::{Loss, changes_events};
use crate::event::mend::{Repair, from_slice, mended_event};
use crate::event::own_record::own_record;
use crate::event::prefix_cache::{Fronts, Timed};
use crate::event::scan::{Found, Part, general, lines};
use crate::fragment::exit::{Exit, known_exit};
use crate::pass::nesting::Nesting;
use crate::pass::summary::{Activity, ChunkSummary};
use crate::pass::thread::thread_kind;
use crate::pass::visitor::{CachedLine, ChunkVisitor};
use sa_recorder::format::{
    ANCHOR_RECORD, Anchor, BLOCK_RECORD, END_RECORD, LOSS_RECORD, Metadata, OWN_CATEGORY,
    REACH_RECORD, REMOVED_RECORD, Reach, RemovedStreams, TRACK_RECORD, TrackRecord,
};
use serde::Deserialize;
use std::collections::HashMap;

/// What the last record of a recording says.
#[derive(Deserialize)]
struct EndArgs {
    /// Number of open spans, if a reader wrote the record in the process's place.
    open: Option<u64>,
    /// How that process ended, if who wrote it knew.
    #[serde(default, deserialize_with = "known_exit")]
    exit: Option<Exit>,
    /// True if the process was running then: the record ends a snapshot.
    #[serde(default)]
    running: bool,
}

pub(crate) struct SummaryBuilder<V> {
    pub(crate) summary: ChunkSummary,
    /// Looks at the events, too.
    visitor: Option<V>,
    /// Whether it asks if the spans of each thread nest.
    looks_at_nesting: bool,
    phases: [u64; 256],
    runs: Vec<ThreadRun>,
    /// Where each thread's run stands.
    places: HashMap<(i64, i64), usize>,
    /// The run of the last event.
    current: usize,
    /// The run of the last event of each kind of threads: looking it up in the map takes as long as reading the event.
    recent: [usize; 64],
}

/// What a thread has in a stretch of lines.
struct ThreadRun {
    thread: (i64, i64),
    activity: Activity,
    nesting: Nesting,
}

impl<'a, V: ChunkVisitor<'a>> SummaryBuilder<V> {
    pub(crate) fn new(visitor: Option<V>) -> Self {
        SummaryBuilder {
            summary: ChunkSummary::default(),
            visitor,
            looks_at_nesting: false,
            phases: [0; 256],
            runs: Vec::new(),
            places: HashMap::new(),
            current: 0,
            recent: [0; 64],
        }
    }

    /// One that also asks whether the spans of each thread nest.
    pub(crate) fn of_spans(visitor: Option<V>) -> Self {
        SummaryBuilder {
            looks_at_nesting: true,
            ..SummaryBuilder::new(visitor)
        }
    }

    /// Lines that a checksum vouches for. Nearly all begin like one before.
    pub(crate) fn trusted(&mut self, bytes: &'a [u8], part: Part) {
        let mut fronts = Fronts::default();
        if let Some(visitor) = &mut self.visitor {
            visitor.enter(part);
        }
        for (line, at) in lines(bytes, part) {
            if let Some((front, timed)) = fronts.find(line)
                && self.count_alike(&front.known, &timed).is_some()
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

    /// Counts an event of a known phase and run; `None` if it needs a closer look.
    #[inline(always)]
    fn count_alike(&mut self, (phase, run): &(u8, usize), timed: &Timed<'_>) -> Option<()> {
        if timed.rest.last() != Some(&b'}') {
            return None;
        }
        let dur_ns = match phase {
            b'X' => timed.dur_ns()?,
            b'i' if !timed.has_common_name() => return None,
            b'C' if !counter::ends_drawn(timed.rest) => return None,
            b's' | b't' | b'f' => timed.flow_id().map(|_| 0)?,
            _ => 0,
        };
        let run = self.runs.get_mut(*run)?;
        run.activity.events += 1;
        run.activity.see(timed.ts_ns, dur_ns);
        if *phase == b'X' && self.looks_at_nesting {
            run.nesting.add((timed.ts_ns, timed.ts_ns + dur_ns));
        }
        self.phases[usize::from(*phase)] += 1;
        Some(())
    }

    #[inline]
    pub(crate) fn found(&mut self, at: usize, found: Found<'a>) {
        match found {
            Found::Event(event) => self.event(&event),
            Found::Damage(kind) => self.damage(at, kind),
        }
    }

    pub(crate) fn damage(&mut self, at: usize, kind: Kind) {
        self.summary.odd = true;
        self.summary.places.add(at as u64, kind);
    }

    /// Notes what has to be mended in an event.
    #[cold]
    fn mended(&mut self, event: &Event<'_>) {
        self.summary.odd = true;
        let repairs = mended_event(event.line, event.phase).map(|(_, repairs)| repairs);
        self.summary.repairs.add_all(repairs.unwrap_or_default());
        if event.fields.hidden {
            self.summary.repairs.add(Repair::Name);
        }
    }

    pub(crate) fn object(&mut self) {
        self.summary.odd = true;
        self.summary.objects += 1;
    }

    #[inline]
    pub(crate) fn event(&mut self, event: &Event<'a>) {
        self.summary.odd |= event.fields.repeated | event.fields.bind_id.is_some();
        if event.fields.is_mended() {
            self.mended(event);
        }
        if event.is_metadata() && !self.metadata(event) {
            return;
        }
        self.phases[usize::from(event.phase)] += 1;
        self.count(event);
        match event.phase {
            b'i' | b'I' if event.name() == LOSS_RECORD.as_bytes() => self.loss(event),
            b'i' if event.name() == REACH_RECORD.as_bytes() => self.reach(event),
            b'B' if event.is_unfinished() => self.summary.unfinished += 1,
            _ => {}
        }
        if let Some(visitor) = &mut self.visitor {
            visitor.event(event);
        }
    }

    #[inline]
    fn count(&mut self, event: &Event<'_>) {
        let looks_at_nesting = self.looks_at_nesting;
        let run = self.run((event.pid, event.tid));
        run.activity.events += 1;
        if event.is_metadata() {
            return;
        }
        run.activity.see(event.ts_ns, event.dur_ns);
        if !looks_at_nesting {
            return;
        }
        match event.phase {
            b'X' => run.nesting.add((event.ts_ns, event.ts_ns + event.dur_ns)),
            b'B' if event.is_unfinished() => run.nesting.add_unfinished(event.ts_ns),
            // Which begin an end belongs to is seen only in the order of times.
            b'B' | b'E' => run.nesting.give_up(),
            _ => {}
        }
    }

    #[inline(always)]
    fn run(&mut self, thread: (i64, i64)) -> &mut ThreadRun {
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

    /// Reads a metadata record; tells whether it is shown.
    fn metadata(&mut self, event: &Event<'_>) -> bool {
        match own_record(event) {
            Some(END_RECORD) => {
                self.summary.ended = true;
                let end = serde_json::from_slice::<Metadata<EndArgs>>(event.line).ok();
                if let Some(Metadata { args: end, .. }) = end {
                    self.summary.open = end.open.or(self.summary.open);
                    self.summary.exit = end.exit.or(self.summary.exit.take());
                    self.summary.was_running |= end.running;
                }
            }
            Some(BLOCK_RECORD) => self.summary.odd = true,
            Some(REMOVED_RECORD) => self.removed(event),
            Some(TRACK_RECORD) => {
                let record = serde_json::from_slice::<Metadata<TrackRecord>>(event.line).ok();
                let thread = (event.pid, event.tid);
                let track = record.map(|record| (thread, record.args));
                self.summary.tracks.extend(track);
            }
            Some(ANCHOR_RECORD) => {
                let anchor = serde_json::from_slice::<Metadata<Anchor>>(event.line).ok();
                self.summary
                    .anchors
                    .extend(anchor.map(|record| record.args));
            }
            Some(_) => {}
            None => {
                self.name(event);
                return true;
            }
        }
        false
    }

    /// Positions that went with removed segments.
    fn removed(&mut self, event: &Event<'_>) {
        let record = serde_json::from_slice::<Metadata<RemovedStreams>>(event.line).ok();
        let streams = record.map(|record| record.args.streams).unwrap_or_default();
        let explained = streams
            .into_iter()
            .map(|(slot, generation, to)| ((slot, generation), 0..to));
        self.summary.explained.extend(explained);
    }

    fn name(&mut self, event: &Event<'_>) {
        #[derive(Deserialize)]
        struct NameLine {
            args: NameArgs,
        }
        #[derive(Deserialize)]
        struct NameArgs {
            name: String,
        }
        let parse = || from_slice::<NameLine>(event.line).map(|named| named.args.name);
        match event.name() {
            b"process_name" => self
                .summary
                .process_names
                .extend(parse().map(|name| (event.pid, name))),
            b"thread_name" => self
                .summary
                .thread_names
                .extend(parse().map(|name| ((event.pid, event.tid), name))),
            _ => self.summary.hints.take(event),
        }
    }

    fn reach(&mut self, event: &Event<'_>) {
        #[derive(Deserialize)]
        struct ReachLine {
            #[serde(default)]
            cat: String,
            args: Reach,
        }
        let record = serde_json::from_slice::<ReachLine>(event.line).ok();
        let record = record.filter(|record| record.cat == OWN_CATEGORY);
        let reach = record.map(|record| (event.pid, record.args));
        self.summary.reach.extend(reach);
    }

    fn loss(&mut self, event: &Event<'_>) {
        #[derive(Deserialize)]
        struct LossLine {
            #[serde(default)]
            s: String,
            args: LossArgs,
        }
        #[derive(Deserialize)]
        struct LossArgs {
            cause: String,
            events: u64,
            slot: Option<u32>,
            #[serde(rename = "gen")]
            generation: Option<u32>,
            from: Option<u64>,
            to: Option<u64>,
            #[serde(default)]
            stopped: bool,
            #[serde(default)]
            span_us: u64,
            #[serde(default)]
            processes: u64,
            #[serde(default)]
            errno: u64,
            #[serde(default)]
            bytes: u64,
        }
        let Ok(LossLine { s, args: loss }) = serde_json::from_slice(event.line) else {
            return;
        };
        self.summary.stopped |= loss.stopped;
        // A changed event, such as one with a cut text, is not lost.
        if !changes_events(&loss.cause) {
            self.summary.lost_events = self.summary.lost_events.saturating_add(loss.events);
        }
        let span_ns = i64::try_from(loss.span_us.saturating_mul(1000)).unwrap_or(i64::MAX);
        let lost = Loss {
            events: loss.events,
            processes: loss.processes,
            error: loss.errno,
            bytes: loss.bytes,
            first_ns: event.ts_ns,
            last_ns: event.ts_ns.saturating_add(span_ns),
        };
        self.summary.losses.add(event, s == "t", &loss.cause, lost);
        if let LossArgs {
            slot: Some(slot),
            generation: Some(generation),
            from: Some(from),
            to: Some(to),
            ..
        } = loss
        {
            self.summary.explained.push(((slot, generation), from..to));
        }
    }

    pub(crate) fn finish(mut self) -> ChunkSummary {
        if let Some(visitor) = self.visitor {
            visitor.merge();
        }
        for run in self.runs {
            self.summary.threads.insert(run.thread, run.activity);
            if run.nesting.has_spans() {
                self.summary.nestings.push((run.thread, run.nesting));
            }
        }
        let phases = self
            .phases
            .iter()
            .zip(0u8..=255)
            .filter(|(count, _)| **count > 0);
        self.summary.phases = phases.map(|(count, phase)| (phase, *count)).collect();
        self.summary
    }
}
