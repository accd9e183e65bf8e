//! Finds traces that are pieces of one process's trace: `node_trace.1.log` and `node_trace.2.log`, `msprof_slice_0.json` and `msprof_slice_1.json`.
//!
//! The files themselves contain no hint. Two files are consecutive pieces if their names differ by a piece number that increases by one, they have
//! pids in common, their times have the same origin, and one begins where the other ends. If only the times do not fit, or if several files fit, the
//! traces stay separate and the report says why.

use super::clock::{TimeOrigin, seconds};
use super::read::TraceDraft;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Divisor of the shorter duration: consecutive pieces may overlap by at most this part of it. They may overlap because a span may be written when it
/// ends, so that it began before the cut.
const MOST_OVERLAP: i64 = 10;
/// Maximum time between two pieces.
const MOST_APART_NS: i64 = 1_000_000_000;
/// Words before the number of a piece. Numbers after other words are ranks, devices or hosts.
const WORDS: [&str; 6] = ["trace", "slice", "piece", "part", "chunk", "segment"];
/// Lower pids may be devices, which Kineto numbers from 0.
const FIRST_HOST_PID: i64 = 64;

/// A trace that may be a piece.
#[derive(Debug)]
struct TracePiece<'a> {
    path: &'a Path,
    pids: &'a BTreeSet<i64>,
    rank: Option<u64>,
    origin: &'a TimeOrigin,
    time: Option<PieceTime>,
}

/// Begin of the first and of the last event of a trace, and end of the last one.
#[derive(Clone, Copy, Debug)]
struct PieceTime {
    first_ns: i64,
    last_ns: i64,
    end_ns: i64,
}

/// Position of a trace among pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PiecePlace {
    /// Number of the first piece, which may be the trace itself.
    pub(super) first: usize,
    /// Description of why it may be a piece although it stays separate.
    pub(super) doubt: Option<String>,
}

/// Determines which traces continue others, as pieces of one process's trace. Returns the number of the first piece for each trace. This is the
/// trace's own number if it continues no other.
pub(super) fn pieces(drafts: &[TraceDraft]) -> Vec<PiecePlace> {
    let piece = |draft| {
        let draft: &TraceDraft = draft;
        TracePiece {
            path: &draft.fragment.path,
            pids: &draft.lines.pids,
            rank: draft.foreign.rank,
            origin: &draft.origin,
            time: draft.lines.time.map(|(first_ns, end_ns)| PieceTime {
                first_ns,
                last_ns: draft.lines.last_begin_ns,
                end_ns,
            }),
        }
    };
    places(&drafts.iter().map(piece).collect::<Vec<_>>())
}

/// Returns the number of the first piece for each trace, and the reason if a trace that may be a piece stays separate.
fn places(all: &[TracePiece<'_>]) -> Vec<PiecePlace> {
    let mut places: Vec<PiecePlace> = (0..all.len())
        .map(|first| PiecePlace { first, doubt: None })
        .collect();
    let mut joined = vec![None; all.len()];
    for (number, candidates) in candidates(all) {
        let path = |before: usize| all[before].path.display();
        let gaps = candidates
            .iter()
            .map(|before| (*before, all[number].gap(&all[*before])));
        let (fitting, others): (Vec<_>, Vec<_>) = gaps.partition(|(_, gap)| gap.is_ok());
        match (&fitting[..], &others[..]) {
            ([(before, _)], _) => joined[number] = Some(*before),
            ([(one, _), (other, _), ..], _) => {
                let (one, other) = (path(*one), path(*other));
                let doubt = format!("may continue {one} or {other}: they stay apart");
                places[number].doubt = Some(doubt);
            }
            ([], [(before, Err(why)), ..]) => {
                let before = path(*before);
                let doubt = format!("may continue {before}, but {why}: they stay apart");
                places[number].doubt = Some(doubt);
            }
            ([], _) => {}
        }
    }
    let mut next = vec![Vec::new(); all.len()];
    for (number, before) in joined.iter().enumerate() {
        if let Some(before) = before {
            next[*before].push(number);
        }
    }
    for (before, next) in next.iter().enumerate().filter(|(_, next)| next.len() > 1) {
        for number in next {
            joined[*number] = None;
            let before = all[before].path.display();
            let doubt = format!("may continue {before}, but so may others: they stay apart");
            places[*number].doubt = Some(doubt);
        }
    }
    for (number, place) in places.iter_mut().enumerate() {
        // The piece numbers decrease towards the first piece, so this loop ends.
        let mut first = number;
        while let Some(before) = joined[first] {
            first = before;
        }
        place.first = first;
    }
    places
}

/// Returns the traces that each trace may directly continue, by everything except the times. Traces are numbers in `all`; traces that can
/// continue no other have no entry.
fn candidates(all: &[TracePiece<'_>]) -> BTreeMap<usize, Vec<usize>> {
    let mut by_name: HashMap<PieceName, Vec<usize>> = HashMap::new();
    let names: Vec<Vec<PieceName>> = all.iter().map(|piece| piece_names(piece.path)).collect();
    for (number, names) in names.iter().enumerate() {
        for name in names {
            by_name.entry(name.clone()).or_default().push(number);
        }
    }
    let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, names) in names.into_iter().enumerate() {
        for name in names {
            let Some(nth) = name.nth.checked_sub(1) else {
                continue;
            };
            let before = by_name
                .get(&PieceName { nth, ..name })
                .into_iter()
                .flatten()
                .copied()
                .filter(|before| all[number].may_continue(&all[*before]));
            let before: Vec<usize> = before.collect();
            if !before.is_empty() {
                found.entry(number).or_default().extend(before);
            }
        }
    }
    found
}

/// Folder and name of a file. Long numbers, which are times, and the piece number are removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PieceName {
    folder: PathBuf,
    /// Runs of digits, and the texts between them.
    runs: Vec<String>,
    /// Index of the run that is the piece number.
    at: usize,
    /// The piece number.
    nth: u64,
}

/// Returns a piece name for each number in a file's name that may be its piece number, because it follows a word such as `slice`.
fn piece_names(path: &Path) -> Vec<PieceName> {
    const LONG: usize = 8;
    let mut runs = runs(path);
    let is_number = |run: &str| run.starts_with(|letter: char| letter.is_ascii_digit());
    let is_piece = |at: usize| {
        let word = at
            .checked_sub(1)
            .map_or("", |at| runs[at].as_str())
            .trim_end_matches(|letter: char| !letter.is_ascii_alphabetic())
            .to_ascii_lowercase();
        is_number(&runs[at]) && WORDS.iter().any(|piece| word.ends_with(piece))
    };
    let places: Vec<usize> = (0..runs.len()).filter(|at| is_piece(*at)).collect();
    for run in &mut runs {
        if run.len() >= LONG && is_number(run) {
            run.clear();
        }
    }
    let name = |at: usize| {
        let nth = runs[at].parse().ok()?;
        let mut runs = runs.clone();
        runs[at].clear();
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Some(PieceName {
            folder,
            runs,
            at,
            nth,
        })
    };
    places.into_iter().filter_map(name).collect()
}

impl TracePiece<'_> {
    /// Returns true if this trace can be the piece after the trace `before` according to ranks, time origins and processes. The times are not
    /// checked.
    fn may_continue(&self, before: &TracePiece<'_>) -> bool {
        let has_hosts =
            [self, before].map(|piece| piece.pids.range(FIRST_HOST_PID..).next().is_some());
        let least = if has_hosts == [true; 2] {
            FIRST_HOST_PID
        } else {
            i64::MIN
        };
        let mut pids = self.pids.range(least..);
        self.rank == before.rank
            && is_same_origin(self.origin, before.origin)
            && pids.any(|pid| before.pids.contains(pid))
    }

    /// Checks that this trace can be the piece after the trace `before` according to their times. Returns the reason as an error text if the
    /// times overlap or are too far apart.
    fn gap(&self, before: &TracePiece<'_>) -> Result<(), String> {
        let (Some(one), Some(other)) = (before.time, self.time) else {
            return Err("one of them has no event with a time".to_owned());
        };
        let lasts_ns = [one, other].map(|time| time.last_ns.saturating_sub(time.first_ns));
        let overlap_ns = one.last_ns.saturating_sub(other.first_ns);
        let most_ns = lasts_ns[0].min(lasts_ns[1]) / MOST_OVERLAP;
        if other.first_ns < one.first_ns || other.last_ns < one.last_ns || overlap_ns > most_ns {
            return Err("their times overlap".to_owned());
        }
        let gap_ns = other.first_ns.saturating_sub(one.end_ns);
        match gap_ns <= MOST_APART_NS {
            true => Ok(()),
            false => Err(format!("they are {} apart", seconds(gap_ns))),
        }
    }
}

/// Returns true if two traces count their times from the same wall time, or if it is unknown for both.
fn is_same_origin(one: &TimeOrigin, other: &TimeOrigin) -> bool {
    match (one, other) {
        (TimeOrigin::Wall(one, _), TimeOrigin::Wall(other, _)) => one == other,
        (TimeOrigin::Unknown(_), TimeOrigin::Unknown(_)) => true,
        _ => false,
    }
}

/// Splits the file name of a path into runs of digits and the texts between them, such as `slice_`, `12` and `.json`.
fn runs(path: &Path) -> Vec<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_digit = |letter: &char| letter.is_ascii_digit();
    let letters: Vec<char> = name.chars().collect();
    let runs = letters.chunk_by(|one, next| is_digit(one) == is_digit(next));
    runs.map(|run| run.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece<'a>(
        path: &'static str,
        pids: &'a BTreeSet<i64>,
        origin: &'a TimeOrigin,
        time: (i64, i64),
    ) -> TracePiece<'a> {
        TracePiece {
            path: Path::new(path),
            pids,
            rank: None,
            origin,
            time: Some(PieceTime {
                first_ns: time.0,
                last_ns: time.1,
                end_ns: time.1,
            }),
        }
    }

    /// Returns the first piece of each of these files of one process, and the doubts.
    fn found(files: &[(&'static str, (i64, i64))]) -> (Vec<usize>, Vec<String>) {
        let (origin, pids) = (TimeOrigin::Unknown(String::new()), BTreeSet::from([4711]));
        let pieces = files
            .iter()
            .map(|(path, time)| piece(path, &pids, &origin, *time));
        let places = places(&pieces.collect::<Vec<_>>());
        let doubts = places.iter().filter_map(|place| place.doubt.clone());
        (
            places.iter().map(|place| place.first).collect(),
            doubts.collect(),
        )
    }

    #[test]
    fn the_next_piece_has_the_next_number() {
        for case in include_str!("../../tests/pieces.txt").lines() {
            let (one, rest) = case.split_once(' ').unwrap();
            let (word, other) = rest.split_once(' ').unwrap();
            let expected = [0, usize::from(word == "apart")];
            let (firsts, _) = found(&[(one, (0, 100)), (other, (100, 200))]);
            assert_eq!(firsts, expected, "{case}");
        }
    }

    #[test]
    fn pieces_that_fit_several_files_stay_apart() {
        let (firsts, doubts) = found(&[
            ("slice_1_20260101.json", (0, 100)),
            ("slice_1_20260102.json", (10, 100)),
            ("slice_2_20260103.json", (100, 200)),
            ("v/slice_1_20260101.json", (0, 100)),
            ("v/slice_2_20260102.json", (100, 200)),
            ("v/slice_2_20260103.json", (100, 200)),
        ]);
        assert_eq!(firsts, [0, 1, 2, 3, 4, 5]);
        let several = "may continue v/slice_1_20260101.json, but so may others: they stay apart";
        let either = "may continue slice_1_20260101.json or slice_1_20260102.json: they stay apart";
        assert_eq!(doubts, [either, several, several]);
    }
}
