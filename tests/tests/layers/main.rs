//! Holds the layers of `layers.txt`: which crate and which folder may import what, how many files import one another in a circle, and how many lie in a folder.
//!
//! The sources are read as text. Code in `#[cfg(test)]` and files of tests are left out, macros are not expanded. A path counts if it stands in a
//! `use` or begins with `crate`, `self` or `super`.

mod graph;
mod list;
mod source;

use graph::circles;
use list::{Crate, Debt, crates};
use source::Sources;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Most files that may import one another in a circle.
const MOST_IN_CIRCLE: usize = 6;
/// Most files that may lie in a folder.
const MOST_IN_FOLDER: usize = 24;
/// Where ARCHITECTURE.md shows the list.
const SHOWN: &str = "tests/tests/layers.txt";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn lower_layers_import_no_higher_ones() {
    let crates = crates(&text(SHOWN));
    let wrong: Vec<String> = crates.iter().flat_map(wrong).collect();
    assert!(wrong.is_empty(), "{SHOWN}:\n{}", wrong.join("\n"));
}

/// What is wrong with a crate.
fn wrong(of: &Crate) -> Vec<String> {
    let sources = Sources::read(&root().join(&of.folder));
    let mut wrong = unlisted(of, &sources);
    wrong.extend(upward(of, &sources));
    wrong.extend(foreign(of, &sources));
    wrong.extend(circle(of, &sources));
    wrong.extend(full_folder(of));
    wrong
}

/// Modules that the list lacks, and those that are no more.
fn unlisted(of: &Crate, sources: &Sources) -> Vec<String> {
    if of.layers.is_empty() {
        return Vec::new();
    }
    let modules = sources.top_modules();
    let lacking = modules.iter().filter(|module| of.rank(module).is_none());
    let lacking = lacking.map(|module| format!("{}: `{module}` is in no layer", of.folder));
    let listed = of.layers.iter().flatten();
    let gone = listed.filter(|module| !modules.contains(*module));
    let gone = gone.map(|module| format!("{}: there is no `{module}`", of.folder));
    lacking.chain(gone).collect()
}

/// Arrows from a lower layer to a higher one.
fn upward(of: &Crate, sources: &Sources) -> Vec<String> {
    let rank = |file: &str| of.rank(file.split("::").next()?);
    let mut arrows = Vec::new();
    for (file, uses) in sources.arrows() {
        for (other, items) in uses {
            if rank(file) < rank(other) && rank(file).is_some() {
                let items: Vec<&str> = items.iter().map(String::as_str).collect();
                let items = items.join(", ");
                arrows.push(format!(
                    "{}: `{file}` imports {items} of `{other}`, which is above it",
                    of.folder
                ));
            }
        }
    }
    compare(of, &of.upward, "arrows that point up", arrows.len(), || {
        arrows.join("\n")
    })
}

/// Imports of a crate of which only a part may be used.
fn foreign(of: &Crate, sources: &Sources) -> Vec<String> {
    let mut wrong = Vec::new();
    for (file, paths) in sources.paths() {
        for path in paths {
            let of_crate = |only: &&String| path.split("::").next() == only.split("::").next();
            let is_in = |only: &String| format!("{path}::").starts_with(&format!("{only}::"));
            let mut allowed = of.only.iter().filter(of_crate).peekable();
            if allowed.peek().is_some() && !allowed.any(is_in) {
                wrong.push(format!("{}: `{file}` imports {path}", of.folder));
            }
        }
    }
    wrong
}

/// The largest circle of files.
fn circle(of: &Crate, sources: &Sources) -> Vec<String> {
    let largest = circles(sources.arrows()).into_iter().max_by_key(Vec::len);
    let largest = largest.unwrap_or_default();
    let found = largest.len();
    compare(of, &of.circle, "files in a circle", found, || {
        let inside = |file: &&String| largest.contains(file);
        let arrows = sources.arrows();
        let words = largest.iter().map(|file| {
            let others: Vec<&str> = arrows[*file]
                .keys()
                .filter(inside)
                .map(String::as_str)
                .collect();
            format!("  {file} -> {}", others.join(", "))
        });
        words.collect::<Vec<_>>().join("\n")
    })
}

/// Says what is more than allowed, or less than a debt.
fn compare(
    of: &Crate,
    limit: &Debt,
    what: &str,
    found: usize,
    details: impl FnOnce() -> String,
) -> Vec<String> {
    let folder = &of.folder;
    match limit {
        _ if found == limit.most() => Vec::new(),
        Debt::Owed(owed) if found < *owed => {
            vec![format!(
                "{folder}: {found} {what}, and the debt says {owed}: write it down"
            )]
        }
        _ if found < limit.most() => Vec::new(),
        _ => vec![format!(
            "{folder}: {found} {what}, at most {} may be:\n{}",
            limit.most(),
            details()
        )],
    }
}

/// The fullest folder.
fn full_folder(of: &Crate) -> Vec<String> {
    let mut files: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for path in source::files(&root().join(&of.folder)) {
        let folder = path.parent().expect("a file lies in a folder");
        *files.entry(folder.to_owned()).or_default() += 1;
    }
    let fullest = files.into_iter().max_by_key(|(_, count)| *count);
    let (folder, found) = fullest.unwrap_or_default();
    compare(of, &of.folder_files, "files in a folder", found, || {
        format!("  {}", folder.display())
    })
}

#[test]
fn the_map_shows_the_layers() {
    let shown = format!("```text\n{}```", text(SHOWN));
    assert!(
        text("docs/ARCHITECTURE.md").contains(&shown),
        "ARCHITECTURE.md: expected {SHOWN} as it is, in a block of text"
    );
}
