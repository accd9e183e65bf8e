//! Patterns that users write to select names: a glob or plain text.

/// A pattern for names.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    glob: Option<glob::Pattern>,
}

impl Pattern {
    /// Parses a pattern. It is a glob if the text contains any of `*?[` and is a valid glob, and otherwise plain text.
    pub fn new(text: &str) -> Pattern {
        let is_glob = text.contains(['*', '?', '[']);
        let glob = is_glob.then(|| glob::Pattern::new(text).ok()).flatten();
        Pattern {
            text: text.to_owned(),
            glob,
        }
    }

    /// Returns true if the name equals the text, or the glob matches the whole name.
    pub fn is(&self, name: &str) -> bool {
        name == self.text || self.glob.as_ref().is_some_and(|glob| glob.matches(name))
    }

    /// Returns true if [`Pattern::is`] does, or the name contains the text. A number at the beginning or end of the text has to be a whole number of the
    /// name: `rank 1` does not match `rank 12`.
    pub fn is_in(&self, name: &str) -> bool {
        let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
        let (name_bytes, text) = (name.as_bytes(), self.text.as_bytes());
        let is_whole = |(at, _): (usize, &str)| {
            let (before, after) = (at.checked_sub(1), at + text.len());
            let cuts_front = is_digit(text.first()) && is_digit(before.map(|at| &name_bytes[at]));
            let cuts_back = is_digit(text.last()) && is_digit(name_bytes.get(after));
            !cuts_front && !cuts_back
        };
        self.is(name) || name.match_indices(&self.text).any(is_whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names_and_text_matches_parts() {
        for case in include_str!("../tests/patterns.txt").lines() {
            let [pattern, expected, name] = case.splitn(3, " | ").collect::<Vec<_>>()[..] else {
                panic!("{case}");
            };
            let found = Pattern::new(pattern);
            let (is, is_in) = (expected == "is", expected != "is not");
            assert_eq!((found.is(name), found.is_in(name)), (is, is_in), "{case}");
        }
    }
}
