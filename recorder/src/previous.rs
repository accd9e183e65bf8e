//! `previous/`: where the fragments of earlier runs go, and how many of them stay.
//!
//! A directory may be shared by several hosts: each forgets only its own fragments, and counts only the runs that have some.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::time::SystemTime;

use crate::config::Config;
use crate::format::{
    FragmentHeader, PREVIOUS_DIR, RING_SUFFIX, is_fragment_name, segment_name, stem_and_segment,
};
use crate::owner::read_header;
use crate::run::folder_mode;
use crate::sys::dir::Dir;

/// The run of fragments without a usable header.
pub(crate) const UNKNOWN_RUN: &str = "unknown";
/// Such fragments kept for each previous run that is kept.
const UNKNOWN_FRAGMENTS: usize = 8;

/// Moves a fragment and its ring into `previous/<run>/`. The ring goes first: a kill in between leaves segments, and the next cleaning
/// moves them beside their ring, while a ring left alone would look like that of a fragment somebody removed.
pub(crate) fn move_aside(
    config: &Config,
    directory: &Dir,
    fragments: &Dir,
    (stem, segments): (&str, &[u32]),
    (run, header): (&str, Option<&FragmentHeader>),
) -> io::Result<()> {
    let mode = folder_mode(config.mode);
    let target = directory
        .create_folder(PREVIOUS_DIR, mode)?
        .create_folder(run, mode)?;
    let ring = with(stem, RING_SUFFIX);
    let has_ring = fragments.open_file(&ring, libc::O_RDONLY).is_ok();
    let long = format!("{stem}.{}", suffix(header));
    let is_taken = segments
        .iter()
        .any(|segment| target.has(&named(stem, *segment)))
        || (has_ring && target.has(&ring))
        || is_begun(&target, &long);
    let new_stem = if is_taken { &long } else { stem };
    if has_ring {
        fragments.move_to(&ring, &target, &with(new_stem, RING_SUFFIX))?;
    }
    let mut moves = segments.iter().map(|segment| {
        fragments.move_to(&named(stem, *segment), &target, &named(new_stem, *segment))
    });
    moves.try_for_each(|moved| moved)
}

fn named(stem: &str, segment: u32) -> OsString {
    OsString::from(segment_name(stem, segment))
}

/// Whether a move that was cut in two has left something of this stem.
fn is_begun(target: &Dir, stem: &str) -> bool {
    let is_of_it = |name: OsString| {
        let name = name.to_string_lossy();
        stem_and_segment(&name).is_some_and(|(of, _)| of == stem)
    };
    target.names().unwrap_or_default().into_iter().any(is_of_it)
}

fn with(stem: &str, suffix: &str) -> OsString {
    OsString::from(format!("{stem}{suffix}"))
}

/// What makes a taken name a free one: the nonce, so that a move cut in two goes on under the same name.
fn suffix(header: Option<&FragmentHeader>) -> String {
    let nonce = header.map(|header| header.nonce.clone());
    nonce
        .filter(|nonce| nonce.len() == 16 && nonce.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .unwrap_or_else(|| format!("{:016x}", crate::sys::random()))
}

/// The fragments of this host in one folder of `previous/`, newest first: when each was last written, and its name.
struct OldRun {
    name: OsString,
    folder: Dir,
    fragments: Vec<(SystemTime, OsString)>,
}

impl OldRun {
    fn open(previous: &Dir, name: OsString, host: &str) -> Option<OldRun> {
        let folder = previous.open_folder(&name.to_string_lossy()).ok()?;
        let written = |name: OsString| Some((last_written(&folder, &name, host)?, name));
        let mut fragments: Vec<_> = folder
            .names()
            .ok()?
            .into_iter()
            .filter_map(written)
            .collect();
        fragments.sort_by(|a, b| b.cmp(a));
        Some(OldRun {
            name,
            folder,
            fragments,
        })
    }

    /// When the run last wrote anything. The folder's own time would be that of the move, which many runs may share.
    fn last_written(&self) -> Option<SystemTime> {
        self.fragments.first().map(|(time, _)| *time)
    }

    /// Removes all but the newest fragments, each after its ring: what a kill leaves half removed is still found by its fragment.
    fn keep_newest(&self, count: usize) {
        for (_, name) in self.fragments.iter().skip(count) {
            let text = name.to_string_lossy();
            let stem = stem_and_segment(&text).map_or(&*text, |(stem, _)| stem);
            let ring = with(stem, RING_SUFFIX);
            if self.folder.open_file(&ring, libc::O_RDONLY).is_ok() {
                let _ = self.folder.remove(&ring); // only tidying
            }
            let _ = self.folder.remove(name); // only tidying
        }
    }

    /// Removes this host's fragments, and the folder if that was all.
    fn remove(self, previous: &Dir) {
        self.keep_newest(0);
        let _ = previous.remove_folder(&self.name); // stays while it holds something else
    }
}

/// When a fragment of this host was last written; `None` for anything else.
fn last_written(folder: &Dir, name: &OsStr, host: &str) -> Option<SystemTime> {
    if !is_fragment_name(&name.to_string_lossy()) {
        return None;
    }
    let (file, status) = folder.open_linked(name).ok()?;
    let header = read_header(&file);
    let elsewhere = header.as_ref().is_some_and(|header| header.host != host);
    let not_ours = header.is_none() && status.links > 1;
    (!elsewhere && !not_ours).then(|| modified(file))?
}

/// When a file was last written.
pub(crate) fn modified(file: OwnedFd) -> Option<SystemTime> {
    std::fs::File::from(file).metadata().ok()?.modified().ok()
}

/// Keeps the `SA_PROFILE_OLD_RUNS` runs that were written last; fragments of no known run are bounded, but no run that could push one out.
pub(crate) fn forget_old_runs(config: &Config, host: &str, directory: &Dir) {
    let Ok(previous) = directory.open_folder(PREVIOUS_DIR) else {
        return;
    };
    let names = previous.names().unwrap_or_default();
    let (unknown, mut runs): (Vec<OldRun>, Vec<OldRun>) = names
        .into_iter()
        .filter_map(|name| OldRun::open(&previous, name, host))
        .partition(|run| run.name == UNKNOWN_RUN);
    for run in unknown {
        run.keep_newest(config.old_runs.saturating_mul(UNKNOWN_FRAGMENTS));
    }
    runs.sort_by_key(|run| Reverse(run.last_written()));
    for run in runs.into_iter().skip(config.old_runs) {
        run.remove(&previous);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cleaning::testing::{Ground, header};
    use std::fs;

    #[test]
    fn the_runs_written_last_stay_whenever_they_were_moved() {
        let ground = Ground::new();
        ground.write("previous/newest/trace.1.jsonl", Some(&header("newest")), 10);
        ground.write("previous/older/trace.2.jsonl", Some(&header("older")), 5000);
        ground.write("previous/mixed/trace.3.jsonl", Some(&header("mixed")), 6000);
        ground.write("previous/mixed/trace.4.jsonl", Some(&header("mixed")), 20);
        fs::write(ground.path("previous/older/trace.2.ring"), "").unwrap();
        ground.forget(2);
        assert!(ground.path("previous/newest").exists() && ground.path("previous/mixed").exists());
        assert!(!ground.path("previous/older").exists());
        assert!(ground.path("previous/mixed/trace.3.jsonl").exists());
    }

    #[test]
    fn fragments_of_no_known_run_are_bounded_and_push_no_run_out() {
        let ground = Ground::new();
        ground.write("previous/run/trace.1.jsonl", Some(&header("run")), 5000);
        for age in 0..20 {
            ground.write(&format!("previous/unknown/trace.{age}.jsonl"), None, age);
        }
        ground.forget(1);
        assert!(ground.path("previous/run/trace.1.jsonl").exists());
        let left = fs::read_dir(ground.path("previous/unknown"))
            .unwrap()
            .count();
        assert_eq!(left, UNKNOWN_FRAGMENTS);
        assert!(ground.path("previous/unknown/trace.0.jsonl").exists());
    }

    #[test]
    fn runs_of_other_hosts_are_neither_counted_nor_touched() {
        let ground = Ground::new();
        let mut elsewhere = header("there");
        elsewhere.host.push_str("-other");
        ground.write("previous/there/trace.1.jsonl", Some(&elsewhere), 10);
        ground.write("previous/both/trace.1.jsonl", Some(&elsewhere), 10);
        ground.write("previous/both/trace.2.jsonl", Some(&header("both")), 5000);
        ground.write("previous/here/trace.1.jsonl", Some(&header("here")), 60);
        ground.forget(1);
        assert!(ground.path("previous/there/trace.1.jsonl").exists());
        assert!(ground.path("previous/both/trace.1.jsonl").exists());
        assert!(!ground.path("previous/both/trace.2.jsonl").exists());
        assert!(ground.path("previous/here/trace.1.jsonl").exists());
    }

    #[test]
    fn a_move_cut_after_the_ring_goes_on_beside_it() {
        let ground = Ground::new();
        let header = header("old");
        ground.write("fragments/trace.5.jsonl", Some(&header), 100);
        ground.write("previous/old/trace.5.jsonl", Some(&header), 100); // the name is taken
        fs::write(ground.path("fragments/trace.5.ring"), "tail").unwrap();
        let (config, directory) = (ground.config(1), ground.directory());
        let fragments = directory.open_folder("fragments").unwrap();
        let target = ("old", Some(&header));
        let fail = fs::create_dir(ground.path("previous/old/trace.5.0123456789abcdef.jsonl"));
        fail.unwrap();
        let fragment = ("trace.5", &[0][..]);
        move_aside(&config, &directory, &fragments, fragment, target).unwrap_err();
        assert!(ground.path("fragments/trace.5.jsonl").exists());
        fs::remove_dir(ground.path("previous/old/trace.5.0123456789abcdef.jsonl")).unwrap();
        move_aside(&config, &directory, &fragments, fragment, target).unwrap();
        for suffix in ["jsonl", "ring"] {
            let moved = format!("previous/old/trace.5.0123456789abcdef.{suffix}");
            assert!(ground.path(&moved).exists(), "{moved}");
        }
    }
}
