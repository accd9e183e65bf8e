//! Prints messages for people to stderr. Stdout is for data, or belongs to the recorded command.

pub(crate) mod amount;

use amount::grouped;
use sa_format::{visible, visible_lines};
use std::io::{self, Write};

/// Prints a line with the program's name in front.
pub(crate) fn say(line: &str) {
    say_plain(&format!("sa-profile: {line}"));
}

/// Prints lines as they are.
pub(crate) fn say_plain(lines: &str) {
    // Control characters and invisible ones in quoted texts, such as a path, must not reach the terminal.
    let _ = writeln!(io::stderr(), "{}", visible_lines(lines)); // nobody is left to tell
}

/// Makes a recorded text safe to print on a terminal.
pub(crate) fn printable(text: &str) -> String {
    visible(text).into_owned()
}

/// Returns `1 thing`, `2 things`.
pub(crate) fn plural(number: u64, thing: &str) -> String {
    let end = match number {
        1 => "",
        _ if thing.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {thing}{end}", grouped(number))
}

/// Returns `1 process`, `2 processes`.
pub(crate) fn processes(number: u64) -> String {
    plural(number, "process")
}
