//! Durations for people to read.

/// Formats a duration with three significant digits.
pub(crate) fn duration(ns: f64) -> String {
    let (amount, unit) = match ns.abs() {
        below if below < 1e3 => (ns, "ns"),
        below if below < 1e6 => (ns / 1e3, "µs"),
        below if below < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = match amount.abs() {
        _ if unit == "ns" => 0,
        below if below < 10.0 => 2,
        below if below < 100.0 => 1,
        _ => 0,
    };
    format!("{amount:.digits$} {unit}")
}
