//! Counts what is written to the fragment while a control file asks for a number of events or
//! steps. The threads that write blocks count them as a whole.

use memchr::{memmem, memrchr};

use crate::text::name::write_name;
use sa_format::control::{Control, Steps, SwitchCause};

/// Beginning of the line of every span.
const SPAN_START: &[u8] = br#"{"ph":"X","#;

/// Number of events and steps that are missing until recording stops.
#[derive(Debug)]
pub(crate) struct Tally {
    events: Option<u64>,
    steps: Option<(memmem::Finder<'static>, u64)>,
}

impl Tally {
    /// Returns the counts that a control file requests, or `None` if it requests no count.
    pub(crate) fn from_control(control: &Control) -> Option<Tally> {
        let events = control.events;
        let steps = control
            .steps
            .as_ref()
            .and_then(|steps| Some((finder(steps)?, steps.count)));
        (events.is_some() || steps.is_some()).then_some(Tally { events, steps })
    }

    /// Counts the events and engine steps among the lines of a written block.
    pub(crate) fn add(&mut self, lines: &[u8]) {
        if let Some(missing) = &mut self.events {
            *missing = missing.saturating_sub(bytecount::count(lines, b'\n') as u64);
        }
        if let Some((finder, missing)) = &mut self.steps {
            let steps = finder
                .find_iter(lines)
                .filter(|at| is_in_span_line(lines, *at));
            *missing = missing.saturating_sub(steps.count() as u64);
        }
    }

    /// Returns which limit of the control file was reached (events or engine steps), or `None` if
    /// neither was.
    pub(crate) fn reached_limit(&self) -> Option<SwitchCause> {
        match (self.events, &self.steps) {
            (Some(0), _) => Some(SwitchCause::Events),
            (_, Some((_, 0))) => Some(SwitchCause::Steps),
            _ => None,
        }
    }
}

/// Returns a searcher for the name of the engine steps to count, and for their category if one is
/// given, in the form that lines have. Returns `None` if there is not enough memory.
fn finder(steps: &Steps) -> Option<memmem::Finder<'static>> {
    let mut text = Vec::new();
    let category = steps.category.as_deref();
    if !write_name(&mut text, category.unwrap_or_default(), &steps.name) {
        return None;
    }
    let any_category = text.strip_suffix(b"\"\"").filter(|_| category.is_none());
    Some(memmem::Finder::new(any_category.unwrap_or(&text)).into_owned())
}

fn is_in_span_line(lines: &[u8], at: usize) -> bool {
    let start = memrchr(b'\n', &lines[..at]).map_or(0, |newline| newline + 1);
    lines[start..].starts_with(SPAN_START)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(events: Option<u64>, steps: Option<Steps>) -> Control {
        Control {
            events,
            steps,
            ..Control::default()
        }
    }

    fn steps(name: &str, category: Option<&str>, count: u64) -> Option<Steps> {
        Some(Steps {
            name: name.to_owned(),
            category: category.map(str::to_owned),
            count,
        })
    }

    #[test]
    fn steps_are_spans_of_the_name_and_category() {
        let lines = br#"{"ph":"X","pid":1,"tid":1,"ts":1.000,"dur":1.000,"name":"step","cat":"a"}
{"ph":"i","pid":1,"tid":1,"ts":1.000,"s":"t","name":"step","cat":"a"}
{"ph":"X","pid":1,"tid":1,"ts":1.000,"dur":1.000,"name":"steps","cat":"a"}
{"ph":"X","pid":1,"tid":1,"ts":1.000,"dur":1.000,"name":"other","cat":"a","args":{"name":"step"}}
{"ph":"X","pid":1,"tid":1,"ts":1.000,"dur":1.000,"name":"step","cat":"b"}
"#;
        for (category, count, reached) in [
            (None, 2, true),
            (None, 3, false),
            (Some("b"), 1, true),
            (Some("b"), 2, false),
        ] {
            let mut tally =
                Tally::from_control(&control(None, steps("step", category, count))).unwrap();
            tally.add(lines);
            let expected = reached.then_some(SwitchCause::Steps);
            assert_eq!(tally.reached_limit(), expected, "{category:?} {count}");
        }
        for (events, reached) in [(6, None), (5, Some(SwitchCause::Events))] {
            let mut tally = Tally::from_control(&control(Some(events), None)).unwrap();
            tally.add(lines);
            assert_eq!(tally.reached_limit(), reached, "{events}");
        }
        assert!(Tally::from_control(&control(None, None)).is_none());
    }
}
