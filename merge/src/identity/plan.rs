//! What the second pass does to each recording's lines: output ids and the shift of its clock.

use crate::clock::time_map::TimeMap;
use crate::event::patch::Target;
use crate::fragment::recording::Recording;
use crate::identity::identities::{IdentityMember, processes, targets};
use crate::identity::process::{Process, RecordingEnd};
use crate::summary::chunk_summary::ChunkSummary;
use std::collections::HashMap;

/// What the second pass does to each recording's lines.
pub(crate) struct Plan {
    /// All processes in the order of the trace.
    pub(crate) processes: Vec<Process>,
    pub(crate) targets: Vec<HashMap<(i64, i64), Target>>,
    /// What to add to each recording's times, warped ones where they are, to get the trace's.
    pub(crate) shifts_ns: Vec<i64>,
    pub(crate) base_ns: i64,
}

impl Plan {
    /// `maps` bring the times of recordings to the axis.
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
                end: RecordingEnd::of(recording, summary),
            })
            .collect();
        let processes = processes(&members);
        let first = processes.iter().map(|of| of.activity.first_ns).min();
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

/// The recording whose processes a recording's are: the first piece of the same trace of another profiler, else itself.
fn scope(recordings: &[Recording], number: usize) -> usize {
    let trace = |recording: &Recording| recording.foreign.as_ref().map(|of| of.number);
    let own = trace(&recordings[number]);
    let first = recordings.iter().position(|other| trace(other) == own);
    first.filter(|_| own.is_some()).unwrap_or(number)
}
