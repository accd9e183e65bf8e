//! Places the times of each trace: by their origin if it is known, otherwise by the user's `--offset`, otherwise not at all.

use super::clock::{Offset, ReferenceClock, TimeOrigin, anchors, offset_clock, own_clock, seconds};
use super::pieces::PiecePlace;
use super::read::TraceDraft;
use crate::base::file_status::FileId;
use crate::error::Error;
use std::fs;

/// Determines the clock of each trace and stores it in the draft. `axis` is the clock of the fragments, and `offsets` are the values of
/// `--offset`. All pieces of one process's trace get the clock of their first piece.
///
/// # Errors
/// Returns an error if a trace cannot be placed, or if no trace has the path of an offset.
pub(super) fn place(
    drafts: &mut [TraceDraft<'_>],
    pieces: &[PiecePlace],
    axis: ReferenceClock,
    offsets: &[Offset],
) -> Result<(), Error> {
    // A piece uses the offset of the first piece if it has none.
    let offset = |(draft, piece): (&TraceDraft, &PiecePlace)| {
        offset_for(draft, offsets).or_else(|| offset_for(&drafts[piece.first], offsets))
    };
    let offsets_ns: Vec<Option<i64>> = drafts.iter().zip(pieces).map(offset).collect();
    for offset in offsets {
        if !drafts.iter().any(|draft| is_offset_for(offset, draft)) {
            return Err(Error::Usage(format!(
                "--offset {}: expected a trace of another profiler among the inputs, found none of that name",
                offset.path.display()
            )));
        }
    }
    let is_one = pieces.iter().all(|piece| piece.first == pieces[0].first);
    let axis = with_first_wall(axis, drafts, is_one);
    let is_alone = is_one && axis.start_ns.is_none() && axis.reference.is_none();
    for (draft, offset_ns) in drafts.iter_mut().zip(offsets_ns) {
        place_one(draft, offset_ns, &axis, is_alone)?;
    }
    for (number, piece) in pieces.iter().enumerate() {
        let clock = drafts[piece.first].foreign.clock.clone();
        drafts[number].foreign.clock = clock;
    }
    Ok(())
}

/// Completes the reference clock `axis`. Without fragments, the first trace with a known wall time becomes the reference for the others. `is_one`
/// is true if all traces are pieces of the same one.
fn with_first_wall(
    mut axis: ReferenceClock,
    drafts: &[TraceDraft],
    is_one: bool,
) -> ReferenceClock {
    let is_wall = |draft: &&TraceDraft| matches!(draft.origin, TimeOrigin::Wall(..));
    let wall = drafts.iter().find(is_wall).filter(|_| !axis.lacks_wall);
    let first = wall.or(drafts.first().filter(|_| !is_one));
    let reference = || first.map(|draft| own_clock(&draft.foreign.name));
    axis.reference = axis.reference.or_else(reference);
    let start_ns = || Some(wall?.lines.time?.0);
    axis.start_ns = axis.start_ns.or_else(start_ns);
    axis
}

/// Returns the offset in ns that the user gave for a trace; the last one if there are several.
fn offset_for(draft: &TraceDraft<'_>, offsets: &[Offset]) -> Option<i64> {
    let mut matching = offsets.iter().filter(|offset| is_offset_for(offset, draft));
    matching.next_back().map(|offset| offset.ns)
}

/// Returns true if an `--offset` is for this trace: its path is the path of the trace, or leads to the same file.
fn is_offset_for(offset: &Offset, draft: &TraceDraft<'_>) -> bool {
    let is_same_file = || {
        let metadata = fs::metadata(&offset.path);
        metadata.is_ok_and(|metadata| FileId::from_metadata(&metadata) == draft.fragment.id)
    };
    offset.path == draft.fragment.path || is_same_file()
}

/// Determines the clock of one trace and describes it in the trace's report. `offset_ns` is what the user wants to add to its times. `is_alone`
/// is true if the trace is the only input, so that it needs no clock.
fn place_one(
    draft: &mut TraceDraft<'_>,
    offset_ns: Option<i64>,
    axis: &ReferenceClock,
    is_alone: bool,
) -> Result<(), Error> {
    let time = draft.lines.time;
    let offset_ns = offset_ns.filter(|_| time.is_some());
    let added_ns = offset_ns.unwrap_or(0);
    let own = || own_clock(&draft.foreign.name);
    let (clock, method, words) = match (time, &draft.origin, offset_ns) {
        (None, ..) => (None, "none", "it has no event with a time".to_owned()),
        (Some(time), TimeOrigin::Wall(base_ns, by), _) if !axis.lacks_wall => {
            draft.anchors = anchors(time, base_ns.saturating_add(added_ns));
            (Some(own()), "wall_clock", format!("placed by its {by}"))
        }
        (_, TimeOrigin::Host(header), _) => {
            let clock = offset_clock(header, added_ns.saturating_sub(header.monotonic_offset_ns));
            let words = format!("its times use the monotonic clock of {}", header.host);
            (Some(clock), "host_clock", words)
        }
        (.., Some(offset_ns)) => {
            let clock = axis.reference.clone().unwrap_or_else(own);
            let words = "placed by --offset alone".to_owned();
            (Some(offset_clock(&clock, offset_ns)), "offset", words)
        }
        _ if is_alone => {
            let words = "it is the only input, so its clock does not matter";
            (None, "none", words.to_owned())
        }
        (Some(time), _, None) => return Err(placement_error(draft, time.0, axis)),
    };
    draft.foreign.clock = clock;
    let report = &mut draft.report;
    (report.method, report.clock, report.offset_ns) = (method, words, added_ns);
    Ok(())
}

/// Creates the error for a trace that cannot be placed. It says what was expected and found, and which offset would let the trace begin together
/// with the others. `first_ns` is the begin of the trace's first event.
fn placement_error(draft: &TraceDraft<'_>, first_ns: i64, axis: &ReferenceClock) -> Error {
    let path = draft.fragment.path.display();
    let found = match &draft.origin {
        TimeOrigin::Unknown(found) => found.clone(),
        TimeOrigin::Wall(_, by) => format!(
            "{by}, but no other input says what time it was (fragments without a header have no anchor)"
        ),
        TimeOrigin::Host(_) => String::new(),
    };
    let torn = match draft.lines.is_torn() {
        true => " (the trace is cut off, and its clock may have been in the missing part)",
        false => "",
    };
    let begin_ns = axis.start_ns.unwrap_or(first_ns);
    let offset = seconds(begin_ns.saturating_sub(first_ns));
    let same = match &draft.origin {
        TimeOrigin::Unknown(_) => {
            format!(", and --offset '{path}=0s' says that it has the same monotonic clock")
        }
        _ => String::new(),
    };
    Error::Usage(format!(
        "{path}: expected a clock to place it by (baseTimeNanoseconds, or times since 1970), found {found}{torn}. \
         Say what to add to its times to get those of the other inputs' clock: the others begin at about {}, so \
         --offset '{path}={offset}' lets it begin with them{same}",
        seconds(begin_ns)
    ))
}
