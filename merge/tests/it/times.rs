//! Times: one base for all, exact to the nanosecond, three decimals.

use crate::invocation::RunDir;

/// Merges foreign spans with these texts as ts; the numbers of the output as written.
fn times(texts: &[&str]) -> Vec<String> {
    let line = |ts: &&str| format!(r#"{{"ph":"X","pid":5,"tid":5,"ts":{ts},"dur":1,"name":"a"}}"#);
    let lines: Vec<String> = texts.iter().map(line).collect();
    let dir = RunDir::of_lines("5", &lines);
    let merged = dir.merge();
    let least = format!(r#""base_ns":{}"#, merged.report.0["base_ns"]);
    let head = merged.trace.document["otherData"].to_string();
    assert!(head.contains(&least), "{head}");
    let text = String::from_utf8(merged.bytes).unwrap();
    let starts = text.split("\"ts\":").skip(1);
    starts
        .map(|rest| rest[..rest.find([',', '}']).unwrap()].trim().to_owned())
        .collect()
}

#[test]
fn times_of_any_spelling_count_from_the_first_to_the_nanosecond() {
    for (texts, expected) in [
        (
            &["1000", "1000.0", "1e3", "1.000e+3", "10000e-1", "1500.25"][..],
            &["0.000", "0.000", "0.000", "0.000", "0.000", "500.250"][..],
        ),
        (
            &["1000", "1500.125", "\"2000.5\""],
            &["0.000", "500.125", "1000.500"],
        ),
        (
            &["1763689523000050.074", "1763689523000060.333"],
            &["0.000", "10.259"],
        ),
        (&["-5.5", "0", "2"], &["0.000", "5.500", "7.500"]),
    ] {
        assert_eq!(times(texts), expected);
    }
}
