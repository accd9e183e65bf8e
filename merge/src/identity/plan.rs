//! What the second pass does to each recording's lines: output ids and the shift of its clock.

use crate::clock::Map;
use crate::event::patch::Target;
use crate::fragment::recording::Recording;
use crate::identity::{Identities, Member};
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
}
