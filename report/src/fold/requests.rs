//! Builds requests from the events that processes recorded about them.

pub(crate) mod life;
pub(crate) mod life_splitter;
mod phases;
pub(crate) mod prefixes;
pub(crate) mod sizings;
pub(crate) mod spikes;
pub(crate) mod summary;

use super::serving::InFlight;
use super::value_sorter::ValueSorter;
use crate::fold::value_sorter::ValueRecord;
use crate::gather::chunk_records::ChunkRecords;
use crate::gather::reasons::Reasons;
use crate::gather::request_moment::{NamePiece, RequestMoment, RequestToken};
use crate::gather::request_output::{Pauses, RequestOutput};
use crate::statistics::quantiles::Quantiles;
use crate::table::{Phases, Request};
use life::{Decoding, Life};
use life_splitter::LifeSplitter;
use phases::PhaseSequences;
use std::collections::BTreeSet;
use std::io;
use std::iter::Peekable;
use std::path::PathBuf;
use std::slice::Iter;
use trace_store::sorter::{Sorted, Sorter};

/// Memory for each kind of record in bytes. Further records go to temporary files.
const BYTES: usize = 8 << 20;

/// Events of requests, sorted in temporary files if there are too many for memory.
pub(crate) struct RequestRecords<'f> {
    moments: Sorter<'f, RequestMoment>,
    tokens: Sorter<'f, RequestToken>,
    outputs: Sorter<'f, RequestOutput>,
    pauses: Pauses,
    /// Processes that recorded lists of outputs.
    listing: BTreeSet<u32>,
    names: Sorter<'f, NamePiece>,
    reasons: Reasons,
}

/// Events of requests, sorted by [`RequestRecords::sort`].
pub(crate) struct SortedRequests {
    moments: Sorted<RequestMoment>,
    tokens: Sorted<RequestToken>,
    outputs: Sorted<RequestOutput>,
    names: Sorted<NamePiece>,
    pauses: Pauses,
    listing: BTreeSet<u32>,
    reasons: Reasons,
}

/// The requests of a run.
pub(crate) struct FoldedRequests {
    /// Requests that began or ended in the trace, in order of arrival.
    pub(crate) requests: Vec<Request>,
    pub(crate) phases: Phases,
    /// Times between tokens, of all requests together.
    pub(crate) itl: Quantiles,
    pub(crate) scheduling: Scheduling,
    pub(crate) decodings: Vec<Decoding>,
    /// Number of requests that began under an id which was still in use.
    pub(crate) mixed: u64,
}

/// Results for the prompts whose blocks have hashes.
#[derive(Debug, Default)]
pub(crate) struct Scheduling {
    /// Number of requests that engines scheduled. A request that two engines scheduled counts twice.
    pub(crate) scheduled: u64,
    /// For each prompt, true if its engine scheduled it.
    pub(crate) is_scheduled: Vec<bool>,
    /// For each prompt, the number of its tokens in the cache.
    pub(crate) cached_tokens: Vec<Option<u64>>,
}

/// Receiver of tokens and of the times between them while requests are folded.
pub(crate) trait TokenSink {
    /// Receives the time of an output in ns, and its number of tokens.
    fn tokens(&mut self, ns: i64, tokens: u32);
    /// Receives the time in ns between two consecutive outputs of one request.
    fn gap(&mut self, ns: i64);
}

impl<'f> RequestRecords<'f> {
    pub(crate) fn new(folders: &'f [PathBuf]) -> RequestRecords<'f> {
        RequestRecords {
            moments: Sorter::in_any(folders, 2 * BYTES),
            tokens: Sorter::in_any(folders, BYTES),
            outputs: Sorter::in_any(folders, BYTES),
            pauses: Pauses::default(),
            listing: BTreeSet::new(),
            names: Sorter::in_any(folders, BYTES),
            reasons: Reasons::default(),
        }
    }

    /// Moves the events of requests out of a chunk.
    pub(crate) fn add_chunk(&mut self, chunk: &mut ChunkRecords) -> io::Result<()> {
        let reasons = self.reasons.merge(std::mem::take(&mut chunk.reasons));
        for (request, id) in chunk.requests.drain() {
            self.names.extend(NamePiece::split(request, &id))?;
        }
        for mut moment in chunk.moments.drain(..) {
            moment.args.reason = reasons[moment.args.reason as usize];
            self.moments.push(moment)?;
        }
        self.tokens.extend(chunk.tokens.drain(..))?;
        self.pauses.merge(std::mem::take(&mut chunk.pauses));
        self.listing
            .extend(chunk.outputs.iter().map(|output| output.process));
        self.outputs.extend(chunk.outputs.drain(..))
    }

    /// Adds the moment at which an engine recorded the block hashes of a request's prompt.
    pub(crate) fn add_prompt(&mut self, moment: RequestMoment) -> io::Result<()> {
        self.moments.push(moment)
    }

    /// Sorts all records.
    pub(crate) fn sort(self) -> io::Result<SortedRequests> {
        Ok(SortedRequests {
            moments: self.moments.finish()?,
            tokens: self.tokens.finish()?,
            outputs: self.outputs.finish()?,
            names: self.names.finish()?,
            pauses: self.pauses,
            listing: self.listing,
            reasons: self.reasons,
        })
    }
}

impl SortedRequests {
    /// Calls `begin` with the hash of each request's run and id, then `found` with each request that used this id. Both
    /// also receive `target`.
    fn each<T>(
        &self,
        target: &mut T,
        begin: impl Fn(&mut T, u64),
        found: impl Fn(&mut T, Life) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut moments, mut tokens) = (&self.moments[..], &self.tokens[..]);
        loop {
            let next = [
                moments.first().map(|moment| moment.request),
                tokens.first().map(|token| token.request),
            ];
            let Some(request) = next.into_iter().flatten().min() else {
                return Ok(());
            };
            begin(target, request);
            let own_moments = split_front(&mut moments, |moment| moment.request == request);
            let own_tokens = split_front(&mut tokens, |token| token.request == request);
            LifeSplitter::each(own_moments, own_tokens, |life| found(target, life))?;
        }
    }

    /// Returns the time in which each request was in flight.
    pub(crate) fn in_flight(&self) -> io::Result<Vec<InFlight>> {
        let mut times = Vec::with_capacity(ids(&self.moments));
        self.each(
            &mut times,
            |_, _| (),
            |times, life| {
                times.extend(life.in_flight());
                Ok(())
            },
        )?;
        Ok(times)
    }

    /// Folds one request after another. `prompts` is the number of prompts whose blocks have hashes, and `runs` lists
    /// the run of each process.
    pub(crate) fn fold(
        &self,
        prompts: usize,
        runs: &[u64],
        gaps: Sorter<'_, ValueRecord>,
        sink: &mut dyn TokenSink,
    ) -> io::Result<FoldedRequests> {
        let mut gaps = Gaps {
            gaps: ValueSorter::new(gaps),
            runs,
            listing: self
                .listing
                .iter()
                .map(|process| run(runs, *process))
                .collect(),
            pauses: &self.pauses,
            sink,
        };
        let mut requests = Requests {
            names: self.names.iter().peekable(),
            reasons: &self.reasons,
            sequences: PhaseSequences::default(),
            scheduling: Scheduling {
                is_scheduled: vec![false; prompts],
                cached_tokens: vec![None; prompts],
                ..Scheduling::default()
            },
            // Reserve the whole size at once, because growing a vector copies it and needs both copies for a moment.
            requests: Vec::with_capacity(ids(&self.moments)),
            decodings: Vec::new(),
            name: Vec::new(),
            mixed: 0,
        };
        let mut target = (&mut requests, &mut gaps);
        self.each(
            &mut target,
            |(requests, _), request| requests.begin(request),
            |(requests, gaps), life| requests.add(life, gaps),
        )?;
        gaps.outputs(&self.outputs)?;
        let itl = gaps.finish()?;
        let mut found = requests.requests;
        found.sort_unstable_by(|one, other| {
            let place = |request: &Request| (request.begin_ns(), request.queued_ns);
            let (first, second) = (place(one), place(other));
            (first.0, &one.request_id, first.1).cmp(&(second.0, &other.request_id, second.1))
        });
        Ok(FoldedRequests {
            requests: found,
            phases: requests.sequences.finish(),
            itl,
            scheduling: requests.scheduling,
            decodings: requests.decodings,
            mixed: requests.mixed,
        })
    }
}

/// Returns the number of ids that have moments.
fn ids(moments: &[RequestMoment]) -> usize {
    let ids = moments.chunk_by(|one, next| one.request == next.request);
    ids.count()
}

/// Splits off the leading records for which `holds` returns true.
fn split_front<'a, R>(records: &mut &'a [R], holds: impl FnMut(&R) -> bool) -> &'a [R] {
    let (front, rest) = records.split_at(records.partition_point(holds));
    *records = rest;
    front
}

/// Turns lives into requests.
struct Requests<'a> {
    names: Peekable<Iter<'a, NamePiece>>,
    reasons: &'a Reasons,
    sequences: PhaseSequences,
    scheduling: Scheduling,
    requests: Vec<Request>,
    decodings: Vec<Decoding>,
    /// Id of the requests that are being folded.
    name: Vec<u8>,
    mixed: u64,
}

impl Requests<'_> {
    /// Reads the id of a request, skipping ids of requests before it.
    fn begin(&mut self, request: u64) {
        self.name.clear();
        while let Some(piece) = self.names.next_if(|piece| piece.request <= request) {
            if piece.request == request {
                self.name.extend_from_slice(piece.bytes());
            }
        }
    }

    /// Adds the tokens and prompts of a life, and its request with the phases. A life that neither arrived nor was
    /// queued has no request.
    fn add(&mut self, mut life: Life, gaps: &mut Gaps<'_, '_>) -> io::Result<()> {
        gaps.tokens(&life)?;
        self.scheduling.add(&life);
        self.decodings.extend(life.decoding());
        self.mixed += life.mixed();
        let changes = life.take_changes();
        let name = String::from_utf8_lossy(&self.name);
        let Some(request) = life.request(&name, self.reasons) else {
            return Ok(());
        };
        if let Some(phases) = changes.phases(&request) {
            self.sequences.add(&phases);
        }
        // Grow in small steps, because doubling would need as much memory again as all requests.
        if self.requests.len() == self.requests.capacity() {
            self.requests.reserve_exact(self.requests.len() / 8 + 64);
        }
        self.requests.push(request);
        Ok(())
    }
}

impl Scheduling {
    /// Counts the processes that scheduled a request. For each of its prompts, notes whether it was scheduled and the
    /// request's cached tokens.
    fn add(&mut self, life: &Life) {
        self.scheduled += life.scheduled();
        for (prompt, is_scheduled) in life.prompts() {
            if let Some(entry) = self.is_scheduled.get_mut(prompt) {
                *entry = is_scheduled;
                self.cached_tokens[prompt] = life.cached_tokens();
            }
        }
    }
}

/// Returns the run of a process, or 0 if it is unknown. `runs` contains the run of each process.
fn run(runs: &[u64], process: u32) -> u64 {
    runs.get(process as usize).copied().unwrap_or(0)
}

/// Collects the times between consecutive tokens of each request.
struct Gaps<'s, 'f> {
    gaps: ValueSorter<'f>,
    /// Run of each process.
    runs: &'s [u64],
    /// Runs in which a frontend listed the outputs of its steps. The lists include every token, so recorded tokens
    /// would count twice.
    listing: BTreeSet<u64>,
    pauses: &'s Pauses,
    sink: &'s mut dyn TokenSink,
}

impl Gaps<'_, '_> {
    /// Adds a time between two tokens in ns, and reports it to the sink.
    fn push(&mut self, ns: i64) -> io::Result<()> {
        self.sink.gap(ns);
        self.gaps.push(0, ns)
    }

    /// Adds the times between the tokens of one request, and reports them and the tokens to the sink. Does nothing if a
    /// frontend listed outputs in the request's run, because [`Gaps::outputs`] adds them.
    fn tokens(&mut self, life: &Life) -> io::Result<()> {
        let tokens = life.tokens();
        let request_run = life.any_process().map(|process| run(self.runs, process));
        if request_run.is_some_and(|run| self.listing.contains(&run)) {
            return Ok(());
        }
        tokens.iter().for_each(|ns| self.sink.tokens(*ns, 1));
        tokens
            .windows(2)
            .try_for_each(|two| self.push(two[1] - two[0]))
    }

    /// Adds the times between consecutive outputs of each request that frontends listed, and reports them and the
    /// outputs to the sink. A time during which recording was paused is left out.
    fn outputs(&mut self, outputs: &Sorted<RequestOutput>) -> io::Result<()> {
        for list in outputs.chunk_by(|one, next| one.key == next.key) {
            list.iter()
                .for_each(|output| self.sink.tokens(output.ts_ns, output.tokens));
            for [before, output] in list.array_windows() {
                let (from_ns, to_ns) = (before.ts_ns, output.ts_ns);
                if !self.pauses.interrupt(output.process, from_ns, to_ns) {
                    self.push(output.engine_ns.saturating_sub(before.engine_ns))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the quantiles of all times between tokens, in ns. They are zeros if there were no such times.
    fn finish(self) -> io::Result<Quantiles> {
        let gaps = self.gaps.finish()?;
        Ok(gaps.first().copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BYTES;
    use crate::fold::requests::sizings::sizings;
    use crate::fold::requests::spikes::spikes;
    use crate::fold::requests::summary::request_parts;
    use crate::fold::requests::summary::summary;
    use crate::gather::request_moment::MomentKind;
    use crate::gather::request_moment::RequestArgs;
    use crate::table::{LoadLevel, SeriesKind, ServingTime};
    use std::cmp::Reverse;

    /// Number of requests in the test. With `SA_PROFILE_FULL=1` it is a million.
    const REQUESTS: u64 = 150_000;
    /// Allowed memory in bytes: a fixed amount, plus an amount for each request.
    const MOST_BYTES: u64 = 64 << 20;
    const MOST_EACH: u64 = 200;
    const US: i64 = 1_000;

    struct Nowhere;

    impl TokenSink for Nowhere {
        fn tokens(&mut self, _: i64, _: u32) {}
        fn gap(&mut self, _: i64) {}
    }

    /// Adds the events of one vLLM request. One request arrives every 100 µs.
    fn add_request(nth: u64, chunk: &mut ChunkRecords) {
        let request = xxhash_rust::xxh3::xxh3_64(&nth.to_le_bytes());
        let from_ns = nth.cast_signed() * 100 * US;
        chunk
            .requests
            .insert(request, format!("chatcmpl-{request:032x}"));
        let moments = [
            (MomentKind::Http, 0, 9_000),
            (MomentKind::Request, 100, 8_900),
            (MomentKind::Preprocess, 10, 90),
            (MomentKind::Queued, 200, 0),
            (MomentKind::Scheduled, 300, 0),
            (MomentKind::FirstToken, 2_000, 0),
            (MomentKind::FirstChunk, 2_500, 0),
            (MomentKind::Finished, 8_000, 0),
            (MomentKind::Answered, 8_500, 0),
        ];
        for (kind, at_us, end_us) in moments {
            let is_engine = matches!(kind, MomentKind::Queued | MomentKind::Scheduled);
            let end_ns = from_ns + end_us * US;
            chunk.moments.push(RequestMoment {
                request,
                ts_ns: from_ns + at_us * US,
                kind,
                end_ns: Reverse(if end_us > 0 { end_ns } else { i64::MAX }),
                process: u32::from(is_engine),
                tag: 0,
                args: RequestArgs {
                    output_tokens: Some(20),
                    ..RequestArgs::default()
                },
            });
        }
        chunk.outputs.extend((0..5).map(|output| RequestOutput {
            key: nth,
            engine_ns: from_ns + (2_000 + 1_000 * output) * US,
            ts_ns: from_ns,
            process: 0,
            tokens: 1,
        }));
    }

    #[test]
    fn memory_for_requests_is_bounded() {
        let is_full = std::env::var_os("SA_PROFILE_FULL").is_some_and(|value| value == "1");
        let n = if is_full { 1_000_000 } else { REQUESTS };
        let folders = [std::env::temp_dir()];
        BYTES.reset_peak_usage();
        let before = BYTES.current_usage();
        let mut records = RequestRecords::new(&folders);
        for first in (0..n).step_by(1_000) {
            let mut chunk = ChunkRecords::default();
            (first..first + 1_000).for_each(|nth| add_request(nth, &mut chunk));
            records.add_chunk(&mut chunk).unwrap();
        }
        let gaps = Sorter::in_any(&folders, 32 << 20);
        let folded = records
            .sort()
            .unwrap()
            .fold(0, &[], gaps, &mut Nowhere)
            .unwrap();
        let requests = &folded.requests;
        let summary = summary(&folded, None, &ServingTime::default());
        assert_eq!((summary.ok, summary.itl.n), (n, 4 * n));
        assert_eq!(request_parts(requests).n, n);
        assert!(!sizings(requests, None).is_empty());
        let level = LoadLevel {
            of: SeriesKind::InFlight,
            process: None,
            wall_ns: 1,
            mean: 1.0,
            p50: 10.0,
            p90: 89.0,
            p99: 90.0,
            max: 90.0,
        };
        assert_eq!(spikes(requests, &[level], 0).n, 1);
        let bytes = (BYTES.peak_usage() - before) as u64;
        let each = bytes.saturating_sub(MOST_BYTES) as f64 / n as f64;
        assert!(
            bytes <= MOST_BYTES + n * MOST_EACH,
            "{n} requests took {bytes} bytes: {each:.0} each beyond {MOST_BYTES}"
        );
    }
}
