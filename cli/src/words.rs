//! Words for people, on stderr: stdout belongs to data, or to the recorded command.

pub(crate) mod amount;

use amount::grouped;
use sa_format::{visible, visible_lines};
use std::io::{self, Write};

/// Says a line under the program's name.
pub(crate) fn say(line: &str) {
    say_plain(&format!("sa-profile: {line}"));
}

/// Says lines as they are.
pub(crate) fn say_plain(lines: &str) {
    // What it quotes, such as a path, commands no terminal and turns no line around.
    let _ = writeln!(io::stderr(), "{}", visible_lines(lines)); // nobody is left to tell
}

/// A recorded text for a terminal, which must not take any of it for a command.
pub(crate) fn printable(text: &str) -> String {
    visible(text).into_owned()
}

/// `one thing`, `2 things`.
pub(crate) fn plural(number: u64, thing: &str) -> String {
    let end = match number {
        1 => "",
        _ if thing.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {thing}{end}", grouped(number))
}

/// `1 process`, `2 processes`.
pub(crate) fn processes(number: u64) -> String {
    plural(number, "process")
}
