//! Opens a link in the user's browser, if there is a screen.

use super::link::percent_encoded;
use crate::words::say;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use tempfile::NamedTempFile;

/// Name of the file with the user's folders, in the settings folder.
const USER_FOLDERS: &str = "user-dirs.dirs";

/// Opens a link in the browser, if there is a screen and a browser. Every user can list the arguments of a command, and could fetch the trace with
/// its link. A private link is therefore passed in a file that only this user can read. Dropping the returned file removes it.
pub(super) fn open(
    link: &str,
    is_private: bool,
    lookup: impl Fn(&str) -> Option<OsString>,
) -> Option<NamedTempFile> {
    if !has_screen(&lookup) {
        return None;
    }
    let file = is_private.then(|| redirection(link, &lookup)).flatten();
    if is_private && file.is_none() {
        say("no file for the link could be created: open the link yourself");
        return None;
    }
    match &file {
        Some(file) => start(&file_link(file.path()), &lookup),
        None => start(link, &lookup),
    }
    file
}

/// Writes a page that redirects to a link, in the first writable folder. Returns `None` if there is none.
fn redirection(link: &str, lookup: impl Fn(&str) -> Option<OsString>) -> Option<NamedTempFile> {
    let mut folders = page_folders(lookup).into_iter();
    folders.find_map(|folder| redirection_in(&folder, link).ok())
}

/// Returns the folders in which to write a page for the browser, best first. Browsers in a snap or Flatpak have their own `/tmp` and cannot read
/// hidden folders. A Flatpak can read the download folder, a snap the home folder except for hidden files.
fn page_folders(lookup: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let home = lookup("HOME").map(PathBuf::from);
    let below_home = |name: &str| Some(home.as_ref()?.join(name));
    let config = lookup("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute());
    let settings = config
        .or_else(|| below_home(".config"))
        .and_then(|folder| fs::read_to_string(folder.join(USER_FOLDERS)).ok());
    let downloads = settings
        .and_then(|text| downloads_in(&text, home.as_deref()?))
        .or_else(|| below_home("Downloads"));
    let all = [downloads, home.clone(), Some(std::env::temp_dir())]
        .into_iter()
        .flatten();
    all.filter(|folder| folder.is_absolute()).collect()
}

/// Returns the `file://` address of a file.
fn file_link(path: &Path) -> String {
    let path = path.as_os_str().as_encoded_bytes();
    format!("file://{}", percent_encoded(path, b"/._-~"))
}

/// Returns the download folder from a user's settings. These are shell assignments such as `XDG_DOWNLOAD_DIR="$HOME/Downloads"`.
fn downloads_in(settings: &str, home: &Path) -> Option<PathBuf> {
    let mut lines = settings.lines().rev();
    let value = lines
        .find_map(|line| line.trim().strip_prefix("XDG_DOWNLOAD_DIR="))?
        .trim_matches('"')
        .replace('\\', "");
    Some(match value.strip_prefix("$HOME/") {
        Some(below) => home.join(below),
        None => PathBuf::from(value),
    })
}

fn redirection_in(folder: &Path, link: &str) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix("sa-profile-open-")
        .suffix(".html")
        .tempfile_in(folder)?;
    let link = link.replace('&', "&amp;"); // it has no quotes
    let page = format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={link}\">");
    file.write_all(page.as_bytes())?;
    Ok(file)
}

fn start(link: &str, lookup: impl Fn(&str) -> Option<OsString>) {
    let mut commands = commands(link, lookup);
    for command in &mut commands {
        let quiet = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // In its own process group, the browser does not get the Ctrl-C that ends the serving.
        if let Ok(mut child) = quiet.process_group(0).spawn() {
            thread::spawn(move || child.wait());
            return;
        }
    }
    say("no browser could be started: open the link yourself");
}

fn has_screen(lookup: impl Fn(&str) -> Option<OsString>) -> bool {
    let mut displays = ["WAYLAND_DISPLAY", "DISPLAY"].into_iter();
    displays.any(|name| lookup(name).is_some_and(|value| !value.is_empty()))
}

/// Returns the commands to try, in order.
fn commands(link: &str, lookup: impl Fn(&str) -> Option<OsString>) -> Vec<Command> {
    let named = lookup("BROWSER")
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let all = named.split(':').chain(["xdg-open"]);
    all.filter_map(|words| parse_command(words, link)).collect()
}

/// Parses a command in `$BROWSER`: words, with `%s` for the link. Without `%s` the link is appended.
fn parse_command(words: &str, link: &str) -> Option<Command> {
    let mut all = words.split_whitespace();
    let program = all.next()?;
    let mut command = Command::new(program);
    match words.contains("%s") {
        true => command.args(all.map(|word| word.replace("%s", link))),
        false => command.args(all).arg(link),
    };
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn lines(variables: &[(&str, &str)]) -> Option<Vec<String>> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let line = |command: &Command| {
            let words = std::iter::once(command.get_program())
                .chain(command.get_args())
                .map(OsStr::to_string_lossy);
            words.collect::<Vec<_>>().join(" ")
        };
        has_screen(lookup).then(|| commands("L", lookup).iter().map(line).collect())
    }

    #[test]
    fn a_browser_needs_a_screen_and_the_users_come_first() {
        assert_eq!(lines(&[("BROWSER", "firefox")]), None);
        assert_eq!(lines(&[("DISPLAY", "")]), None);
        assert_eq!(lines(&[("DISPLAY", ":0")]), Some(vec!["xdg-open L".into()]));
        let found = lines(&[("WAYLAND_DISPLAY", "w"), ("BROWSER", "a --new:b -u %s -x:")]);
        assert_eq!(found.unwrap(), ["a --new L", "b -u L -x", "xdg-open L"]);
    }

    #[test]
    fn issue_47_the_page_lies_where_confined_browsers_can_read_it() {
        let home = tempfile::tempdir().unwrap();
        let lookup = |name: &str| (name == "HOME").then(|| home.path().as_os_str().to_owned());
        let first = || page_folders(lookup).swap_remove(0);
        assert_eq!(first(), home.path().join("Downloads"));
        fs::create_dir(home.path().join(".config")).unwrap();
        // An absolute path joined to a folder stays the same path.
        for (line, expected) in [
            (r#"XDG_DOWNLOAD_DIR="$HOME/Geladenes""#, "Geladenes"),
            (r#"XDG_DOWNLOAD_DIR="/data/my\ files""#, "/data/my files"),
            (r#"XDG_MUSIC_DIR="$HOME/Music""#, "Downloads"),
        ] {
            let text = format!("# written by xdg-user-dirs-update\n{line}\n");
            fs::write(home.path().join(".config").join(USER_FOLDERS), text).unwrap();
            assert_eq!(first(), home.path().join(expected), "{line}");
        }
        let file = redirection("L", lookup).unwrap();
        // The Downloads folder does not exist yet.
        assert_eq!(file.path().parent(), Some(home.path()));
        fs::create_dir(home.path().join("Downloads")).unwrap();
        let file = redirection("L", lookup).unwrap();
        assert_eq!(file.path().parent(), Some(&*home.path().join("Downloads")));
        assert!(redirection("L", |_| None).is_some());
    }

    #[test]
    fn the_address_of_a_file_needs_no_quotes() {
        let path = Path::new("/home/u/Téléchargements/my a.html");
        let expected = "file:///home/u/T%C3%A9l%C3%A9chargements/my%20a.html";
        assert_eq!(file_link(path), expected);
    }
}
