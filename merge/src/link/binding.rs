//! Which events a viewer can bind a flow to.

use crate::event::json::Scanner;
use crate::event::line::Event;
use sa_format::Phase;

/// Whether a viewer can bind a flow to the event: a slice of a thread. Async spans are none, and instants of a whole process lie on no thread.
pub(super) fn binds(event: &Event<'_>) -> bool {
    match event.phase {
        Phase::Complete | Phase::Begin => true,
        Phase::Instant | Phase::LegacyInstant => is_of_thread(event).unwrap_or(true),
        _ => false,
    }
}

/// Whether an instant is of its thread, which is what one without a scope is.
fn is_of_thread(event: &Event<'_>) -> Option<bool> {
    let line = event.line;
    // Recorders write the scope behind the time, or behind the phase.
    for end in [event.fields.ts.end, event.fields.ph.end] {
        let scope = line[end..].strip_prefix(br#","s":"#);
        if let Some([b'"', scope, b'"', ..]) = scope {
            return Some(!matches!(scope, b'p' | b'g'));
        }
    }
    let mut scanner = Scanner::lenient(line, 0);
    scanner.space();
    scanner.expect(b'{')?;
    loop {
        scanner.space();
        let name = scanner.at;
        scanner.string()?;
        let name = &line[name + 1..scanner.at - 1];
        scanner.space();
        scanner.expect(b':')?;
        scanner.space();
        let value = scanner.at;
        scanner.value(1)?;
        if name == b"s" {
            return Some(!matches!(&line[value..scanner.at], b"\"p\"" | b"\"g\""));
        }
        scanner.space();
        scanner.expect(b',')?;
    }
}
