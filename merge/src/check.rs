//! What viewers would lose of a Chrome trace, whoever wrote it.
//!
//! In: a trace as an array or an object, compressed or not. Out: what Perfetto would not show, or show wrongly, and where, found by
//! doing what its importer does with the times, ids and arrows. The trace is held in memory, with some 100 bytes more for each event.

mod arrow;
mod counter;
mod document;
mod event;
mod finding;
mod id;
mod rule;
mod thread;
mod time;
mod timeline;

pub use finding::{CheckReport, Finding, Loss, Place};
pub use rule::Rule;

use finding::Findings;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The first bytes of every compressed trace.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Tells what viewers would lose of the trace at `path`. Offsets are those of the text, of a compressed trace after it is unpacked.
///
/// # Errors
/// If the file cannot be read or unpacked. A trace that no viewer loads is no error, but a finding.
pub fn check(path: &Path) -> io::Result<CheckReport> {
    let (text, is_cut) = read(path)?;
    let mut findings = Findings::new();
    let mut events = event::Events::new(&text);
    document::walk(&text, &mut events, &mut findings);
    if is_cut {
        findings.is_loaded = false;
        findings.add(Rule::CutOff, events.here(text.len()));
    }
    let count = events.count();
    events.finish(&mut findings);
    Ok(findings.report(path, &text, count))
}

/// The text of the trace, and whether a compressed one ends too early.
fn read(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    if !bytes.starts_with(GZIP) {
        return Ok((bytes, false));
    }
    let mut text = Vec::new();
    match MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut text) {
        Ok(_) => Ok((text, false)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok((text, true)),
        Err(error) => Err(error),
    }
}
