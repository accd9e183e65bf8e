//! Words for people, on stderr: stdout belongs to data, or to the recorded command.

use std::io::{self, Write};

/// Says a line under the program's name.
pub(crate) fn say(line: &str) {
    say_plain(&format!("sa-profile: {line}"));
}

/// Says lines as they are.
pub(crate) fn say_plain(lines: &str) {
    // Nobody is left to tell.
    let _ = writeln!(io::stderr(), "{lines}");
}

/// A recorded text for a terminal, which must not take any of it for a command.
pub(crate) fn printable(text: &str) -> String {
    let escape = |c: char| match c {
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// A count with its thousands apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size in bytes, with the unit that leaves up to three digits before the point.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let mut scaled = bytes as f64 / 1000.0;
    let mut unit = 0;
    while scaled >= 999.95 && unit + 1 < units.len() {
        scaled /= 1000.0;
        unit += 1;
    }
    format!("{scaled:.1} {}", units[unit])
}

/// `one thing`, `2 things`.
pub(crate) fn plural(number: u64, thing: &str) -> String {
    let (count, s) = (count(number), if number == 1 { "" } else { "s" });
    format!("{count} {thing}{s}")
}

/// `1 process`, `2 processes`.
pub(crate) fn processes(number: u64) -> String {
    match number {
        1 => "1 process".to_owned(),
        _ => format!("{} processes", count(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (12_345_678, "12,345,678"),
        ] {
            assert_eq!(count(number), text);
        }
        for (bytes, text) in [
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (5_000_000_000_000_000, "5000.0 TB"),
        ] {
            assert_eq!(size(bytes), text);
        }
        assert_eq!(
            (plural(1, "event"), plural(0, "event")),
            ("1 event".into(), "0 events".into())
        );
    }

    #[test]
    fn a_recorded_name_commands_no_terminal() {
        assert_eq!(printable("wörker\u{1b}[2J"), r"wörker\u{1b}[2J");
    }
}
