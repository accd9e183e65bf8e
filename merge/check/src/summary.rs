//! What each viewer shows of a trace, in a few words.

use super::finding::CheckReport;
use super::rule::Kind;

impl CheckReport {
    pub(super) fn summary(&self) -> String {
        let shown = self.shown();
        match self.lost.iter().any(|one| one.rule.is_refused_by_chrome()) {
            true => shown + ", chrome://tracing loads nothing of it",
            false => shown,
        }
    }

    fn shown(&self) -> String {
        if !self.is_loaded {
            return "Perfetto loads nothing of it".to_owned();
        }
        let is_cut = self.broken(Kind::NotLoaded) > 0;
        let what = self.what_they_do();
        match (is_cut, what.is_empty()) {
            (false, true) => "Perfetto shows them all".to_owned(),
            (false, false) => format!("viewers would {what}"),
            (true, true) => "Perfetto loads only the begin".to_owned(),
            (true, false) => format!("Perfetto loads only the begin, and would {what}"),
        }
    }

    /// What viewers do with what is not right; empty if nothing is wrong for all of them.
    fn what_they_do(&self) -> String {
        let (spans, dropped) = (self.spans, self.spans_dropped);
        let drop_spans = format!("drop {dropped} of {spans} spans");
        // Each span that is dropped is so for one reason.
        let others = self.broken(Kind::Lost).saturating_sub(dropped);
        let drops = match (dropped, others) {
            (0, 0) => String::new(),
            (0, _) => format!("drop {}", things(others, "")),
            (_, 0) => drop_spans,
            (..) => format!("{drop_spans} and {}", things(others, "other ")),
        };
        let wrong = self.broken(Kind::ShownWrongly);
        let shows = format!("show {} wrongly", things(wrong, ""));
        match (drops.is_empty(), wrong) {
            (_, 0) => drops,
            (true, _) => shows,
            (false, _) => format!("{drops}, and {shows}"),
        }
    }

    /// How often rules of a kind were broken.
    fn broken(&self, kind: Kind) -> u64 {
        let found = self.lost.iter().filter(|one| one.kind == kind);
        found.map(|one| one.count).sum()
    }
}

/// Events, arrows and values.
fn things(count: u64, which: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {which}thing{s}")
}

#[cfg(test)]
mod tests {
    use crate::check_stream;
    use std::path::Path;

    const TABLE: [(&str, &str); 9] = [
        (
            r#"[@,{"ph":"e","pid":1,"id":1,"ts":5}]"#,
            "viewers would drop 1 thing",
        ),
        (
            r#"[@,{"ph":"X","ts":5}]"#,
            "viewers would drop 1 of 2 spans",
        ),
        (
            r#"[@,{"ph":"X","ts":5},{"ph":"E","pid":1,"ts":5},{"ph":"E","pid":1,"ts":5}]"#,
            "viewers would drop 1 of 2 spans and 2 other things",
        ),
        (
            r#"[@,{"ph":"X","pid":1,"tid":2,"ts":5,"dur":-3},{"ph":"i","pid":1,"tid":-1,"ts":5}]"#,
            "viewers would show 2 things wrongly",
        ),
        (
            r#"[@,{"ph":"b","pid":1,"ts":5},{"ph":"X","pid":1,"tid":2,"ts":5,"dur":-3}]"#,
            "viewers would drop 1 of 3 spans, and show 1 thing wrongly",
        ),
        (
            "[@,]",
            "Perfetto shows them all, chrome://tracing loads nothing of it",
        ),
        (
            "[@]x",
            "Perfetto shows them all, chrome://tracing loads nothing of it",
        ),
        (
            r#"[@,{"ph":"X""#,
            "Perfetto loads only the begin, chrome://tracing loads nothing of it",
        ),
        (
            r#"{"traceEvents":[@"#,
            "Perfetto loads nothing of it, chrome://tracing loads nothing of it",
        ),
    ];

    #[test]
    fn each_viewer_is_told_what_it_does() {
        let event = r#"{"ph":"X","pid":1,"tid":1,"ts":1,"dur":2,"name":"a"}"#;
        for (text, words) in TABLE {
            let text = text.replace('@', event);
            let report = check_stream(Path::new("t"), text.as_bytes()).unwrap();
            assert_eq!(report.summary(), words, "{text}");
        }
    }
}
