//! What the preload library sees of its process: the args of an `sa_reach` record, and in words.

use serde::{Deserialize, Serialize};

/// The args of an `sa_reach` record. Each list names groups of functions, as they are called in sentences: `kernels`, `graph replays`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reach {
    /// Seen where they are called by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_name: Vec<String>,
    /// Seen where they are found by `dlsym` on the handle of a library.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_dlsym: Vec<String>,
    /// Calls of them go to `first`, which may pass them on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_by_name: Vec<String>,
    /// Not seen where they are found by `dlsym`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_by_dlsym: Vec<String>,
    /// The library before the preload library that has functions of these names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// The library whose `dlsym` the program calls instead of that of the preload library; absent if it calls that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dlsym: Option<String>,
}

impl Reach {
    /// A sentence for each way on which something is not seen.
    pub fn words(&self) -> Vec<String> {
        let of_name = (!self.not_by_name.is_empty()).then(|| {
            let (what, first) = (listed(&self.not_by_name), path(self.first.as_deref()));
            format!("{what} go to {first} first, and are not visible if it keeps them to itself")
        });
        self.dlsym_words().into_iter().chain(of_name).collect()
    }

    /// The sentence about what is found by `dlsym`.
    pub fn dlsym_words(&self) -> Option<String> {
        if self.not_by_dlsym.is_empty() {
            return None;
        }
        let what = listed(&self.not_by_dlsym);
        let why = match self.dlsym.as_deref() {
            Some(dlsym) => format!(
                "the dlsym of {dlsym} stands before that of libsa_profile_preload.so, which must come first in LD_PRELOAD"
            ),
            None => {
                "another library behind libsa_profile_preload.so has functions of the same names"
                    .to_owned()
            }
        };
        Some(format!(
            "{what} that are found by dlsym are not visible: {why}"
        ))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_is_seen_needs_no_words() {
        let reach = Reach {
            by_name: groups(&["kernels"]),
            by_dlsym: groups(&["kernels"]),
            ..Reach::default()
        };
        assert_eq!(reach.words(), [""; 0]);
    }

    #[test]
    fn what_is_not_seen_is_said_with_its_reason() {
        let reach = Reach {
            not_by_dlsym: groups(&["graph replays", "collectives", "annotations"]),
            not_by_name: groups(&["kernels"]),
            first: Some("/opt/libother.so".to_owned()),
            dlsym: Some("/opt/libhook.so".to_owned()),
            ..Reach::default()
        };
        assert_eq!(
            reach.words(),
            [
                "graph replays, collectives and annotations that are found by dlsym are not visible: the dlsym of /opt/libhook.so stands before that of libsa_profile_preload.so, which must come first in LD_PRELOAD",
                "kernels go to /opt/libother.so first, and are not visible if it keeps them to itself",
            ]
        );
    }

    #[test]
    fn a_record_of_a_later_version_is_read() {
        let read = serde_json::from_str::<Reach>(r#"{"by_dlsym":["copies"],"later":1}"#).unwrap();
        assert_eq!(read.by_dlsym, ["copies"]);
    }
}
