//! The user's browser, where there is a screen to show it on.

use crate::words::say;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;

/// Opens a link in the browser; without a screen or a browser the user opens it himself.
pub(crate) fn open(link: &str, lookup: impl Fn(&str) -> Option<OsString>) {
    let Some(mut commands) = commands(link, lookup) else {
        return;
    };
    for command in &mut commands {
        let quiet = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // A group of its own: the Ctrl-C that ends the serving is not for the browser.
        if let Ok(mut child) = quiet.process_group(0).spawn() {
            thread::spawn(move || child.wait());
            return;
        }
    }
    say("no browser could be started: open the link yourself");
}

/// What to try, in order; `None` without a screen.
fn commands(link: &str, lookup: impl Fn(&str) -> Option<OsString>) -> Option<Vec<Command>> {
    let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
    set("WAYLAND_DISPLAY").or_else(|| set("DISPLAY"))?;
    let named = set("BROWSER").unwrap_or_default();
    let named = named.to_string_lossy().into_owned();
    let named = named.split(':').filter_map(|words| of_words(words, link));
    let mut commands: Vec<Command> = named.collect();
    commands.push(with_link("xdg-open".as_ref(), link));
    Some(commands)
}

/// A command as `$BROWSER` names it: words, `%s` for the link, which comes last where none is.
fn of_words(words: &str, link: &str) -> Option<Command> {
    let mut all = words.split_whitespace();
    let program = all.next()?;
    if !words.contains("%s") {
        let mut command = Command::new(program);
        command.args(all).arg(link);
        return Some(command);
    }
    let mut command = Command::new(program);
    command.args(all.map(|word| word.replace("%s", link)));
    Some(command)
}

fn with_link(program: &OsStr, link: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(link);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(variables: &[(&str, &str)]) -> Option<Vec<String>> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let line = |command: &Command| {
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            words
                .map(OsStr::to_string_lossy)
                .collect::<Vec<_>>()
                .join(" ")
        };
        Some(commands("L", lookup)?.iter().map(line).collect())
    }

    #[test]
    fn a_browser_needs_a_screen() {
        assert_eq!(lines(&[("BROWSER", "firefox")]), None);
        assert_eq!(lines(&[("DISPLAY", "")]), None);
        assert_eq!(lines(&[("DISPLAY", ":0")]), Some(vec!["xdg-open L".into()]));
    }

    #[test]
    fn the_users_browsers_come_first() {
        let found = lines(&[("WAYLAND_DISPLAY", "w"), ("BROWSER", "a --new:b -u %s -x:")]);
        assert_eq!(found.unwrap(), ["a --new L", "b -u L -x", "xdg-open L"]);
    }
}
