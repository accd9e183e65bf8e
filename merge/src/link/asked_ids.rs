//! The ids of the requests that are asked for.

use super::args::form::{any_form, forms};
use std::collections::HashSet;

/// The ids of the requests that are asked for.
#[derive(Debug)]
pub(crate) struct AskedIds {
    ids: HashSet<String>,
    /// What they are longer forms of.
    shorter: HashSet<String>,
}

impl AskedIds {
    pub(crate) fn new(ids: &[String]) -> AskedIds {
        let mut shorter = HashSet::new();
        for id in ids {
            forms(id.as_bytes(), |form| {
                shorter.insert(String::from_utf8_lossy(form).into_owned());
            });
        }
        AskedIds {
            ids: ids.iter().cloned().collect(),
            shorter,
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> &HashSet<String> {
        &self.ids
    }

    /// Whether an id is one of them or a longer form of one.
    pub(crate) fn names(&self, id: &str) -> bool {
        any_form(id, |form| self.ids.contains(form))
    }

    /// Whether an id may be that of one of them: it is one, a longer form of one, or what one is a longer form of.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.shorter.contains(id) || self.names(id)
    }
}
