//! The page's parts about single events.

use measure::Kind;

use super::{Case, Cost, THREADS};
use crate::series::{number, whole};
use crate::subject::Subject;
use crate::table::Table;

/// What a kind is called on the page.
fn label(kind: Kind) -> &'static str {
    match kind {
        Kind::Span => "span, no arguments",
        Kind::Span1 => "span, 1 argument",
        Kind::Span3 => "span, 3 arguments, one a text",
        Kind::Instant => "instant, 1 argument",
        Kind::Counter => "counter, 1 series",
        Kind::Flow => "flow event",
        Kind::Async => "async span begun and ended, 1 argument",
        Kind::Off => "span, recording off",
        Kind::Filtered => "span, level filtered out",
    }
}

impl Cost {
    /// The floor of the case that every reader looks at: ns of two clock reads beside a span with one argument in one thread.
    pub(crate) fn floor(&self) -> String {
        let case = self.case(Subject::Ours, Kind::Span1, 1);
        case.map_or_else(String::new, |case| case.floor_ns.with_noise())
    }

    /// Our recorder, by kind.
    pub(crate) fn by_kind(&self) -> String {
        let mut table = Table::new(1, head(&["event"]));
        for kind in Kind::ALL {
            let mut row = vec![label(kind).to_owned()];
            row.extend(self.cells(Subject::Ours, kind));
            table.row(row);
        }
        table.markdown()
    }

    /// All recorders.
    pub(crate) fn by_recorder(&self) -> String {
        let mut table = Table::new(2, head(&["event", "recorder"]));
        for kind in Kind::SPANS {
            for subject in Subject::RECORDERS {
                let mut row = vec![label(kind).to_owned(), subject.label()];
                row.extend(self.cells(subject, kind));
                table.row(row);
            }
        }
        table.markdown()
    }

    /// Bytes of each kind of event of our recorder, and of each recorder's spans.
    pub(crate) fn disk(&self) -> String {
        let mut table = Table::new(1, ["event", "bytes"]);
        for kind in Kind::ALL.into_iter().filter(|kind| kind.writes()) {
            table.row([label(kind).to_owned(), self.bytes(Subject::Ours, kind)]);
        }
        let mut text = table.markdown();
        let kinds = Kind::SPANS.map(label);
        let head = ["recorder"].into_iter().chain(kinds);
        let mut table = Table::new(1, head.chain(["in the file after a clean end"]));
        for subject in Subject::RECORDERS {
            let mut row = vec![subject.label()];
            row.extend(Kind::SPANS.map(|kind| self.bytes(subject, kind)));
            row.push(self.found(subject));
            table.row(row);
        }
        text.push_str(&table.markdown());
        text
    }

    fn case(&self, subject: Subject, kind: Kind, threads: usize) -> Option<&Case> {
        let mut cases = self.0.iter();
        cases.find(|case| (case.subject, case.kind, case.threads) == (subject, kind, threads))
    }

    fn cells(&self, subject: Subject, kind: Kind) -> Vec<String> {
        let case = |threads| self.case(subject, kind, threads);
        let cells = THREADS
            .into_iter()
            .flat_map(case)
            .flat_map(|case| [number(case.ns.median()), case.ratio.with_noise()]);
        let cpu = case(1).map(|case| number(case.cpu_ns.median()));
        cells.chain(cpu).collect()
    }

    /// With one thread: the file of our recorder then holds next to nothing else.
    fn bytes(&self, subject: Subject, kind: Kind) -> String {
        let case = self.case(subject, kind, 1).filter(|case| case.events > 0.0);
        case.map_or("–".to_owned(), |case| number(case.bytes / case.events))
    }

    fn found(&self, subject: Subject) -> String {
        let case = self.case(subject, Kind::Span1, 1);
        let found = case.and_then(|case| Some((case.found?, case.events)));
        found.map_or("–".to_owned(), |(found, events)| {
            format!("{} of {}", whole(found), whole(events))
        })
    }
}

fn head(words: &[&str]) -> Vec<String> {
    let mut head: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    for threads in THREADS {
        let plural = if threads == 1 { "thread" } else { "threads" };
        head.push(format!("{threads} {plural}: ns"));
        head.push("× two clock reads".to_owned());
    }
    head.push("1 thread: CPU ns until written".to_owned());
    head
}
