//! Checks a Chrome trace, whoever wrote it: `trace-merge --check`.
//!
//! It looks for two kinds of problems. The first kind keeps a viewer from loading the file: it is not JSON, not UTF-8, cut off or not a trace. The second kind
//! breaks what `trace-merge` guarantees for its own output: times are not negative, the spans of a track nest, each end has a begin, and each arrow starts once
//! and at a span. It does not predict everything that a viewer drops. Perfetto's trace processor can (`tests/perfetto/tpq` in the repository).
//!
//! Data flows from `document`, which finds the events, through `event`, which checks one event, to `timeline`, which sorts the spans and arrows and
//! checks each track. All of them report to `report`.
//!
//! Memory does not grow with the trace: the text is mapped, spans and arrows are sorted in 4 MiB of memory and temporary files, and one track is checked at a
//! time. The files are in `TMPDIR` and take up to 112 bytes for each event, 224 for each arrow event, and the text itself if it is compressed or piped.
//!
//! ```
//! use std::path::Path;
//! use trace_check::{Rule, check_stream};
//!
//! let trace = br#"[{"ph":"X","pid":1,"tid":1,"ts":10,"dur":20,"name":"outer"},
//! {"ph":"X","pid":1,"tid":1,"ts":20,"dur":20,"name":"crosses its end"}]"#;
//! let report = check_stream(Path::new("trace.json"), &trace[..])?;
//! assert_eq!(report.events, 2);
//! assert_eq!(report.findings[0].rule, Rule::Overlap);
//! # Ok::<(), std::io::Error>(())
//! ```

mod document;
mod event;
mod id;
mod report;
mod text;
mod timeline;

pub use report::{CheckReport, Finding, Occurrence, Rule};

use event::Events;
use std::io::{self, Read};
use std::path::Path;
use text::Text;
use trace_store::named_temporary;

/// Checks the trace at `path`. Offsets in the report count bytes of the unpacked text.
///
/// A file that is not compressed is mapped. Use [`check_stream`] for a file that another program may rewrite meanwhile.
///
/// # Errors
/// If the file cannot be read or unpacked, was truncated during the check, or a temporary file cannot be written. A file that is not a trace is not an error:
/// the report says so.
pub fn check(path: &Path) -> io::Result<CheckReport> {
    let folder = std::env::temp_dir();
    check_text(path, &Text::open(path, &folder)?, &folder)
}

/// Checks a trace from a pipe. The report calls it `name`.
///
/// # Errors
/// In the same cases as [`check`].
pub fn check_stream(name: &Path, from: impl Read) -> io::Result<CheckReport> {
    let folder = std::env::temp_dir();
    check_text(name, &Text::read(from, &folder)?, &folder)
}

/// Returns true if JSON text ends within a string. No string has a newline in it.
fn ends_in_string(text: &str) -> bool {
    let (mut is_inside, mut is_escaped) = (false, false);
    for byte in text.rsplit('\n').next().unwrap_or_default().bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_inside,
            b'"' => is_inside = !is_inside,
            _ => {}
        }
    }
    is_inside
}

fn check_text(path: &Path, text: &Text, folder: &Path) -> io::Result<CheckReport> {
    let bytes = text.content.bytes();
    let mut events = Events::new(bytes, folder);
    let read = match std::str::from_utf8(bytes) {
        Ok(valid) => document::read(valid, text.is_cut, &mut events),
        Err(error) => {
            let at = error.valid_up_to();
            let valid = std::str::from_utf8(&bytes[..at]).unwrap_or_default();
            // A trace that was cut off within a string may end within a character.
            if error.error_len().is_none() && ends_in_string(valid) {
                document::read(valid, text.is_cut, &mut events)
            } else {
                let problem = format!("expected UTF-8 instead of byte {:#04x}", bytes[at]);
                events.findings.add_text(Rule::NotUtf8, at as u64, &problem);
                Ok(())
            }
        }
    };
    let report = read.and_then(|()| events.finish(path));
    let report = report.map_err(|error| named_temporary(folder, error))?;
    match text.content.is_cut() {
        true => Err(io::Error::other("was truncated while it was checked")),
        false => Ok(report),
    }
}
