//! What the second pass does to each recording's lines: output ids and the shift of its clock.

use crate::app::report::{ProcessReport, Report};
use crate::clock::{Clocks, Map};
use crate::event::patch::Target;
use crate::fragment::recording::Recording;
use crate::identity::row_order::{metadata_lines, shown_names};
use crate::identity::{Identities, Member, Process};
use crate::pass::end::End;
use crate::pass::summary::Index;
use std::collections::HashMap;

/// What the second pass does to each recording's lines.
pub(crate) struct Plan {
    pub(crate) identities: Identities,
    pub(crate) targets: Vec<HashMap<(i64, i64), Target>>,
    /// What to add to each recording's times, warped ones where they are, to get the trace's.
    pub(crate) shifts_ns: Vec<i64>,
    pub(crate) base_ns: i64,
}

impl Plan {
    /// `maps` bring the times of recordings to the axis.
    pub(crate) fn new(recordings: &[Recording], indexes: &[Index], maps: &[Map]) -> Plan {
        let members = recordings.iter().zip(indexes).zip(maps);
        let members: Vec<Member<'_>> = members
            .map(|((recording, index), map)| Member {
                header: recording.header(),
                foreign: recording.foreign.as_deref(),
                index,
                shift_ns: map.shift_ns,
                end: End::of(recording, index),
            })
            .collect();
        let identities = Identities::new(&members);
        let targets = identities.targets(&members);
        let first = identities
            .processes
            .iter()
            .map(|process| process.activity.first_ns)
            .min();
        let base_ns = first.filter(|first| *first != i64::MAX).unwrap_or(0);
        let shifts_ns = members
            .iter()
            .map(|member| member.shift_ns - base_ns)
            .collect();
        Plan {
            identities,
            targets,
            shifts_ns,
            base_ns,
        }
    }

    pub(crate) fn tell(&self, clocks: &Clocks, report: &mut Report) {
        let from_base =
            |ns: i64| (ns.unsigned_abs() <= u64::MAX / 4).then(|| ns.saturating_sub(self.base_ns));
        let names = shown_names(&self.identities.processes);
        let end = |process: &Process| {
            let end = process.end.filter(|_| process.tracks.is_none());
            end.map(|(_, end)| end)
        };
        let processes = self
            .identities
            .processes
            .iter()
            .zip(names)
            .map(|(process, name)| ProcessReport {
                name,
                pid: process.pid,
                output_pid: process.output_pid,
                host: process.host.clone(),
                main: process.main && process.tracks.is_none(),
                tracks: process.tracks.is_some(),
                end: end(process).and_then(End::name),
                open_spans: end(process).map_or(0, End::open_spans),
                aside_for: process.aside.as_ref().map(|aside| aside.trace.clone()),
                threads: process
                    .threads
                    .values()
                    .filter(|thread| thread.is_used())
                    .count(),
                events: process.activity.events,
                first_ns: from_base(process.activity.first_ns),
                last_ns: from_base(process.activity.last_ns),
            });
        report.processes = processes.collect();
        report.base_ns = self.base_ns;
        report.clocks = clocks.placements();
        report.clocks_failed.clone_from(&clocks.failed);
        report.events_added = metadata_lines(&self.identities.processes).len() as u64;
    }
}
