//! Holds the layers of `layers.txt`: a module imports nothing of a higher layer, and of some other crates a part alone.
//!
//! The sources are read as text, without comments and modules of tests. A name that the crate's root hands on counts as its module's.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const LIST: &str = "tests/tests/layers.txt";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// The code of each file below a folder that is no test, with its path.
fn codes(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut codes = Vec::new();
    for entry in fs::read_dir(root().join(folder)).expect("a folder") {
        let path = folder.join(entry.expect("an entry").file_name());
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if matches!(stem, Some("tests" | "bin")) {
            continue;
        }
        if root().join(&path).is_dir() {
            codes.extend(self::codes(&path));
        } else {
            let text = text(&path);
            let text = text.split("#[cfg(test)]\nmod tests {").next();
            let lines = text.unwrap_or_default().lines();
            let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
            codes.push((path, lines.collect::<Vec<_>>().join("\n")));
        }
    }
    codes
}

/// The name that a text begins with.
fn name(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The names that follow a prefix, also in braces.
fn names<'a>(code: &'a str, prefix: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        let rest = &code[at + prefix.len()..];
        let Some(tree) = rest.strip_prefix('{') else {
            names.push(name(rest));
            continue;
        };
        names.push(name(tree));
        let mut depth = 0;
        for (at, c) in tree.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => names.push(name(&tree[at + 1..])),
                _ => {}
            }
        }
    }
    names
}

/// Returns the violations in the crate at `folder`. `rules` are its lines of the list.
fn wrong(folder: &str, rules: &[&str]) -> Vec<String> {
    let layers = rules.iter().filter_map(|rule| rule.strip_prefix("layer "));
    let ranked = layers.enumerate();
    let ranked = ranked.flat_map(|(rank, modules)| modules.split(' ').map(move |one| (one, rank)));
    let ranks: BTreeMap<&str, usize> = ranked.collect();
    let codes = codes(Path::new(folder));
    let mut handed_on: BTreeMap<&str, &str> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (_, code) in codes.iter().filter(|(path, _)| path.ends_with("lib.rs")) {
        for tree in code.split(';').filter_map(|item| item.split_once("use ")) {
            let words = tree.1.split(|c: char| !c.is_alphanumeric() && c != '_');
            handed_on.extend(words.map(|word| (word, name(tree.1))));
        }
    }
    for (path, code) in &codes {
        let module = path.strip_prefix(folder).expect("a file of the crate");
        let module = module.with_extension("");
        let top = module
            .iter()
            .next()
            .and_then(|top| top.to_str())
            .unwrap_or_default();
        if matches!(top, "lib" | "main") {
            continue;
        }
        let Some(rank) = ranks.get(top) else {
            wrong.push(format!("{folder}: `{top}` is in no layer"));
            continue;
        };
        let to_root = "super::".repeat(module.iter().count());
        for prefix in ["crate::", to_root.as_str()] {
            for item in names(code, prefix) {
                let other = if ranks.contains_key(item) {
                    item
                } else {
                    handed_on.get(item).unwrap_or(&"")
                };
                if ranks.get(other).is_some_and(|other| other > rank) {
                    wrong.push(format!(
                        "{path:?} imports {item} of `{other}`, which is above it"
                    ));
                }
            }
        }
        let only: Vec<(&str, &str)> = rules
            .iter()
            .filter_map(|rule| rule.strip_prefix("only ")?.split_once("::"))
            .collect();
        for (other, _) in &only {
            for item in names(code, &format!("{other}::")) {
                if !only.contains(&(other, item)) {
                    wrong.push(format!("{path:?} imports {other}::{item}"));
                }
            }
        }
    }
    let is_gone = |module: &&&str| {
        !codes.iter().any(|(path, _)| {
            path.with_extension("")
                .starts_with(Path::new(folder).join(module))
        })
    };
    wrong.extend(
        ranks
            .keys()
            .filter(is_gone)
            .map(|module| format!("{folder}: there is no `{module}`")),
    );
    wrong
}

#[test]
fn lower_layers_import_no_higher_ones() {
    let list = text(Path::new(LIST));
    let lines = list
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect::<Vec<_>>()
        .join("\n");
    let wrong: Vec<String> = lines
        .split("crate ")
        .skip(1)
        .flat_map(|rules| {
            let rules: Vec<&str> = rules.lines().map(str::trim).collect();
            wrong(rules[0], &rules[1..])
        })
        .collect();
    assert!(wrong.is_empty(), "{LIST}:\n{}", wrong.join("\n"));
}

#[test]
fn the_map_shows_the_layers() {
    let shown = format!("```text\n{}```", text(Path::new(LIST)));
    let map = text(Path::new("docs/ARCHITECTURE.md"));
    assert!(
        map.contains(&shown),
        "ARCHITECTURE.md: expected {LIST} as it is, in a block of text"
    );
}
