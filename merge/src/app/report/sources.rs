//! Reports the events and the damage of each input.

use crate::app::report::{DamageReport, InputReport, Report};
use crate::base::folder::FileLocation;
use crate::event::damage::Kind;
use crate::foreign::ForeignReport;
use crate::fragment::assembly::Assembly;
use crate::fragment::file::Fragment;
use crate::fragment::recording::{ForeignTrace, Recording};
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use crate::summary::chunk_summary::ChunkSummary;
use crate::summary::gaps::{Explanations, missing};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

/// Reports the events and the damage of each input. `sources` are in the order of the recordings.
pub(crate) fn report_sources(
    recordings: &[Recording],
    assemblies: &[Assembly],
    sources: &[Source<'_>],
    summaries: &[ChunkSummary],
    report: &mut Report,
) {
    let mut rest = sources;
    for (number, recording) in recordings.iter().enumerate() {
        let own;
        (own, rest) = rest.split_at(rest.partition_point(|source| source.recording == number));
        let first_input = report.inputs.len();
        let inputs = recording.fragments.iter().map(input_report);
        report.inputs.extend(inputs);
        for source in own {
            let offset = |at| source.file_offset(at);
            let places = &source.summary.places;
            report.damage.add_places(source.path, places, offset);
            report.repairs.add(&source.summary.repairs);
            let input = &mut report.inputs[first_input + source.segment.unwrap_or(0)];
            input.damage += places.total();
            match source.segment {
                Some(_) => input.events += source.summary.events(),
                None => input.ring_events += source.summary.events(),
            }
        }
        let damage = &mut report.damage;
        let before = damage.total;
        report_damage(recording, &assemblies[number], &summaries[number], damage);
        report.inputs[first_input].damage += damage.total - before;
    }
    for summary in summaries {
        report.events.total += summary.events();
        report.losses.events = report.losses.events.saturating_add(summary.lost_events);
        report.unfinished_spans += summary.unfinished;
        for (phase, count) in &summary.phases {
            let phase = char::from(phase.byte());
            *report.events.by_phase.entry(phase).or_default() += count;
        }
    }
}

fn input_report(fragment: &Fragment) -> InputReport {
    InputReport {
        path: fragment.path.clone(),
        bytes: fragment.content.bytes().len() as u64,
        run: fragment.header.as_ref().map(|header| header.run.clone()),
        pid: fragment.header.as_ref().map(|header| header.pid),
        ..InputReport::default()
    }
}

/// Reports damage of a recording as a whole: blocks, gaps, the ring.
fn report_damage(
    recording: &Recording,
    assembly: &Assembly,
    summary: &ChunkSummary,
    damage: &mut DamageReport,
) {
    let path = |segment: usize| recording.fragments[segment].path.as_path();
    if !assembly.bad_blocks.is_empty() {
        let explanations = Explanations::from_losses(&summary.explained);
        for block in &assembly.bad_blocks {
            if !explanations.missing(block).is_empty() {
                damage.add(path(block.place.0), block.place.1, Kind::BadBlock, None);
            }
        }
    }
    for (gap, range) in missing(assembly, &summary.explained, summary.stopped) {
        let detail = format!("slot {} bytes {}..{}", gap.stream.0, range.start, range.end);
        damage.add(path(gap.place.0), gap.place.1, Kind::Gap, Some(detail));
    }
    let ring_path = recording
        .ring_place
        .as_ref()
        .map_or(path(0), FileLocation::path);
    if let Some(why) = &recording.bad_ring {
        damage.add(ring_path, 0, Kind::BadRing, Some(why.clone()));
    }
    if let Some((ring, _)) = &recording.ring {
        let (slots, texts) = (ring.bad_slots.iter(), ring.bad_texts.iter());
        let slots = slots.map(|offset| (offset, "slot"));
        let texts = texts.map(|offset| (offset, "text of an open span"));
        for (offset, what) in slots.chain(texts) {
            damage.add(ring_path, *offset, Kind::BadRing, Some(what.to_owned()));
        }
    }
    if recording.expects_ring() && !summary.ended {
        let last = recording.fragments.len() - 1;
        let end = recording.fragments[last].content.bytes().len() as u64;
        damage.add(path(last), end, Kind::RingMissing, None);
    }
}

/// Reports damage and repairs of foreign traces that the passes over their lines do not see.
/// `reports` are about these traces.
pub(crate) fn report_foreign(
    recordings: &[Recording],
    reports: &[ForeignReport],
    report: &mut Report,
) {
    for recording in recordings {
        if let (Some(foreign), Some(path)) = (&recording.foreign, recording.path()) {
            report_foreign_trace(foreign, path, report);
        }
    }
    report.foreign = reports.to_vec();
}

fn report_foreign_trace(foreign: &ForeignTrace, path: &Path, report: &mut Report) {
    report.damage.add_places(path, &foreign.places, |at| at);
    report.repairs.add(&foreign.repairs);
    let damage = report.damage.list.iter();
    let damage = damage.filter(|damage| damage.file == path);
    let of_gzip = damage.filter(|damage| damage.kind == Kind::BadGzip).count() as u64;
    if let Some(input) = report.inputs.iter_mut().find(|input| input.path == path) {
        input.bytes = foreign.bytes;
        input.damage += foreign.places.total() + of_gzip;
    }
}

/// Text of the damage entry.
pub(crate) const CHANGED: &str = "truncated or rewritten during the merge";

/// Adds a damage entry for each fragment that was changed. Appending is not a change.
pub(crate) fn add_changes(
    recordings: &[Recording],
    sources: &[Source<'_>],
    chunks: &[Chunk],
    report: &mut Report,
) {
    let fragments = recordings.iter().enumerate();
    let fragments = fragments.flat_map(|(recording, of)| {
        let segments = of.fragments.iter().enumerate();
        segments.map(move |(segment, fragment)| ((recording, segment), fragment))
    });
    let moved: Vec<_> = fragments
        .filter(|(_, fragment)| fragment.may_have_changed())
        .collect();
    if moved.is_empty() {
        return;
    }
    let numbers: BTreeSet<_> = moved.iter().map(|(at, _)| *at).collect();
    // Segments in which lines outside of blocks have changed since the first pass.
    let differing = chunks.par_iter().filter_map(|chunk| {
        let source = &sources[chunk.source];
        let at = (source.recording, source.segment?);
        let differs = numbers.contains(&at) && chunk.has_changed(source.bytes);
        differs.then_some(at)
    });
    let differing: BTreeSet<_> = differing.collect();
    let has_changed = |(at, fragment): &((usize, usize), &Fragment)| {
        fragment.content.is_cut()
            || fragment.watch.removed_lines() > 0
            || differing.contains(at)
            || fragment.blocks_have_changed()
    };
    let changed: Vec<_> = moved.into_par_iter().filter(has_changed).collect();
    for (_, fragment) in changed {
        let what = match fragment.watch.removed_lines() {
            0 => CHANGED.to_owned(),
            1 => format!("{CHANGED}; 1 line was no longer an event"),
            lines => format!("{CHANGED}; {lines} lines were no longer events"),
        };
        let damage = &mut report.damage;
        damage.add(&fragment.path, 0, Kind::Changed, Some(what));
    }
}
