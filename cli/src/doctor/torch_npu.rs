//! Checks which versions of torch_npu and vLLM-Ascend Python has, and if the preload library sees their calls.

use super::finding::{Check, Finding};

const TORCH_NPU: Check = Check("torch_npu");

/// Script that prints the versions of both, and which torch_npu vLLM-Ascend requires.
pub(super) const PYTHON: &str = "
def say(what, of):
    try: print(what, of())
    except Exception: pass
say('torch_npu', lambda: importlib.metadata.version('torch-npu'))
say('vllm_ascend', lambda: importlib.metadata.version('vllm-ascend'))
needs = lambda: importlib.metadata.requires('vllm-ascend') or []
say('pin', lambda: [need.split(';')[0].strip() for need in needs() if need.lower().replace('_', '-').startswith('torch-npu')][0])";

/// How a version of torch_npu finds functions that it is not linked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    /// By `dlsym` with the handle of their library.
    Handle,
    /// In all libraries, if `LD_PRELOAD` is set.
    All,
}

/// Returns the findings from the output of the script.
pub(super) fn examine(said: &str) -> Vec<Finding> {
    let value = |what: &str| {
        let mut lines = said.lines();
        lines.find_map(|line| line.strip_prefix(what)?.strip_prefix(' '))
    };
    let torch_npu = value("torch_npu").map_or_else(|| "not installed".to_owned(), visibility);
    let vllm_ascend = value("vllm_ascend").map(|version| {
        let pin = value("pin").map(|pin| format!(", made for {pin}"));
        Check("vLLM-Ascend").ok(format!("{version}{}", pin.unwrap_or_default()))
    });
    let torch_npu = TORCH_NPU.ok(torch_npu);
    [Some(torch_npu), vllm_ascend]
        .into_iter()
        .flatten()
        .collect()
}

/// Describes what the preload library sees with a version.
fn visibility(version: &str) -> String {
    let how = match search(version) {
        Some(Search::Handle) => {
            "finds graph replays, AlltoAll and mstx by dlsym; the preload library would be reached through its own dlsym"
        }
        Some(Search::All) => {
            "finds graph replays, AlltoAll and mstx by RTLD_DEFAULT where LD_PRELOAD is set; the preload library would be reached as by name"
        }
        None => {
            "not known how it finds graph replays, AlltoAll and mstx; doctor says of a recorded run what may not be visible"
        }
    };
    format!("{version}: {how}")
}

/// Returns how a version finds functions, such as `2.5.1.post1` or the development build before it, `2.5.1.post1.dev20250619`.
fn search(version: &str) -> Option<Search> {
    let (version, is_before) = match version.split_once(".dev") {
        Some((version, day)) if day.parse::<u32>().is_ok() => (version, true),
        _ => (version, false),
    };
    let (release, post) = match version.split_once(".post") {
        Some((release, post)) => (release, post.parse().ok()?),
        None => (version, 0),
    };
    let numbers: Result<Vec<u32>, _> = release.split('.').map(str::parse).collect();
    let release: [u32; 3] = numbers.ok()?.try_into().ok()?;
    let found = release_search(release, post)?;
    let is_sure = match found {
        Search::Handle => true,
        // If two posts differ, a build between them may use either way.
        Search::All => post > 0 && release_search(release, post - 1) == Some(found),
    };
    (is_sure || !is_before).then_some(found)
}

/// Returns how a release finds functions, as in its published wheels. The wheels that search all libraries contain a warning that names `LD_PRELOAD`.
/// A post that was not published is treated like the one before it. `None` for any other version, which may search in another way.
fn release_search(release: [u32; 3], post: u32) -> Option<Search> {
    match (release, post) {
        ([2, 7, 1], 8..=11) | ([2, 9, 0], 6..=9) | ([2, 10, 0], 4..=7) => Some(Search::All),
        ([2, 11..=12, 0], ..=3) | ([2, 13..=14, 0], 0) => Some(Search::All),
        ([2, 5, 1], ..=1) | ([2, 6, 0], ..=5) | ([2, 7, 1], ..=7) => Some(Search::Handle),
        ([2, 8, 0], ..=5) | ([2, 9, 0], ..=5) | ([2, 10, 0], ..=3) => Some(Search::Handle),
        ([2, 5..=7, _] | [2, 9, 1], 0) => Some(Search::Handle),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_version_searches() {
        for (versions, expected) in [
            (
                "2.5.1 2.5.1.post1 2.5.1.post1.dev20250619 2.7.1 2.7.1.post6 2.8.0.post2 2.8.0.post5 2.9.0 2.9.0.post5 2.9.1 2.10.0",
                Some(Search::Handle),
            ),
            (
                "2.7.1.post8 2.9.0.post6 2.10.0.post4 2.10.0.post7.dev20260801 2.11.0 2.12.0.post2 2.13.0 2.14.0",
                Some(Search::All),
            ),
            (
                "2.5.1.post2 2.7.1.post12 2.9.0.post6.dev20260401 2.9.0.dev 2.10.0.post8 2.11.0.dev20260101 2.9.0.post10 2.1.0 2.9.0+git1a2b3c4 2.9.0rc1 2.9  x",
                None,
            ),
        ] {
            for version in versions.split(' ') {
                assert_eq!(search(version), expected, "{version:?}");
            }
        }
    }

    #[test]
    fn what_is_not_installed_is_reported_once() {
        let found = examine("package\n-\n");
        assert_eq!(found, [TORCH_NPU.ok("not installed")]);
    }
}
