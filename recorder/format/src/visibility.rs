//! The calls of its process that the preload library can see: the args of an `sa_reach` record, and
//! sentences about them.

use crate::record::parse_instant;
use serde::{Deserialize, Serialize};

/// The args of an `sa_reach` record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Visibility {
    /// True if all calls by name go to the preload library first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_linking: Option<bool>,
    /// True if the preload library handles the program's calls of `dlsym` with a library's handle.
    /// Absent if that could not be determined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_handle: Option<bool>,
    /// Groups of functions that `first` interposes, as sentences name them: `kernels`, `graph
    /// replays`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interposed: Vec<String>,
    /// The library before the preload library that defines functions of these groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// The library whose `dlsym` the program calls instead of the preload library's. Absent if it
    /// calls the preload library's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dlsym: Option<String>,
}

impl Visibility {
    /// Name of the record.
    pub const NAME: &'static str = "sa_reach";

    /// Parses a line of a fragment as an `sa_reach` record, which says which calls the preload
    /// library can see. Returns `None` if the line is not such a record.
    pub fn parse(line: &[u8]) -> Option<Visibility> {
        parse_instant(line, Visibility::NAME).map(|(_, visibility)| visibility)
    }

    /// Returns one sentence for each kind of call that may be missing in the trace, because it may
    /// bypass the preload library.
    pub fn sentences(&self) -> Vec<String> {
        let of_handles = (self.by_handle == Some(false)).then(|| {
            let dlsym = path(self.dlsym.as_deref());
            format!(
                "graph replays and other functions found with dlsym on a library's handle may not be visible: the program calls the dlsym of {dlsym} instead of the one in libsa_profile_preload.so"
            )
        });
        let of_names = (!self.interposed.is_empty()).then(|| self.interposed_sentence());
        of_handles.into_iter().chain(of_names).collect()
    }

    /// Returns a sentence which says that another library receives some calls before the preload
    /// library does, so that they may be missing in the trace.
    fn interposed_sentence(&self) -> String {
        let (what, first) = (listed(&self.interposed), path(self.first.as_deref()));
        let name = first.rsplit('/').next().unwrap_or_default();
        match name.starts_with("libmspti.so") {
            true => format!(
                "some calls of {what} go to {first} first and bypass libsa_profile_preload.so, which must come before it in LD_PRELOAD"
            ),
            false => format!(
                "some calls of {what} go to {first} first, and are not visible unless it passes them on"
            ),
        }
    }
}

fn path(of: Option<&str>) -> &str {
    of.unwrap_or("another library")
}

/// Joins names for a sentence: with commas, and `and` before the last one.
fn listed(groups: &[String]) -> String {
    match groups {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        groups => groups.join(""),
    }
}
