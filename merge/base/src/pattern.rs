//! Names as people ask for them: a glob, or text.

/// What a name has to look like.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    glob: Option<glob::Pattern>,
}

impl Pattern {
    /// A glob if the text has any of `*?[` and is one.
    pub fn new(text: &str) -> Pattern {
        let is_glob = text.contains(['*', '?', '[']);
        let glob = is_glob.then(|| glob::Pattern::new(text).ok()).flatten();
        Pattern {
            text: text.to_owned(),
            glob,
        }
    }

    /// Whether the name is the text, or the glob matches all of it.
    pub fn is(&self, name: &str) -> bool {
        name == self.text || self.glob.as_ref().is_some_and(|glob| glob.matches(name))
    }

    /// The same; text need only be a part of the name.
    pub fn is_in(&self, name: &str) -> bool {
        self.is(name) || self.glob.is_none() && name.contains(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names_and_text_its_part() {
        for (pattern, name, is, is_in) in [
            ("step", "step", true, true),
            ("step", "step 1", false, true),
            ("step*", "step 1", true, true),
            ("step*", "a step 1", false, false),
            ("worker[12]", "worker[12]", true, true),
            ("worker[12]", "worker1", true, true),
            ("w?", "w\u{44f}", true, true),
            ("[", "a[b", false, true),
            ("Step", "step", false, false),
        ] {
            let found = Pattern::new(pattern);
            assert_eq!(
                (found.is(name), found.is_in(name)),
                (is, is_in),
                "{pattern}"
            );
        }
    }
}
