//! The descendants of this process, read from `/proc`.

use sa_recorder::host::is_ancestor;
use std::collections::BTreeSet;
use std::fs;

/// A process that descends from this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Descendant {
    /// Process id.
    pub(crate) pid: u32,
    /// Name from the kernel.
    pub(crate) name: String,
}

/// Returns all live descendants of this process, by pid.
pub(crate) fn descendants() -> Vec<Descendant> {
    let below: BTreeSet<u32> = pids().filter(|pid| is_descendant(*pid)).collect();
    let alive = |pid| {
        let stat = stat(pid).filter(|stat| !stat.is_dead)?;
        let name = stat.name;
        Some(Descendant { pid, name })
    };
    below.into_iter().filter_map(alive).collect()
}

/// Returns true if `pid` is a descendant of this process.
pub(crate) fn is_descendant(pid: u32) -> bool {
    let own = std::process::id();
    pid != own && is_ancestor(own, pid)
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

struct Stat {
    name: String,
    is_dead: bool,
}

fn stat(pid: u32) -> Option<Stat> {
    parse(&String::from_utf8_lossy(
        &fs::read(format!("/proc/{pid}/stat")).ok()?,
    ))
}

/// Parses `/proc/<pid>/stat`. The name is in parentheses and may contain any characters, parentheses too.
fn parse(stat: &str) -> Option<Stat> {
    let (start, fields) = stat.rsplit_once(')')?;
    let name = start.split_once('(')?.1.to_owned();
    let state = fields.split_ascii_whitespace().next()?;
    let is_dead = matches!(state, "Z" | "X");
    Some(Stat { name, is_dead })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = parse("12 (a) Z 1 (b)) S 7 12 12 0").unwrap();
        assert_eq!((stat.name.as_str(), stat.is_dead), ("a) Z 1 (b)", false));
        assert!(parse("12 (a) Z 7 0").unwrap().is_dead);
        assert!(parse("").is_none() && parse("12 (a)").is_none());
    }
}
