//! The end of a fragment that is being written: its newest segment, and the step to the next one.
//! Only the thread that holds its lock writes.

use std::io;
use std::sync::atomic::Ordering;

use crate::ring::counters::Counters;
use crate::ring::file::Ring;
use crate::ring::loss::stopped_line;
use crate::ring::open_horizon::{OpenHorizon, earliest_unwritten_ns};
use crate::run::config::{Config, RunPaths};
use crate::segment::block::Block;
use crate::segment::bound::{Bound, Contents, Removed};
use crate::segment::file::{Segment, UnlinkedSegment, write_error_cause};
use crate::segment::names::Names;
use crate::segment::preamble::{SegmentBegin, preamble};
use crate::sys::clock;
use crate::sys::dir::Dir;
use crate::sys::fd::{self, FileId};
use crate::sys::memory::check_room;
use sa_format::loss::Cause;
use sa_format::{FragmentHeader, ring_name, segment_name};

/// Time in ns before a failed write is retried.
const RETRY_NS: u64 = 1_000_000_000;
/// The same if the descriptor was the problem: the host has just closed it, and needs a moment to
/// open its own files.
const DESCRIPTOR_RETRY_NS: u64 = 20_000_000;
/// Room in bytes for building the first lines of a segment, with the names of a typical process.
const ROLL_BYTES: usize = 96 << 10;
/// Number of existing names that are skipped when a segment is created.
const MAX_SKIPPED_NAMES: u32 = 64;

/// The newest segment and the state of the fragment that it belongs to.
#[derive(Debug)]
pub(crate) struct ActiveSegment {
    paths: RunPaths,
    mode: u32,
    stem: String,
    header: FragmentHeader,
    pub(crate) segment: Segment,
    /// Contents of the segment.
    contents: Contents,
    bound: Bound,
    /// Time and cause of the last failed write, if no write has succeeded since.
    pub(crate) failed: Option<(u64, Cause)>,
    /// Time before which a failed start of a new segment is not retried.
    roll_after_ns: u64,
    unlinked: Vec<UnlinkedSegment>,
    /// Set once recording has stopped.
    pub(crate) stopped: Option<Stopped>,
    /// True once the file is closed for good.
    ended: bool,
}

/// The sources from which a fragment is written.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) ring: &'a Ring,
    /// Names at the beginning of a new segment.
    pub(crate) names: &'a Names,
    /// Counts the events that are lost if somebody removes the fragment.
    pub(crate) lost: &'a Counters,
    /// Longest delay so far between the start of an event and its recording.
    pub(crate) open_horizon: &'a OpenHorizon,
}

impl Source<'_> {
    /// Collects the times for the header of a new segment, including the earliest start of the
    /// lines that are not written yet. `block` is the block that the new segment will begin with.
    /// The anchor is read first, so that whatever begins while the rings are being read begins
    /// after it.
    fn segment_begin(&self, block: &Block<'_>) -> SegmentBegin {
        let (current, line) = match block.source {
            Some((slot, _)) => (Some(slot), &[][..]),
            None => (None, block.lines),
        };
        let anchor = clock::anchor();
        let open_ns = earliest_unwritten_ns(self.ring, current, line);
        SegmentBegin {
            anchor,
            open_ns: open_ns.map(|open_ns| open_ns.min(anchor.monotonic_ns)),
            late_ns: Some(self.open_horizon.longest_ns()),
        }
    }
}

/// State after recording has stopped: only the process's own records are still written.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// Time when losses are reported again. The pause doubles each time.
    report_at_ns: u64,
    pause_ns: u64,
}

impl ActiveSegment {
    /// Starts the fragment of this process: creates its first segment (file 0 of the fragment) in
    /// `folder`, the open folder of the fragments.
    pub(crate) fn create(
        folder: &Dir,
        config: &Config,
        stem: &str,
        header: FragmentHeader,
    ) -> io::Result<ActiveSegment> {
        let (mode, bound) = (config.mode, Bound::new(config.max_bytes, config.keep));
        let text = preamble(&header, 0, SegmentBegin::now(), &bound.removed, &[]);
        Ok(ActiveSegment {
            segment: Segment::create(folder, stem, 0, &text, mode)?,
            paths: config.paths.clone(),
            mode,
            stem: stem.to_owned(),
            header,
            contents: Contents::begun_at(clock::now_ns()),
            bound,
            failed: None,
            roll_after_ns: 0,
            unlinked: Vec::new(),
            stopped: None,
            ended: false,
        })
    }

    /// Appends a block to the fragment, in a new segment if the current one is full. A write that
    /// was cut short is repeated once as a whole. On failure, returns the cause, and fails at once
    /// for a while after that.
    pub(crate) fn append(&mut self, source: &Source<'_>, block: &Block<'_>) -> Result<(), Cause> {
        if self.ended {
            return Err(Cause::WriteError);
        }
        if self.stopped.is_some() {
            return self.append_stopped(source, block);
        }
        if let Some((at, cause)) = self.failed
            && clock::now_ns() < at + retry_ns(cause)
        {
            return Err(cause);
        }
        let mut outcome = self.append_whole(source, block);
        if outcome.is_err() && self.segment.torn {
            outcome = self.append_whole(source, block);
        }
        self.failed = outcome.err().map(|cause| (clock::now_ns(), cause));
        outcome
    }

    fn append_whole(&mut self, source: &Source<'_>, block: &Block<'_>) -> Result<(), Cause> {
        let limit = fd::file_size_limit();
        let mut end = self.bound.segment_bytes(limit);
        // Nothing may come between this check and the write: the host may close the number and open
        // its own file at any time.
        let mut size = self
            .current_size(source)
            .map_err(|error| write_error_cause(&error))?;
        if size + self.needed_bytes(block) > end && self.may_roll() {
            size = self.roll(source, size, (block, end))?;
        }
        if size.saturating_add(self.needed_bytes(block)) > limit {
            return Err(Cause::FileSizeLimit);
        }
        end = end.min(limit);
        self.segment.write(block.parts(), size, end)?;
        block.add_to(&mut self.contents);
        Ok(())
    }

    /// Returns the number of bytes that appending a block adds to the file, including the newline
    /// that ends a torn line before it.
    fn needed_bytes(&self, block: &Block<'_>) -> u64 {
        block.len() + u64::from(self.segment.torn)
    }

    /// Returns true if a full segment may be followed by another one. Returns false for a
    /// segment with little more than its first lines, and for a while after a failed attempt.
    fn may_roll(&self) -> bool {
        let has_events = self.contents.events > 0 || !self.contents.slot_ends.is_empty();
        let is_large = self.segment.size / 2 >= self.segment.preamble_bytes;
        has_events && is_large && (self.roll_after_ns == 0 || clock::now_ns() >= self.roll_after_ns)
    }

    /// Returns the size in bytes of the current segment's file. First checks that our descriptor
    /// number still refers to the file and that nobody has removed it. Otherwise opens it again or
    /// creates another segment.
    fn current_size(&mut self, source: &Source<'_>) -> io::Result<u64> {
        match self.segment.current_size(&self.paths.fragments)? {
            Some(size) => Ok(size),
            None => self.recreate(source),
        }
    }

    /// Continues in a new segment after the current one, of `size` bytes, is full. Segments may
    /// grow to `end` bytes, and `block` is written next. If the disk space is used up, the new
    /// segment first reports the events of the oldest segments as lost, and these are then removed.
    /// Returns the size of the segment to write to.
    fn roll(
        &mut self,
        source: &Source<'_>,
        size: u64,
        (block, end): (&Block<'_>, u64),
    ) -> Result<u64, Cause> {
        let (now_ns, wanted) = (clock::now_ns(), block.len());
        if check_room(ROLL_BYTES).is_err() {
            self.roll_after_ns = now_ns + RETRY_NS;
            return match self.bound.is_exceeded(size + wanted, end) {
                true => Err(Cause::OutOfMemory),
                false => Ok(size),
            };
        }
        let mut full = self.contents.clone();
        (full.bytes, full.ended_ns) = (size, now_ns);
        // Slots whose lines were reported as lost also end with this segment.
        let slots = source.ring.slots();
        slots.for_each(|slot| full.extend_slot(slot.index, slot.flushed().load(Ordering::Relaxed)));
        let number = self.segment.number;
        let Some(plan) = self.bound.plan_roll(number, &full, end) else {
            return Err(self.stop(size));
        };
        let begin = source.segment_begin(block);
        let begun = self.paths.open_fragments().and_then(|folder| {
            let segment = self.create_next(source, &folder, number + 1, (begin, &plan.removed))?;
            Ok((segment, folder))
        });
        match begun {
            Ok((segment, folder)) => {
                std::mem::replace(&mut self.segment, segment).close();
                self.segment.register_for_fork();
                self.contents = Contents::begun_at(now_ns);
                self.roll_after_ns = 0;
                for number in self.bound.apply(plan, number, full) {
                    let name = segment_name(&self.stem, number); // a newer segment reports this
                    self.unlinked
                        .extend(UnlinkedSegment::remove(&folder, &name));
                }
                Ok(self.segment.size)
            }
            Err(error) if self.bound.is_exceeded(size + wanted, end) => {
                Err(write_error_cause(&error))
            }
            Err(_) => {
                self.roll_after_ns = now_ns + RETRY_NS;
                Ok(size)
            }
        }
    }

    /// Creates the segment file with index `number`, or with the next index whose file name is
    /// free. `begin` and `removed` go into its first lines.
    fn create_next(
        &self,
        source: &Source<'_>,
        folder: &Dir,
        number: u32,
        (begin, removed): (SegmentBegin, &Removed),
    ) -> io::Result<Segment> {
        let names = source.names.lines(self.header.pid, source.ring);
        let create = |number| {
            let text = preamble(&self.header, number, begin, removed, &names);
            Segment::create(folder, &self.stem, number, &text, self.mode)
        };
        let is_free = |created: &io::Result<Segment>| {
            let error = created.as_ref().err();
            error.is_none_or(|error| error.kind() != io::ErrorKind::AlreadyExists)
        };
        let created = (number..number + MAX_SKIPPED_NAMES)
            .map(create)
            .find(is_free);
        created.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))
    }

    /// Creates another segment after somebody removed the current one. Counts as lost the events
    /// that were in it and in other segments that are also gone. Returns the size of the new
    /// segment in bytes.
    fn recreate(&mut self, source: &Source<'_>) -> io::Result<u64> {
        let folder = self.paths.create_fragments(self.mode)?;
        let about = (SegmentBegin::now(), &self.bound.removed);
        let segment = self.create_next(source, &folder, self.segment.number, about)?;
        std::mem::replace(&mut self.segment, segment).close();
        self.segment.register_for_fork();
        if self.stopped.is_some() {
            self.stop(self.segment.size);
        }
        let stem = &self.stem;
        let is_there = |number| folder.has(segment_name(stem, number));
        let events = self.contents.events + self.bound.forget(is_there);
        if events > 0 {
            source.lost.add(Cause::FragmentRemoved, events);
        }
        self.contents = Contents::begun_at(clock::now_ns());
        Ok(self.segment.size)
    }

    /// Writes a last record to the full segment, which has `size` bytes: recording stops because
    /// the disk space is used up. Returns the cause with which all further writes of events fail.
    fn stop(&mut self, size: u64) -> Cause {
        let now_ns = clock::now_ns();
        let line = stopped_line(self.header.pid, now_ns);
        // Beyond the limit the kernel sends a deadly signal.
        if size.saturating_add(line.len() as u64 + 1) > fd::file_size_limit() {
            return Cause::FileSizeLimit;
        }
        if let Err(cause) = self.segment.write([b"", &line, b""], size, 0) {
            return cause;
        }
        self.stopped = Some(Stopped {
            report_at_ns: now_ns + RETRY_NS,
            pause_ns: RETRY_NS,
        });
        Cause::DiskBound
    }

    /// Appends a block after the disk space was used up. Accepts only the process's own records,
    /// which report the events that are lost from now on.
    fn append_stopped(&mut self, source: &Source<'_>, block: &Block<'_>) -> Result<(), Cause> {
        if !block.is_own() {
            return Err(Cause::DiskBound);
        }
        let limit = fd::file_size_limit();
        let end = self.bound.segment_bytes(limit);
        let size = self
            .current_size(source)
            .map_err(|error| write_error_cause(&error))?;
        let after = size.saturating_add(self.needed_bytes(block));
        if after > limit || self.bound.is_exceeded(after, end) {
            return Err(Cause::DiskBound);
        }
        self.segment.write(block.parts(), size, 0)?;
        if let Some(stopped) = &mut self.stopped {
            stopped.pause_ns = stopped.pause_ns.saturating_mul(2);
            stopped.report_at_ns = clock::now_ns().saturating_add(stopped.pause_ns);
        }
        Ok(())
    }

    /// Empties the list of deleted segments that are still open, and returns them so that the
    /// caller closes them.
    pub(crate) fn drain_unlinked(&mut self) -> Vec<UnlinkedSegment> {
        std::mem::take(&mut self.unlinked)
    }

    /// Returns the cause of the last write to the fragment, if that write failed. After recording
    /// has stopped, returns that cause except at the moments when losses are reported.
    pub(crate) fn failure(&self) -> Option<Cause> {
        match &self.stopped {
            Some(stopped) => (clock::now_ns() < stopped.report_at_ns).then_some(Cause::DiskBound),
            None => self.failed.map(|(_, cause)| cause),
        }
    }

    /// Closes the current segment's file for good and releases its lock. Later writes to the
    /// fragment fail.
    pub(crate) fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.segment.end();
            self.drain_unlinked()
                .into_iter()
                .for_each(UnlinkedSegment::close);
        }
    }

    /// Removes the ring file of this fragment, if the file of that name is still the one that
    /// `ring` identifies.
    pub(crate) fn remove_ring(&self, ring: FileId) {
        let name = ring_name(&self.stem);
        if let Ok(folder) = self.paths.open_fragments()
            && let Ok((_, status)) = folder.open_file(&name)
            && status.id == ring
        {
            let _ = folder.remove(&name); // if the ring stays, the next merge handles it
        }
    }
}

fn retry_ns(cause: Cause) -> u64 {
    match cause {
        Cause::WriteError => DESCRIPTOR_RETRY_NS,
        _ => RETRY_NS,
    }
}
