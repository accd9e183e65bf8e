//! Names for traces of other profilers: the file, and what distinguishes it from the other traces.

use crate::fragment::recording::Distinction;
use std::path::{Component, Path};

/// File extensions that do not distinguish traces.
const ENDINGS: [&str; 4] = [".gz", ".json", ".trace", ".pt"];

/// Returns a name for each of the paths: its file name, or the whole path if several of the files have the same name.
pub(super) fn file_names(paths: &[&Path]) -> Vec<String> {
    let short = |path: &&Path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let all: Vec<String> = paths.iter().map(short).collect();
    let is_shared = |name: &String| all.iter().filter(|other| *other == name).count() > 1;
    let named = paths.iter().zip(&all);
    named
        .map(|(path, name)| match is_shared(name) {
            true => path.display().to_string(),
            false => name.clone(),
        })
        .collect()
}

/// Returns a text for each trace that distinguishes it from the others: its rank, the part of its path that differs, or both. The input is the
/// path and rank of each. A single trace gets `None`.
pub(super) fn distinctions(traces: &[(&Path, Option<u64>)]) -> Vec<Option<Distinction>> {
    if traces.len() < 2 {
        return vec![None; traces.len()];
    }
    let paths: Vec<&Path> = traces.iter().map(|(path, _)| *path).collect();
    let distinction = |((_, rank), part): (&(&Path, Option<u64>), String)| {
        let same = traces.iter().filter(|(_, other)| other == rank);
        let (is_rank, is_shared) = (rank.is_some(), same.count() > 1);
        let text = match rank {
            None if part.is_empty() => return None,
            None => part,
            Some(rank) if is_shared && !part.is_empty() => format!("rank {rank}, {part}"),
            Some(rank) => format!("rank {rank}"),
        };
        Some(Distinction { text, is_rank })
    };
    traces
        .iter()
        .zip(differing_parts(&paths))
        .map(distinction)
        .collect()
}

/// Returns the part of each path that differs between the paths. Folders that all of them share at the front or the back are left out, and so are
/// usual file extensions.
fn differing_parts(paths: &[&Path]) -> Vec<String> {
    let split = |path: &&Path| -> Vec<String> {
        let names = path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        });
        let mut names: Vec<String> = names.collect();
        if let Some(file) = names.last_mut() {
            while let Some(stem) = ENDINGS.iter().find_map(|ending| file.strip_suffix(ending)) {
                *file = stem.to_owned();
            }
        }
        names
    };
    let all: Vec<Vec<String>> = paths.iter().map(split).collect();
    let Some(first) = all.first() else {
        return Vec::new();
    };
    let shortest = all.iter().map(Vec::len).min().unwrap_or(0);
    let front = (0..shortest)
        .take_while(|nth| all.iter().all(|names| names[*nth] == first[*nth]))
        .count();
    let from_back = |names: &[String], nth: usize| names[names.len() - 1 - nth].clone();
    let is_same = |nth: &usize| {
        let first = from_back(first, *nth);
        all.iter().all(|names| from_back(names, *nth) == first)
    };
    let back = (0..shortest - front).take_while(is_same).count();
    let part = |names: &Vec<String>| names[front..names.len() - back].join("/");
    all.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_distinguished_by_rank_else_by_path() {
        // Paths of traces, some with a rank, and what distinguishes each.
        for case in include_str!("../../tests/distinctions.txt").lines() {
            let (traces, expected) = case.split_once(" -> ").unwrap();
            let paths = traces.split(' ').map(|trace| match trace.split_once('=') {
                Some((path, rank)) => (Path::new(path), rank.parse().ok()),
                None => (Path::new(trace), None),
            });
            let found = distinctions(&paths.collect::<Vec<_>>());
            let texts = found
                .iter()
                .map(|found| found.as_ref().map_or("", |found| &found.text));
            assert!(texts.eq(expected.split('|')), "{traces}: {found:?}");
        }
    }
}
