//! `previous/`: the folder of the fragments of earlier runs, and the limits on their number.
//!
//! Several hosts may share a directory. Each host removes only its own fragments, and counts only
//! the runs that have some.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::io;

use crate::run::config::Config;
use crate::run::folder::{folder_mode, has_segment};
use crate::run::owner::read_header;
use crate::run::removed::Removed;
use crate::sys::clock;
use crate::sys::dir::Dir;
use crate::sys::fd::Status;
use sa_format::{
    FragmentHeader, PREVIOUS_DIR, is_fragment_name, is_ring_name, ring_name, segment_name,
    stem_and_segment,
};

/// Folder of the fragments without a usable header.
pub(crate) const UNKNOWN_RUN: &str = "unknown";
/// Number of such fragments that are kept for each previous run that is kept.
const UNKNOWN_FRAGMENTS: usize = 8;
/// Age below which runs are kept by default, and limits on their number and their total size.
const DAY_NS: u64 = 24 * 60 * 60 * 1_000_000_000;
const MAX_RUNS: usize = 20;
const MAX_BYTES: u64 = 1 << 30;

/// Moves the segments of the fragment `stem` and its ring into `previous/<run>/`. The ring goes
/// first. A kill in between leaves segments, and the next cleaning moves them to their ring. A ring
/// that stayed alone would look like the ring of a fragment that somebody removed.
pub(crate) fn move_aside(
    config: &Config,
    directory: &Dir,
    fragments: &Dir,
    (stem, segments): (&str, &[u32]),
    (run, header): (&str, Option<&FragmentHeader>),
) -> io::Result<()> {
    let mode = folder_mode(config.mode);
    let previous = directory.create_folder(PREVIOUS_DIR, mode)?;
    let target = previous.create_folder(run, mode)?;
    let ring = ring_name(stem);
    let has_ring = fragments.open_file(&ring).is_ok();
    let long = format!("{stem}.{}", suffix(header));
    let mut names = segments.iter().map(|segment| segment_name(stem, *segment));
    let is_taken = names.any(|name| target.has(name))
        || (has_ring && target.has(&ring))
        || has_segment(&target.names().unwrap_or_default(), &long); // left by an interrupted move
    let new_stem = if is_taken { &long } else { stem };
    if has_ring {
        fragments.move_to(&ring, &target, &ring_name(new_stem))?;
    }
    for segment in segments {
        let [name, new_name] = [stem, new_stem].map(|stem| segment_name(stem, *segment));
        fragments.move_to(&name, &target, &new_name)?;
    }
    Ok(())
}

/// Returns the file name of the ring that belongs to the segment file `name`.
fn segment_ring_name(name: &OsStr) -> String {
    let text = name.to_string_lossy();
    ring_name(stem_and_segment(&text).map_or(&*text, |(stem, _)| stem))
}

/// Returns a suffix that makes the name of a moved fragment unique. Uses the nonce in the header,
/// so that an interrupted move continues under the same name, or a random number if the header has
/// no nonce.
fn suffix(header: Option<&FragmentHeader>) -> String {
    let nonce = header.map(|header| header.nonce.clone());
    nonce
        .filter(|nonce| nonce.len() == 16 && nonce.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .unwrap_or_else(|| format!("{:016x}", crate::sys::random()))
}

/// A segment of a fragment of this host.
struct OldFragment {
    status: Status,
    name: OsString,
}

/// The fragments of this host in one folder of `previous/`, newest first.
struct OldRun {
    name: OsString,
    folder: Dir,
    fragments: Vec<OldFragment>,
    /// Disk space of the rings in the folder, in bytes.
    ring_bytes: u64,
}

impl OldRun {
    fn open(previous: &Dir, name: OsString, host: &str) -> Option<OldRun> {
        let folder = previous.open_folder(&name.to_string_lossy()).ok()?;
        let mut names = folder.names().ok()?;
        let is_ring = |name: &&OsString| is_ring_name(&name.to_string_lossy());
        let disk_bytes = |name| Some(folder.open_linked(name).ok()?.1.disk_bytes);
        let ring_bytes = names.iter().filter(is_ring).filter_map(disk_bytes).sum();
        names.retain(|name| is_fragment_name(&name.to_string_lossy()));
        names.sort_unstable();
        // Reading every header of every run would delay the host at each start. If the first one of
        // a run is from this host, nearly always all are.
        let first = names.first().and_then(|name| folder.open_linked(name).ok());
        let header = first.and_then(|(file, _)| read_header(&file));
        let is_ours = header.is_some_and(|header| header.host == host);
        let old = |name: OsString| match is_ours {
            true => Some(OldFragment {
                status: folder.open_linked(&name).ok()?.1,
                name,
            }),
            false => fragment_of_host(&folder, name, host),
        };
        let mut fragments: Vec<OldFragment> = names.into_iter().filter_map(old).collect();
        let age = |old: &OldFragment| (old.status.modified_ns, old.name.clone());
        fragments.sort_by_cached_key(|old| Reverse(age(old)));
        Some(OldRun {
            name,
            folder,
            fragments,
            ring_bytes,
        })
    }

    /// Returns the time when the run last wrote something, in ns since 1970, or `None` if it has no
    /// fragment of this host. The folder's own time would be the time of the move, which many runs
    /// may share.
    fn last_written_ns(&self) -> Option<u64> {
        let newest = self.fragments.first();
        newest.map(|fragment| fragment.status.modified_ns)
    }

    fn disk_bytes(&self) -> u64 {
        let fragments = self
            .fragments
            .iter()
            .map(|fragment| fragment.status.disk_bytes);
        fragments.sum::<u64>().saturating_add(self.ring_bytes)
    }

    /// Removes the run's fragments on this host, except for the newest `count`. First counts their
    /// events and reports them to `removed`. Each fragment is removed after its ring, so that a
    /// removal interrupted by a kill is still found through the fragment.
    fn keep_newest(&self, count: usize, host: &str, removed: &mut Removed<'_>) {
        let gone: Vec<OldFragment> = self
            .fragments
            .iter()
            .skip(count)
            .filter_map(|old| fragment_of_host(&self.folder, old.name.clone(), host))
            .collect();
        let files = gone.iter().filter_map(|old| {
            let (file, _) = self.folder.open_linked(&old.name).ok()?;
            let has_ring = self.folder.has(segment_ring_name(&old.name));
            Some((file, old.status.size, has_ring))
        });
        removed.add(&self.name.to_string_lossy(), files);
        for OldFragment { name, .. } in &gone {
            let ring = segment_ring_name(name);
            if self.folder.open_file(&ring).is_ok() {
                let _ = self.folder.remove(&ring); // only a cleanup
            }
            let _ = self.folder.remove(name); // only a cleanup
        }
    }

    /// Removes the run's fragments on this host, and its folder in `previous/` if that is then
    /// empty. First reports the fragments to `removed`.
    fn remove(self, previous: &Dir, host: &str, removed: &mut Removed<'_>) {
        self.keep_newest(0, host, removed);
        let _ = previous.remove_folder(&self.name); // stays if it contains anything else
    }
}

/// Opens the segment file `name` and returns it if its header names this host. A file without a
/// header counts too, unless it has further links. Returns `None` for anything else.
fn fragment_of_host(folder: &Dir, name: OsString, host: &str) -> Option<OldFragment> {
    let (file, status) = folder.open_linked(&name).ok()?;
    let header = read_header(&file);
    let elsewhere = header.as_ref().is_some_and(|header| header.host != host);
    let not_ours = header.is_none() && status.links > 1;
    (!elsewhere && !not_ours).then_some(OldFragment { status, name })
}

/// Removes old runs from `previous/`. Keeps the `SA_PROFILE_OLD_RUNS` most recently written runs,
/// or by default the runs of the last day. Fragments of unknown runs are limited separately, so
/// that they cannot displace a run. Lists the removed runs in `<dir>/removed`, and returns a
/// message about them, if any.
pub(crate) fn forget_old_runs(config: &Config, host: &str, directory: &Dir) -> Option<String> {
    let previous = directory.open_folder(PREVIOUS_DIR).ok()?;
    let names = previous.names().unwrap_or_default();
    let (unknown, mut runs): (Vec<OldRun>, Vec<OldRun>) = names
        .into_iter()
        .filter_map(|name| OldRun::open(&previous, name, host))
        .partition(|run| run.name == UNKNOWN_RUN);
    let mut removed = Removed::new(directory, config.mode);
    for run in unknown {
        let kept = config.old_runs.unwrap_or(1);
        run.keep_newest(kept.saturating_mul(UNKNOWN_FRAGMENTS), host, &mut removed);
    }
    runs.sort_by_key(|run| Reverse(run.last_written_ns()));
    let kept = config.old_runs.unwrap_or_else(|| count_recent(&runs));
    for run in runs.into_iter().skip(kept) {
        run.remove(&previous, host, &mut removed);
    }
    removed.message()
}

/// Returns the number of runs to keep by default, out of `runs`, which are sorted newest first:
/// those from the last day, within the limits on number and size. The newest run is always kept.
fn count_recent(runs: &[OldRun]) -> usize {
    let now_ns = clock::realtime_ns();
    let is_recent = |run: &OldRun| {
        let written_ns = run.last_written_ns();
        written_ns.is_none_or(|written_ns| now_ns.saturating_sub(written_ns) < DAY_NS) // a time in the future counts as recent
    };
    let mut bytes = 0u64;
    let stays = |(number, run): &(usize, &OldRun)| {
        bytes = bytes.saturating_add(run.disk_bytes());
        *number == 0 || *number < MAX_RUNS && bytes <= MAX_BYTES && is_recent(run)
    };
    runs.iter().enumerate().take_while(stays).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::cleaning::testing::{TestDir, header};
    use sa_format::RemovedRuns;
    use std::fs;
    use std::time::{Duration, SystemTime};

    /// Creates runs of these ages in seconds, newest first, each with a fragment of `events`
    /// events.
    fn runs(test_dir: &TestDir, ages: &[u64], events: usize) {
        for (number, age) in ages.iter().enumerate() {
            let name = format!("run-{number:02}");
            let fragment = format!("previous/{name}/trace.1.jsonl");
            drop(test_dir.write(&fragment, Some(&header(&name)), *age));
            let path = test_dir.path(&fragment);
            let event = "{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1.000}\n".repeat(events);
            let text = fs::read_to_string(&path).unwrap() + "\n" + &event;
            fs::write(&path, text).unwrap();
            set_written(&path, SystemTime::now() - Duration::from_secs(*age));
        }
    }

    fn set_written(path: &std::path::Path, at: SystemTime) {
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(at).unwrap();
    }

    fn left(test_dir: &TestDir) -> usize {
        fs::read_dir(test_dir.path("previous")).unwrap().count()
    }

    #[test]
    fn issue_19_runs_of_the_last_day_stay() {
        let test_dir = TestDir::new();
        runs(&test_dir, &[60; 20], 3);
        assert_eq!(test_dir.forget(None), None);
        assert_eq!(left(&test_dir), 20);
        assert!(!test_dir.path("removed").exists());
        runs(&test_dir, &[60, 60, 90_000, 100_000], 3);
        assert!(test_dir.forget(None).is_some());
        assert_eq!(left(&test_dir), 18);
        let test_dir = TestDir::new();
        runs(&test_dir, &[90_000, 100_000], 3);
        test_dir.forget(None);
        assert_eq!(left(&test_dir), 1, "the newest one stays however old it is");
    }

    #[test]
    fn issue_19_runs_of_a_clock_that_is_ahead_stay() {
        let test_dir = TestDir::new();
        runs(&test_dir, &[0, 1, 2], 3);
        for number in 0..3 {
            let path = test_dir.path(&format!("previous/run-0{number}/trace.1.jsonl"));
            set_written(&path, SystemTime::now() + Duration::from_secs(60));
        }
        assert_eq!(test_dir.forget(None), None);
        assert_eq!(left(&test_dir), 3);
    }

    #[test]
    fn issue_19_rings_count_where_runs_are_removed() {
        let test_dir = TestDir::new();
        runs(&test_dir, &[10, 20], 7);
        let ring = test_dir.path("previous/run-01/trace.1.ring");
        fs::write(ring, vec![1; 1 << 20]).unwrap();
        let previous = test_dir.directory().open_folder(PREVIOUS_DIR).unwrap();
        let host = crate::run::identity::read().host;
        let run = OldRun::open(&previous, "run-01".into(), &host).unwrap();
        assert!(run.disk_bytes() >= 1 << 20, "{}", run.disk_bytes());
        // The contents of the ring are not counted.
        let message = test_dir.forget(Some(1)).unwrap();
        assert!(message.contains("run-01: about 7 events"), "{message}");
    }

    #[test]
    fn issue_19_what_is_removed_is_listed() {
        let test_dir = TestDir::new();
        runs(
            &test_dir,
            &(0..23).map(|age| 10 * age).collect::<Vec<_>>(),
            7,
        );
        test_dir.forget(None).unwrap();
        let read = || -> RemovedRuns {
            serde_json::from_str(&fs::read_to_string(test_dir.path("removed")).unwrap()).unwrap()
        };
        // The message is printed once, but each removal is listed.
        assert_eq!(test_dir.forget(Some(10)), None);
        assert_eq!(read().runs.len(), 13);
        for round in 0..40 {
            runs(&test_dir, &[0, 10, 20], round);
            test_dir.forget(Some(0));
        }
        let removed = read();
        assert!(
            removed.runs.len() <= 64 && removed.older_runs > 50,
            "{removed:?}"
        );
    }

    #[test]
    fn fragments_of_unknown_runs_are_limited_and_displace_no_run() {
        let test_dir = TestDir::new();
        test_dir.write("previous/run/trace.1.jsonl", Some(&header("run")), 5000);
        for age in 0..20 {
            test_dir.write(&format!("previous/unknown/trace.{age}.jsonl"), None, age);
        }
        test_dir.forget(Some(1));
        assert!(test_dir.path("previous/run/trace.1.jsonl").exists());
        let left = fs::read_dir(test_dir.path("previous/unknown")).unwrap();
        assert_eq!(left.count(), UNKNOWN_FRAGMENTS);
        assert!(test_dir.path("previous/unknown/trace.0.jsonl").exists());
    }

    #[test]
    fn the_runs_of_this_host_that_were_written_last_stay() {
        let test_dir = TestDir::new();
        let mut elsewhere = header("there");
        elsewhere.host.push_str("-other");
        for (number, (name, header, age)) in [
            ("there", &elsewhere, 10),
            ("both", &elsewhere, 10),
            ("both", &header("both"), 5000),
            ("older", &header("older"), 4000),
            ("mixed", &header("mixed"), 6000),
            ("mixed", &header("mixed"), 20),
            ("newest", &header("newest"), 10),
        ]
        .into_iter()
        .enumerate()
        {
            let fragment = format!("previous/{name}/trace.{number}.jsonl");
            drop(test_dir.write(&fragment, Some(header), age));
        }
        fs::write(test_dir.path("previous/older/trace.3.ring"), "").unwrap();
        test_dir.forget(Some(2));
        let is_left = |name: &&str| test_dir.path("previous").join(name).exists();
        let fragments = [
            "there/trace.0.jsonl",
            "both/trace.1.jsonl",
            "mixed/trace.4.jsonl",
        ];
        assert!(fragments.iter().all(is_left) && is_left(&"newest"));
        assert!(!["both/trace.2.jsonl", "older"].iter().any(is_left));
    }

    #[test]
    fn an_interrupted_move_continues_next_to_the_ring() {
        let test_dir = TestDir::new();
        let header = header("old");
        test_dir.write("fragments/trace.5.jsonl", Some(&header), 100);
        test_dir.write("previous/old/trace.5.jsonl", Some(&header), 100); // the name is already in use
        fs::write(test_dir.path("fragments/trace.5.ring"), "tail").unwrap();
        let (config, directory) = (test_dir.config(Some(1)), test_dir.directory());
        let fragments = directory.open_folder("fragments").unwrap();
        let target = ("old", Some(&header));
        let in_the_way = test_dir.path("previous/old/trace.5.0123456789abcdef.jsonl");
        fs::create_dir(&in_the_way).unwrap();
        let fragment = ("trace.5", &[0][..]);
        move_aside(&config, &directory, &fragments, fragment, target).unwrap_err();
        assert!(test_dir.path("fragments/trace.5.jsonl").exists());
        fs::remove_dir(in_the_way).unwrap();
        move_aside(&config, &directory, &fragments, fragment, target).unwrap();
        for suffix in ["jsonl", "ring"] {
            let moved = format!("previous/old/trace.5.0123456789abcdef.{suffix}");
            assert!(test_dir.path(&moved).exists(), "{moved}");
        }
    }
}
