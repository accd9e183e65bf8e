//! What each input gave and what was wrong with it → the report.

use crate::app::report::{DamageReport, InputReport, Report};
use crate::base::folder::Place;
use crate::event::damage::Kind;
use crate::fragment::assembly::Assembly;
use crate::fragment::file::Fragment;
use crate::fragment::recording::Recording;
use crate::pass::source::Source;
use crate::summary::chunk_summary::ChunkSummary;
use crate::summary::gaps::{Explanations, missing};

/// Fills in what each input gave and what was wrong with it. `sources` are in the order of the recordings.
pub(crate) fn tell_sources(
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
        report
            .inputs
            .extend(recording.fragments.iter().map(input_report));
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
        tell_missing(recording, &assemblies[number], &summaries[number], damage);
        report.inputs[first_input].damage += damage.total - before;
    }
    for summary in summaries {
        report.events.total += summary.events();
        report.losses.events = report.losses.events.saturating_add(summary.lost_events);
        report.unfinished_spans += summary.unfinished;
        for (phase, count) in &summary.phases {
            *report
                .events
                .by_phase
                .entry(char::from(phase.byte()))
                .or_default() += count;
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

/// Damage of a recording as a whole: blocks, gaps, the ring.
fn tell_missing(
    recording: &Recording,
    assembly: &Assembly,
    summary: &ChunkSummary,
    damage: &mut DamageReport,
) {
    let path = |segment: usize| recording.fragments[segment].path.as_path();
    if !assembly.bad_blocks.is_empty() {
        let explanations = Explanations::of(&summary.explained);
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
    let ring_path = recording.ring_place.as_ref().map_or(path(0), Place::path);
    if let Some(why) = &recording.bad_ring {
        damage.add(ring_path, 0, Kind::BadRing, Some(why.clone()));
    }
    if let Some((ring, _)) = &recording.ring {
        let slots = ring.bad_slots.iter().map(|offset| (offset, "slot"));
        let texts = ring
            .bad_texts
            .iter()
            .map(|offset| (offset, "text of an open span"));
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
