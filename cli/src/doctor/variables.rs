//! Checks the `SA_PROFILE_…` variables in the same way as the recorder.

use super::finding::{Check, Finding};
use sa_recorder::Config;

const VARIABLES: Check = Check("variables");

/// Returns the warnings of the recorder about the variables.
pub(crate) fn examine(config: Option<&Config>) -> Vec<Finding> {
    let Some(config) = config else {
        return vec![VARIABLES.ok("none set: nothing is recorded by itself; sa-profile run sets them for a command, or set SA_PROFILE_DIR",
        )];
    };
    if config.warnings.is_empty() {
        return vec![VARIABLES.ok("understood")];
    }
    let warn = |warning: &String| VARIABLES.warn(warning, "the recorder ignores it");
    config.warnings.iter().map(warn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Status;

    #[test]
    fn the_recorders_own_warnings_are_shown() {
        let config = |level: &'static str| {
            Config::from_lookup(|name| (name == "SA_PROFILE_LEVEL").then(|| level.into()))
        };
        assert_eq!(examine(config("e2e").as_ref())[0].found, "understood");
        let found = examine(config("e2e,kernels,x").as_ref());
        assert_eq!((found.len(), found[0].status), (2, Status::Warn));
        assert!(
            found[0].found.contains(r#"unknown level "kernels""#),
            "{}",
            found[0].found
        );
    }
}
