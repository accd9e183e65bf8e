//! Moves the fragments of other runs that have no owner any more into `previous/<run>/`, and keeps
//! a few such runs.
//!
//! Touches only plain files of this user named `trace.*.jsonl` and `trace.*.ring`, written on this
//! host. Follows no symlinks.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::run::config::{Config, is_folder_name};
use crate::run::folder::has_segment;
use crate::run::owner::{is_owned, read_header};
use crate::run::previous::{self, UNKNOWN_RUN};
use crate::sys::clock;
use crate::sys::dir::Dir;
use crate::sys::fd::{self, Status};
use sa_format::{FragmentHeader, RING_SUFFIX, is_ring_name, segment_name, stem_and_segment};

/// Age in ns below which a ring without a fragment, or a fragment without a header, may belong to a
/// process that is just starting.
const GRACE_NS: u64 = 60_000_000_000;

/// Moves the fragments of ended runs out of the run directory, before a new run begins whose main
/// process has the header `own`. Returns a message if earlier runs had to be removed. Fragments
/// that cannot be moved stay for a later cleaning.
pub(crate) fn clean(config: &Config, own: &FragmentHeader, directory: &Dir) -> Option<String> {
    let fragments = config.paths.open_fragments().ok()?;
    let names = fragments.names().ok()?;
    for (stem, segments) in by_stem(&names) {
        if let Some(header) = abandoned(&fragments, (stem, &segments), own) {
            let target = (run_folder(header.as_ref()), header.as_ref());
            let _ = previous::move_aside(config, directory, &fragments, (stem, &segments), target); // a later cleaning tries again
        }
    }
    let is_ring = |name: &&OsString| is_ring_name(&name.to_string_lossy());
    for name in names.iter().filter(is_ring) {
        remove_orphan(&fragments, name, &names);
    }
    previous::forget_old_runs(config, &own.host, directory)
}

/// Groups the segment files among the names by their stem, which identifies a fragment. Returns the
/// sorted segment numbers of each fragment.
fn by_stem(names: &[OsString]) -> BTreeMap<&str, Vec<u32>> {
    let mut all: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    let names = names.iter().filter_map(|name| name.to_str());
    for (stem, segment) in names.filter_map(stem_and_segment) {
        all.entry(stem).or_default().push(segment);
    }
    all.values_mut().for_each(|all| all.sort_unstable());
    all
}

/// Checks if a fragment may be moved, and returns its header, which is `Some(None)` if it has none.
/// Returns `None` if the fragment belongs to this run, another host or another user, or if a live
/// process is still writing it. `own` is the header of the calling process.
fn abandoned(
    fragments: &Dir,
    (stem, segments): (&str, &[u32]),
    own: &FragmentHeader,
) -> Option<Option<FragmentHeader>> {
    let mut found = None;
    let mut nameless = Vec::new();
    for segment in segments {
        let name = segment_name(stem, *segment);
        let Ok((file, status)) = fragments.open_linked(&name) else {
            continue;
        };
        match read_header(&file) {
            Some(header) => {
                let stays = header.run == own.run || header.host != own.host;
                if stays || is_owned(&file, &header, own) {
                    return None;
                }
                found = Some(header);
            }
            None if status.links > 1 => return None,
            None => nameless.push((file, status)),
        }
    }
    // Its owner has locked the newest segment, which may be newer than the list of names.
    let next = segment_name(stem, segments.last()?.checked_add(1)?);
    if fragments.has(&next) || found.is_none() && nameless.is_empty() {
        return None;
    }
    // The age is checked first: a lock taken here would keep out a process that has just created
    // the file.
    let is_left =
        |(file, status): &(OwnedFd, Status)| is_old(status) && fd::try_lock(file.as_raw_fd());
    (found.is_some() || nameless.iter().all(is_left)).then_some(found)
}

/// Returns the name of the folder in `previous/` for the fragment with this header: the run id, or
/// `unknown` if the id is missing or unsuitable as a name.
fn run_folder(header: Option<&FragmentHeader>) -> &str {
    let run = header.map(|header| header.run.as_str());
    let named = run.filter(|run| is_folder_name(run) && !run.is_empty());
    named.unwrap_or(UNKNOWN_RUN)
}

/// Removes the ring file `name` if its fragment is gone and it is not a new one. `names` are all
/// files of the fragments folder.
fn remove_orphan(fragments: &Dir, name: &OsStr, names: &[OsString]) {
    let text = name.to_string_lossy();
    let stem = text.strip_suffix(RING_SUFFIX).unwrap_or(&text);
    let opened = || fragments.open_file(name);
    if !has_segment(names, stem) && opened().is_ok_and(|(_, status)| is_old(&status)) {
        let _ = fragments.remove(name); // only a cleanup
    }
}

/// Returns true if the file has not been written for so long that no process can be about to start
/// with it.
fn is_old(status: &Status) -> bool {
    clock::realtime_ns().saturating_sub(status.modified_ns) > GRACE_NS
}

#[cfg(test)]
pub(crate) mod testing {
    //! A run directory made by hand.

    use super::*;
    use crate::run::identity;
    use crate::text::record::metadata_line;
    use sa_format::{RingKind, VERSION};
    use std::fs::{self, File};
    use std::path::PathBuf;
    use std::time::Duration;

    pub(crate) struct TestDir(tempfile::TempDir);

    impl TestDir {
        pub(crate) fn new() -> TestDir {
            TestDir(tempfile::tempdir().unwrap())
        }

        pub(crate) fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        pub(crate) fn config(&self, old_runs: Option<usize>) -> Config {
            let dir = |name: &str| (name == crate::run::config::DIR).then(|| self.0.path().into());
            Config {
                old_runs,
                ..Config::from_lookup(dir).unwrap()
            }
        }

        pub(crate) fn directory(&self) -> Dir {
            Dir::open_path(self.0.path()).unwrap()
        }

        /// Writes a fragment that was last modified `age` seconds ago. Returns it open.
        pub(crate) fn write(
            &self,
            name: &str,
            header: Option<&FragmentHeader>,
            age: u64,
        ) -> OwnedFd {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let line = header.map(|header| metadata_line(header.pid, header));
            fs::write(&path, line.unwrap_or_default()).unwrap();
            let file = File::options().append(true).open(path).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age))
                .unwrap();
            file.into()
        }

        pub(crate) fn forget(&self, old_runs: Option<usize>) -> Option<String> {
            let host = identity::read().host;
            previous::forget_old_runs(&self.config(old_runs), &host, &self.directory())
        }

        pub(crate) fn clean(&self) {
            let _ = clean(&self.config(Some(1)), &new_run(), &self.directory());
        }

        /// Returns true if this fragment file is still in its place, and false if it is in this
        /// folder of `previous`.
        pub(crate) fn has_kept(&self, name: &str, folder: &str) -> bool {
            let [kept, moved] = ["fragments", folder].map(|folder| self.path(folder).join(name));
            assert_ne!(kept.exists(), moved.exists(), "{name}");
            kept.exists()
        }
    }

    /// Returns the header of this process as the main process of a new run.
    pub(crate) fn new_run() -> FragmentHeader {
        FragmentHeader {
            run: "new".to_owned(),
            ..identity::read()
        }
    }

    /// Returns the header of a process on this host that no longer exists.
    pub(crate) fn header(run: &str) -> FragmentHeader {
        let identity = identity::read();
        FragmentHeader {
            version: VERSION,
            nonce: "0123456789abcdef".to_owned(),
            run: run.to_owned(),
            main: true,
            start_time: identity.start_time + 1,
            ring: RingKind::File,
            page_bytes: 4096,
            ..identity
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{TestDir, header, new_run};
    use super::*;
    use crate::run::identity;

    #[test]
    fn a_locked_fragment_of_another_boot_or_namespace_stays() {
        let dead = header("old");
        let other_boot = FragmentHeader {
            boot_id: "other".to_owned(),
            ..header("old")
        };
        let no_namespace = FragmentHeader {
            pid_ns: 0,
            ..header("old")
        };
        for (header, locked, stays) in [
            (&dead, true, false),
            (&other_boot, true, true),
            (&no_namespace, true, true),
            (&other_boot, false, false),
        ] {
            let test_dir = TestDir::new();
            let file = test_dir.write("fragments/trace.5.jsonl", Some(header), 0);
            assert!(!locked || fd::try_lock(file.as_raw_fd()));
            test_dir.clean();
            let is_left = test_dir.has_kept("trace.5.jsonl", "previous/old");
            assert_eq!(is_left, stays, "{header:?} locked {locked}");
        }
    }

    #[test]
    fn segments_are_abandoned_once_nobody_owns_the_newest() {
        for (locked, grown, moves) in [
            (false, false, true),
            (true, false, false),
            (false, true, false),
        ] {
            let test_dir = TestDir::new();
            let live = FragmentHeader {
                start_time: identity::read().start_time,
                ..header("old")
            };
            for name in ["trace.5.s3.jsonl", "trace.5.s4.jsonl"] {
                drop(test_dir.write(&format!("fragments/{name}"), Some(&live), 100));
            }
            // A segment that was just created and has no header yet, as a kill can leave it.
            let newest = test_dir.write("fragments/trace.5.s5.jsonl", None, 100);
            assert!(!locked || fd::try_lock(newest.as_raw_fd()));
            if grown {
                drop(test_dir.write("fragments/trace.5.s6.jsonl", Some(&live), 0));
            }
            let directory = test_dir.directory();
            let fragments = directory.open_folder("fragments").unwrap();
            let segments = ("trace.5", &[3, 4, 5][..]);
            if locked {
                drop(test_dir.write("fragments/trace.5.s5.jsonl", Some(&live), 0));
            }
            let header = abandoned(&fragments, segments, &new_run());
            assert_eq!(header.is_some(), moves, "locked {locked} grown {grown}");
        }
    }

    #[test]
    fn a_segment_of_the_largest_number_is_left_alone() {
        let test_dir = TestDir::new();
        let name = format!("fragments/trace.7.s{}.jsonl", u32::MAX);
        drop(test_dir.write(&name, None, 100));
        test_dir.clean();
        assert!(test_dir.path(&name).exists());
    }

    #[test]
    fn a_ring_is_not_an_orphan_while_any_segment_exists() {
        for (segment, stays) in [
            (Some("trace.5.s7.jsonl"), true),
            (Some("trace.55.jsonl"), false),
            (None, false),
        ] {
            let test_dir = TestDir::new();
            drop(test_dir.write("fragments/trace.5.ring", None, 100));
            if let Some(name) = segment {
                drop(test_dir.write(&format!("fragments/{name}"), Some(&header("new")), 0));
            }
            test_dir.clean();
            let is_left = test_dir.path("fragments/trace.5.ring").exists();
            assert_eq!(is_left, stays, "{segment:?}");
        }
    }

    #[test]
    fn a_fragment_without_a_header_is_left_to_a_process_that_may_be_starting() {
        for (age, stays) in [(0, true), (30, true), (90, false)] {
            let test_dir = TestDir::new();
            drop(test_dir.write("fragments/trace.5.jsonl", None, age));
            test_dir.clean();
            let is_left = test_dir.has_kept("trace.5.jsonl", "previous/unknown");
            assert_eq!(is_left, stays, "{age} s");
        }
    }
}
