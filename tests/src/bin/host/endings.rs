//! Spans that are told more of as they end.

use sa_recorder::{Level, Recorder, SpanGuard, now_ns, span};

/// A span, with one that was opened after it and ends after it.
struct Ending {
    span: SpanGuard,
    later: Option<SpanGuard>,
    last: bool,
}

/// Open spans of each kind, of a call site and named at run time.
#[derive(Default)]
pub(crate) struct Endings(Vec<Ending>);

impl Endings {
    /// Opens one of each kind.
    pub(crate) fn open(&mut self) {
        for named in [false, true] {
            self.0.extend((0..16).map(|kind| Ending::open(named, kind)));
        }
    }

    /// Ends them, the last one first: all are innermost then, or have one above them.
    pub(crate) fn end(&mut self) {
        while let Some(one) = self.0.pop() {
            let last: &[u8] = if one.last { b"\"last\":3" } else { b"" };
            one.span.end_with(now_ns(), last);
            drop(one.later);
        }
    }
}

impl Ending {
    /// The bits of `kind` say: args as it begins, args while a later one is open, args as it ends, a later one that is open then.
    fn open(named: bool, kind: u32) -> Ending {
        let has = |bit: u32| kind & 1 << bit != 0;
        let mut span = match (named, has(0)) {
            (true, _) => Recorder::get().span(Level::E2e, "ending", "ending"),
            (false, true) => span!("ending", "ending", first = 1),
            (false, false) => span!("ending", "ending"),
        };
        if named && has(0) {
            span.arg("first", 1);
        }
        if has(1) {
            let _above = span!("host", "above", other = 7);
            span.arg("grown", 2);
        }
        Ending {
            span,
            later: has(3).then(|| span!("host", "later", other = 8)),
            last: has(2),
        }
    }
}
