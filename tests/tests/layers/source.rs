//! The files of a crate, and what each imports.

use crate::graph::Arrows;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The sources of a crate, by module: `a::b` is `a/b.rs`.
pub(crate) struct Sources {
    paths: BTreeMap<String, BTreeSet<String>>,
    arrows: Arrows,
}

impl Sources {
    pub(crate) fn read(folder: &Path) -> Sources {
        let mut codes = BTreeMap::new();
        let has_lib = folder.join("lib.rs").exists();
        for path in files(folder) {
            let module = path.strip_prefix(folder).expect("a file of the folder");
            let module = module.with_extension("");
            let words: Vec<&str> = module
                .iter()
                .map(|word| word.to_str().expect("text"))
                .collect();
            // A library's own command is another crate.
            if words[..] != ["main"] || !has_lib {
                let name = match words[..] {
                    ["lib" | "main"] => String::new(),
                    _ => words.join("::"),
                };
                let text = fs::read_to_string(&path).expect("a source");
                codes.insert(name, without_tests(&plain(&text)));
            }
        }
        let mut paths: BTreeMap<String, BTreeSet<String>> = codes
            .iter()
            .map(|(module, code)| (module.clone(), imported(code)))
            .collect();
        let root = paths.remove("").unwrap_or_default();
        Sources {
            arrows: arrows(&paths, &root),
            paths,
        }
    }

    /// The modules of the crate's root.
    pub(crate) fn top_modules(&self) -> BTreeSet<String> {
        let top = |module: &String| module.split("::").next().unwrap_or_default().to_owned();
        self.paths.keys().map(top).collect()
    }

    /// All paths that each module imports.
    pub(crate) fn paths(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.paths
    }

    /// What each module imports of others of this crate.
    pub(crate) fn arrows(&self) -> &Arrows {
        &self.arrows
    }
}

/// The files below a folder that are no tests.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}")) {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        match stem {
            Some("tests" | "bin") => {}
            _ if path.is_dir() => files.extend(self::files(&path)),
            _ if path.extension().is_some_and(|end| end == "rs") => files.push(path),
            _ => {}
        }
    }
    files
}

/// The modules that the paths lead to.
fn arrows(paths: &BTreeMap<String, BTreeSet<String>>, root: &BTreeSet<String>) -> Arrows {
    let mut arrows = Arrows::new();
    for (module, imported) in paths {
        let to: &mut BTreeMap<_, BTreeSet<_>> = arrows.entry(module.clone()).or_default();
        for path in imported {
            if let Some((other, item)) = resolve(paths, root, module, path)
                && other != *module
            {
                to.entry(other).or_default().insert(item);
            }
        }
    }
    arrows
}

/// The module of this crate in which what `module` imports by `path` is, and its name there.
fn resolve(
    modules: &BTreeMap<String, BTreeSet<String>>,
    root: &BTreeSet<String>,
    module: &str,
    path: &str,
) -> Option<(String, String)> {
    let mut base: Vec<&str> = module.split("::").collect();
    let words: Vec<&str> = path.split("::").collect();
    let supers = words.iter().take_while(|word| **word == "super").count();
    let rest = match words[0] {
        "crate" => {
            base.clear();
            &words[1..]
        }
        "self" => &words[1..],
        "super" => {
            base.truncate(base.len().saturating_sub(supers));
            &words[supers..]
        }
        word if modules.contains_key(&format!("{module}::{word}")) => &words[..],
        _ => return None,
    };
    base.extend(rest);
    for len in (1..=base.len()).rev() {
        let name = base[..len].join("::");
        if modules.contains_key(&name) {
            let item = base.get(len).unwrap_or(&"all").to_string();
            return Some((name, item));
        }
    }
    // The root hands on what its modules have.
    let item = base.first()?;
    let path = root
        .iter()
        .find(|path| path.rsplit("::").next() == Some(item))?;
    let (other, _) = path.trim_start_matches("crate::").rsplit_once("::")?;
    modules
        .contains_key(other)
        .then(|| (other.to_owned(), item.to_string()))
}

/// The code with blanks in place of comments and of what stands in quotes.
fn plain(code: &str) -> String {
    let (mut out, mut rest) = (String::new(), code);
    while let Some(first) = rest.chars().next() {
        let len = match quoted_len(rest) {
            Some(len) => {
                out.push(' ');
                len
            }
            None => {
                out.push(first);
                first.len_utf8()
            }
        };
        // What follows a letter begins no raw text.
        let word = rest[len..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_');
        let len = match first.is_alphanumeric() || first == '_' {
            true => {
                let word: String = word.collect();
                out.push_str(&word);
                len + word.len()
            }
            false => len,
        };
        rest = &rest[len..];
    }
    out
}

/// How long the comment, text or character is that the code begins with.
fn quoted_len(code: &str) -> Option<usize> {
    if code.starts_with("//") {
        return Some(code.find('\n').unwrap_or(code.len()));
    }
    if code.starts_with("/*") {
        return Some(code.find("*/").map_or(code.len(), |end| end + 2));
    }
    let letters = code.len() - code.trim_start_matches(['b', 'r', 'c']).len();
    let text = &code[letters..];
    let hashes = text.len() - text.trim_start_matches('#').len();
    if code[..letters].contains('r') && text[hashes..].starts_with('"') {
        let end = format!("\"{}", &text[..hashes]);
        let inside = letters + hashes + 1;
        return Some(
            code[inside..]
                .find(&end)
                .map_or(code.len(), |at| inside + at + end.len()),
        );
    }
    if text.starts_with('"') && letters < 2 {
        return Some(letters + escaped_len(text, '"'));
    }
    // A lifetime has no quote behind it.
    let mut chars = text.strip_prefix('\'')?.chars();
    let is_char = matches!((chars.next()?, chars.next()?), ('\\', _) | (_, '\''));
    (is_char && letters < 2).then(|| letters + escaped_len(text, '\''))
}

/// How long a text in quotes is.
fn escaped_len(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The code without what is compiled for tests alone.
fn without_tests(code: &str) -> String {
    let (mut out, mut rest) = (String::new(), code);
    while let Some(at) = ["#[cfg(test)]", "#[cfg(all(test,"]
        .iter()
        .filter_map(|mark| rest.find(mark))
        .min()
    {
        out.push_str(&rest[..at]);
        let item = &rest[at..];
        rest = &item[item_len(item)..];
    }
    out + rest
}

/// How long the item at the front is: to its `;`, or to the end of its braces.
fn item_len(item: &str) -> usize {
    let mut depth = 0;
    for (at, c) in item.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    item.len()
}

/// The paths in `use`, and those that begin with `crate`, `self` or `super`.
fn imported(code: &str) -> BTreeSet<String> {
    let words = words(code);
    let (mut paths, mut at) = (BTreeSet::new(), 0);
    while at < words.len() {
        let begins = matches!(words[at], "crate" | "self" | "super");
        if words[at] == "use" {
            at = tree(&words, at + 1, "", &mut paths);
        } else if begins && words.get(at + 1) == Some(&"::") {
            let end = at + words[at..].iter().take_while(|word| is_path(word)).count();
            paths.insert(words[at..end].concat().trim_end_matches("::").to_owned());
            at = end;
        } else {
            at += 1;
        }
    }
    paths
}

fn is_path(word: &str) -> bool {
    word == "::" || word.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Adds the paths of the tree of a `use` that begins at a word; tells where it ends.
fn tree(words: &[&str], mut at: usize, prefix: &str, paths: &mut BTreeSet<String>) -> usize {
    let mut path = prefix.to_owned();
    while let Some(word) = words.get(at) {
        match *word {
            "{" => {
                at = tree(words, at + 1, &path, paths);
                path.clear();
            }
            "," | "}" | ";" => {
                let path = std::mem::replace(&mut path, prefix.to_owned());
                let whole = path.trim_end_matches("::self").trim_end_matches("::*");
                if !whole.is_empty() && whole != prefix {
                    paths.insert(whole.to_owned());
                }
                if *word != "," {
                    return at + 1;
                }
                at += 1;
            }
            "as" => at += 2,
            word => {
                path.push_str(word);
                at += 1;
            }
        }
    }
    at
}

/// Names, `::` and single signs.
fn words(code: &str) -> Vec<&str> {
    let (mut words, mut rest) = (Vec::new(), code.trim_start());
    while let Some(first) = rest.chars().next() {
        let name = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let len = match name {
            0 if rest.starts_with("::") => 2,
            0 => first.len_utf8(),
            len => len,
        };
        words.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    words
}

#[test]
fn paths_are_found() {
    let code = r##"
        // use crate::comment;
        use crate::a::{self, B, c::{D as E, F}};
        use super::g;
        pub(crate) use std::fmt;
        fn f<'a>(c: char) -> &'a str { if c == '"' { crate::h::i(r#"use crate::text; ""#) } "crate::j" }
        #[cfg(test)]
        mod tests { use crate::k; }
        #[cfg(test)]
        use crate::l;
        use crate::m::*;
    "##;
    let found = imported(&without_tests(&plain(code)));
    let expected = [
        "crate::a",
        "crate::a::B",
        "crate::a::c::D",
        "crate::a::c::F",
        "crate::h::i",
        "crate::m",
        "std::fmt",
        "super::g",
    ];
    assert_eq!(found.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn arrows_lead_to_modules() {
    let paths = |of: &[&str]| of.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    let modules: BTreeMap<String, BTreeSet<String>> = [
        (
            "a",
            paths(&["crate::b::c::D", "crate::E", "std::io", "f::G"]),
        ),
        ("a::f", paths(&["super::H", "super::super::b"])),
        ("b", paths(&[])),
        ("b::c", paths(&["self::X"])),
    ]
    .into_iter()
    .map(|(module, paths)| (module.to_owned(), paths))
    .collect();
    let arrows = arrows(&modules, &paths(&["b::E"]));
    let to = |module: &str| arrows[module].keys().cloned().collect::<Vec<_>>();
    assert_eq!(to("a"), ["a::f", "b", "b::c"]);
    assert_eq!(to("a::f"), ["a", "b"]);
    assert!(to("b::c").is_empty());
}
