//! What it costs to tell whether lines are JSON objects in UTF-8 and where the fields of an event stand: our own scanner beside serde_json and
//! sonic-rs, on one core, on the lines of both inputs.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use sonic_rs::LazyValue;
use std::hint::black_box;
use std::time::{Duration, Instant};
use trace_merge::json::scan_object;
use trace_merge::line;
use trace_merge::scan::{Found, Part, scan_part};

use crate::input::{self, Form, Input};

/// Counts the lines of a text that it accepts.
type Validator = fn(&[u8]) -> usize;

/// Those that ignore everything do not say where the fields stand: they are the least that the others can cost.
const VALIDATORS: [(&str, Validator); 7] = [
    ("merge", by_merge),
    ("line_parse", |text| {
        count(text, |line| line::parse(line).is_ok())
    }),
    ("scan_object", |text| {
        count(text, |line| {
            of_utf8(line, |text| scan_object(text.as_bytes()).is_some())
        })
    }),
    ("serde_json_ignored_any", |text| {
        count(text, |line| {
            of_utf8(line, |text| {
                serde_json::from_str::<IgnoredAny>(text).is_ok()
            })
        })
    }),
    ("serde_json_raw_value", |text| {
        count(text, |line| {
            of_utf8(line, |text| serde_json::from_str::<Raw<'_>>(text).is_ok())
        })
    }),
    ("sonic_rs_ignored_any", |text| {
        count(text, |line| {
            sonic_rs::from_slice::<IgnoredAny>(line).is_ok()
        })
    }),
    ("sonic_rs_lazy_value", |text| {
        count(text, |line| sonic_rs::from_slice::<Lazy<'_>>(line).is_ok())
    }),
];

macro_rules! fields {
    ($name:ident, $value:ty) => {
        /// The members of an event that the merge looks at.
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "found, not read")]
        struct $name<'a> {
            #[serde(borrow)]
            ph: Option<$value>,
            #[serde(borrow)]
            ts: Option<$value>,
            #[serde(borrow)]
            dur: Option<$value>,
            #[serde(borrow)]
            pid: Option<$value>,
            #[serde(borrow)]
            tid: Option<$value>,
            #[serde(borrow)]
            id: Option<$value>,
            #[serde(borrow)]
            id2: Option<$value>,
            #[serde(borrow)]
            bind_id: Option<$value>,
            #[serde(borrow)]
            name: Option<$value>,
            #[serde(borrow)]
            cat: Option<$value>,
            #[serde(borrow)]
            args: Option<$value>,
        }
    };
}

fields!(Raw, &'a RawValue);
fields!(Lazy, LazyValue<'a>);

/// As the first pass of a merge does where no checksum vouches for the lines.
fn by_merge(text: &[u8]) -> usize {
    let part = Part {
        start: 0,
        end: text.len(),
        trusted: false,
    };
    let mut accepted = 0;
    scan_part(text, part, |_, found| {
        if let Found::Event(event) = found {
            black_box(event.ts_ns);
            accepted += 1;
        }
    });
    accepted
}

fn of_utf8(line: &[u8], accepts: impl Fn(&str) -> bool) -> bool {
    simdutf8::basic::from_utf8(line).is_ok_and(accepts)
}

fn count(text: &[u8], accepts: impl Fn(&[u8]) -> bool) -> usize {
    let (mut start, mut accepted) = (0, 0);
    for end in memchr::memchr_iter(b'\n', text) {
        let line = &text[start..end];
        accepted += usize::from(!line.is_empty() && accepts(black_box(line)));
        start = end + 1;
    }
    accepted
}

const MEGABYTES: u64 = 100;
const ROUNDS: u32 = 20;

/// Measures all validators on a fragment of each form and prints their best times.
pub(crate) fn run() -> Result<(), String> {
    for form in [Form::Own, Form::Foreign] {
        let input = input::open(form, MEGABYTES).map_err(|error| format!("generating: {error}"))?;
        compare(&input)?;
    }
    Ok(())
}

fn compare(input: &Input) -> Result<(), String> {
    let text = read(input).map_err(|error| format!("{}: {error}", input.directory.display()))?;
    let lines = count(&text, |_| true);
    let mut best = [Duration::MAX; VALIDATORS.len()];
    for _ in 0..ROUNDS {
        for (best, (name, validate)) in best.iter_mut().zip(VALIDATORS) {
            let begun = Instant::now();
            let accepted = validate(&text);
            *best = begun.elapsed().min(*best);
            if accepted != lines {
                return Err(format!("{name}: {lines} lines, {accepted} accepted"));
            }
        }
    }
    let form = input.form.name();
    for (best, (name, _)) in best.iter().zip(VALIDATORS) {
        let speed = text.len() as f64 / 1e6 / best.as_secs_f64();
        let line_ns = best.as_secs_f64() * 1e9 / lines as f64;
        println!("RESULT validate_{form}_{name} {speed:.0} {line_ns:.1}");
    }
    Ok(())
}

/// The lines of the first fragment.
fn read(input: &Input) -> std::io::Result<Vec<u8>> {
    let file = input.files.first().ok_or(std::io::ErrorKind::NotFound)?;
    std::fs::read(file)
}
