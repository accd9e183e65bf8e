//! What the preload library sees of its process: the args of an `sa_reach` record, and in words.

use crate::record::parse_instant;
use serde::{Deserialize, Serialize};

/// The args of an `sa_reach` record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reach {
    /// Whether all calls by name reach the preload library first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_linking: Option<bool>,
    /// Whether it is asked where the program asks `dlsym` for a function by a library's handle; absent where that could not be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_handle: Option<bool>,
    /// The groups of functions of which `first` has some, as they are called in sentences: `kernels`, `graph replays`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interposed: Vec<String>,
    /// The library before the preload library that has functions of these names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// The library whose `dlsym` the program calls instead of that of the preload library; absent if it calls that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dlsym: Option<String>,
}

impl Reach {
    /// Name of the record.
    pub const NAME: &'static str = "sa_reach";

    /// Parses the line of a reach record; `None` if it is none.
    pub fn parse(line: &[u8]) -> Option<Reach> {
        parse_instant(line, Reach::NAME).map(|(_, reach)| reach)
    }

    /// A sentence for each way on which something may not be seen.
    pub fn words(&self) -> Vec<String> {
        let of_handles = (self.by_handle == Some(false)).then(|| {
            let dlsym = path(self.dlsym.as_deref());
            format!(
                "graph replays and all else that is found by dlsym on a library's handle may not be visible: the dlsym of {dlsym} stands before that of libsa_profile_preload.so"
            )
        });
        let of_names = (!self.interposed.is_empty()).then(|| self.interposed_words());
        of_handles.into_iter().chain(of_names).collect()
    }

    fn interposed_words(&self) -> String {
        let (what, first) = (listed(&self.interposed), path(self.first.as_deref()));
        let name = first.rsplit('/').next().unwrap_or_default();
        match name.starts_with("libmspti.so") {
            true => format!(
                "some calls of {what} go to {first} first, and past libsa_profile_preload.so, which must stand before it in LD_PRELOAD"
            ),
            false => format!(
                "some calls of {what} go to {first} first, and are not visible if it keeps them to itself"
            ),
        }
    }
}

fn path(of: Option<&str>) -> &str {
    of.unwrap_or("another library")
}

fn listed(groups: &[String]) -> String {
    match groups {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        groups => groups.join(""),
    }
}
