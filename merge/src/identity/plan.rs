//! Output ids and clock shift of each recording, for the second pass.

use crate::clock::time_map::TimeMap;
use crate::event::patch::Target;
use crate::fragment::recording::Recording;
use crate::identity::identities::{IdentityMember, processes, targets};
use crate::identity::process::{Process, RecordingEnd};
use crate::summary::chunk_summary::ChunkSummary;
use std::collections::HashMap;

/// Changes that the second pass makes to each recording's lines.
pub(crate) struct Plan {
    /// All processes in the order of the trace.
    pub(crate) processes: Vec<Process>,
    pub(crate) targets: Vec<HashMap<(i64, i64), Target>>,
    /// Time in ns to add to each recording's times, after any warp, to get the times of the trace.
    pub(crate) shifts_ns: Vec<i64>,
    pub(crate) base_ns: i64,
}

impl Plan {
    /// Assigns ids and shifts. `maps` bring the times of recordings to the axis.
    pub(crate) fn new(
        recordings: &[Recording],
        summaries: &[ChunkSummary],
        maps: &[TimeMap],
    ) -> Plan {
        let members = recordings.iter().zip(summaries).zip(maps);
        let members: Vec<IdentityMember<'_>> = members
            .enumerate()
            .map(|(number, ((recording, summary), map))| IdentityMember {
                scope: scope(recordings, number),
                header: recording.header(),
                foreign: recording.foreign.as_deref(),
                summary,
                shift_ns: map.shift_ns,
                end: RecordingEnd::from_recording(recording, summary),
            })
            .collect();
        let processes = processes(&members);
        let first = processes
            .iter()
            .map(|process| process.activity.first_ns)
            .min();
        let base_ns = first.filter(|first| *first != i64::MAX).unwrap_or(0);
        let shifts = members.iter().map(|member| member.shift_ns - base_ns);
        Plan {
            targets: targets(&processes, &members),
            processes,
            shifts_ns: shifts.collect(),
            base_ns,
        }
    }
}

/// Returns the number of the recording that owns a recording's processes: the first piece of the
/// same trace of another profiler, otherwise the recording itself.
fn scope(recordings: &[Recording], number: usize) -> usize {
    let trace = |recording: &Recording| recording.foreign.as_ref().map(|trace| trace.number);
    let own = trace(&recordings[number]);
    let first = recordings.iter().position(|other| trace(other) == own);
    first.filter(|_| own.is_some()).unwrap_or(number)
}
