//! What viewers would lose of a Chrome trace, whoever wrote it.
//!
//! In: a trace as an array or an object, compressed or not. Out: what Perfetto would not show, or show wrongly, and where. It is found by doing what
//! Perfetto's importer does with the times, ids and arrows.
//!
//! The text is mapped, not held in memory. A compressed trace, or one from a pipe, goes to a temporary file first. So does what is to be sorted, beyond a
//! few MiB. Only the numbers of its threads, async ids and arrows grow in memory with a trace.
//!
//! The module `document` finds the events with the freedoms that viewers take with JSON. `item` and `event` see what each is. `id`, `arrow`, `timeline`
//! and `track` do what the importer does with them. `finding` counts and locates what is lost by it, each by its [`Rule`].
//! ```
//! use std::path::Path;
//! use trace_check::{Rule, check_stream};
//!
//! let trace = br#"[{"ph":"X","pid":1,"tid":1,"ts":10,"dur":20,"name":"outer"},
//! {"ph":"X","pid":1,"tid":1,"ts":20,"dur":20,"name":"crosses its end"}]"#;
//! let report = check_stream(Path::new("trace.json"), &trace[..])?;
//! assert_eq!((report.spans, report.spans_dropped), (2, 1));
//! assert_eq!(report.lost[0].rule, Rule::Overlap);
//! # Ok::<(), std::io::Error>(())
//! ```

mod arrow;
mod counter;
mod deep;
mod document;
mod event;
mod finding;
mod id;
mod item;
mod loose;
mod rule;
mod summary;
mod temporary;
mod text;
mod thread;
mod time;
mod timeline;
mod track;

pub use finding::{CheckReport, Finding, Loss, Place};
pub use rule::{Kind, Rule};

use finding::Findings;
use std::io::{self, Read};
use std::path::Path;
use temporary::Folder;
use text::Text;

/// Tells what viewers would lose of the trace at `path`. Offsets are those of the text, of a compressed trace after it is unpacked.
///
/// A file that is not compressed is mapped; whoever may write it anew meanwhile should give it to [`check_stream`].
///
/// # Errors
/// If the file cannot be read or unpacked, was rewritten meanwhile, or a temporary file cannot be written. A trace that no viewer loads is no error, but a finding.
pub fn check(path: &Path) -> io::Result<CheckReport> {
    let folder = Folder::of_system();
    check_text(path, &Text::open(path, &folder)?, &folder)
}

/// Does the same with a trace that comes from a pipe, and is called `name` in the report.
///
/// # Errors
/// As [`check`].
pub fn check_stream(name: &Path, from: impl Read) -> io::Result<CheckReport> {
    let folder = Folder::of_system();
    check_text(name, &Text::read(from, &folder)?, &folder)
}

fn check_text(path: &Path, text: &Text, folder: &Folder) -> io::Result<CheckReport> {
    let bytes = text.bytes();
    let mut findings = Findings::new();
    let mut events = event::Events::new(bytes, folder);
    if text.members > 1 {
        findings.add(Rule::GzipMembers, events.here(0));
    }
    document::walk(bytes, &mut events, &mut findings)?;
    if text.is_cut {
        findings.is_loaded = false;
        findings.add(Rule::CutOff, events.here(bytes.len()));
    }
    let count = events.count();
    events.finish(&mut findings)?;
    if text.has_changed() {
        return Err(io::Error::other("was rewritten while it was checked"));
    }
    Ok(findings.report(path, bytes, count))
}
